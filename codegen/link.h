// Links object code to an ELF shared object.
#pragma once
#include <vector>

#include "codegen/backend.h"

namespace relaxc::codegen {

// Returns the bytes of a shared object that exports the kernels and needs libm and libc only. The same objects give the
// same bytes. Throws a CompileError when the linker fails or no temporary file can be written.
std::vector<char> link_shared_object(const KernelObjects& kernels);

}  // namespace relaxc::codegen
