// Tells builds of the compiler apart.
#pragma once
#include <string>

namespace relaxc::codegen {

// Returns a text that differs between builds of this compiler and of LLVM: the build identifiers that the linker put
// into the files which hold them, or hashes of these files.
const std::string& compiler_build();

}  // namespace relaxc::codegen
