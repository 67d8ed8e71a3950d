// Runs of two programs in turn, so that both find the machine in the same state, and whether their results agree:
// `bench --compare` of relaxc and of relaxc-run. It needs the runtime only.
#pragma once
#include "tools/compare.h"
#include "tools/timing.h"

namespace relaxc::tools {

// A function of a program, and a session of it.
struct Measured {
  Session session;
  std::string function;

  // Runs the function and returns the time in milliseconds.
  double run(const std::vector<vm::Value>& inputs);
  const vm::Function& signature() const { return session.program().function(function); }
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
                     const Closeness& closeness, InTurn& result);
// Returns whether the results agree, and prints where they do not; `other` names the second version.
bool is_right(const InTurn& compared, const std::string& other);

// Another file that is measured in turn with the first one: --compare and the flags of its results.
struct OtherFile {
  std::string path;  // "": none
  Closeness closeness;
  void add_to(CLI::App& app, const std::string& kinds);
  // Fails where the other program does not take the inputs of the model, or has results of other forms, before anything
  // is measured.
  void check(const Program& other, std::string_view function, Measured& model,
             const std::vector<vm::Value>& inputs) const;
  // Measures whole runs of the two, whose kernels need not have anything in common, and compares their results. `text`
  // has the medians and the ratio of the model to the other one.
  InTurn measure(Measured& model, Measured& other, const std::vector<vm::Value>& inputs,
                 const TimingOptions& timing) const;
};
// Returns the figures of such a comparison.
Report figures_of(const InTurn& compared);

}  // namespace relaxc::tools
