// Params that become constants, and dims that get values.
#include "codegen/bind_values.h"

#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify/verify.h"
#include "support/diagnostic.h"
#include "tests/patterns.h"

#include "tests/catch.h"  // last

using namespace relaxc;

namespace {

constexpr const char* kDenseLayer = R"(
@I.ir_module
class Module:
    @R.function
    def dense(x: R.Tensor((2, "k"), "float32"), w: R.Tensor(("k", "n"), "float32"), b: R.Tensor(("n",), "float32")) -> R.Tensor((2, "n"), "float32"):
        k = T.int64()
        n = T.int64()
        with R.dataflow():
            y: R.Tensor((2, n), "float32") = R.matmul(x, w)
            z: R.Tensor((2, n), "float32") = R.add(y, b)
            R.output(z)
        return z
)";

constexpr const char* kTwiceProgram = R"(
@T.prim_func
def twice(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 4), "float32")
    B = T.match_buffer(b, (n, 4), "float32")
    for i, j in T.grid(n, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
)";

IRModule bindable(const char* text) {
  Diagnostics diagnostics;
  IRModule module = parse_module(text, "bind.py", op_table(), diagnostics);
  diagnostics.throw_if_errors();
  return module;
}

std::string text_when_verified(const IRModule& module) {
  Diagnostics diagnostics;
  verify(module, op_table(), diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.all()) FAIL_CHECK(to_string(diagnostic));
  return print_module(module);
}

std::string refused_binding(const std::map<std::string, Tensor>& params, const std::string& function = "") {
  try {
    with_params_bound(bindable(kDenseLayer), function, params);
  } catch (const CompileError& error) {
    return error.what();
  }
  return "none";
}

Tensor zeros(std::vector<int64_t> shape, DType dtype = kFloat32) {
  Tensor result = Tensor::empty(std::move(shape), dtype);
  std::fill_n(static_cast<char*>(result.raw()), result.bytes(), 0);
  return result;
}

}  // namespace

TEST_CASE("params become constants, and dims follow from their shapes", "[codegen]") {
  std::string text = text_when_verified(with_params_bound(bindable(kDenseLayer), "", {{"w", zeros({1, 3})}}));
  INFO(text);
  CHECK(test::contains(text,
                       "def dense(x: R.Tensor((2, 1), dtype=\"float32\"), b: R.Tensor((3,), dtype=\"float32\")) -> "
                       "R.Tensor((2, 3), dtype=\"float32\")"));
  CHECK(test::contains(text, "R.matmul(x, R.const([[0.0, 0.0, 0.0]], \"float32\")"));
  CHECK(test::contains(text_when_verified(with_params_bound(bindable(kDenseLayer), "dense", {{"b", zeros({3})}})),
                       "(\"k\", 3)"));
}

TEST_CASE("tensors that do not fit a param are refused", "[codegen]") {
  CHECK(test::contains(refused_binding({{"q", zeros({1})}}), "'dense' has no param 'q'; it has: x, w, b"));
  CHECK(test::contains(refused_binding({{"b", zeros({1, 3})}}),
                       "param 'b' is R.Tensor((n,), dtype=\"float32\"), and the tensor"));
  CHECK(test::contains(refused_binding({{"b", zeros({3}, kInt32)}}), "R.Tensor((3,), dtype=\"int32\")"));
  CHECK(test::contains(refused_binding({{"x", zeros({3, 2})}}), "param 'x'"));
  CHECK(test::contains(refused_binding({{"w", zeros({2, 3})}, {"b", zeros({4})}}), "has a dim of 4"));
  CHECK(test::contains(refused_binding({{"b", zeros({3})}}, "conv"), "no graph function 'conv'"));
}

TEST_CASE("dims of graph functions, or of programs by themselves, get values", "[codegen]") {
  std::string text = text_when_verified(with_dims_bound(bindable(kDenseLayer), {{"k", 5}, {"n", 3}}));
  INFO(text);
  CHECK(test::contains(text, "x: R.Tensor((2, 5), dtype=\"float32\"), w: R.Tensor((5, 3)"));
  CHECK(test::contains(text, "y: R.Tensor((2, 3), dtype=\"float32\")"));
  std::string program = text_when_verified(with_dims_bound(bindable(kTwiceProgram), {{"n", 3}}));
  INFO(program);
  CHECK(test::contains(program, "for i, j in T.grid(3, 4)"));
  CHECK_THROWS_WITH(with_dims_bound(bindable(kDenseLayer), {{"z", 3}}),
                    Catch::Contains("no symbolic dim 'z'; it has: k, n"));
}

