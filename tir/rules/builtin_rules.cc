#include "tir/rules/builtin_rules.h"

#include "support/lists.h"

namespace relaxc {

// The functions that return the rules, each defined in a file of this folder, in the order in which the rules are
// tried. The default rule fits any program, so no rule after it would be tried.
#define RELAXC_RULES(X) \
  X(attention_rule)     \
  X(digit_product_rule) X(tiles_rule) X(contraction_rule) X(convolution_rule) X(winograd_rule) X(default_rule)

#define X(rule) ScheduleRule rule();
RELAXC_RULES(X)
#undef X

const std::vector<ScheduleRule>& builtin_schedule_rules() {
#define X(rule) rule(),
  static const std::vector<ScheduleRule> kRules = {RELAXC_RULES(X)};
#undef X
  return kRules;
}

const ScheduleRule* find_builtin_rule(std::string_view name) {
  return find_item(builtin_schedule_rules(), name, &ScheduleRule::name);
}

}  // namespace relaxc
