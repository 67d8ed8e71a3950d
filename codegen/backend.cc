#include "codegen/backend.h"

#include <algorithm>

#include "codegen/llvm_compile.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "vm/executable.h"

namespace relaxc::codegen {

std::string kernel_symbol(std::string_view name) { return std::string(vm::kKernelPrefix) + std::string(name); }

std::span<const Backend> backends() {
  static const std::vector<Backend> kBackends = {
      {.name = "llvm",
       .takes = has_code_generator,
       .pipeline = "lower_kernels",
       .compile = compile_kernels,
       .link = link_shared_object,
       .load = load_jit,
       .texts = {{"llvm", to_llvm_ir}, {"asm", to_assembly}}},
  };
  return kBackends;
}

const Backend& backend_of(const Target& target) {
  auto row = std::ranges::find_if(backends(), [&](const Backend& backend) { return backend.takes(target); });
  if (row == backends().end())
    fail_unsupported({}, "no backend makes code for '{}'; there are: {}", target.triple,
                     joined(backends(), &Backend::name));
  return *row;
}

}  // namespace relaxc::codegen
