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

void link_functions(KernelObjects& objects, const std::set<std::string>& called,
                    const std::vector<std::string>& files) {
  objects.linked = files;
  const std::set<std::string> defined = functions_of(files);
  for (const std::string& name : called)
    (defined.contains(name) ? objects.linked_functions : objects.called).push_back(name);
}

std::shared_ptr<const vm::KernelLibrary> load_connected(const KernelObjects& objects,
                                                        const vm::UserLibraries& libraries) {
  std::shared_ptr<const vm::KernelLibrary> code = backend_of(objects.target).load(objects);
  Diagnostics diagnostics;
  vm::connect_functions(joined(objects.called, "\n"), *code, libraries, {}, diagnostics);
  diagnostics.throw_if_errors();
  return code;
}

}  // namespace relaxc::codegen
