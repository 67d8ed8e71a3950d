#include "tir/rules/builtin_rules.h"

#include <algorithm>

namespace relaxc {

const std::vector<ScheduleRule>& builtin_schedule_rules() {
#define X(rule) rule(),
  static const std::vector<ScheduleRule> kRules = {RELAXC_RULES(X)};
#undef X
  return kRules;
}

const ScheduleRule* find_builtin_rule(std::string_view name) {
  auto rule = std::ranges::find(builtin_schedule_rules(), name, &ScheduleRule::name);
  return rule == builtin_schedule_rules().end() ? nullptr : &*rule;
}

}  // namespace relaxc
