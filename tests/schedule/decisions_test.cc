// Questions that rules ask: decisions, their rows and candidates.
#include "codegen/compile.h"
#include "codegen/target.h"
#include "passes/graph_decisions.h"
#include "support/diagnostic.h"
#include "tir/schedule/script.h"

#include "tests/catch.h"

namespace relaxc::test {

TEST_CASE("a question of a rule needs a row, and its formula a candidate", "[schedule]") {
  std::vector<DecisionRow> rows = {{"step", "iterations", "1"}, {"*.lanes", "of a block", "4"}, {"sizes", "", ""}};
  Decisions decisions("tile", rows, {{"step", 3}, {"sizes", 5}}, {}, "program");
  CHECK_THROWS_WITH(decisions.number("steps", {1, 2}, 1), Catch::Contains("a row of rule 'tile' for the decision"));
  CHECK_THROWS_WITH(decisions.number("lanes", {4, 8}, 4), Catch::Contains("for the decision 'lanes'"));
  CHECK_THROWS_WITH(decisions.number("step", {1, 2}, 4), Catch::Contains("to choose one of 1, 2, got 4"));
  CHECK_THROWS_WITH(decisions.number("step", {1, 2}, 1),
                    Catch::Contains("rule 'tile': 'step' of 'program' cannot be 3; candidates: 1, 2 (the formula"));
  CHECK_THROWS_WITH(decisions.list("sizes", {1, 2}, {1}), Catch::Contains("'sizes' of 'program' cannot be 5"));
  CHECK(decisions.number("step", {1, 2, 3}, 1) == 3);
  CHECK_THROWS_WITH(decisions.number("step", {1, 2}, 1), Catch::Contains("cannot be 3; candidates: 1, 2"));
  decisions.set_prefix("C.");
  CHECK(decisions.number("lanes", {4, 8}, 8) == 8);
}

TEST_CASE("a question about the graph names its decision, and the first user that gives it a value counts",
          "[schedule]") {
  VarRef y = make_var("y", tensor_type({int_imm(4), int_imm(32)}, kFloat32));
  PassContext context(op_table(), Target{});
  auto use = [](const char* at, Attrs given) {
    return ScheduleRule{.name = "use", .uses = "constant_operand", .given = std::move(given), .at = at};
  };
  context.schedules = {use("other", {{"panel", 16}}), use("y", {{"panel", 8}}), use("", {{"panel", 32}})};
  auto panel_of = [&](const std::optional<AttrValue>& preferred) {
    return decide("constant_operand", "panel", y, context, {0, 8, 16, 32}, 0, preferred);
  };
  CHECK(panel_of({}) == AttrValue(8));
  CHECK(panel_of(16) == AttrValue(8));
  context.schedules.clear();
  CHECK(panel_of(16) == AttrValue(16));
  CHECK(panel_of({}) == AttrValue(0));
  CHECK_THROWS_WITH(decide("constant_operand", "depth", y, context, {0, 8}, 0),
                    Catch::Contains("a row of rule 'constant_operand' for the decision 'depth'"));
}

}  // namespace relaxc::test
