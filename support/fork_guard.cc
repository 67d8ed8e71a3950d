#include "support/fork_guard.h"

#include <pthread.h>

#include <atomic>

#include "support/diagnostic.h"

namespace relaxc {

namespace {

std::atomic<int> compilations = 0;
std::atomic<bool> forked_in_compilation = false;

void note_fork_in_child() { forked_in_compilation = forked_in_compilation || compilations > 0; }

}  // namespace

ForkGuard::ForkGuard() {
  [[maybe_unused]] static const int kRegistered = pthread_atfork(nullptr, nullptr, note_fork_in_child);
  if (forked_in_compilation)
    fail_unsupported({},
                     "this process was forked while a thread of its parent was compiling, so that it cannot compile; "
                     "compile before the fork, in the parent, or in a process that is started anew");
  ++compilations;
}

ForkGuard::~ForkGuard() { --compilations; }

}  // namespace relaxc
