// LLVM's backend: compiles lowered PrimFuncs, in the form that emit_kernel takes, to machine code. The object code is
// position independent and the same for the JIT (jit.cc) and for artifacts (link.cc).
#pragma once
#include "codegen/backend.h"

namespace relaxc::codegen {

// This is Backend::takes: LLVM's registry has the target's architecture.
bool has_code_generator(const Target& target);
// These are Backend::compile and Backend::texts: optimised LLVM IR, and assembly.
KernelObjects compile_kernels(const KernelMap& kernels, const Target& target, const PassSettings& settings = {});
std::string to_llvm_ir(const KernelMap& kernels, const Target& target, const PassSettings& settings = {});
std::string to_assembly(const KernelMap& kernels, const Target& target, const PassSettings& settings = {});

// Returns an object file whose variables hold the addresses of the functions that kernels call and that are linked in.
std::vector<char> slots_of_linked(const KernelObjects& kernels);

// This is Backend::load. The target must be able to run here. Functions of libm come from the process.
std::shared_ptr<const vm::KernelLibrary> load_jit(const KernelObjects& kernels);
// This is Backend::link. The shared object is an ELF file that needs libm and libc only. The same objects give the same
// bytes. Throws a CompileError when the linker fails or no temporary file can be written.
std::vector<char> link_shared_object(const KernelObjects& kernels);

}  // namespace relaxc::codegen
