// Profilers of sessions of the C interface: one that calls the host after each kernel, and one that keeps records.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "api/relaxc.h"
#include "vm/program.h"

namespace relaxc::api {

class HostProfiler final : public vm::Profiler {
 public:
  HostProfiler(relaxc_profiler callback, void* user) : callback_(callback), user_(user) {}
  void on_kernel(const vm::KernelEvent& event) override;

 private:
  relaxc_profiler callback_;
  void* user_;
};

// Keeps what the kernels of a run did. To keep it takes some tens of nanoseconds a kernel; the records are made of it
// when they are asked for, after the run.
class KernelRecords final : public vm::Profiler {
 public:
  void on_kernel(const vm::KernelEvent& event) override;
  // Forgets the last run.
  void clear();
  const std::vector<relaxc_kernel_record>& records();

 private:
  struct Kept {
    vm::KernelEvent event;  // without tensors
    int64_t bytes;
    size_t num_tensors;
  };
  std::vector<Kept> kept_;
  std::vector<int64_t> dims_;  // of the tensors of all kernels: rank, then dims
  std::vector<relaxc_kernel_record> records_;
  std::deque<std::string> texts_;  // of the records
};

}  // namespace relaxc::api
