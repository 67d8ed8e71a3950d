// Memory of tensors: 64-byte aligned, sizes checked, refusal by RuntimeError instead of a crash.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace relaxc::vm {

inline constexpr int64_t kAlignment = 64;

// The largest single allocation: twice the machine's memory. More is a damaged or hostile size.
int64_t max_allocation_bytes();

struct FreeDeleter {
  void operator()(void* memory) const noexcept { std::free(memory); }
};
using AlignedBuffer = std::unique_ptr<void, FreeDeleter>;

// Never null, also for 0 bytes. Throws RuntimeError naming the size when negative, absurd or not to be had.
AlignedBuffer allocate_aligned(int64_t bytes);
// nullptr instead of the error.
AlignedBuffer try_allocate_aligned(int64_t bytes) noexcept;

// Keeps freed blocks and hands them out again, so that a run with dims seen before allocates no tensor memory. A block
// serves requests down to 4/5 of its size. At most as many bytes are kept idle as were ever in use at once, oldest
// freed first. Thread-safe; blocks may outlive the pool and be released by any thread.
class MemoryPool {
 public:
  // Throws RuntimeError when more than `limit` bytes would be in use; 0: max_allocation_bytes().
  explicit MemoryPool(int64_t limit = 0);
  std::shared_ptr<void> allocate(int64_t bytes);

  struct Stats {
    int64_t live_bytes = 0;   // handed out
    int64_t idle_bytes = 0;   // kept for reuse
    int64_t peak_bytes = 0;   // the most ever live
    int64_t allocations = 0;  // requests that went to the system
  };
  Stats stats() const;
  // Returns idle memory to the system.
  void trim();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace relaxc::vm
