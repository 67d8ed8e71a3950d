// Libraries that come with relaxc, whose functions only some programs call: the decoders of images.
#pragma once
#include "vm/executable.h"
#include "vm/user_library.h"

namespace relaxc::codegen {

// Opens those whose functions the executable calls, but for functions of the given libraries. Throws a CompileError
// that says what to do where one is not there.
vm::UserLibraries shipped_libraries(const vm::Executable& executable, const vm::UserLibraries& given);

}  // namespace relaxc::codegen
