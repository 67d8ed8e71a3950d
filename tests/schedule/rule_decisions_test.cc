// Decisions of built-in rules, taken by a user's S.use(...).
#include <set>

#include "codegen/compile.h"
#include "codegen/target.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "passes/runner.h"
#include "support/diagnostic.h"
#include "tests/constants.h"
#include "tests/schedule/graphs.h"
#include "tir/compute.h"
#include "tir/lower/lower.h"
#include "tir/rules/builtin_rules.h"
#include "tir/rules/choose.h"
#include "tir/schedule/script.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

// The scheduled programs of a product of `rows` x 64 by 64 x 128 with constant columns, as text.
std::string product_with(const std::string& uses, const std::string& rows = "130") {
  IRModule module = parse_graph(fmt::format(R"(
@R.function
def main(x: R.Tensor(({}, 64), "float32"), w: R.Tensor((64, 128), "float32")):
    with R.dataflow():
        y = R.matmul(x, w)
        R.output(y)
    return y
)",
                                            rows)
                                    .c_str());
  CompileSettings settings;
  settings.target = "x86-64-v4";
  settings.passes = "simplify,kernels";
  settings.schedules = read_schedule_rules(uses, "uses.py");
  return print_module(run_pipeline(with_constants(module, {small_numbers({64, 128}, 3)}), settings));
}
std::string error_of(const std::string& uses) {
  try {
    product_with(uses);
  } catch (const CompileError& error) {
    return error.what();
  }
  return "";
}
bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a user takes decisions of a built-in rule", "[schedule]") {
  std::string by_formula = product_with("");
  CHECK(has(by_formula, "T.unroll(T.int64(6))"));  // rows
  std::string rows = product_with("S.use(\"contraction\", op=\"matmul\", rows=5, columns=64)");
  CHECK(has(rows, "T.unroll(T.int64(5))"));
  CHECK(!has(rows, "T.unroll(T.int64(6))"));
  CHECK(product_with("S.use(\"contraction\", function=\"matmul\", rows=6)") == by_formula);
  CHECK(product_with("S.use(\"constant_operand\", at=\"y\", panel=16)") != by_formula);
  // Versions of symbolic rows.
  std::string versions = product_with("S.use(\"contraction\", specialize=[3])", "\"m\"");
  CHECK(versions != product_with("", "\"m\""));
  CHECK(versions != product_with("S.use(\"contraction\", specialize=[])", "\"m\""));
  // A value that the formula would choose for the general program leaves versions to their formulas.
  CHECK(product_with("S.use(\"contraction\", columns=64)", "\"m\"") == product_with("", "\"m\""));
  CHECK(product_with("S.use(\"contraction\", columns=32)", "\"m\"") != product_with("", "\"m\""));
}

TEST_CASE("a user keeps the kernels of attention apart", "[schedule]") {
  auto kernels_with = [](const std::string& uses) {
    IRModule module = parse_graph(R"(
@R.function
def main(q: R.Tensor((8, 4), "float32"), k: R.Tensor((4, 8), "float32")):
    with R.dataflow():
        weights = R.nn.softmax(R.matmul(q, k), axis=-1)
        out = R.matmul(weights, q)
        R.output(out)
    return out
)");
    CompileSettings settings;
    settings.target = "x86-64-v4";
    settings.passes = "legalize,fuse_attention";
    settings.schedules = read_schedule_rules(uses, "uses.py");
    return print_module(run_pipeline(module, settings));
  };
  CHECK(has(kernels_with(""), "cls.attention"));
  const std::string apart = "S.use(\"attention_algorithm\", at=\"weights\", algorithm=\"separate\")";
  CHECK(!has(kernels_with(apart), "cls.attention"));
  // A schedule for one of the products would not know the program.
  CHECK(!has(kernels_with("S.use(\"default\", op=\"matmul\", decisions={\"matmul.rows\": 2})"), "cls.attention"));
}

