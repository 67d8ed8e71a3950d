// The schedule rules that every compile tries, after the user's. To add one: a file in this folder, and a row below.
#pragma once
#include "tir/schedule/rule.h"

namespace relaxc {

// The functions that return the rules, each defined in a file of this folder, in the order in which the rules are
// tried. The default rule fits any program, so no rule after it would be tried.
#define RELAXC_RULES(X) X(contraction_rule) X(convolution_rule) X(winograd_rule) X(default_rule)

#define X(rule) ScheduleRule rule();
RELAXC_RULES(X)
#undef X

// Returns them in the order in which they are tried.
const std::vector<ScheduleRule>& builtin_schedule_rules();
const ScheduleRule* find_builtin_rule(std::string_view name);

}  // namespace relaxc
