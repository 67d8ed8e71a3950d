// Random chains of schedule primitives, and the comparison of what comes out with the program as it was.
#pragma once
#include "tests/schedule/programs.h"
#include "tir/schedule/schedule.h"

namespace relaxc::test {

// Applies up to `length` random primitives that the schedule accepts.
void apply_random_chain(Schedule& schedule, int length, uint32_t seed);

struct ChainOptions {
  int length = 20;
  bool compile = false;            // run machine code, too
  bool int32 = false;              // the program counts in int32
  const char* target = nullptr;    // whose vectors the lowering uses; absent: those of plain x86-64
  int64_t max_steps = 20'000'000;  // of the interpreter per run: splits of splits have iterations that do nothing
};
// Returns whether machine code of the program can be made for this processor.
bool runs_here(const PrimFuncRef& function);
// Runs both on the same numbers. Returns the first difference, or the empty string.
std::string compare_programs(const PrimFuncRef& original, const PrimFuncRef& scheduled,
                             const std::vector<std::map<std::string, int64_t>>& sizes, uint32_t seed,
                             const ChainOptions& options);
struct ChainResult {
  std::string problem;   // the first difference with the trace and the program, or empty
  bool gave_up = false;  // the run stopped after max_steps, so that nothing is known
};
// Applies a chain to the program and runs both.
ChainResult try_chain(const TestProgram& program, uint32_t seed, const ChainOptions& options);

}  // namespace relaxc::test
