// How far a run in the interpreter is, which takes a thousand times as long as one in machine code.
#pragma once
#include <string>
#include <vector>

#include "vm/program.h"

namespace relaxc::tools {

// Shows in the progress line how many of the kernel calls of a run are done, and the one that is at work. With -v a
// line about the whole stays.
class InterpreterProgress final : public vm::Profiler {
 public:
  // `pieces` are "kernels" or "operators"; `next` (may be null) is told of each call, too.
  InterpreterProgress(const Program& program, const vm::Function& function, std::string pieces, vm::Profiler* next);
  ~InterpreterProgress() override;
  InterpreterProgress(const InterpreterProgress&) = delete;
  InterpreterProgress& operator=(const InterpreterProgress&) = delete;

  void on_kernel(const vm::KernelEvent& event) override;

 private:
  void show() const;

  std::string pieces_;
  vm::Profiler* next_;
  std::vector<std::string> calls_;  // the kernels in the order of their calls; none where only the run can tell
  size_t done_ = 0;
  int64_t ns_ = 0, slowest_ns_ = 0;
  std::string slowest_;
};

}  // namespace relaxc::tools
