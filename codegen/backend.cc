#include "codegen/backend.h"

#include "codegen/llvm_compile.h"
#include "vm/executable.h"

namespace relaxc::codegen {

std::string kernel_symbol(std::string_view name) { return std::string(vm::kKernelPrefix) + std::string(name); }

std::span<const Backend> backends() {
  static const std::vector<Backend> kBackends = {
      {.name = "llvm",
       .pipeline = "lower_kernels",
       .compile = compile_kernels,
       .link = link_shared_object,
       .load = load_jit,
       .texts = {{"llvm", to_llvm_ir}, {"asm", to_assembly}}},
  };
  return kBackends;
}

// LLVM has every target that codegen/target.h accepts.
const Backend& backend_of(const Target&) { return backends().front(); }

}  // namespace relaxc::codegen
