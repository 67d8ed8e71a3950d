// Threads of the library's own, in whose place no handler of the host should run.
#pragma once
#include <signal.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>

namespace relaxc {

// While it lives, threads that this one starts take no signals of the process: a host's handler of SIGTERM then never
// runs on the stack of a kernel. Signals of faults and of a profiler's clock stay.
class BlockSignals {
 public:
  BlockSignals() {
    sigset_t signals;
    std::memset(&signals, -1, sizeof signals);
    const uint64_t first = ~bits({SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGPROF, SIGSEGV, SIGSYS, SIGTRAP});
    std::memcpy(&signals, &first, sizeof first);
    pthread_sigmask(SIG_BLOCK, &signals, &before_);
  }
  ~BlockSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockSignals(const BlockSignals&) = delete;
  BlockSignals& operator=(const BlockSignals&) = delete;

 private:
  // Returns the word of a sigset_t with these signals, whose first one is in the lowest bit. The library's functions
  // would each take some eighty bytes.
  static constexpr uint64_t bits(std::initializer_list<int> signals) {
    uint64_t result = 0;
    for (const int signal : signals) result |= uint64_t{1} << (signal - 1);
    return result;
  }
  sigset_t before_;
};

}  // namespace relaxc
