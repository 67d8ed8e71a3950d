// Work that a forked process must not begin where the fork came in the middle of it.
#pragma once

namespace relaxc {

// A compilation, as long as the object lives. It takes locks, ours and those of LLVM. A process that is forked
// meanwhile has one thread, and those of the others that held a lock do not exist there: a compilation would wait for
// them for ever. To wait with the fork until all compilations end (pthread_atfork) could take minutes.
class ForkGuard {
 public:
  // Throws a CompileError in a process that was forked while another thread, or this one, was compiling.
  ForkGuard();
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;
};

}  // namespace relaxc
