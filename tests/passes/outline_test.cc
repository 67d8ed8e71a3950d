// Bindings that move into a function of their own, and become one tensor program there.
#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify/verify.h"
#include "passes/compose.h"
#include "passes/runner.h"
#include "support/diagnostic.h"
#include "tests/interpret_module.h"
#include "tests/ops/harness.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

constexpr const char* kOutlineModule = R"(
@R.function
def main(x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 8), "float32")):
    n = T.int64()
    with R.dataflow():
        a = R.matmul(x, w)
        t = R.tanh(x)
        b = R.nn.relu(a)
        e = R.exp(b)
        z = R.zeros(R.shape([n * 2]), "float32")
        c = R.matmul(b, w)
        d = R.add(e, t)
        out = (c, d, b, z)
        R.output(out)
    return out
)";

}  // namespace

TEST_CASE("bindings become a function, and one tensor program", "[passes]") {
  Diagnostics diagnostics;
  const IRModule module = parse_module(kOutlineModule, "module.py", op_table(), diagnostics);
  diagnostics.throw_if_errors();
  auto outlined = [&](const std::vector<std::string>& names) -> std::optional<IRModule> {
    IRModule result = module;
    FunctionRef main = module.graph_function("main");
    VarSet group;
    for_each_binding(main->body, [&](const Binding& binding) {
      if (std::ranges::count(names, binding.var->name) > 0) group.insert(binding.var.get());
    });
    auto changed = outline(main, group, "part", result, op_table());
    if (!changed) return std::nullopt;
    result.functions.insert_or_assign("main", *changed);
    Diagnostics errors;
    verify(result, op_table(), errors);
    errors.throw_if_errors();
    return result;
  };
  std::vector<Tensor> inputs = {values({3, 8}), values({8, 8}, kFloat32, 2)};
  std::vector<Tensor> expected = interpret_module(module, inputs);
  for (const std::vector<std::string>& names :
       {std::vector<std::string>{"a", "b", "c"}, {"a", "b", "e", "c", "d", "t", "z"}, {"z"}}) {
    std::optional<IRModule> changed = outlined(names);
    REQUIRE(changed);
    CAPTURE(print_module(*changed));
    CompileSettings settings;
    settings.schedules.push_back(
        {.name = "tile", .function = "part", .apply = [](Schedule&, const Target&, Decisions&) {}});
    IRModule kernels = *changed;
    PassContext context = pass_context(settings);
    for (const Pass* pass : parse_passes("simplify,kernels")) kernels = run_pass(*pass, std::move(kernels), context);
    CHECK(kernels.find("part")->is<PrimFunc>());
    std::vector<Tensor> got = Session(compile(*changed, settings).load()).run(inputs);
    REQUIRE(got.size() == expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      REQUIRE(got[i].shape() == expected[i].shape());
      for (int64_t k = 0; k < got[i].size(); ++k)
        REQUIRE(std::abs(got[i].as_double(k) - expected[i].as_double(k)) <=
                1e-3 * (1 + std::abs(expected[i].as_double(k))));
    }
  }
  // `e` stays, reads `b`, and is read by `d`.
  CHECK(!outlined({"b", "d"}));
  CHECK(!outlined({}));
}

}  // namespace relaxc::test