TEST_CASE("sizes that follow from bound values are computed", "[codegen]") {
  constexpr const char* kSums = R"(
@R.function
def sums(x: R.Tensor(("n + 3", "m"), "float32"), b: R.Tensor(("n",), "float32"), y: R.Tensor(("n // 2 + m", "m * n"), "float32")):
    m = T.int64()
    n = T.int64()
    z = R.add(y, y)
    return z
)";
  for (const IRModule& module :
       {with_params_bound(bindable(kSums), "", {{"b", zeros({3})}}), with_dims_bound(bindable(kSums), {{"n", 3}})}) {
    const std::string text = text_when_verified(module);
    INFO(text);
    CHECK(test::contains(text, "x: R.Tensor((6, \"m\"), dtype=\"float32\")"));
    CHECK(test::contains(text, "y: R.Tensor((\"m + 1\", \"m * 3\"), dtype=\"float32\")"));
  }
}

TEST_CASE("values of dims that make sizes negative are refused", "[codegen]") {
  constexpr const char* kLess = R"(
@R.function
def less(x: R.Tensor(("m", "n - 3"), "float32"), b: R.Tensor(("n",), "float32")):
    m = T.int64()
    n = T.int64()
    z = R.add(x, x)
    return z
)";
  const std::string problem = "dim 1 of param 'x', n - 3, would be -2, expected at least 0";
  CHECK_THROWS_WITH(with_dims_bound(bindable(kLess), {{"n", 1}}), Catch::Contains(problem));
  CHECK_THROWS_WITH(with_params_bound(bindable(kLess), "", {{"b", zeros({1})}}), Catch::Contains(problem));
  CHECK(test::contains(text_when_verified(with_dims_bound(bindable(kLess), {{"n", 3}})), "((\"m\", 0)"));
}

TEST_CASE("values of dims that make sizes overflow are refused", "[codegen]") {
  constexpr const char* kWide = R"(
@R.function
def wide(x: R.Tensor(("n * m", "n + 2"), "float32"), b: R.Tensor(("n",), "float32"), c: R.Tensor(("m",), "float32")):
    m = T.int64()
    n = T.int64()
    return x
)";
  const int64_t large = (int64_t{1} << 32) + 1, most = std::numeric_limits<int64_t>::max();
  CHECK_THROWS_WITH(with_dims_bound(bindable(kWide), {{"n", large}, {"m", large}}),
                    Catch::Contains("the size n * m overflows int64"));
  CHECK_THROWS_WITH(with_dims_bound(bindable(kWide), {{"n", most}}), Catch::Contains("the size n + 2 overflows int64"));
}

TEST_CASE("a run whose dims are out of their range is refused", "[codegen]") {
  const IRModule module = with_dim_ranges(bindable(kDenseLayer), {{"k", {2, 4}}, {"n", {3}}});
  const std::string text = text_when_verified(module);
  INFO(text);
  CHECK(test::contains(text, "\"tir_var_lower_bound\": {\"k\": 2, \"n\": 3}"));
  CHECK(test::contains(text, "\"tir_var_upper_bound\": {\"k\": 4}"));
  CHECK_FALSE(test::contains(text_when_verified(with_dim_ranges(module, {{"k", {}}})), "upper_bound"));
  const Program program = compile(module).load();
  const vm::ValueInfo& w = program.executable().default_function()->inputs.at(1);
  CHECK(w.dims->at(0) == vm::DimInfo{-1, "k", 2, 4});
  CHECK(w.dims->at(1) == vm::DimInfo{-1, "n", 3});
  Session session(program, {.threads = 1});
  auto run = [&](int64_t k, int64_t n) { return session.run({zeros({2, k}), zeros({k, n}), zeros({n})}); };
  CHECK(run(2, 3).size() == 1);
  CHECK(run(4, 100).size() == 1);
  CHECK_THROWS_WITH(run(5, 3), "dim 'k' is 5, and the program takes 2 to 4");
  CHECK_THROWS_WITH(run(1, 3), "dim 'k' is 1, and the program takes 2 to 4");
  CHECK_THROWS_WITH(run(2, 2), "dim 'n' is 2, and the program takes at least 3");
  CHECK_THROWS_WITH(with_dim_ranges(bindable(kDenseLayer), {{"z", {1, 2}}}),
                    Catch::Contains("no symbolic dim 'z'; it has: k, n"));
  CHECK_THROWS_WITH(with_dim_ranges(bindable(kDenseLayer), {{"n", {3, 2}}}),
                    Catch::Contains("dim 'n' may be 3 to 2, which no size is"));
}