TEST_CASE("decisions that there are not", "[schedule]") {
  std::string rule = error_of("S.use(\"contractoin\", rows=6)");
  CHECK(has(
      rule,
      "uses.py:1:1: error: there is no rule 'contractoin'; there are: attention, digit_product, tiles, contraction, "
      "convolution"));
  std::string other = error_of("S.use(\"constant_operand\", at=\"other\", panel=16)");
  CHECK(has(other, "uses.py:1:1: error: no matmul is called 'other'; there are: y"));
  CHECK(has(error_of("S.use(\"image_layout\", at=\"y\", block=16)"), "no nn.conv2d is called 'y'; there are: none"));
  std::string name = error_of("S.use(\"contraction\", row=6)");
  CHECK(has(name, "rule 'contraction' has no decision 'row'; it has: copy_operand, columns, rows"));
  std::string value = error_of("S.use(\"contraction\", rows=100)");
  CHECK(has(value, "'rows' of 'matmul' cannot be 100; candidates: 1, 2, 3"));
  CHECK(has(value, "(the formula chooses 6)"));
  CHECK(has(value, "rule 'contraction': 'rows' of 'matmul' cannot be 100"));
  CHECK(has(error_of("S.use(\"contraction\", rows=\"six\")"), "cannot be \"six\""));
  CHECK(
      has(error_of("S.use(\"default\", decisions={\"y.row\": 6})"), "rule 'default' has no decision 'y.row'; it has"));
  CHECK(has(error_of("S.use(\"constant_operand\", panel=7)"), "'panel' of 'y' cannot be 7; candidates: 0, "));
  CHECK(has(error_of("S.use(\"constant_operand\", function=\"matmul\", panel=32)"), "is chosen with at="));
  CHECK(has(error_of("S.use(\"image_layout\", op=\"nonsense\", block=0)"),
            "rule 'image_layout' is chosen with at=, an operator's name in the graph; op= and function= are for tensor "
            "programs"));
  CHECK(has(error_of("S.us(\"contraction\", rows=6)"),
            "and calls of S.use(\"rule\", ...) and S.intrin(...); did you "
            "mean S.use?"));
  CHECK(!has(error_of("sch.fuse(i, j)"), "did you mean"));
  // Copying is a question about operands that are not in panels yet.
  CHECK(has(error_of("S.use(\"contraction\", copy_operand=True)"), "'matmul' has no decision 'copy_operand'; it has"));
}

TEST_CASE("a rule names the decision about its versions", "[schedule]") {
  VarRef n = make_dim("n");
  ComputeBuilder b;
  Buffer x = b.input("x", kFloat32, {n});
  Buffer y = b.compute("y", kFloat32, {n}, [&](Axes i) { return at(x, i) * at(x, i); });
  PrimFuncRef program = b.finish({y});
  ScheduleRule rule{
      .name = "counts", .apply = [](Schedule&, const Target&, Decisions&) {}, .decisions = {{"few", "", ""}}};
  rule.space = [&](const PrimFuncRef&, const Target&, Decisions& decisions) {
    decisions.list("few", {1, 2, 3}, {3});
    return Versions{n, "few"};
  };
  RuleResult result = schedule_by_rule(rule, "square", program, Target{}, false);
  REQUIRE(result.program);
  CHECK(has(print_function("square", *result.program), "if n == T.int64(3):"));
  rule.given = {{"few", AttrList{}}};
  CHECK(!has(print_function("square", *schedule_by_rule(rule, "square", program, Target{}, false).program), "if n =="));
}

TEST_CASE("a rule refuses values with which it does not fit", "[schedule]") {
  IRModule module = parse_graph(R"(
@R.function
def main(x: R.Tensor((130, 64), "float32"), z: R.Tensor((64, 128), "float32")):
    with R.dataflow():
        y = R.matmul(x, z)
        R.output(y)
    return y
)");
  Target target = codegen::parse_target("x86-64-v4");
  ScheduleRule rule = *find_builtin_rule("contraction");
  CHECK_NOTHROW(schedule_by_rule(module, rule, target));
  rule.given = {{"copy_operand", false}};
  CHECK_THROWS_WITH(schedule_by_rule(module, rule, target), Catch::Contains("not worth copying into panels"));
  IRModule narrow = parse_graph(R"(
@R.function
def main(x: R.Tensor((130, 64), "float32"), z: R.Tensor((64, 50), "float32")):
    with R.dataflow():
        y = R.matmul(x, z)
        R.output(y)
    return y
)");
  rule.given = {{"copy_operand", true}};
  CHECK_THROWS_WITH(schedule_by_rule(narrow, rule, target), Catch::Contains("its 50 columns are not a multiple of 32"));
}

TEST_CASE("a user decides whether the default rule inlines a block", "[schedule]") {
  ComputeBuilder b;
  Buffer x = b.input("x", kFloat32, {int_imm(1024)});
  auto exp_of = [&](Axes i) { return intrinsic("tir.exp", {at(x, i)}, kFloat32); };
  Buffer y = b.compute("y", kFloat32, {int_imm(1024)}, exp_of);
  Buffer z = b.compute("z", kFloat32, {int_imm(1024)}, [&](Axes i) { return at(y, i) * at(y, i); });
  PrimFuncRef program = b.finish({z});
  auto blocks_with = [&](Attrs given) {
    Schedule schedule(program);
    ScheduleRule rule = *find_builtin_rule("default");
    Decisions decisions(rule.name, rule.decisions, std::move(given), {}, "program");
    auto refusal = apply_rule(rule, schedule, Target{}, decisions);
    CHECK(!refusal);
    decisions.check_all_asked();
    int blocks = 0;
    walk(schedule.function()->body, [&](const Block& block) { blocks += block.name != "root"; });
    return blocks;
  };
  CHECK(blocks_with({}) == 2);  // the formula does not compute exp twice
  CHECK(blocks_with({{"y.inline", true}}) == 1);
  CHECK_THROWS_WITH(blocks_with({{"z.inline", true}}), Catch::Contains("has no decision 'z.inline'"));
}

