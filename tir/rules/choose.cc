#include "tir/rules/choose.h"

#include <algorithm>

#include "ir/attr_names.h"
#include "support/diagnostic.h"
#include "tir/analysis/nests.h"
#include "tir/compute.h"
#include "tir/program.h"
#include "tir/rules/builtin_rules.h"
#include "tir/schedule/schedule.h"

namespace relaxc {

namespace {

// Applies one rule to one program, and to its versions for certain values of a dim.
class Application {
 public:
  Application(const ScheduleRule& rule, const std::string& name, const Target& target, bool show_program,
              const OnScheduled& on_scheduled)
      : rule_(rule),
        actual_(rule.uses.empty() ? rule : *find_builtin_rule(rule.uses)),
        name_(name),
        target_(target),
        show_program_(show_program),
        on_scheduled_(on_scheduled) {}

  RuleResult run(const PrimFuncRef& given) const {
    PrimFuncRef program = rule_.uses.empty() ? given : without_empty_nests(given);  // as for built-in rules
    Decisions decisions = decisions_with(rule_.given);
    std::optional<VarRef> dim;
    std::optional<Schedule> schedule;
    RuleResult result = scheduled(program, decisions, schedule, &dim);
    if (result.program && dim) result = with_versions(program, *result.program, *dim, decisions);
    if (result.program && on_scheduled_) on_scheduled_(actual_, *schedule, decisions);
    return result;
  }

 private:
  Decisions decisions_with(Attrs given) const {
    return {actual_.name, actual_.decisions, std::move(given), rule_.span, name_};
  }

  // Schedules a program. `dim`, if not null, receives the dim for whose values there are versions; null for a version.
  RuleResult scheduled(const PrimFuncRef& program, Decisions& decisions, std::optional<Schedule>& schedule,
                       std::optional<VarRef>* dim) const {
    if (auto why = actual_.fits ? actual_.fits(program, target_, decisions) : std::nullopt) return {std::nullopt, *why};
    std::optional<VarRef> versions = actual_.space ? actual_.space(program, target_, decisions) : std::nullopt;
    if (dim) *dim = versions;
    schedule.emplace(IRModule{{{name_, program}}, {}, {}}, ScheduleOptions{.show_program = show_program_});
    if (auto refusal = apply_rule(actual_, *schedule, target_, decisions)) {
      // A refusal is an error for a rule that names its function, and for values from the user without which it fits.
      bool fits_otherwise =
          !rule_.given.empty() && Application(actual_, name_, target_, false, nullptr).run(program).program;
      if (fits_otherwise || !rule_.function.empty()) throw CompileError({*refusal});
      return {std::nullopt, to_string(*refusal)};
    }
    if (dim) decisions.check_all_asked();
    return {schedule->function(), ""};
  }

  // Adds the versions to the general program. Their decisions are made again, since their dims are known. Only values
  // other than those of the general program's formulas hold for them, too.
  RuleResult with_versions(const PrimFuncRef& program, const PrimFuncRef& general, const VarRef& dim,
                           const Decisions& taken) const {
    std::vector<int64_t> values;
    Attrs given;
    for (const Decision& decision : taken.all()) {
      if (decision.name == "specialize") {
        from_attr(decision.value, values);
      } else if (decision.value != decision.formula) {
        given.set(decision.name, decision.value);
      }
    }
    if (values.empty()) return {general, ""};
    std::vector<Buffer> buffers;
    Stmt body = take_root(general->body, buffers);
    for (int64_t value : values) {
      Decisions decisions = decisions_with(given);
      auto specialized = cast<PrimFunc>(substitute(static_cast<const Expr&>(program), {{dim.get(), int_imm(value)}}));
      std::optional<Schedule> schedule;
      RuleResult known = scheduled(specialized, decisions, schedule, nullptr);
      if (!known.program) return known;
      const PrimFunc& function = **known.program;
      VarMap params;
      for (size_t i = 0; i < function.params.size(); ++i) params.emplace(function.params[i].get(), program->params[i]);
      Stmt version = instantiate(substitute(function.body, params), {});
      body = make(IfThenElse{equal(dim, int_imm(value)), take_root(version, buffers), body}, program.span());
    }
    return {with_body(general, root_block(std::move(buffers), body)), ""};
  }

  const ScheduleRule &rule_, &actual_;
  const std::string& name_;
  const Target& target_;
  bool show_program_;
  const OnScheduled& on_scheduled_;
};

}  // namespace

bool concerns(const ScheduleRule& rule, const std::string& name, const std::vector<std::string>& ops) {
  if (!rule.function.empty()) return rule.function == name;
  const ScheduleRule* used = rule.uses.empty() ? nullptr : find_builtin_rule(rule.uses);
  if (!rule.uses.empty() && !used) return false;  // a decision about the graph
  const std::string& op = used && rule.op.empty() ? used->op : rule.op;
  return op.empty() || std::ranges::find(ops, op) != ops.end();
}

RuleResult schedule_by_rule(const ScheduleRule& rule, const std::string& name, const PrimFuncRef& program,
                            const Target& target, bool show_program, const OnScheduled& scheduled) {
  return Application(rule, name, target, show_program, scheduled).run(program);
}

std::optional<PrimFuncRef> schedule_by_rules(const std::string& name, const PrimFuncRef& program,
                                             const std::vector<ScheduleRule>& rules, const Target& target,
                                             const RuleReport& report, const OnScheduled& scheduled) {
  if (program->attrs.get_bool(attr_names::kIsScheduled, false)) return std::nullopt;
  std::vector<std::string> ops = operators_of(program);
  for (const ScheduleRule& rule : rules) {
    if (!concerns(rule, name, ops)) continue;
    RuleResult result = schedule_by_rule(rule, name, program, target, report != nullptr, scheduled);
    if (!result.program) {
      std::string text = fmt::format("schedule rule '{}' does not fit '{}':\n{}", rule.name, name, result.refusal);
      if (!rule.function.empty()) fail_to_fit(rule.span, "{}", text);
      if (report) report(text);
      continue;
    }
    if (report) report(fmt::format("schedule rule '{}' is applied to '{}'", rule.name, name));
    PrimFunc function = **result.program;
    function.attrs.set(attr_names::kIsScheduled, true);
    return make_prim_func(std::move(function), program.span());
  }
  return std::nullopt;
}

}  // namespace relaxc
