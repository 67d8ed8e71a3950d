// Threads of the library's own, in whose place no handler of the host should run.
#pragma once
#include <signal.h>

namespace relaxc {

// While it lives, threads that this one starts take no signals of the process: a host's handler of SIGTERM then never
// runs on the stack of a kernel. Signals of faults and of a profiler's clock stay.
class BlockSignals {
 public:
  BlockSignals();
  ~BlockSignals();
  BlockSignals(const BlockSignals&) = delete;
  BlockSignals& operator=(const BlockSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace relaxc
