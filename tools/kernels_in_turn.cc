#include "tools/kernels_in_turn.h"

#include <algorithm>

#include "ir/visit.h"
#include "support/joined.h"
#include "support/lists.h"
#include "tools/progress_line.h"

namespace relaxc::tools {

namespace {

using Key = std::pair<std::string, std::string>;  // the model's node, and the kernel

// Notes the time of each kernel in each run.
class RunProfiler final : public vm::Profiler {
 public:
  void on_kernel(const vm::KernelEvent& event) override {
    run_[{std::string(event.label), std::string(event.kernel)}] += static_cast<double>(event.duration_ns) / 1e3;
  }
  void end_run() {
    for (const auto& [key, us] : run_) {
      times_[key].resize(static_cast<size_t>(num_runs_));
      times_[key].push_back(us);
    }
    run_.clear();
    ++num_runs_;
  }
  std::vector<Key> kernels() const {
    return map_each(times_, [](const auto& entry) { return entry.first; });
  }
  // Returns the time of these kernels in each run, in microseconds.
  std::vector<double> times(const std::vector<Key>& kernels) const {
    std::vector<double> sums(static_cast<size_t>(num_runs_));
    for (const Key& key : kernels) {
      const std::vector<double>& of_kernel = times_.at(key);
      for (size_t i = 0; i < of_kernel.size(); ++i) sums[i] += of_kernel[i];
    }
    return sums;
  }

 private:
  std::map<Key, double> run_;
  std::map<Key, std::vector<double>> times_;
  int64_t num_runs_ = 0;
};

std::string line_of(double without_us, double with_us, double ratio, const std::string& what) {
  auto number = [](double us) { return us > 0 ? fmt::format("{:.1f}", us) : std::string("-"); };
  return fmt::format("{:>12} {:>12} {:>8}  {}\n", number(without_us), number(with_us),
                     ratio > 0 ? fmt::format("{:.3f}", ratio) : "", what);
}
// Returns a line about two lists of times, run by run; `has_verdict`: it says whether the second is faster.
std::string line_of(const std::vector<double>& without_us, const std::vector<double>& with_us, const std::string& what,
                    bool has_verdict) {
  std::vector<double> ratios;
  for (size_t i = 0; i < with_us.size() && with_us[i] > 0 && without_us[i] > 0; ++i)
    ratios.push_back(with_us[i] / without_us[i]);
  std::string told = has_verdict && !ratios.empty() ? fmt::format("{}: {}", what, verdict(ratios)) : what;
  return line_of(median_of(without_us), median_of(with_us), ratios.empty() ? 0 : median_of(ratios), told);
}

// Kernels of the same nodes of the model.
struct Row {
  std::vector<std::string> nodes;
  std::vector<Key> without, with;
};

// Kernels of which one computes a node that another one computes in the other compilation: they share a row.
class Rows {
 public:
  Row& of(const Key& key) {
    std::vector<std::string> nodes;
    for (std::string_view node : parts_of(key.first, ','))
      nodes.emplace_back(node.substr(node.starts_with(' ') ? 1 : 0));
    if (nodes.empty()) nodes.emplace_back();  // kernels of a text have one row
    Row row;
    std::erase_if(rows_, [&](Row& other) {
      bool is_shared = std::ranges::any_of(
          other.nodes, [&](const std::string& node) { return std::ranges::count(nodes, node) > 0; });
      if (is_shared) add(other, row);
      return is_shared;
    });
    add({nodes, {}, {}}, row);
    return rows_.emplace_back(std::move(row));
  }
  const std::vector<Row>& all() const { return rows_; }

