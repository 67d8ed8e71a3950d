// Threads for kernels: the interface that a host may implement, the default pool, and the adapter that turns either
// into the parallel_for and scratch callbacks of kernel_abi.h.
#pragma once
#include <sched.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "vm/kernel_abi.h"
#include "vm/memory.h"

namespace relaxc::vm {

inline constexpr int kMostThreads = 1024;  // of a session, and so of every option and flag

// Work that several threads enter at once. The task itself hands out pieces of the work, so any number of threads, at
// least one, may enter it, each with a different worker number.
using PoolTask = void (*)(void* closure, int worker);

class TaskPool {
 public:
  virtual ~TaskPool() = default;
  // Returns the number of threads that may work for one caller, the caller included; worker numbers are below it.
  virtual int num_workers() const = 0;
  // Calls task(closure, 0) on the calling thread and task(closure, w) for any of w in [1, workers) on others. Returns
  // when all calls that began have returned. Never throws; the task never throws.
  virtual void run(PoolTask task, void* closure, int workers) = 0;
  // enter() and leave() bracket a run of a program: between them workers may spin for the next task.
  virtual void enter() {}
  virtual void leave() {}
};

// The default pool: num_workers - 1 threads that spin for up to a millisecond inside a run, or for a moment after it,
// and sleep otherwise. A caller does not wait for workers that have not woken up by the time the work is done. When
// callers share a pool and it is busy, the second caller works alone.
class ThreadPool final : public TaskPool {
 public:
  // 0 means the number of cores in the process's affinity mask.
  explicit ThreadPool(int num_workers);
  ~ThreadPool() override;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_workers() const override { return static_cast<int>(threads_.size()) + 1; }
  void run(PoolTask task, void* closure, int workers) override;
  void enter() override;
  void leave() override;

 private:
  void work(int worker);
  // Waits for a gate with another epoch; returns false when the pool shuts down.
  bool wait_for_task(uint32_t seen_epoch, const cpu_set_t& cores);
  void leave_callers_core(cpu_set_t cores) const;

  // The gate has the epoch in its high half, the "open" flag in bit 31, and the number of workers inside in its low
  // bits. A worker may touch task_, closure_ and workers_ only after it entered an open gate; run() changes them only
  // when the gate is closed and empty.
  std::atomic<uint64_t> gate_{0};
  PoolTask task_ = nullptr;
  void* closure_ = nullptr;
  int workers_ = 0;
  std::atomic<int> callers_core_{-1};  // where run() was called; -1: not known
  std::atomic<int> num_others_{0};     // workers that run() wants besides the caller
  std::chrono::microseconds spin_in_run_{0};

  std::atomic<bool> busy_{false};
  std::atomic<int> active_runs_{0};
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::thread> threads_;
};

// A bump allocator for the `scratch` callback, one per worker. Blocks do not move until they are released.
class ScratchArena {
 public:
  explicit ScratchArena(MemoryPool memory) : memory_(std::move(memory)) {}
  void* allocate(int64_t bytes) noexcept;  // nullptr when out of memory
  struct Mark {
    size_t block = 0;
    int64_t used = 0;
  };
  Mark mark() const { return {current_, used_}; }
  // Releases everything that was allocated since the mark; the memory is kept for the next time.
  void release(Mark mark) noexcept;
  // Frees the memory of an arena from which nothing is allocated.
  void clear() noexcept { blocks_.clear(); }

 private:
  struct Block {
    MemoryPool::ScratchBuffer memory;
    int64_t bytes = 0;
  };
  // Puts a new block of so many bytes, or more, at a place that nothing uses. Returns false when out of memory.
  bool make_block(size_t place, int64_t least) noexcept;

  MemoryPool memory_;
  std::vector<Block> blocks_;
  size_t current_ = 0;  // the block allocated from
  int64_t used_ = 0;    // bytes used in that block
};

// Machine code or a closure; it must not throw.
using Kernel = std::function<int32_t(const relaxc_kernel_args*)>;

// Binds a pool and one scratch arena per worker to a kernel context. Only one caller may use it at a time.
class KernelRuntime {
 public:
  // Scratch counts toward the limit of `memory`, which takes it back between calls where it runs short.
  explicit KernelRuntime(std::shared_ptr<TaskPool> pool, MemoryPool memory = MemoryPool());
  ~KernelRuntime();
  KernelRuntime(const KernelRuntime&) = delete;
  KernelRuntime& operator=(const KernelRuntime&) = delete;

  relaxc_kernel_context* context() { return &context_; }
  TaskPool& pool() { return *pool_; }
  // Calls the kernel with scratch and parallel_for in place; returns the kernel's status.
  int32_t call(const Kernel& kernel, void* const* data, const int64_t* scalars);
  // Calls the body on every index of [0, n) once; the first non-zero status stops the distribution of chunks.
  int32_t parallel_for(int64_t n, relaxc_parallel_body body, void* closure);
  // Returns the bytes of scratch that the last call was refused, once; 0 where it got all.
  int64_t take_refused_scratch() { return refused_scratch_.exchange(0, std::memory_order_relaxed); }
  // Implements relaxc_kernel_context::report.
  void report(std::string_view message, std::span<const int64_t> values) noexcept;

  // Implements relaxc_kernel_context::call_packed; it may throw, and is not called by two threads at once.
  using PackedCall = std::function<relaxc_value(std::string_view name, std::span<const relaxc_value> args)>;
  void set_packed_call(PackedCall call) { packed_call_ = std::move(call); }

  // The next chunk of a worker's share of a loop, in a cache line of its own: workers count without false sharing.
  struct alignas(kAlignment) Share {
    std::atomic<int64_t> next{0};
  };

 private:
  relaxc_kernel_context context_{};
  std::shared_ptr<TaskPool> pool_;
  MemoryPool memory_;
  std::vector<ScratchArena> arenas_;
  std::vector<Share> shares_;
  std::atomic<int64_t> refused_scratch_{0};
  void* scratch(int64_t bytes) noexcept;
  void release_scratch() noexcept;
  int32_t call_packed(std::string_view name, std::span<const relaxc_value> args, relaxc_value& result) noexcept;

  PackedCall packed_call_;
  std::mutex packed_mutex_;
  std::mutex error_mutex_;
  std::string error_text_;  // the text that context_.error points to after report()
};

}  // namespace relaxc::vm
