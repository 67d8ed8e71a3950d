// Kernels do not know how the graph computed their dims: the same kernels at any depth of a network.
#include "passes/graph_rewriter.h"

#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "support/joined.h"
#include "tests/ops/harness.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

// `depth` stages of a pooling that halves an image of symbolic size, rounding up, and an elementwise operator.
IRModule parsed(const std::string& text) {
  Diagnostics diagnostics;
  IRModule module = parse_module(text, "name_dims.py", op_table(), diagnostics);
  diagnostics.throw_if_errors();
  return module;
}
IRModule network(int depth, bool ceil_mode, const std::string& shape = "\"n\", 4, \"h\", \"w\"") {
  std::string body;
  std::string image = "x";
  for (int stage = 0; stage < depth; ++stage) {
    body += fmt::format(
        "        p{0} = R.nn.max_pool2d({1}, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1], ceil_mode={2})\n"
        "        r{0} = R.add(p{0}, p{0})\n        s{0} = R.nn.softmax(r{0}, axis=3)\n",
        stage, image, ceil_mode ? "True" : "False");
    image = fmt::format("s{}", stage);
  }
  return parsed(
      fmt::format("@R.function\ndef main(x: R.Tensor(({}), \"float32\")):\n"
                  "    with R.dataflow():\n{}        R.output({})\n    return {}\n",
                  shape, body, image, image));
}

std::vector<std::string> kernels(const IRModule& module) {
  CompileSettings settings;
  settings.passes = "simplify,legalize,fuse,remove_dead_code,merge_kernels";
  std::vector<std::string> result;
  for (const auto& [name, function] : run_pipeline(module, settings).functions) {
    if (function.is<PrimFunc>()) result.push_back(print_function("kernel", function));
  }
  return result;
}

PrimFuncRef program(const std::string& text) { return parsed("@T.prim_func\n" + text).prim_func("f"); }

}  // namespace

TEST_CASE("a network of any depth has the kernels of a short one", "[name_dims]") {
  for (bool ceil_mode : {false, true}) {
    INFO("ceil_mode " << ceil_mode);
    std::vector<std::string> some = kernels(network(3, ceil_mode)), many = kernels(network(9, ceil_mode));
    CHECK(some.size() == many.size());
    size_t longest_of_some = 0, longest_of_many = 0;
    for (const std::string& text : some) longest_of_some = std::max(longest_of_some, text.size());
    for (const std::string& text : many) longest_of_many = std::max(longest_of_many, text.size());
    CHECK(longest_of_many <= longest_of_some);
  }
}

TEST_CASE("a deep network of symbolic size computes what one of that size computes", "[name_dims]") {
  Session dynamic(compile(network(4, true)).load());
  for (Shape shape : {Shape{1, 4, 33, 18}, Shape{2, 4, 16, 47}, Shape{0, 4, 5, 1}, Shape{1, 4, 1, 1}}) {
    INFO(joined(shape));
    Tensor input = values(shape, kFloat32, 3);
    Session fixed(compile(network(4, true, joined(shape))).load());
    Tensor found = dynamic.run({input})[0], expected = fixed.run({input})[0];
    REQUIRE(found.shape() == expected.shape());
    for (int64_t i = 0; i < found.size(); ++i) CHECK(std::abs(found.as_double(i) - expected.as_double(i)) < 1e-6);
  }
}

TEST_CASE("dims are named where nothing but their value is needed", "[name_dims]") {
  auto named = [&](const std::string& dims, const std::string& others = "1") {
    PrimFuncRef f = program("def f(a: T.handle, b: T.handle, n: T.int64, m: T.int64):\n    A = T.match_buffer(a, (" +
                            dims + ",))\n    B = T.match_buffer(b, (" + others + ",))\n    for i in range(" + dims +
                            "):\n        A[i] = B[0]\n");
    PrimFunc copy = *f;
    copy.params.erase(copy.params.begin() + 2, copy.params.end());  // n and m are the graph's
    return name_dims(make_prim_func(std::move(copy)));
  };
  auto values_of = [](const NamedDims& dims) {
    std::string text;
    for (const auto& [var, value] : dims.values) text += print_expr(value) + ";";
    return text;
  };
  CHECK(values_of(named("n // T.int64(3)")) == "n // 3;");
  CHECK(values_of(named("n // T.int64(3)", "(n // T.int64(3) + T.int64(1)) // T.int64(2)")) == "n // 3;");
  CHECK(values_of(named("n * m")) == "n * m;");
  CHECK(values_of(named("n // T.int64(3) * T.int64(16)")) == "n // 3;");  // the factor stays
  CHECK(values_of(named("n // T.int64(3)", "n")).empty());                // n is needed, too
  CHECK(values_of(named("n // T.int64(3)", "n // T.int64(2)")).empty());
  CHECK(values_of(named("n % T.int64(8)")).empty());                           // a bound
  CHECK(values_of(named("T.min(n // T.int64(2), T.int64(8))")) == "n // 2;");  // below the bound
  CHECK(values_of(named("n")).empty());
}

}  // namespace relaxc::test
