// Profilers of sessions of the C interface: one that calls the host after each kernel, and one that keeps records.
#pragma once
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

// Keeps the records of a run, until the next one.
class KernelRecords final : public vm::Profiler {
 public:
  void on_kernel(const vm::KernelEvent& event) override;
  // Forgets the last run.
  void clear();
  const std::vector<relaxc_kernel_record>& records();

 private:
  std::vector<relaxc_kernel_record> kept_;
  std::string texts_;  // kernel and node of each record, which get their places at the end
};

}  // namespace relaxc::api
