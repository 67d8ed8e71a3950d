// A lowered PrimFunc becomes LLVM IR.
//
// Lowered means: no Block, no thread-bound loop; every buffer is dense (several dims are taken as row-major); at most
// the last index of an access is a vector; params are buffers and integer scalars. A breach is a bug of the lowering
// passes and fails a check; what valid lowered code may contain but is not supported throws a CompileError.
#pragma once
#include <string>

#include "ir/module.h"
#include "tir/target.h"

namespace llvm {
class Module;
}

namespace relaxc::codegen {

// Adds `int32_t symbol(const relaxc_kernel_args*)` to the module, external; what else it needs is internal.
void emit_kernel(llvm::Module& module, const std::string& symbol, const PrimFuncRef& function, const Target& target);

}  // namespace relaxc::codegen
