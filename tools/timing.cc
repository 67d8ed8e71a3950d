#include "tools/timing.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <limits>
#include <numeric>
#include <sstream>

#include "support/lists.h"
#include "support/printable.h"
#include "support/version.h"
#include "tools/console.h"
#include "tools/dims.h"
#include "tools/inputs.h"
#include "tools/progress_line.h"
#include "vm/cpu.h"

namespace relaxc::tools {

namespace {

constexpr int kRuns = 50, kLeastRuns = 3;
constexpr double kSeconds = 10;
constexpr size_t kRunsForP99 = 100;  // of fewer runs it is the slowest one

// Returns the least time that this share of the runs, which are sorted, did not exceed.
double percentile(const std::vector<double>& sorted, double share) {
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<size_t>(rank, 1, sorted.size()) - 1];
}
double runs_per_s(const std::vector<double>& times) {
  return 1000 * static_cast<double>(times.size()) / std::accumulate(times.begin(), times.end(), 0.0);
}

}  // namespace

// Puts other data in place of whatever the processor's caches hold.
class CacheEviction {
 public:
  CacheEviction() : data_(bytes() / sizeof(uint64_t)) {}
  void run() {
    for (uint64_t& word : data_) word += 1;
    last_ = data_.back();
  }

 private:
  static size_t bytes() {
    constexpr size_t kTwice = 2, kLeast = size_t{64} << 20, kMost = size_t{2} << 30;
    const long last_level = std::max(sysconf(_SC_LEVEL3_CACHE_SIZE), sysconf(_SC_LEVEL4_CACHE_SIZE));
    return std::clamp(kTwice * static_cast<size_t>(std::max(last_level, 0L)), kLeast, kMost);
  }
  std::vector<uint64_t> data_;
  volatile uint64_t last_ = 0;  // is read by nobody, which the compiler does not know
};

void TimingOptions::add_to(CLI::App& app) {
  app.add_option("--runs", runs, fmt::format("the largest number of timed runs ({} without --seconds)", kRuns))
      ->check(whole_number_in(1, kMostRuns));
  app.add_option("--warmup", warmup, "runs before the timed ones")
      ->check(whole_number_in(0, kMostRuns))
      ->capture_default_str();
  app.add_option("--seconds", seconds, fmt::format("stop after that time ({:g}), though --runs are not done", kSeconds))
      ->check(number_from(0));
  app.add_flag("--cold", cold, "empty the processor's caches before each timed run");
}

int TimingOptions::most_runs() const { return runs ? *runs : seconds ? static_cast<int>(kMostRuns) : kRuns; }

bool TimingOptions::goes_on(size_t done, double begin_ms) const {
  return done < static_cast<size_t>(most_runs()) && has_time(done, begin_ms);
}

bool TimingOptions::has_time(size_t done, double begin_ms) const {
  return done < kLeastRuns || now_ms() - begin_ms < seconds.value_or(kSeconds) * 1000;
}

std::string TimingOptions::progress(size_t done, const char* what) const {
  if (!runs && seconds) return fmt::format("{} {}", done, what);
  return fmt::format("{} of at most {} {}", done, most_runs(), what);
}

void TimingOptions::prepare_run() const {
  if (!cold) return;
  if (!eviction) eviction = std::make_shared<CacheEviction>();
  eviction->run();
}

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double ms_since_start() {
  // proc(5): the 22nd field, in ticks after the machine was booted; the second one, in parentheses, may hold spaces.
  std::ifstream file("/proc/self/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::istringstream fields(text.substr(std::min(text.rfind(')') + 1, text.size())));
  std::string field;
  constexpr int kFieldsBehindName = 20;
  for (int i = 0; i < kFieldsBehindName; ++i) fields >> field;
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const double now_s = static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  return 1000 * (now_s - std::strtod(field.c_str(), nullptr) / static_cast<double>(sysconf(_SC_CLK_TCK)));
}

std::string as_ms(double ms) { return fmt::format("{:.{}f} ms", ms, ms < 0.01 ? 6 : 3); }

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double first_runs(const TimingOptions& options, const std::function<double()>& run, const std::string& what) {
  const std::string of_model = what.empty() ? "" : " of " + printable(what, std::string::npos);
  progress_line().show("first run" + of_model);
  const double first_ms = run();
  for (int i = 1; i < options.warmup; ++i) {
    progress_line().show(fmt::format("{} of {} runs before the timed ones{}", i, options.warmup, of_model));
    run();
  }
  progress_line().end();
  return first_ms;
}

std::vector<double> timed_runs(const TimingOptions& options, const std::function<double()>& run) {
  std::vector<double> times;
  constexpr double kIntervalMs = 100;
  const double begin = now_ms();
  double shown = begin;
  while (options.goes_on(times.size(), begin)) {
    options.prepare_run();
    times.push_back(run());
    if (now_ms() - shown < kIntervalMs) continue;
    progress_line().show(options.progress(times.size(), "runs"));
    shown = now_ms();
  }
  progress_line().end();
  std::ranges::sort(times);
  return times;
}

void print_times(const std::vector<double>& sorted, const Timed& it) {
  const std::vector<vm::ValueInfo>& infos = it.program.function(it.function).inputs;
  for (size_t i = 0; i < infos.size(); ++i) {
    const std::string name = infos[i].name.empty() ? "" : printable(infos[i].name) + ": ";
    print_message("input {}{}\n", name, describe(it.inputs[i]));
  }
  print_message("load or compile {:.2f} s{}\nmedian {}, minimum {}, maximum {} over {}{}\n", it.load_s,
                it.was_cached ? " (from the cache)" : "", as_ms(median_of(sorted)), as_ms(sorted.front()),
                as_ms(sorted.back()), counted(sorted.size(), "run"), it.cold_caches ? " with cold caches" : "");
  const std::string p99 = sorted.size() < kRunsForP99 ? "- ms" : as_ms(percentile(sorted, 0.99));
  print_message("p90 {}, p99 {}, first run {}, {:.1f} runs/s, {}\n", as_ms(percentile(sorted, 0.9)), p99,
                as_ms(it.cold_ms), runs_per_s(sorted), counted(static_cast<size_t>(it.threads), "thread"));
}

Report figures_of(const std::vector<double>& sorted, const Timed& it) {
  Report dims;
  for (const auto& [name, size] : dims_of_inputs(it.program.function(it.function).inputs, it.inputs))
    dims.set(name, size);
  const std::string* cpu = find_value(it.program.executable().metadata, std::string(vm::kCpuKey));
  return {{"median_ms", median_of(sorted)},
          {"min_ms", sorted.front()},
          {"max_ms", sorted.back()},
          {"p50_ms", percentile(sorted, 0.5)},
          {"p90_ms", percentile(sorted, 0.9)},
          {"p99_ms", sorted.size() < kRunsForP99 ? std::numeric_limits<double>::quiet_NaN() : percentile(sorted, 0.99)},
          {"cold_ms", it.cold_ms},
          {"cold_caches", it.cold_caches},
          {"runs_per_s", runs_per_s(sorted)},
          {"runs", std::ssize(sorted)},
          {"compile_s", it.load_s},
          {"from_cache", it.was_cached},
          {"threads", it.threads},
          {"dims", dims},
          {"target", cpu ? *cpu : std::string()},
          {"version", version_text()}};
}

}  // namespace relaxc::tools
