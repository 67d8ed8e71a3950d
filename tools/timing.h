// Times of runs: how they are measured and told. It needs the runtime only.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <vector>

#include "tools/report.h"
#include "vm/program.h"

namespace relaxc::tools {

class CacheEviction;

struct TimingOptions {
  std::optional<int> runs = {};  // at most; otherwise kRuns, or any number where the seconds are given
  std::optional<double> seconds = {};
  int warmup = 5;
  bool cold = false;  // the caches of the processor are emptied before each timed run
  mutable std::shared_ptr<CacheEviction> eviction = {};  // made when it is first needed
  void add_to(CLI::App& app);
  // Returns whether another run is to be timed after so many, of which the first one began at that time.
  bool goes_on(size_t done, double begin_ms) const;
  // The same by the time alone.
  bool has_time(size_t done, double begin_ms) const;
  // Returns "3 of at most 50 runs", or "3 runs" where the time decides.
  std::string progress(size_t done, const char* what) const;
  // Precedes each timed run.
  void prepare_run() const;
  // Returns " with cold caches" where they are.
  const char* of_caches() const { return cold ? " with cold caches" : ""; }

 private:
  int most_runs() const;
};

// One program on its inputs, and how it came to be.
struct Timed {
  const Program& program;
  const std::string& function;
  const std::vector<vm::Value>& inputs;
  double load_s;
  bool was_cached;
  double cold_ms;  // of the first run
  int threads;
  bool cold_caches = false;
};

double now_ms();
// Returns the time since this process was started, loading its libraries included, to 10 ms.
double ms_since_start();
// Returns "1.234 ms"; a time of less than a hundredth has three more digits.
std::string as_ms(double ms);
// Returns the value in the middle.
double median_of(std::vector<double> values);
// Calls the function, which returns milliseconds, as often as the options say before timed runs, but at least once, and
// returns the time of the first run. `what` is run, for the progress line: "" or the name of one of several models.
double first_runs(const TimingOptions& options, const std::function<double()>& run, const std::string& what = "");
// Calls the function, which returns milliseconds, as often as the options say, and returns the times in order.
std::vector<double> timed_runs(const TimingOptions& options, const std::function<double()>& run);
// Prints the times and inputs for a person.
void print_times(const std::vector<double>& sorted, const Timed& timed);
// Returns what was measured, and on what.
Report figures_of(const std::vector<double>& sorted, const Timed& timed);

}  // namespace relaxc::tools
