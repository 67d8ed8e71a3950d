// Modules that call what the host brings: C-ABI kernels (R.call_dps_packed) and functions (R.call_packed).
#include "codegen/compile.h"

#include "tests/catch.h"

using namespace relaxc;

namespace {

// y = x - 1 on `scalars[0]` elements.
int32_t shift_down(const relaxc_kernel_args* args) {
  const float* x = static_cast<const float*>(args->data[0]);
  float* y = static_cast<float*>(args->data[1]);
  for (int64_t i = 0; i < args->scalars[0]; ++i) y[i] = x[i] - 1;
  return 0;
}
int32_t refuse(const relaxc_kernel_args* args) {
  args->context->error = "not today";
  return 7;
}

LoadOptions host(relaxc_kernel kernel, std::string* seen) {
  LoadOptions options;
  options.registry.add_kernel("my_shift", kernel);
  options.registry.add_function("my_note", [seen](vm::BuiltinContext&, std::span<const vm::Value> arguments) {
    *seen = fmt::format("{} {} {}", describe(arguments[0].tensor()), arguments[1].integer(), arguments.size());
    return arguments[0];
  });
  return options;
}

template <class F>
std::string message_of(F&& run) {
  try {
    run();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a module calls kernels and functions of the host", "[modules]") {
  CompiledModule module = compile_file(RELAXC_SOURCE_DIR "/tests/modules/host_functions.py");
  std::string seen;
  Session session(module.load(host(shift_down, &seen)), {.threads = 1});
  std::vector<Tensor> results = session.run({Tensor::of<float>({2, 2}, kFloat32, {-1, 0, 1, 2.5})});
  REQUIRE(results.size() == 1);
  Tensor expected = Tensor::of<float>({2, 2}, kFloat32, {0, 0, 1, 4});
  CHECK(same_contents(results[0], expected));
  CHECK(seen == "float32[2, 2] 3 3");
  // Another size, the same compile.
  CHECK(session.run({Tensor::of<float>({1, 3}, kFloat32, {1, 2, 3})})[0].shape() == std::vector<int64_t>{1, 3});
}

TEST_CASE("a failing kernel of the host ends the run with its message", "[modules]") {
  CompiledModule module = compile_file(RELAXC_SOURCE_DIR "/tests/modules/host_functions.py");
  std::string seen;
  Session session(module.load(host(refuse, &seen)), {.threads = 1});
  std::string message = message_of([&] { session.run({Tensor::of<float>({1, 1}, kFloat32, {1})}); });
  CHECK(message.find("my_shift") != std::string::npos);
  CHECK(message.find("not today") != std::string::npos);
}

TEST_CASE("a module whose host functions are missing does not load", "[modules]") {
  CompiledModule module = compile_file(RELAXC_SOURCE_DIR "/tests/modules/host_functions.py");
  std::string message = message_of([&] { module.load(); });
  CHECK(message.find("my_") != std::string::npos);
}
