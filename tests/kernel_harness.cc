#include "tests/kernel_harness.h"

#include <map>

namespace relaxc::codegen {

std::vector<std::string> runnable_targets() {
  std::vector<std::string> names{"host", "x86-64"};
  Target host = host_target();
  if (host.triple.rfind("x86_64", 0) != 0) return {"host"};
  names.push_back("x86-64-v2");
  if (host.vector_bits >= 256 && host.has_fma) names.push_back("x86-64-v3");
  if (host.vector_bits >= 512) names.push_back("x86-64-v4");
  return names;
}

CompiledKernel::CompiledKernel(const PrimFuncRef& function, const std::string& target, int opt_level)
    : library_(load_jit(compile_kernels({{"test", function}}, parse_target(target), {.opt_level = opt_level}))) {}

RunResult CompiledKernel::run(std::vector<void*> data, std::vector<int64_t> scalars, int threads) const {
  // Starting and joining threads takes longer than most of these kernels.
  static std::map<int, std::shared_ptr<vm::ThreadPool>> pools;
  std::shared_ptr<vm::ThreadPool>& pool = pools[threads];
  if (!pool) pool = std::make_shared<vm::ThreadPool>(threads);
  vm::KernelRuntime runtime(pool);
  runtime.context()->error = nullptr;
  int32_t status = runtime.call(library_->find(kernel_symbol("test")), data.data(), scalars.data());
  return {status, runtime.context()->error ? runtime.context()->error : ""};
}

}  // namespace relaxc::codegen
