// Modules that call what the host brings: C-ABI kernels (R.call_dps_packed) and functions (R.call_packed).
#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "vm/error.h"

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

// Functions that tests/modules/packed_calls.py calls.
LoadOptions packed_host(std::string* seen) {
  using Arguments = std::span<const vm::Value>;
  LoadOptions options;
  options.registry.add_function("host_double", [](vm::BuiltinContext&, Arguments arguments) -> vm::Value {
    const Tensor& tensor = arguments[0].tensor();
    for (int64_t i = 0; i < tensor.size(); ++i) static_cast<float*>(tensor.raw())[i] *= 2;
    return {};
  });
  options.registry.add_function("host_count", [seen](vm::BuiltinContext&, Arguments arguments) -> vm::Value {
    *seen = fmt::format("{} {} {} {}", describe(arguments[0]), arguments[1].integer(), arguments[2].number(),
                        arguments[3].string());
    return arguments[0].tensor().size();
  });
  options.registry.add_function("host_half", [](vm::BuiltinContext&, Arguments arguments) -> vm::Value {
    if (arguments[0].number() < 0) throw RuntimeError("no halves of less than nothing");
    return arguments[0].number() / 2;
  });
  return options;
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

TEST_CASE("tensor programs call functions of the host", "[modules]") {
  bool interprets = GENERATE(false, true);
  CompileSettings settings;
  if (interprets) {
    settings.passes = "legalize";
    settings.interpret.emplace();
  }
  CompiledModule module = compile_file(RELAXC_SOURCE_DIR "/tests/modules/packed_calls.py", settings);
  std::string seen;
  Session session(module.load(packed_host(&seen)), {.threads = 1});
  std::vector<Tensor> results = session.run({Tensor::of<float>({2, 2}, kFloat32, {1, 2, 3, 4})});
  REQUIRE(results.size() == 2);
  CHECK(same_contents(results[0], Tensor::of<float>({2, 2}, kFloat32, {4, 8, 12, 16})));
  CHECK(same_contents(results[1], Tensor::of<float>({2}, kFloat32, {4, 1})));
  CHECK(seen == "float32[2, 2] 3 0.5 text");
  std::string message = message_of([&] { session.run({Tensor::of<float>({1, 2}, kFloat32, {1, -2})}); });
  CHECK(message.find("host_half: no halves of less than nothing") != std::string::npos);
  // All that are missing are named when the program is loaded.
  std::string missing = message_of([&] { module.load(); });
  for (const char* name : {"host_double", "host_count", "host_half"}) CHECK(missing.find(name) != std::string::npos);
}

TEST_CASE("an external function that no library has is named", "[modules]") {
  const char* text = R"(
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def f(A: T.Buffer((4,), "float32")):
        for i in range(4):
            A[i] = T.call_extern("float32", "relaxc_has_no_such_function", T.float32(1))

    @R.function
    def main() -> R.Tensor((4,), "float32"):
        y = R.call_tir(Module.f, (), out_sinfo=R.Tensor((4,), "float32"))
        return y
)";
  Diagnostics diagnostics;
  CompiledModule module = compile(parse_module(text, "text", op_table(), diagnostics));
  std::string message = message_of([&] { module.load(); });
  CHECK(message.find("external function 'relaxc_has_no_such_function'") != std::string::npos);
}

TEST_CASE("a function of the host that takes texts writes the tensors that it is given", "[modules]") {
  constexpr std::string_view kText = R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        with R.dataflow():
            y = R.call_dps_packed("host.scale", (R.str("by"), R.prim_value(3), x), out_sinfo=R.Tensor((n,), "float32"))
            z: R.Tensor((n,)) = R.add(y, y)
            R.output(z)
        return z
)";
  LoadOptions options;
  options.registry.add_function("host.scale",
                                [](vm::BuiltinContext&, std::span<const vm::Value> arguments) -> vm::Value {
                                  CHECK(arguments[0].string() == "by");
                                  const Tensor &from = arguments[2].tensor(), &to = arguments[3].tensor();
                                  for (int64_t i = 0; i < from.size(); ++i)
                                    static_cast<float*>(to.raw())[i] =
                                        static_cast<float*>(from.raw())[i] * static_cast<float>(arguments[1].integer());
                                  return {};
                                });
  Diagnostics diagnostics;
  CompiledModule module = compile(parse_module(kText, "text", op_table(), diagnostics));
  Session session(module.load(options), {.threads = 1});
  std::vector<Tensor> results = session.run({Tensor::of<float>({3}, kFloat32, {1, -2, 0.5})});
  CHECK(same_contents(results[0], Tensor::of<float>({3}, kFloat32, {6, -12, 3})));
}
