// Hooks around kernel calls and runs, and a profiler that adds them up.
#pragma once
#include <map>

#include "vm/executable.h"

namespace relaxc::vm {

struct KernelEvent {
  std::string_view kernel;  // display name
  std::string_view label;   // names the call site, such as the ONNX node; may be empty
  int64_t start_ns = 0;     // steady clock
  int64_t duration_ns = 0;
  std::span<const Tensor* const> tensors;  // inputs, then outputs; valid during the call only
  const KernelInfo* info = nullptr;        // never null in a run; of the session's program
};

struct Profiler {
  virtual ~Profiler() = default;
  // Called after each kernel, on the thread that runs the session.
  virtual void on_kernel(const KernelEvent& event) = 0;
};

// Is notified of whole runs, on the session's thread; runs of sessions may overlap. A RuntimeError fails the run.
struct RunWatcher {
  virtual ~RunWatcher() = default;
  virtual void begins() = 0;
  virtual void ends(const Value& result) = 0;
};

// Sums up calls and total time per (kernel, label).
class TableProfiler final : public Profiler {
 public:
  void on_kernel(const KernelEvent& event) override;
  // Returns one line per kernel, slowest first: calls, total ms, mean us, share, name.
  std::string text() const;
  int64_t total_ns() const;

 private:
  struct Row {
    int64_t calls = 0;
    int64_t total_ns = 0;
  };
  std::map<std::string, Row, std::less<>> rows_;
};

}  // namespace relaxc::vm
