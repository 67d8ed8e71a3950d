// Expects: tensor programs as check_lowerable leaves them. Guarantees: each is scheduled by the user's rule for
// it, else by the first built-in rule that fits, the last of which takes any program of plain nests (attribute
// tir.is_scheduled); others, such as those scheduled by hand, are left as they are. A rule for a function must fit; one
// for an operator is left out, with a report, where it does not.
#include <algorithm>

#include "passes/graph_decisions.h"
#include "passes/tables.h"
#include "support/diagnostic.h"
#include "tir/analysis/nests.h"
#include "tir/lower/lower.h"
#include "tir/rules/builtin_rules.h"
#include "tir/rules/choose.h"

namespace relaxc {

// A rule for an operator that neither the table nor a program knows was meant for another. S.use names a rule, and so
// an operator, for the programs of this module.
static void warn_of_unused_rules(const IRModule& module, const PassContext& context) {
  const MoreRules& more = tables_of(context).rules();
  for (const ScheduleRule& rule : context.schedules) {
    const ScheduleRule* used = rule.uses.empty() ? &rule : find_rule(rule.uses, more.rules);
    if (!used) continue;  // a decision about the graph
    const std::string& op = rule.op.empty() ? used->op : rule.op;
    bool is_known = rule.op.empty() || context.ops.find("relax." + op);
    if (op.empty() || (is_known && rule.uses.empty())) continue;
    bool concerns_any = std::ranges::any_of(programs_of(module), [&](const auto& entry) {
      return concerns(rule, entry.first, operators_of(entry.second), more);
    });
    const char* unknown = is_known ? "" : ", and --list-ops knows none";
    if (!concerns_any)
      warn_of_unused(rule, context, fmt::format("no tensor program holds an operator '{}'{}", op, unknown));
  }
}

void expect_rules(const IRModule& module, const PassContext& context) {
  for (const ScheduleRule& rule : context.schedules) {
    if (!rule.apply && rule.uses.empty()) fail(rule.span, "rule '{}' has nothing to apply", rule.name);
    if (!rule.function.empty()) module.prim_func(rule.function, rule.span);  // or an error that lists what there is
  }
  if (context.report) warn_of_unused_rules(module, context);
}

PrimFuncRef apply_rules(const std::string& name, const PrimFuncRef& program, const PassContext& context) {
  PrimFuncRef result = schedule_by_rules(name, program, context.schedules, context.target, context.report,
                                         context.scheduled, tables_of(context).rules());
  if (!context.report) return result;
  std::vector<Diagnostic> known = unread_annotations(program);  // of the program's text, reported when it was read
  for (const Diagnostic& warning : unread_annotations(result)) {
    if (std::ranges::none_of(known, [&](const auto& one) { return one.message == warning.message; }))
      context.report(to_string(warning));
  }
  return result;
}

}  // namespace relaxc
