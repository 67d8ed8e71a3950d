#include "tir/rules/builtin_rules.h"

#include "tir/rules/contraction.h"
#include "tir/rules/convolution.h"
#include "tir/rules/default.h"
#include "tir/rules/winograd.h"

namespace relaxc {

const std::vector<ScheduleRule>& builtin_schedule_rules() {
  static const std::vector<ScheduleRule> kRules = {contraction_rule(), convolution_rule(), winograd_rule(),
                                                   default_rule()};
  return kRules;
}

const ScheduleRule* find_builtin_rule(std::string_view name) {
  for (const ScheduleRule& rule : builtin_schedule_rules()) {
    if (rule.name == name) return &rule;
  }
  return nullptr;
}

}  // namespace relaxc
