// Measures a model with and without somebody's kernels, in turn, so that both find the machine in the same state.
#pragma once
#include "codegen/compile.h"
#include "tools/compare.h"
#include "tools/timing.h"

namespace relaxc::tools {

// A compiled model and a session of it.
struct Measured {
  codegen::KernelMap programs;  // of its kernels, lowered
  Session session;
  std::string function;

  // Runs the function and returns the time in milliseconds.
  double run(const std::vector<vm::Value>& inputs);
};

struct InTurnOptions {
  int runs = 50;        // at most, of each
  double seconds = 10;  // for all
};
struct InTurn {
  double without_ms = 0, with_ms = 0;  // medians
  double ratio = 0;                    // with / without: the median over pairs of neighbouring runs
  bool differ = false;                 // whether any kernel does; else the ratio is chance
  std::string text;                    // which kernels differ, and what that costs or gains; `ratio` in words
  double greatest_difference = 0;      // of two elements of the results
  std::string wrong = {};              // the first result that is not as close as it must be; "" where all are
};
// Says what the ratios of neighbouring runs tell, time of one version by time of the other: "faster" or "slower" where
// three of four are on one side of 1, else "no clear difference" and why.
std::string verdict(std::vector<double> ratios);
// Runs each once, and fills in how far the results of the first are from those of the second.
void compare_results(Measured& first, Measured& second, const std::vector<vm::Value>& inputs,
                     const std::vector<vm::ValueInfo>& outputs, const Closeness& closeness, InTurn& result);
InTurn measure_in_turn(Measured& with, Measured& without, const std::vector<vm::Value>& inputs,
                       const InTurnOptions& options);

// Compares whole runs of two programs, whose kernels need not have anything in common. `text` has the medians and the
// ratio of the first to the second one.
InTurn measure_pair(Measured& first, Measured& second, const std::vector<vm::Value>& inputs,
                    const InTurnOptions& options);

}  // namespace relaxc::tools
