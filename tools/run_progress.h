// How far a single run is, for one that lasts long.
#pragma once
#include <string>
#include <vector>

#include "vm/program.h"

namespace relaxc::tools {

// Shows in the progress line how many of the kernel calls of a run are done, and the one that is at work. With -v a
// line about the whole stays.
class RunProgress final : public vm::Profiler {
 public:
  // `pieces` says what is counted, "kernels run" or "operators run in the interpreter"; `next` (may be null) is told of
  // each call, too.
  RunProgress(const Program& program, const vm::Function& function, std::string pieces, vm::Profiler* next = nullptr);
  ~RunProgress() override;
  RunProgress(const RunProgress&) = delete;
  RunProgress& operator=(const RunProgress&) = delete;

  // Returns the profiler for the session of the run: this one where somebody sees it, else `next`, since a run that
  // is watched takes longer.
  vm::Profiler* profiler();

  void on_kernel(const vm::KernelEvent& event) override;

 private:
  void show() const;

  const std::string pieces_;
  vm::Profiler* next_;
  std::vector<std::string> calls_;  // the kernels in the order of their calls; none where only the run can tell
  size_t done_ = 0;
  int64_t ns_ = 0, slowest_ns_ = 0;
  std::string slowest_;
};

// Runs the function on one thread, as the run of this number in the search for a pass, and shows its progress.
vm::Value run_in_search(const Program& program, const std::vector<vm::Value>& inputs, const vm::Function& function,
                        int number);

}  // namespace relaxc::tools
