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
// Applies a chain to the program and runs both; the empty string, or what differs with the trace and the program.
std::string try_chain(const TestProgram& program, uint32_t seed, const ChainOptions& options);

}  // namespace relaxc::test
