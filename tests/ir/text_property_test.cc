// Every operator's tensor program, as lowered from the table, scheduled and lowered to plain loops, prints as text that
// parses back equal, and passes the verifier.
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify/verify.h"
#include "ir/visit.h"
#include "ops/ops.h"
#include "passes/pass.h"
#include "support/diagnostic.h"
#include "tests/lowering.h"
#include "tests/ops/samples.h"
#include "tir/lower/lower.h"
#include "tir/rules/builtin_rules.h"
#include "tir/schedule/schedule.h"

#include "tests/catch.h"  // last

using namespace relaxc;

namespace {

const OpTable& op_table() {
  static const OpTable kTable = make_op_table();
  return kTable;
}

void check_program(const std::string& name, const PrimFuncRef& program) {
  IRModule module;
  module.functions.emplace("f", program);
  std::string text = print_module(module);
  INFO(name << "\n" << text);
  Diagnostics problems;
  verify(module, op_table(), problems);
  Diagnostics diagnostics;
  IRModule again = parse_module(text, "f.py", op_table(), diagnostics);
  for (const Diagnostics* list : {&problems, &diagnostics}) {
    for (const Diagnostic& diagnostic : list->all()) FAIL_CHECK(to_string(diagnostic));
  }
  Difference difference;
  EqualOptions options;
  options.difference = &difference;
  options.print = print_node;
  bool equal = structural_equal(module, again, options);
  INFO("first difference: " << difference.text);
  CHECK(equal);
  CHECK(print_module(again) == text);
}

}  // namespace

TEST_CASE("programs of all operators survive printing and parsing", "[text]") {
  for (const OpRow& row : op_table().rows()) {
    if (!row.legalize) continue;
    std::optional<test::OpSample> sample = test::sample_call(op_table(), row, 0);
    REQUIRE(sample);
    PrimFuncRef program = row.legalize(OpCall{sample->call, {}});
    // The graph's dims become the program's own, as legalize makes them.
    PrimFunc copy = *program;
    for (const VarRef& var : free_vars(program)) copy.params.push_back(var);
    program = with_fresh_variables(make_prim_func(std::move(copy)));
    check_program(row.name, program);
    Schedule schedule(promote_indices(program));
    PrimFuncRef scheduled = program;
    Decisions decisions("default", find_builtin_rule("default")->decisions);
    if (!find_builtin_rule("default")->fits(schedule.function(), Target{}, decisions) &&
        !apply_rule(*find_builtin_rule("default"), schedule, Target{}, decisions))
      scheduled = schedule.function();
    check_program(row.name + ", scheduled", scheduled);
    check_program(row.name + ", lowered", lower_program(scheduled));
  }
}
