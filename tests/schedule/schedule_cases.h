// Schedules as text tests (`# test: schedule`): steps on a small program, and the program that comes out or the error
// of the step that is refused.
//
//   # test: schedule
//   @T.prim_func
//   def main(A: T.Buffer((12,), "float32"), ...):      the program; `# sizes: n=3 m=5; n=7 m=1` when dims are symbolic
//   # ---- steps: a tail is a predicate
//   i, = sch.get_loops("C")
//   sch.split(i, [None, 5])
//   # ---- result                                      what ./dev update writes
//   ...
//   # ---- steps: two factors are open                 a refusal: without a result
//   sch.split(sch.get_loops("C")[0], [None, None])  # error: split: two factors are None; one can be inferred
//   # ---- program: ...                                another program for what follows
//
// Of each case it is also checked that its trace does the same again as text and as JSON, that a refused step leaves
// the program as it was, that the result verifies, prints and parses, and that it computes what the program computed:
// in the interpreter, lowered, and as machine code, at the given sizes. A line `# not run: REASON` leaves out the last.
#pragma once
#include "tests/text/harness.h"

namespace relaxc::test {

// A section of steps.
struct ScheduleCase {
  std::string steps;
  bool is_refused;
};
std::vector<ScheduleCase> schedule_cases(const TextTest& test);

}  // namespace relaxc::test
