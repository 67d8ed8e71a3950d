// The last of the built-in rules: takes any program. Elementwise blocks go into their readers where that saves memory
// traffic without repeating work; each block that is left is scheduled for itself, as a reduction (reduction.h) or
// element by element (elementwise.h). A program that is no list of plain nests (find_nests), such as one that somebody
// scheduled by hand, stays as it is.
#pragma once
#include "tir/schedule/rule.h"
#include "tir/target.h"

namespace relaxc {

ScheduleRule default_rule();

}  // namespace relaxc
