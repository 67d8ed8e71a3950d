// Expects: tensor programs as legalize, fuse or a user wrote them. Guarantees: each is scheduled by the user's rule for
// it, else by the first built-in rule that fits, the last of which takes any program of plain nests (attribute
// tir.is_scheduled); others, such as those scheduled by hand, are left as they are. A rule for a function must fit; one
// for an operator is left out, with a report, where it does not.
#include <algorithm>

#include "passes/pass.h"
#include "support/diagnostic.h"
#include "tir/analysis/nests.h"
#include "tir/compute.h"
#include "tir/lower/lower.h"
#include "tir/program.h"
#include "tir/rules/builtin_rules.h"
#include "tir/schedule/schedule.h"

namespace relaxc {

namespace {

bool concerns(const ScheduleRule& rule, const std::string& name, const std::vector<std::string>& ops) {
  if (!rule.function.empty()) return rule.function == name;
  return rule.op.empty() || std::find(ops.begin(), ops.end(), rule.op) != ops.end();
}

using Report = std::function<void(const std::string&)>;

class Renamer final : public Rewriter {
 public:
  Renamer(const std::vector<VarRef>& from, const std::vector<VarRef>& to) {
    for (size_t i = 0; i < from.size(); ++i) renamed_.emplace(from[i].get(), to[i]);
  }
};

// What the root block holds; its memory goes to `buffers`.
Stmt take_root(const Stmt& body, std::vector<Buffer>& buffers) {
  const Block* root = body.as<Block>();
  if (!root || !root->iter_vars.empty()) return body;
  buffers.insert(buffers.end(), root->alloc_buffers.begin(), root->alloc_buffers.end());
  return root->body;
}

PrimFuncRef schedule_by_rule(const ScheduleRule& rule, const std::string& name, const PrimFuncRef& function,
                             bool show) {
  auto scheduled = [&](const PrimFuncRef& program) {
    Schedule schedule(IRModule{{{name, program}}, {}, {}}, {.show_program = show});
    apply_rule(rule, schedule);
    return schedule.function();
  };
  PrimFuncRef result = scheduled(function);
  std::vector<std::pair<VarRef, int64_t>> apart;
  walk(function->body, [&](const Block& block) {
    if (rule.apart && block.annotations.get_string(kOpAttribute, "") == rule.op) apart = rule.apart(block);
  });
  if (apart.empty()) return result;
  std::vector<Buffer> buffers;
  Stmt body = take_root(result->body, buffers);
  for (const auto& [dim, value] : apart) {
    PrimFuncRef known =
        scheduled(cast<PrimFunc>(substitute(static_cast<const Expr&>(function), {{dim.get(), int_imm(value)}})));
    Stmt own = instantiate(Renamer(known->params, function->params)(known->body), {});
    body = make(IfThenElse{equal(dim, int_imm(value)), take_root(own, buffers), body}, function.span());
  }
  PrimFunc copy = *result;
  copy.body = root_block(std::move(buffers), body);
  return make_prim_func(std::move(copy), function.span());
}

std::optional<PrimFuncRef> schedule_by_rules(const std::string& name, const PrimFuncRef& function,
                                             const std::vector<ScheduleRule>& rules, const Report& report) {
  if (function->attrs.get_bool("tir.is_scheduled", false)) return std::nullopt;
  std::vector<std::string> ops = operators_of(function);
  for (const ScheduleRule& rule : rules) {
    if (!concerns(rule, name, ops)) continue;
    std::optional<PrimFuncRef> result;
    try {
      result = schedule_by_rule(rule, name, function, report != nullptr);
    } catch (const CompileError& error) {
      if (!rule.function.empty()) throw;
      if (report) report(fmt::format("schedule rule '{}' does not fit '{}':\n{}", rule.name, name, error.what()));
      continue;
    }
    if (report) report(fmt::format("schedule rule '{}' is applied to '{}'", rule.name, name));
    PrimFunc scheduled = **result;
    scheduled.attrs.set("tir.is_scheduled", true);
    return make_prim_func(std::move(scheduled), function.span());
  }
  return std::nullopt;
}

// A rule for an operator that neither the table nor a program knows was meant for another.
void warn_of_unknown_operators(const IRModule& module, const PassContext& context) {
  for (const ScheduleRule& rule : context.schedules) {
    if (rule.op.empty() || context.ops.find("relax." + rule.op)) continue;
    bool used = std::any_of(module.functions.begin(), module.functions.end(), [&](const auto& entry) {
      auto program = try_cast<PrimFunc>(entry.second);
      return program && concerns(rule, entry.first, operators_of(*program));
    });
    if (used) continue;
    Diagnostic warning{Severity::kWarning, ErrorKind::kInvalid, rule.span, "", {}};
    warning.message =
        fmt::format("no tensor program holds an operator '{}', and --list-ops knows none; rule '{}' is not used",
                    rule.op, rule.name);
    context.report(to_string(warning));
  }
}

}  // namespace

void expect_rules(const IRModule& module, const PassContext& context) {
  for (const ScheduleRule& rule : context.schedules) {
    if (!rule.apply) fail(rule.span, "rule '{}' has nothing to apply", rule.name);
    if (!rule.function.empty()) module.prim_func(rule.function, rule.span);  // or an error that lists what there is
  }
  if (context.report) warn_of_unknown_operators(module, context);
}

PrimFuncRef schedule(const std::string& name, const PrimFuncRef& program, const PassContext& context) {
  PrimFuncRef normal = check_lowerable(promote_indices(normalize_loops(program)));
  std::optional<PrimFuncRef> by_rule = schedule_by_rules(name, normal, context.schedules, context.report);
  if (!by_rule)
    by_rule = schedule_by_rules(name, without_empty_nests(normal), builtin_schedule_rules(context.target), nullptr);
  return by_rule.value_or(normal);
}

}  // namespace relaxc
