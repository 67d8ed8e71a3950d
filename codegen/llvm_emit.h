// Turns a lowered PrimFunc into LLVM IR.
//
// A lowered PrimFunc does not contain a Block or a thread-bound loop. Every buffer is dense (several dims are taken as
// row-major), at most the last index of an access is a vector, and params are buffers and integer scalars. A breach is
// a bug of the lowering passes and fails a check. Valid lowered code that is not supported throws a CompileError.
#pragma once
#include <string>

#include "ir/module.h"
#include "tir/target.h"

namespace llvm {
class Module;
}

namespace relaxc::codegen {

// Adds `int32_t symbol(const relaxc_kernel_args*)` to the module as an external function. Everything else that it adds
// for the kernel is internal.
void emit_kernel(llvm::Module& module, const std::string& symbol, const PrimFuncRef& function, const Target& target);

}  // namespace relaxc::codegen
