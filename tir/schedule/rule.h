// <relaxc/rule.h>: a schedule that belongs to something: to a tensor program by name, or to an operator wherever it is
// found. A rule for an operator is written once, against the operator's block (the anchor), and is applied to what
// fusion made around it: it looks for the anchor, tiles it, and moves what follows into the tile
// (Schedule::merge_epilogue).
#pragma once
#include <functional>

#include "ir/module.h"
#include "ir/stmt.h"

namespace relaxc {

class Schedule;

struct ScheduleRule {
  std::string name;
  std::string function;  // the tensor program it is for; empty: any that holds `op`
  std::string op;  // the operator it is for, "nn.conv2d"; empty: any; beside a function: whose rule it is a trace of
  Span span;
  // Schedules the program worked on. A CompileError says which condition failed.
  std::function<void(Schedule&)> apply;
  // Values of dims for which the program, where its anchor is this block, is scheduled once more and has code of its
  // own.
  std::function<std::vector<std::pair<VarRef, int64_t>>(const Block& anchor)> apart = nullptr;
};

// Schedules the program worked on; throws also where the rule would change what callers hand over.
void apply_rule(const ScheduleRule& rule, Schedule& schedule);

// The block attribute that names the operator whose result the block computes; legalization sets it.
inline constexpr const char* kOpAttribute = "op";
// The program with the operator's name on the block that computes its result: the last that reduces, else the last.
PrimFuncRef with_op_name(const PrimFuncRef& program, const std::string& op);
// The operators of the program's blocks, in order.
std::vector<std::string> operators_of(const PrimFuncRef& function);

// The rules of a file (script.h); throws a CompileError with all errors in it.
std::vector<ScheduleRule> read_schedule_rules(std::string_view text, const std::string& filename);

}  // namespace relaxc
