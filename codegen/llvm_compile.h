// Lowered PrimFuncs to machine code. The object code is position independent and the same for the JIT (jit.h) and for
// artifacts (link.h).
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"
#include "tir/target.h"

namespace relaxc::codegen {

// By name; what a kernel must look like is said in llvm_emit.h.
using KernelMap = std::map<std::string, PrimFuncRef>;

struct CompileOptions {
  int jobs = 1;       // threads; the result does not depend on it
  int opt_level = 2;  // 0: as emitted; 1: fast compilation; 2 and 3: for fast kernels
};

struct KernelObjects {
  Target target;
  std::vector<std::string> names;          // sorted; the symbols are kernel_symbol(name)
  std::vector<std::vector<char>> objects;  // ELF object files
};

// "relaxc_k_" + name.
std::string kernel_symbol(std::string_view name);

// The same kernels, target and opt_level give the same bytes. Safe to call from several threads.
KernelObjects compile_kernels(const KernelMap& kernels, const Target& target, const CompileOptions& options = {});

// What compile_kernels() makes on the way, as text: optimised LLVM IR, and assembly.
std::string to_llvm_ir(const KernelMap& kernels, const Target& target, const CompileOptions& options = {});
std::string to_assembly(const KernelMap& kernels, const Target& target, const CompileOptions& options = {});

}  // namespace relaxc::codegen
