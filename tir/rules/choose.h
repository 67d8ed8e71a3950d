// Finds the rule that schedules a program, and its decisions: the user's rules are tried first, then the built-in ones.
#pragma once
#include "tir/intrin/tensor_intrin.h"
#include "tir/schedule/rule.h"

namespace relaxc {

// The rules that plug-ins add, which are tried before the built-in ones, and the intrinsics that all schedules may
// name.
struct MoreRules {
  std::vector<ScheduleRule> rules = {};
  std::shared_ptr<const TensorIntrins> intrins = {};  // with the built-in ones; null: only those
};
// Returns the rule that S.use names, built in or added; null when there is none.
const ScheduleRule* find_rule(std::string_view name, const std::vector<ScheduleRule>& added);

using RuleReport = std::function<void(const std::string&)>;

// Returns whether the rule is for the program of that name: by this name, or by an operator or a program in it.
bool concerns(const ScheduleRule& rule, const std::string& name, const PrimFuncRef& program,
              const MoreRules& more = {});

// Returns the program scheduled by the rule, or why the rule does not fit it. A rule made by S.use applies the built-in
// rule that it names, with the values that it gives. Throws a CompileError if a value is not a candidate, if the rule
// would fit without the given values, or if it does not fit the function that it names.
struct RuleResult {
  std::optional<PrimFuncRef> program;
  std::string refusal;  // why the rule does not fit, when there is no program
};
RuleResult schedule_by_rule(const ScheduleRule& rule, const std::string& name, const PrimFuncRef& program,
                            const Target& target, bool show_program, const OnScheduled& scheduled = nullptr,
                            const MoreRules& more = {});

// Does the same with the first rule that fits, of the user's, then of the added and the built-in ones. A user's rule
// for a function must fit; one for an operator that does not is skipped, with a report. Returns the program as it is if
// none fits, or if it is scheduled already.
PrimFuncRef schedule_by_rules(const std::string& name, const PrimFuncRef& program,
                              const std::vector<ScheduleRule>& users, const Target& target, const RuleReport& report,
                              const OnScheduled& scheduled, const MoreRules& more = {});

}  // namespace relaxc
