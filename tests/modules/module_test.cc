// Modules written as text, compiled once and run through the API at many sizes.
#include <algorithm>
#include <cmath>
#include <random>

#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "support/diagnostic.h"
#include "vm/error.h"

#include "tests/catch.h"

using namespace relaxc;

namespace {

Tensor random_tensor(std::vector<int64_t> shape, std::mt19937_64& random) {
  Tensor tensor = Tensor::empty(std::move(shape), kFloat32);
  std::uniform_real_distribution<float> real(-1, 1);
  std::generate_n(tensor.data<float>(), tensor.size(), [&] { return real(random); });
  return tensor;
}

// relu(x @ w.T), and the sum of the magnitudes, by which rounding is judged.
std::pair<double, double> expected_element(const Tensor& x, const Tensor& w, int64_t row, int64_t column) {
  double sum = 0, magnitude = 0;
  for (int64_t n = x.shape()[1], i = 0; i < n; ++i) {
    double term = static_cast<double>(x.data<float>()[row * n + i]) * w.data<float>()[column * n + i];
    sum += term;
    magnitude += std::abs(term);
  }
  return {std::max(sum, 0.0), magnitude};
}

IRModule parse(const char* text) {
  Diagnostics diagnostics;
  IRModule module = parse_module(text, "given.py", op_table(), diagnostics);
  diagnostics.throw_if_errors();
  return module;
}

std::string error_of(Session& session, std::initializer_list<Tensor> inputs) {
  try {
    session.run(inputs);
  } catch (const RuntimeError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("matmul and relu as text run for any m, n, k from one compile", "[modules]") {
  // As it is written today; with the int32 dims of most published programs; as of 2022; counted in several integers.
  std::string name = GENERATE("matmul_relu", "matmul_relu_int32", "matmul_relu_2022", "matmul_relu_mixed");
  INFO(name);
  Program program = compile_file(RELAXC_SOURCE_DIR "/tests/modules/" + name + ".py").load();
  REQUIRE(program.inputs().size() == 2);
  CHECK(to_string(program.inputs()[0]) == "x: float32[m, n]");
  CHECK(to_string(program.inputs()[1]) == "w: float32[k, n]");
  Session session(program, {.threads = 2});
  std::mt19937_64 random(7);

  const std::vector<std::vector<int64_t>> sizes = {{1, 1, 1},   {3, 5, 7},   {64, 64, 64}, {17, 33, 129},
                                                   {1, 200, 3}, {100, 1, 9}, {0, 4, 2},    {2, 0, 3}};
  for (const std::vector<int64_t>& size : sizes) {
    int64_t m = size[0], n = size[1], k = size[2];
    INFO("m " << m << ", n " << n << ", k " << k);
    Tensor x = random_tensor({m, n}, random), w = random_tensor({k, n}, random);
    std::vector<Tensor> results = session.run({x, w});
    REQUIRE(results.size() == 1);
    REQUIRE(results[0].shape() == std::vector<int64_t>{m, k});
    int64_t wrong = 0;
    for (int64_t i = 0; i < m * k; ++i) {
      auto [value, magnitude] = expected_element(x, w, i / k, i % k);
      if (!(std::abs(results[0].data<float>()[i] - value) <= 1e-6 * magnitude + 1e-7)) ++wrong;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("tuples as values are as good as written ones", "[modules]") {
  Session session(compile_file(RELAXC_SOURCE_DIR "/tests/modules/tuple_values.py").load(), {.threads = 1});
  std::mt19937_64 random(7);
  for (int64_t n : {1, 5, 0}) {
    for (bool flag : {true, false}) {
      Tensor condition = Tensor::empty({}, kBool);
      condition.set_int(0, flag);
      std::vector<Tensor> results =
          session.run({random_tensor({n, 4}, random), random_tensor({n, 4}, random), condition});
      REQUIRE(results.size() == 10);
      for (size_t i = 0; i < results.size(); i += 2) {
        INFO("n " << n << ", result " << i);
        CHECK(same_contents(results[i], results[i + 1]));
      }
    }
  }
}

TEST_CASE("scalars of programs are dims of the graph, in the program's integers", "[modules]") {
  Session session(compile_file(RELAXC_SOURCE_DIR "/tests/modules/scalars_int32.py").load(), {.threads = 1});
  std::mt19937_64 random(7);
  for (int64_t n : {3, 8, 40, 32807}) {
    Tensor x = random_tensor({n}, random);
    Tensor y = session.run({x})[0];
    REQUIRE(y.shape() == std::vector<int64_t>{n - 3});
    for (int64_t i = 0; i < n - 3; ++i) {
      float wanted = x.data<float>()[i + 2] * static_cast<float>(n - 1) + static_cast<float>(n - 40);
      CHECK(std::abs(y.data<float>()[i] - wanted) <= 1e-6f * static_cast<float>(n));
    }
  }
  std::string error = error_of(session, {random_tensor({32808}, random)});
  INFO(error);
  CHECK(error.find("by of shift does not fit into int16") != std::string::npos);
}

TEST_CASE("a dim that its kernel cannot count is an error at run time", "[modules]") {
  // The tensor is empty, so that its other dim can be as large as one likes.
  Session session(compile_file(RELAXC_SOURCE_DIR "/tests/modules/matmul_relu_int32.py").load(), {.threads = 1});
  std::string int32 = error_of(
      session, {Tensor::empty({0, int64_t{1} << 31}, kFloat32), Tensor::empty({0, int64_t{1} << 31}, kFloat32)});
  INFO(int32);
  for (const char* part : {"2147483647", "2147483648"}) CHECK(int32.find(part) != std::string::npos);
  Session mixed(compile_file(RELAXC_SOURCE_DIR "/tests/modules/matmul_relu_mixed.py").load(), {.threads = 1});
  std::string int16 = error_of(mixed, {Tensor::empty({40000, 0}, kFloat32), Tensor::empty({1, 0}, kFloat32)});
  INFO(int16);
  for (const char* part : {"32767", "40000"}) CHECK(int16.find(part) != std::string::npos);
}

TEST_CASE("an input of another dtype is named with both dtypes", "[modules]") {
  Session session(compile_file(RELAXC_SOURCE_DIR "/tests/modules/matmul_relu.py").load(), {.threads = 1});
  std::mt19937_64 random(7);
  Tensor x = random_tensor({3, 5}, random);
  std::string dtype = error_of(session, {x, Tensor::of({1, 5}, kFloat64, std::vector<double>(5, 1.0))});
  INFO(dtype);
  for (const char* part : {"'w'", "float64", "float32"}) CHECK(dtype.find(part) != std::string::npos);
}

TEST_CASE("a local function may call itself, but not without end", "[modules]") {
  constexpr const char* kModule = R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((4,), "float32"):
        @R.function
        def f(y: R.Tensor((4,), "float32"), d: R.Tensor((), "bool")) -> R.Tensor((4,), "float32"):
            if d:
                r = f(y, d)
            else:
                r = R.add(y, x)
            return r
        z = f(x, c)
        return z
)";
  Session session(compile(parse(kModule)).load(), {.threads = 1});
  Tensor x = Tensor::of<float>({4}, kFloat32, {1, 2, 3, 4}), condition = Tensor::empty({}, kBool);
  condition.set_int(0, 0);
  CHECK(session.run({x, condition}).at(0).as_double(3) == 8);
  condition.set_int(0, 1);
  try {
    session.run({x, condition});
    FAIL("it ran");
  } catch (const RuntimeError& error) {
    CHECK(std::string(error.what()).find("function 'main_f' is called 513 deep") != std::string::npos);
  }
  condition.set_int(0, 0);
  CHECK(session.run({x, condition}).at(0).as_double(0) == 2);
}

TEST_CASE("a value of another kind is named, and run_values where it is not called", "[modules]") {
  IRModule module = parse(R"(@I.ir_module
class Module:
    @R.function
    def main(s: R.Sequence(R.Tensor((2,), "float32"))) -> R.Tensor((2,), "float32"):
        return R.sequence.at(s, R.prim_value(0))
)");
  Session session(compile(module).load(), {.threads = 1});
  const Tensor x = Tensor::of<float>({2}, kFloat32, {1, 2});
  auto error_of = [](auto&& run) -> std::string {
    try {
      run();
    } catch (const RuntimeError& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK(error_of([&] { session.run({x}); }) ==
        "input 's': is float32[2], expected a value of kind sequence; use run_values (in C relaxc_run_values)");
  CHECK(error_of([&] { session.run_values(std::vector<vm::Value>{x}); }) ==
        "input 's': is float32[2], expected a value of kind sequence");
  CHECK(error_of([&] { session.run_values(std::vector<vm::Value>{vm::Value()}); }) ==
        "input 's' is none, expected a sequence");
  vm::Sequence whole{vm::Tuple(std::vector<vm::Value>{x})}, other{vm::Tuple(std::vector<vm::Value>{int64_t{3}})};
  CHECK(session.run_values(std::vector<vm::Value>{whole}).tensor().as_double(1) == 2);
  CHECK(error_of([&] { session.run_values(std::vector<vm::Value>{other}); }) ==
        "item 0 of input 's' is 3, expected a tensor");
}
