// Random chains of schedule primitives, and the comparison of what comes out with the program as it was.
#pragma once
#include "tests/schedule/programs.h"
#include "tir/schedule/schedule.h"

namespace relaxc::test {

// Applies up to `length` random primitives that the schedule accepts.
void apply_random_chain(Schedule& schedule, int length, uint32_t seed);

struct ChainOptions {
  int length = 20;
  bool compile = false;  // run machine code, too
};
// Whether machine code of the program can be made for this processor.
bool runs_here(const PrimFuncRef& function);
// Runs both on the same numbers; the empty string, or what differs.
std::string compare_programs(const PrimFuncRef& original, const PrimFuncRef& scheduled,
                             const std::vector<std::map<std::string, int64_t>>& sizes, uint32_t seed,
                             const ChainOptions& options);
// Applies a chain to the program and runs both; the empty string, or what differs with the trace and the program.
std::string try_chain(const TestProgram& program, uint32_t seed, const ChainOptions& options);

}  // namespace relaxc::test
