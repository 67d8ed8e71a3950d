// Memory of tensors: it is 64-byte aligned, its sizes are checked, and a refusal is a RuntimeError instead of a crash.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>

namespace relaxc::vm {

// Bytes: the alignment of all memory that the compiler or the runtime allocates, of offsets in the arena, and of
// tensors in files. It is the widest vector and a cache line.
inline constexpr int64_t kAlignment = 64;

// Returns the largest single allocation: twice the machine's memory. A larger size comes from damaged or hostile input.
int64_t max_allocation_bytes();

// Where memory comes from: the C library, or the host's functions. Blocks may be freed later and on other threads.
struct Allocator {
  void* (*allocate)(void* user, size_t bytes, size_t alignment) = nullptr;  // returns null when memory is short
  void (*free)(void* user, void* memory, size_t bytes) = nullptr;
  void* user = nullptr;
};

struct FreeDeleter {
  Allocator allocator = {};
  int64_t bytes = 0;  // as allocated, for the host's function
  void operator()(void* memory) const noexcept {
    allocator.free ? allocator.free(allocator.user, memory, static_cast<size_t>(bytes)) : std::free(memory);
  }
};
using AlignedBuffer = std::unique_ptr<void, FreeDeleter>;

// Never returns null, even for 0 bytes. Throws RuntimeError with a size that is negative, absurd or not available.
AlignedBuffer allocate_aligned(int64_t bytes);
// Returns nullptr instead of throwing.
AlignedBuffer try_allocate_aligned(int64_t bytes, const Allocator& allocator = {}) noexcept;

// Which of the idle blocks that are large enough may serve a request.
enum class Fit {
  kTight,    // the smallest, of at most 5/4 of the size, for memory that may outlive the run
  kLargest,  // for memory that comes back at the end of the run, which then does not take what fits a result
};

// Keeps freed blocks and hands them out again, so that a run allocates no memory where one with dims as large as its
// own came before; what the pool notes about blocks is kept and used again as well. The pool keeps at most as many idle
// bytes as were ever in use at once, and frees the oldest first. It is thread-safe; blocks may outlive the pool and be
// released by any thread. Copies are the same pool.
class MemoryPool {
  struct State;

 public:
  // Blocks and scratch together take at most `limit` bytes; 0 means max_allocation_bytes().
  explicit MemoryPool(int64_t limit = 0, Allocator allocator = {});
  // Throws OutOfMemory when more bytes would be in use.
  std::shared_ptr<void> allocate(int64_t bytes, Fit fit = Fit::kTight);

  // Scratch of kernels: its thread keeps it, and the limit counts it, but the statistics do not.
  struct ScratchDeleter {
    std::shared_ptr<State> state = nullptr;
    FreeDeleter free = {};
    void operator()(void* memory) const noexcept;
  };
  using ScratchBuffer = std::unique_ptr<void, ScratchDeleter>;
  // Returns null where memory is short or the limit is reached.
  ScratchBuffer try_allocate_scratch(int64_t bytes) noexcept;
  // Sets what frees unused scratch before a request is refused and for trim(). Null: no run follows, so keep nothing.
  void set_scratch_release(std::function<void()> release);

  struct Stats {
    int64_t live_bytes = 0;   // handed out
    int64_t idle_bytes = 0;   // kept for reuse
    int64_t peak_bytes = 0;   // the most ever live
    int64_t allocations = 0;  // requests that went to the system
  };
  Stats stats() const;
  // Returns "4096 bytes are in use, 1024 of them scratch of kernels, the limit is 8192".
  std::string usage() const;
  // Returns idle memory to the system.
  void trim();

 private:
  template <class T>
  struct HandleAllocator;
  std::shared_ptr<State> state_;
};

}  // namespace relaxc::vm
