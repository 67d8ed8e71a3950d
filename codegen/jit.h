// Loads object code into this process.
#pragma once
#include <memory>

#include "codegen/backend.h"
#include "vm/artifact.h"

namespace relaxc::codegen {

// Loads the kernels, which stay callable as long as the library lives. The target must be able to run here. Functions
// of libm come from the process.
std::shared_ptr<const vm::KernelLibrary> load_jit(const KernelObjects& kernels);

}  // namespace relaxc::codegen
