// The schedule rules that every compile tries, behind the user's. To add one: its file here, and a call in
// builtin_rules.cc.
#pragma once
#include "tir/schedule/rule.h"
#include "tir/target.h"

namespace relaxc {

std::vector<ScheduleRule> builtin_schedule_rules(const Target& target);

}  // namespace relaxc
