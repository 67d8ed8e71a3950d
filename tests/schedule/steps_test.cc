// A step is a struct: what the schedule records, and how it says that a step does not fit.
#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "passes/runner.h"
#include "support/diagnostic.h"
#include "tir/edit/step.h"
#include "tir/primitives/compute_inline.h"
#include "tir/primitives/get_block.h"
#include "tir/primitives/get_loops.h"
#include "tir/primitives/reorder.h"
#include "tir/primitives/split.h"
#include "tir/primitives/vectorize.h"
#include "tir/schedule/rule.h"
#include "tir/schedule/schedule.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

IRModule module_of_sums() {
  Diagnostics diagnostics;
  IRModule module = parse_module(R"(
@T.prim_func
def main(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 16):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.block_attr({"op": "sum"})
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
)",
                                 "sums.py", op_table(), diagnostics);
  diagnostics.throw_if_errors();
  return module;
}

}  // namespace

TEST_CASE("a schedule records the struct that it was given", "[schedule]") {
  Schedule sch(module_of_sums());
  Loops loops = sch.apply(GetLoops{sch.apply(GetBlock{"B"})});
  sch.apply(Split{.loop = loops[1], .factors = {std::nullopt, 4}, .disable_predication = true});
  const TraceStep& step = sch.trace().steps.back();
  REQUIRE(step.arguments.size() == 4);
  CHECK(step.arguments[2] == AttrValue(true));
  CHECK(step.arguments[3] == AttrValue(true));
  CHECK(step.results.size() == 2);
  CHECK(sch.trace().text().ends_with("sch.split(l2, [None, 4], disable_predication=True)\n"));
}

TEST_CASE("a step that does not fit is a value, and leaves program and trace as they were", "[schedule]") {
  Schedule sch(module_of_sums());
  Loops loops = sch.apply(GetLoops{sch.apply(GetBlock{"B"})});
  PrimFuncRef before = sch.function();
  size_t steps = sch.trace().steps.size();
  auto refused = sch.try_apply(Vectorize{loops[1]});
  REQUIRE(!refused);
  CHECK(refused.refusal().step == "vectorize");
  CHECK(refused.refusal().message().find("which is not spatial") != std::string::npos);
  // Text with the program is made when it is asked for.
  CHECK(refused.refusal().diagnostic(false).notes.empty());
  REQUIRE(refused.refusal().diagnostic(true).notes.size() == 1);
  CHECK(refused.refusal().diagnostic(true).notes[0].find("# <-- here") != std::string::npos);
  CHECK(structural_equal(before, sch.function()));
  CHECK(sch.trace().steps.size() == steps);
  auto parts = sch.try_apply(Split{loops[0], {std::nullopt, 4}});
  REQUIRE(parts);
  CHECK(parts->size() == 2);
  CHECK(sch.trace().steps.size() == steps + 1);
}

TEST_CASE("an error in a step is no refusal", "[schedule]") {
  Schedule sch(module_of_sums()), other(module_of_sums());
  LoopRV foreign = other.apply(GetLoops{other.apply(GetBlock{"B"})})[0];
  CHECK_THROWS_WITH(sch.try_apply(Vectorize{foreign}), Catch::Contains("is not a block or loop of this schedule"));
  CHECK_THROWS_AS(sch.try_steps([&] { sch.apply(Vectorize{foreign}); }), CompileError);
  // Steps up to the first that does not fit.
  Loops loops = sch.apply(GetLoops{sch.apply(GetBlock{"B"})});
  auto reason = sch.try_steps([&] {
    sch.apply(Reorder{{loops[1], loops[0]}});
    sch.apply(Vectorize{loops[1]});
    sch.apply(ComputeInline{sch.apply(GetBlock{"B"})});
  });
  REQUIRE(reason);
  CHECK(reason->message.starts_with("vectorize: "));
  CHECK(reason->kind == ErrorKind::kDoesNotFit);
  CHECK(sch.trace().steps.back().primitive->name == "reorder");
  CHECK(!sch.try_steps([&] { sch.apply(Vectorize{loops[0]}); }));
}

TEST_CASE("a rule for an operator that does not fit is left out, an error in it is not", "[schedule]") {
  auto run = [](const char* steps) {
    std::vector<ScheduleRule> rules = read_schedule_rules(
        std::string("@S.rule(\"sum\")\ndef mine(sch):\n    b = sch.get_block(\"sum\")\n") + steps, "mine.py");
    std::string report;
    PassContext context(op_table(), {});
    context.schedules = rules;
    context.report = [&](const std::string& line) { report += line + "\n"; };
    run_pass(*find_pass("apply_rules"), module_of_sums(), context);
    return report;
  };
  for (const char* steps : {"    sch.vectorize(sch.get_loops(b)[1])\n", "    n, c, k = sch.get_loops(b)\n",
                            "    assert len(sch.get_loops(b)) == 3\n", "    sch.get_block(\"C\")\n"}) {
    INFO(steps);
    CHECK_THAT(run(steps), Catch::Contains("rule 'mine' does not fit"));
  }
  CHECK_THROWS_WITH(run("    sch.vectorise(b)\n"),
                    Catch::Contains("there is no primitive 'vectorise'; did you mean 'vectorize'?"));
  CHECK_THROWS_WITH(run("    sch.vectorize(3)\n"), Catch::Contains("expected a loop"));
  CHECK_THROWS_WITH(run("    sch.annotate(b, \"prefech\", [\"A\"])\n"), Catch::Contains("did you mean 'prefetch'?"));
}

}  // namespace relaxc::test
