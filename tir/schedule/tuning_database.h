// The schedule database of TVM's MetaSchedule: two files of JSON lines. A line of database_workload.json is
// [hash, program in base64], one of database_tuning_record.json [workload, [trace, seconds, target, arguments]].
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "tir/schedule/rule.h"
#include "tir/schedule/trace.h"

namespace relaxc {

struct TuningFile {
  std::string name, text;
};
// Returns a rule that applies the fastest record whose workload has the program's structure: dtypes and shapes of the
// params, and the axes of the blocks, in order. Without a readable workload the params decide, and the names of blocks
// that the trace gives. A record that does not fit passes on to the next. Throws a CompileError with the line of a
// record that is not understood.
ScheduleRule tuned_rule(const TuningFile& records, const TuningFile& workloads);

// A program before it was scheduled, and its schedule.
struct TunedProgram {
  std::string name;
  PrimFuncRef program;
  Trace trace;
};
// Return the lines of the two files. A workload is the program's text, since the layout of TVM's own changes with its
// versions; TVM reads the traces. Programs with symbolic dims are left out: a record has numbers.
std::string print_workloads(const std::vector<TunedProgram>& programs);
std::string print_tuning_records(const std::vector<TunedProgram>& programs, const Target& target);

}  // namespace relaxc
