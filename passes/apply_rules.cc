// Expects: tensor programs as check_lowerable leaves them. Guarantees: each is scheduled by the user's rule for
// it, else by the first built-in rule that fits, the last of which takes any program of plain nests (attribute
// tir.is_scheduled); others, such as those scheduled by hand, are left as they are. A rule for a function must fit; one
// for an operator is left out, with a report, where it does not.
#include <algorithm>

#include "ir/attr_names.h"
#include "ir/op_names.h"
#include "passes/graph_decisions.h"
#include "passes/kernel_rules.h"
#include "passes/tables.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/lists.h"
#include "support/nearest.h"
#include "tir/analysis/nests.h"
#include "tir/lower/lower.h"
#include "tir/rules/builtin_rules.h"
#include "tir/rules/choose.h"
#include "tir/rules/winograd.h"

namespace relaxc {

// Fails where a rule is for an operator that does not exist, whatever the model: one that neither the table, a built-in
// rule nor a kernel of the user has, and that no tensor program of the module is called.
static void expect_operator(const IRModule& module, const ScheduleRule& rule, const PassContext& context) {
  const MoreRules& more = tables_of(context).rules();
  auto is_for_it = [&](const ScheduleRule& known) { return known.op == rule.op; };
  auto is_kernel = [&](const KernelRule& kernel) { return kernel.name == rule.op; };
  const bool is_known =
      context.ops.find(ops::full_name(rule.op)) || std::ranges::any_of(builtin_schedule_rules(), is_for_it) ||
      std::ranges::any_of(more.rules, is_for_it) ||
      (context.kernels && std::ranges::any_of(*context.kernels, is_kernel)) ||
      std::ranges::any_of(programs_of(module),
                          [&](const auto& entry) { return concerns(rule, entry.first, entry.second, more); });
  if (is_known) return;
  const std::string near =
      nearest(rule.op, map_each(context.ops.rows(), [](const OpRow& row) { return ops::short_name(row.name); }));
  fail(rule.span,
       "there is no operator '{}'{}; relaxc opt --list-ops lists them, and a tensor program has its own name", rule.op,
       near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
}

// S.use names a rule, and so an operator, for the programs of this module.
static void warn_of_unused_rules(const IRModule& module, const PassContext& context) {
  const MoreRules& more = tables_of(context).rules();
  for (const ScheduleRule& rule : context.schedules) {
    const ScheduleRule* used = rule.uses.empty() ? &rule : find_rule(rule.uses, more.rules);
    if (!used) continue;  // a decision about the graph
    const std::string& op = rule.op.empty() ? used->op : rule.op;
    if (op.empty()) continue;
    bool concerns_any = std::ranges::any_of(
        programs_of(module), [&](const auto& entry) { return concerns(rule, entry.first, entry.second, more); });
    if (concerns_any) continue;
    if (rule.uses.empty()) {
      auto is_winograd = [](const auto& entry) {
        return std::ranges::count(operators_of(entry.second), std::string_view(winograd::kOp)) > 0;
      };
      const bool has_winograd =
          op == ops::short_name(ops::kConv2d) && std::ranges::any_of(programs_of(module), is_winograd);
      context.report(note_at(
          rule.span, fmt::format("rule '{}' is used nowhere: no tensor program holds '{}'{}", rule.name, op,
                                 has_winograd ? "; the graph chose Winograd's algorithm for convolutions, which "
                                                "S.use(\"convolution_algorithm\", algorithm=\"direct\") or "
                                                "--winograd-error 0 prevents"
                                              : "")));
      continue;
    }
    warn_of_unused(rule, context, fmt::format("no tensor program holds an operator '{}'", op));
  }
}

// Returns the schedule for the program itself, or for the part of it that had a name; null where neither is there. It
// fits, or compilation fails.
static const ScheduleRule* own_schedule(const std::string& name, const PrimFuncRef& program,
                                        const PassContext& context) {
  const ScheduleRule* result = nullptr;
  for (const ScheduleRule& rule : context.schedules) {
    if (rule.function == name) return &rule;
    if (!result && !rule.function.empty() && concerns(rule, name, program)) result = &rule;
  }
  return result;
}

// Of several S.use of one rule the first counts for a program, and of a schedule for the program and what is behind it
// the schedule. A rule that comes too late for all of its programs was meant otherwise.
static void warn_of_late_uses(const IRModule& module, const PassContext& context) {
  const MoreRules& more = tables_of(context).rules();
  const ProgramMap programs = programs_of(module);
  for (const ScheduleRule& rule : context.schedules) {
    if (!rule.uses.empty() && !find_rule(rule.uses, more.rules)) continue;
    const ScheduleRule *first = nullptr, *own = nullptr;
    std::string name_of_own;
    size_t num_concerned = 0, num_late = 0;
    for (const auto& [name, program] : programs) {
      if (!concerns(rule, name, program, more)) continue;
      ++num_concerned;
      const ScheduleRule* schedule = own_schedule(name, program, context);
      // A rule for a part of the program leaves it to a schedule for the program wherever that stands.
      const std::string part = program->attrs.get_string(attr_names::kScheduledPart, "");
      const bool is_for_part = part != name && (rule.function.empty() ? rule.op : rule.function) == part;
      auto comes_first = [&](const ScheduleRule& other) {
        if (&other == schedule && is_for_part && &other != &rule && other.function == name) return true;
        if (&other >= &rule) return false;
        return &other == schedule ||
               (!rule.uses.empty() && other.uses == rule.uses && concerns(other, name, program, more));
      };
      auto other = std::ranges::find_if(context.schedules, comes_first);
      if (other == context.schedules.end()) continue;
      ++num_late;
      if (other->uses == rule.uses && !rule.uses.empty()) {
        first = first ? first : &*other;
      } else if (!own) {
        own = &*other, name_of_own = name;
      }
    }
    if (num_concerned == 0 || num_late < num_concerned) continue;
    if (first) {
      warn_of_late_use(rule, *first, context);
    } else {
      context.report(note_at(
          rule.span,
          fmt::format("{} is used nowhere: '{}' of line {} comes first for '{}'",
                      rule.uses.empty() ? fmt::format("{} '{}'", rule.function.empty() ? "rule" : "schedule", rule.name)
                                        : fmt::format("S.use(\"{}\")", rule.uses),
                      own->name, own->span.line, name_of_own)));
    }
  }
}

// Fails, with a list of the programs that there are, where none has the name that the rule gives or holds what had it.
// A kernel or pattern of that name which fits nothing in this module may fit another one.
static void expect_program(const IRModule& module, const ScheduleRule& rule, const PassContext& context) {
  ProgramMap programs = programs_of(module);
  if (std::ranges::any_of(programs, [&](const auto& entry) { return concerns(rule, entry.first, entry.second); }))
    return;
  auto declares = [&](const KernelRule& kernel) { return kernel.name == rule.function; };
  if (context.kernels && std::ranges::any_of(*context.kernels, declares)) {
    if (context.report)
      context.report(note_at(
          rule.span, fmt::format("schedule '{}' is used nowhere: no program holds '{}'", rule.name, rule.function)));
    return;
  }
  const Expr* other = module.find(rule.function);
  if (other && other->is<Function>())
    fail(rule.span,
         "'{}' is a graph function; it becomes one tensor program, to which a schedule applies, if it is private "
         "(@R.function(private=True)) and says R.func_attr({{\"Primitive\": True}})",
         rule.function);
  std::vector<std::string> known;
  for (const auto& [name, _] : programs) known.push_back(name);
  const std::string names = joined(known);
  if (context.kernels) {
    for (const KernelRule& kernel : *context.kernels) known.push_back(kernel.name);
  }
  const std::string near = nearest(rule.function, known);
  fail(rule.span,
       "the module has no tensor program '{}' to schedule{}; it has: {}. A program that nothing calls is removed "
       "before, "
       "and so is one whose result is a constant or not used",
       rule.function, near.empty() ? "" : fmt::format("; did you mean '{}'?", near), names.empty() ? "none" : names);
}

void expect_rules(const IRModule& module, const PassContext& context) {
  for (const ScheduleRule& rule : context.schedules) {
    if (!rule.apply && rule.uses.empty()) fail(rule.span, "rule '{}' has nothing to apply", rule.name);
    if (!rule.function.empty()) expect_program(module, rule, context);
    if (!rule.op.empty()) expect_operator(module, rule, context);
  }
  if (!context.report) return;
  warn_of_unused_rules(module, context);
  warn_of_late_uses(module, context);
}

PrimFuncRef apply_rules(const std::string& name, const PrimFuncRef& program, const PassContext& context) {
  Span applied;
  const OnScheduled note_rule = [&](const ScheduleRule& rule, const Schedule& schedule, const Decisions& decisions) {
    applied = rule.span;
    if (context.scheduled) context.scheduled(rule, schedule, decisions);
  };
  PrimFuncRef result = schedule_by_rules(name, program, context.schedules, context.target, context.report,
                                         context.report ? note_rule : context.scheduled, tables_of(context).rules());
  if (!context.report) return result;
  std::vector<Diagnostic> known = unread_annotations({program});  // of the program's text, reported when it was read
  for (Diagnostic& warning : unread_annotations({result})) {
    if (std::ranges::any_of(known, [&](const auto& one) { return one.message == warning.message; })) continue;
    warning.span = applied;  // the loop that was annotated has the place of the program's text
    std::string text = to_string(warning);
    text.pop_back();  // the end of its last line, which whoever reports adds
    context.report(text);
  }
  return result;
}

}  // namespace relaxc
