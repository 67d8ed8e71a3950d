#include "support/block_signals.h"

namespace relaxc {

BlockSignals::BlockSignals() {
  constexpr char kKept[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGPROF, SIGSEGV, SIGSYS, SIGTRAP};
  sigset_t signals;
  sigfillset(&signals);
  for (const int signal : kKept) sigdelset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, &before_);
}
BlockSignals::~BlockSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace relaxc
