// Profiles of runs: what each kernel does, how long it takes, and how long the machine needs at least.
#pragma once
#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tools/limits.h"
#include "vm/profiler.h"

namespace relaxc::tools {

// A pool that notes when each of its threads works.
class WatchedPool final : public vm::TaskPool {
 public:
  struct Work {
    int worker;
    int64_t start_ns, end_ns;  // steady clock
  };
  explicit WatchedPool(std::shared_ptr<vm::TaskPool> pool);
  int num_workers() const override { return pool_->num_workers(); }
  void run(vm::PoolTask task, void* closure, int workers) override;
  void enter() override { pool_->enter(); }
  void leave() override { pool_->leave(); }
  // Returns what the threads did since the last call. No task may run.
  std::vector<Work> take();

 private:
  struct Task;
  std::shared_ptr<vm::TaskPool> pool_;
  std::vector<std::vector<Work>> done_;  // by worker
};

// The calls of one kernel for the same nodes of the model.
struct KernelProfile {
  std::string kernel, nodes, tensors, rule;
  ProductKind product = ProductKind::kFloat32;
  int64_t calls = 0;
  double seconds = 0;                     // of all calls, as the sums below are
  std::vector<double> call_seconds = {};  // of each
  double operations = 0;
  bool knows_operations = true;  // a program may not tell them
  double bytes = 0;              // that it reads and writes at least once
  double limit_seconds = 0;      // the least that operations and bytes take
  double idle_seconds = 0;       // of all threads together
  double compute_seconds = 0;
  std::array<double, 3> transfer_seconds = {};  // by level of memory

  // Returns the seconds of a call in the median of the runs, so that one run in which the system took the processor
  // away does not count. Calls of a run may differ: the figure of a run is their mean.
  double median_seconds(int64_t runs) const;
  double least_seconds() const { return std::ranges::min(call_seconds); }
};

// A call of a kernel in a run.
struct MeasuredCall {
  std::string_view kernel, nodes;  // of the profile's
  double start_us, end_us;         // from the begin of the run's first kernel
};

class Profile final : public vm::Profiler {
 public:
  Profile(MachineLimits limits, std::shared_ptr<WatchedPool> pool);
  void on_kernel(const vm::KernelEvent& event) override;

  // Return a table for people; figures for programs, of one run where there were `runs` (both with medians); and all
  // calls in the trace event format, which Perfetto and browsers read (https://ui.perfetto.dev).
  std::string text(int64_t runs) const;
  std::string json(int64_t runs) const;
  std::string trace() const;
  // Returns the calls of the fastest of `runs` runs, in order.
  std::vector<MeasuredCall> fastest_run(int64_t runs) const;
  // Returns the least milliseconds of a run.
  double limit_ms(int64_t runs) const;

 private:
  struct Event {
    size_t row;
    int64_t start_ns, end_ns;
    std::vector<WatchedPool::Work> work;
  };
  struct Row {
    const KernelProfile* of;
    double seconds;  // a call in the median of the runs
  };
  // Returns the kernels, first the one that takes most of a run.
  std::vector<Row> sorted(int64_t runs) const;
  std::string bound(const Row& row) const;
  std::string json_of(const Row& row, int64_t runs) const;

  MachineLimits limits_;
  std::shared_ptr<WatchedPool> pool_;
  std::deque<KernelProfile> rows_;
  std::map<std::pair<std::string, std::string>, size_t> row_of_;  // by kernel and nodes
  std::vector<Event> events_;
  double touched_ = 0;                                     // bytes, by all kernels so far
  std::unordered_map<const void*, double> touched_until_;  // by tensor: how many when it was touched last
};

}  // namespace relaxc::tools