 private:
  static void add(const Row& from, Row& to) {
    for (const std::string& node : from.nodes) {
      if (!std::ranges::count(to.nodes, node)) to.nodes.push_back(node);
    }
    to.without.insert(to.without.end(), from.without.begin(), from.without.end());
    to.with.insert(to.with.end(), from.with.begin(), from.with.end());
  }
  std::vector<Row> rows_;
};

bool same_code(const Version& a, const std::string& kernel_a, const Version& b, const std::string& kernel_b) {
  auto x = a.programs.find(kernel_a), y = b.programs.find(kernel_b);
  bool is_code = x != a.programs.end() && y != b.programs.end();
  if (is_code) return structural_equal(without_symbol(x->second), without_symbol(y->second));
  return x == a.programs.end() && y == b.programs.end() && kernel_a == kernel_b;  // C functions
}

std::string describe(const Row& row) {
  auto names_of = [](const std::vector<Key>& keys) { return joined(keys, &Key::second); };
  std::string before = names_of(row.without), after = names_of(row.with);
  std::string names =
      before == after ? after : (before.empty() ? "-" : before) + " -> " + (after.empty() ? "-" : after);
  std::string nodes = joined(row.nodes);
  return nodes.empty() ? names : fmt::format("{}: {}", nodes, names);
}

// Returns a line for each node whose kernels differ, longest first, one for all of these, and one for the others.
// `differ` gets whether any does.
std::string table_of(const Version& with, const RunProfiler& with_us, const Version& without,
                     const RunProfiler& without_us, bool& differ) {
  Rows rows;
  Row equal, different;
  const std::vector<Key> keys = with_us.kernels(), other_keys = without_us.kernels();
  // Programs with the same code may be one in one of the compilations and several in the other one.
  auto is_same = [&](const Key& a, const Key& b) {
    return a.first == b.first && same_code(with, a.second, without, b.second);
  };
  for (const Key& key : keys) {
    const bool is_equal = std::ranges::any_of(other_keys, [&](const Key& other) { return is_same(key, other); });
    (is_equal ? equal : different).with.push_back(key);
    if (!is_equal) rows.of(key).with.push_back(key);
  }
  for (const Key& other : other_keys) {
    const bool is_equal = std::ranges::any_of(keys, [&](const Key& key) { return is_same(key, other); });
    (is_equal ? equal : different).without.push_back(other);
    if (!is_equal) rows.of(other).without.push_back(other);
  }
  std::vector<std::pair<double, std::string>> lines;
  for (const Row& row : rows.all()) {
    std::vector<double> a = without_us.times(row.without), b = with_us.times(row.with);
    lines.emplace_back(std::max(median_of(a), median_of(b)), line_of(a, b, describe(row), false));
  }
  std::ranges::stable_sort(lines, std::greater(), &std::pair<double, std::string>::first);
  std::string text = joined(lines, &std::pair<double, std::string>::second, "");
  auto add = [&](const Row& all, const char* what, bool has_verdict) {
    std::string kernels = fmt::format("{} kernel{} {}", all.with.size(), all.with.size() == 1 ? "" : "s", what);
    if (!all.with.empty() || !all.without.empty())
      text += line_of(without_us.times(all.without), with_us.times(all.with), kernels, has_verdict);
  };
  differ = !different.with.empty() || !different.without.empty();
  add(different, different.with.size() == 1 ? "that differs" : "that differ", true);
  add(equal, "with the same code", false);
  return text;
}

}  // namespace

InTurn measure_kernels(Version& with, Version& without, const std::vector<vm::Value>& inputs,
                       const TimingOptions& timing) {
  std::vector<double> with_us, without_us;
  RunProfiler with_kernels, without_kernels;
  // Times a run of each. Each is the first one in every other pair.
  auto pair = [&](size_t i) {
    auto time = [&](Version& version) {
      timing.prepare_run();
      return version.measured.run(inputs);
    };
    double a = 0, b = 0;
    if (i % 2 == 0) a = time(with);
    b = time(without);
    if (i % 2 == 1) a = time(with);
    return std::pair(a, b);
  };
  double begin = now_ms();
  while (timing.goes_on(with_us.size(), begin)) {
    auto [a, b] = pair(with_us.size());
    with_us.push_back(a * 1000), without_us.push_back(b * 1000);
    progress_line().show(timing.progress(with_us.size(), "pairs of runs"));
  }
  Session &with_session = with.measured.session, &without_session = without.measured.session;
  with_session.set_profiler(&with_kernels), without_session.set_profiler(&without_kernels);
  constexpr size_t kProfiledRuns = 21;
  begin = now_ms();
  for (size_t i = 0; i < kProfiledRuns && timing.has_time(i, begin); ++i) {
    progress_line().show(fmt::format("{} of at most {} profiled pairs of runs", i, kProfiledRuns));
    pair(i);
    with_kernels.end_run(), without_kernels.end_run();
  }
  with_session.set_profiler(nullptr), without_session.set_profiler(nullptr);
  progress_line().end();
  InTurn result{median_of(without_us) / 1000, median_of(with_us) / 1000, 0, false, {}};
  std::vector<double> ratios;
  for (size_t i = 0; i < with_us.size(); ++i) ratios.push_back(with_us[i] / without_us[i]);
  result.ratio = median_of(ratios);
  result.text =
      fmt::format("{:>12} {:>12} {:>8}  in turn{}, medians\n", "without us", "with us", "ratio", timing.of_caches()) +
      table_of(with, with_kernels, without, without_kernels, result.differ);
  const char* chance = result.differ ? "" : ": no kernel differs, so that a difference of the times is chance";
  result.text +=
      line_of(without_us, with_us, fmt::format("whole run ({} of each){}", ratios.size(), chance), result.differ);
  return result;
}

}  // namespace relaxc::tools
