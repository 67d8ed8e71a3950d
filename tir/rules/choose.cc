#include "tir/rules/choose.h"

#include <algorithm>

#include "support/diagnostic.h"
#include "tir/compute.h"
#include "tir/program.h"
#include "tir/rules/builtin_rules.h"
#include "tir/schedule/schedule.h"

namespace relaxc {

namespace {

class Renamer final : public Rewriter {
 public:
  Renamer(const std::vector<VarRef>& from, const std::vector<VarRef>& to) {
    for (size_t i = 0; i < from.size(); ++i) renamed_.emplace(from[i].get(), to[i]);
  }
};

// Takes the body out of the root block. Its memory goes to `buffers`.
Stmt take_root(const Stmt& body, std::vector<Buffer>& buffers) {
  const Block* root = body.as<Block>();
  if (!root || !root->iter_vars.empty()) return body;
  buffers.insert(buffers.end(), root->alloc_buffers.begin(), root->alloc_buffers.end());
  return root->body;
}

// One rule at work on one program and on its versions for certain values of a dim.
class Application {
 public:
  Application(const ScheduleRule& rule, const std::string& name, const Target& target, bool show_program)
      : rule_(rule), actual_(actual(rule)), name_(name), target_(target), show_program_(show_program) {}

  std::string refusal(const PrimFuncRef& program) const {
    return actual_.fits ? actual_.fits(program, target_).value_or("") : "";
  }
  PrimFuncRef run(const PrimFuncRef& program) const {
    Decisions decisions(rule_.given, rule_.span, name_);
    if (actual_.space) actual_.space(program, target_, decisions);
    std::optional<VarRef> dim;
    if (actual_.specialized_dim) dim = actual_.specialized_dim(program, target_);
    std::vector<int64_t> values;
    for (const Decision& decision : decisions.all()) {
      if (dim && decision.name == "specialize") from_attr(decision.value, values);
    }
    Schedule schedule = scheduled(program, decisions);
    decisions.check_all_asked();
    if (rule_.scheduled) rule_.scheduled(schedule, decisions);
    PrimFuncRef result = schedule.function();
    return values.empty() ? result : with_versions(program, result, *dim, values);
  }

 private:
  static const ScheduleRule& actual(const ScheduleRule& rule) {
    const ScheduleRule* used = rule.uses.empty() ? &rule : find_builtin_rule(rule.uses);
    return *used;
  }
  Schedule scheduled(const PrimFuncRef& program, Decisions& decisions) const {
    Schedule schedule(IRModule{{{name_, program}}, {}, {}}, {.show_program = show_program_});
    apply_rule(actual_, schedule, target_, decisions);
    return schedule;
  }
  // The versions take the decisions anew: their dims are known.
  PrimFuncRef with_versions(const PrimFuncRef& program, const PrimFuncRef& general, const VarRef& dim,
                            const std::vector<int64_t>& values) const {
    std::vector<Buffer> buffers;
    Stmt body = take_root(general->body, buffers);
    for (int64_t value : values) {
      Decisions decisions(rule_.given.without("specialize"), rule_.span, name_);
      auto of_value = cast<PrimFunc>(substitute(static_cast<const Expr&>(program), {{dim.get(), int_imm(value)}}));
      PrimFuncRef known = scheduled(of_value, decisions).function();
      Stmt version = instantiate(Renamer(known->params, program->params)(known->body), {});
      body = make(IfThenElse{equal(dim, int_imm(value)), take_root(version, buffers), body}, program.span());
    }
    PrimFunc copy = *general;
    copy.body = root_block(std::move(buffers), body);
    return make_prim_func(std::move(copy), program.span());
  }

  const ScheduleRule &rule_, &actual_;
  const std::string& name_;
  const Target& target_;
  bool show_program_;
};

}  // namespace

bool concerns(const ScheduleRule& rule, const std::string& name, const std::vector<std::string>& ops) {
  if (!rule.function.empty()) return rule.function == name;
  const ScheduleRule* used = rule.uses.empty() ? nullptr : find_builtin_rule(rule.uses);
  if (!rule.uses.empty() && !used) return false;  // a decision about the graph
  const std::string& op = used && rule.op.empty() ? used->op : rule.op;
  return op.empty() || std::find(ops.begin(), ops.end(), op) != ops.end();
}

RuleResult schedule_by_rule(const ScheduleRule& rule, const std::string& name, const PrimFuncRef& program,
                            const Target& target, bool show_program) {
  Application application(rule, name, target, show_program);
  std::string refusal = application.refusal(program);
  if (!refusal.empty()) return {std::nullopt, refusal};
  // Where the user gives values, errors are about these.
  if (!rule.given.empty()) return {application.run(program), ""};
  try {
    return {application.run(program), ""};
  } catch (const CompileError& error) {
    if (!rule.function.empty() || error.kind() != ErrorKind::kDoesNotFit) throw;
    return {std::nullopt, error.what()};
  }
}

std::optional<PrimFuncRef> schedule_by_rules(const std::string& name, const PrimFuncRef& program,
                                             const std::vector<ScheduleRule>& rules, const Target& target,
                                             const RuleReport& report) {
  if (program->attrs.get_bool("tir.is_scheduled", false)) return std::nullopt;
  std::vector<std::string> ops = operators_of(program);
  for (const ScheduleRule& rule : rules) {
    if (!concerns(rule, name, ops)) continue;
    RuleResult result = schedule_by_rule(rule, name, program, target, report != nullptr);
    if (!result.program) {
      std::string text = fmt::format("schedule rule '{}' does not fit '{}':\n{}", rule.name, name, result.refusal);
      if (!rule.function.empty()) fail_to_fit(rule.span, "{}", text);
      if (report) report(text);
      continue;
    }
    if (report) report(fmt::format("schedule rule '{}' is applied to '{}'", rule.name, name));
    PrimFunc scheduled = **result.program;
    scheduled.attrs.set("tir.is_scheduled", true);
    return make_prim_func(std::move(scheduled), program.span());
  }
  return std::nullopt;
}

}  // namespace relaxc
