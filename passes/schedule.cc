// Expects: tensor programs as legalize, fuse or a user wrote them. Guarantees: each is scheduled by the user's rule for
// it, else by a built-in rule, else by the default schedule of its stages if it has that form (attribute
// tir.is_scheduled); others are left as they are. A rule for a function must fit; one for an operator is left out, with
// a report, where it does not.
#include <algorithm>

#include "passes/pass.h"
#include "support/diagnostic.h"
#include "tir/lower/lower.h"
#include "tir/schedule/rules/contraction.h"
#include "tir/schedule/stages.h"

namespace relaxc {

namespace {

bool concerns(const ScheduleRule& rule, const std::string& name, const std::vector<std::string>& ops) {
  if (!rule.function.empty() && rule.function != name) return false;
  return rule.op.empty() || std::find(ops.begin(), ops.end(), rule.op) != ops.end();
}

using Report = std::function<void(const std::string&)>;

std::optional<PrimFuncRef> schedule_by_rules(const std::string& name, const PrimFuncRef& function,
                                             const std::vector<ScheduleRule>& rules, const Report& report) {
  if (function->attrs.get_bool("tir.is_scheduled", false)) return std::nullopt;
  std::vector<std::string> ops = operators_of(function);
  for (const ScheduleRule& rule : rules) {
    if (!concerns(rule, name, ops)) continue;
    Schedule schedule(IRModule{{{name, promote_indices(function)}}, {}, {}}, {.show_program = report != nullptr});
    try {
      rule.apply(schedule);
    } catch (const CompileError& error) {
      if (!rule.function.empty()) throw;
      if (report) report(fmt::format("schedule rule '{}' does not fit '{}':\n{}", rule.name, name, error.what()));
      continue;
    }
    if (report) report(fmt::format("schedule rule '{}' is applied to '{}'", rule.name, name));
    PrimFunc scheduled = *schedule.function();
    scheduled.attrs.set("tir.is_scheduled", true);
    return make_prim_func(std::move(scheduled), function.span());
  }
  return std::nullopt;
}

}  // namespace

IRModule schedule(IRModule module, PassContext& context) {
  for (const ScheduleRule& rule : context.schedules) {
    if (!rule.function.empty()) module.prim_func(rule.function);  // or an error that lists what there is
  }
  std::vector<ScheduleRule> builtin = builtin_schedule_rules(context.target);
  for (auto& [name, function] : module.functions) {
    auto program = try_cast<PrimFunc>(function);
    if (!program) continue;
    PrimFuncRef normal = normalize_loops(*program);
    check_lowerable(normal);
    std::optional<PrimFuncRef> by_rule = schedule_by_rules(name, normal, context.schedules, context.report);
    if (!by_rule) by_rule = schedule_by_rules(name, normal, builtin, nullptr);
    function = by_rule ? *by_rule : default_schedule(normal, context.target);
  }
  return module;
}

}  // namespace relaxc
