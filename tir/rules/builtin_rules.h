// The schedule rules that every compile tries, after the user's. To add one: a file in this folder, and a row in
// builtin_rules.cc.
#pragma once
#include "tir/edit/arguments.h"
#include "tir/schedule/rule.h"

namespace relaxc {

// Returns them in the order in which they are tried.
const std::vector<ScheduleRule>& builtin_schedule_rules();
const ScheduleRule* find_builtin_rule(std::string_view name);

// Schedules some blocks of a program as the default rule does.
void schedule_blocks_by_default(Schedule& schedule, const std::vector<BlockRV>& blocks, const Target& target);
// Schedules the blocks that fusion put beside a program and that the program's schedule has left as they were
// (annotation `fused_beside`), as the default rule does.
void schedule_blocks_beside(Schedule& schedule, const Target& target);  // default.cc

}  // namespace relaxc
