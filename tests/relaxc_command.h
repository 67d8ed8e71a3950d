// Runs the command relaxc.
#pragma once
#include "tests/process.h"

namespace relaxc::test {

inline Outcome run_relaxc(std::vector<std::string> arguments, double limit_seconds = 300) {
  arguments.insert(arguments.begin(), RELAXC_TOOL);
  return run_program(arguments, limit_seconds);
}

}  // namespace relaxc::test
