// LLVM's backend: compiles lowered PrimFuncs, in the form that llvm_emit.h takes, to machine code. The object code is
// position independent and the same for the JIT (jit.h) and for artifacts (link.h).
#pragma once
#include "codegen/backend.h"

namespace relaxc::codegen {

// Compiles the kernels. The same kernels, target and opt_level give the same bytes. Safe to call from several threads.
KernelObjects compile_kernels(const KernelMap& kernels, const Target& target, const CompileOptions& options = {});

// These return the steps of compile_kernels() as text: optimised LLVM IR, and assembly.
std::string to_llvm_ir(const KernelMap& kernels, const Target& target, const CompileOptions& options = {});
std::string to_assembly(const KernelMap& kernels, const Target& target, const CompileOptions& options = {});

}  // namespace relaxc::codegen