TEST_CASE("a user decides how far ahead a panel that is read once is fetched", "[schedule]") {
  auto ahead = [](const std::string& rows) { return "S.use(\"contraction\", rows_ahead=" + rows + ")"; };
  CHECK(product_with(ahead("0"), "1") == product_with("", "1"));
  CHECK(product_with(ahead("32"), "1") != product_with("", "1"));
  CHECK_THROWS_WITH(product_with(ahead("17"), "1"),
                    Catch::Contains("cannot be 17; candidates: 0, 4, 8, 16, 32, 64, 128, 256 (the formula chooses 0)"));
  CHECK(has(error_of(ahead("16")), "'matmul' has no decision 'rows_ahead'; it has"));  // 130 rows take several tiles
}

TEST_CASE("a user decides the vectors of blocks", "[schedule]") {
  ComputeBuilder b;
  Buffer x = b.input("x", kFloat32, {int_imm(24), int_imm(48)}), w = b.input("w", kFloat32, {int_imm(48), int_imm(64)});
  Buffer y = b.reduce("y", kFloat32, {int_imm(24), int_imm(64)}, {int_imm(48)}, zero(kFloat32), combine_sum,
                      [&](Axes i, Axes r) { return load(x, {i[0], r[0]}) * load(w, {r[0], i[1]}); });
  Buffer z = b.compute("z", kFloat32, {int_imm(64), int_imm(24)},
                       [&](Axes i) { return intrinsic("tir.exp", {load(y, {i[1], i[0]})}, kFloat32); });
  Buffer t = b.compute("t", kFloat32, {int_imm(24), int_imm(48)},
                       [&](Axes i) { return intrinsic("tir.exp", {at(x, i)}, kFloat32); });
  PrimFuncRef program = b.finish({z, t});
  // The extents of the loops of that kind.
  auto loops_with = [&](Attrs given, ForKind kind) {
    Schedule schedule(program);
    ScheduleRule rule = *find_builtin_rule("default");
    Decisions decisions(rule.name, rule.decisions, std::move(given), {}, "program");
    auto refusal = apply_rule(rule, schedule, Target{}, decisions);
    CHECK(!refusal);
    decisions.check_all_asked();
    std::set<int64_t> extents;
    walk(schedule.function()->body, [&](const For& loop) {
      if (loop.kind == kind) extents.insert(as_int(loop.extent).value_or(0));
    });
    return extents;
  };
  using Extents = std::set<int64_t>;
  CHECK(loops_with({}, ForKind::kVectorized) == Extents{4, 16});
  CHECK(loops_with({{"t.lanes", 2}}, ForKind::kVectorized) == Extents{2, 4});
  CHECK(!loops_with({}, ForKind::kUnrolled).contains(3));
  CHECK(loops_with({{"y.vectors", 3}}, ForKind::kUnrolled).contains(3));
  CHECK_THROWS_WITH(loops_with({{"t.lanes", 3}}, ForKind::kVectorized),
                    Catch::Contains("'t.lanes' of 'program' cannot be 3; candidates: 1, 2, 4, 8, 16 (the formula "
                                    "chooses 16)"));
  CHECK_THROWS_WITH(loops_with({{"y.vectors", 5}}, ForKind::kVectorized),
                    Catch::Contains("cannot be 5; candidates: 1, 2, 3, 4 (the formula chooses 2)"));
}

TEST_CASE("a row of Winograd's patches has equal parts", "[schedule]") {
  const char* kGraph = R"(
@R.function
def main(x: R.Tensor((1, 32, 56, 56), "float32"), w: R.Tensor((32, 32, 3, 3), "float32"), b: R.Tensor((1, 32, 1, 1), "float32")):
    with R.dataflow():
        y = R.nn.relu(R.add(R.nn.conv2d(x, w, padding=1), b))
        R.output(y)
    return y
)";  // 14 patches in a row
  CompileSettings settings;
  settings.target = "x86-64-v4";
  settings.passes = "simplify,kernels";
  auto program_with = [&](const std::string& parts) {
    settings.schedules = read_schedule_rules("S.use(\"winograd\", row_parts=" + parts + ")", "uses.py");
    IRModule module =
        with_constants(parse_graph(kGraph), {small_numbers({32, 32, 3, 3}, 3), small_numbers({1, 32, 1, 1}, 2)});
    return print_module(run_pipeline(module, settings));
  };
  CHECK(program_with("1") != program_with("2"));
  CHECK_THROWS_WITH(program_with("3"), Catch::Contains("cannot be 3; candidates: 1, 2, 7, 14 (the formula chooses 1)"));
}

}  // namespace relaxc::test
