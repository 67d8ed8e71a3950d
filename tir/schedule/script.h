// Schedules as text, in the form that TVM's users write and that traces print:
//
//   @S.rule("nn.conv2d")          # or @S.schedule("main"): a function by name; both: a trace of the operator's rule
//   def tile_conv(sch):
//       block = sch.get_block("conv")
//       n, c, h, w, *k = sch.get_loops(block)
//       c0, c1 = sch.split(c, [None, 16])
//       sch.vectorize(c1)
//
// A file may declare tensor intrinsics (tensor_intrin.h), which its schedules name in tensorize: two tensor programs
// and
//
//   S.intrin("my_dot", my_dot_description, my_dot_implementation)
//
// and say that a built-in rule is to be used, with other decisions than its formulas':
//
//   S.use("contraction", op="matmul", rows=6, columns=64)
//
// Statements are assignments, calls on the schedule, `for x in ...`, `if`, `assert` and arithmetic on numbers and
// lists; there is no other Python in it.
#pragma once
#include <map>

#include "tir/schedule/rule.h"
#include "tir/schedule/schedule.h"

namespace relaxc {

// Runs the definitions of a text on the schedule, and the statements outside of them, which call it `sch` (or as they
// name it by `x = tvm.tir.Schedule(...)`). Throws a CompileError at the first line that fails, and at an S.use.
void run_schedule_text(Schedule& schedule, std::string_view text, const std::string& filename);

// Returns the steps on `sch = tvm.tir.Schedule(Module)` that stand beside the module in its text, without the Python
// around them; nullopt when there are none. Of several modules in the text, only those on the named one count.
std::optional<ScheduleRule> read_module_schedule(std::string_view text, const std::string& filename,
                                                 const std::string& module_name = "");

// Returns the value of one expression that calls no primitive: "lambda i, j: (j, i)", "[1, 2]", "v0 * 4".
using ScheduleNames = std::map<std::string, AttrValue, std::less<>>;
AttrValue schedule_value(std::string_view text, ScheduleNames names = {});

// Reads the declarations of intrinsics in a file of schedules; throws a CompileError with all errors in them.
TensorIntrins read_tensor_intrins(std::string_view text, const std::string& filename);
// Returns the declarations of intrinsics as a file of schedules has them.
std::string print_intrins(const TensorIntrins& intrins);

}  // namespace relaxc
