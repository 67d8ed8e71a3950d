#include "vm/thread_pool.h"

#include <algorithm>
#include <iterator>
#include <new>

#include "support/block_signals.h"
#include "support/checked_math.h"
#include "support/temporarily.h"
#include "vm/error.h"

namespace relaxc::vm {

namespace {

constexpr uint64_t kOpen = uint64_t{1} << 31;
constexpr uint64_t kInsideMask = kOpen - 1;
// The time for which an idle worker spins before it sleeps. Waking a worker costs the caller some 30 microseconds, and
// the worker as much again. Inside a run the worker waits for a serial kernel to end, or for others to finish their
// share; between runs it waits for a caller whose next input is ready. Workers spin only briefly when there are more
// threads than cores, since the thread that they wait for may need their core.
constexpr std::chrono::microseconds kSpinInRun{1000}, kSpinBetweenRuns{50};

uint32_t epoch_of(uint64_t gate) { return static_cast<uint32_t>(gate >> 32); }

void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns the cores that this thread may use; the set is empty when they cannot be determined.
cpu_set_t usable_cores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) CPU_ZERO(&cores);
  return cores;
}
int count_usable_cores() {
  cpu_set_t cores = usable_cores();
  int count = CPU_COUNT(&cores);
  return count > 0 ? count : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

ThreadPool::ThreadPool(int num_workers) {
  int count = std::clamp(num_workers > 0 ? num_workers : count_usable_cores(), 1, kMostThreads);
  spin_in_run_ = count <= count_usable_cores() ? kSpinInRun : kSpinBetweenRuns;
  threads_.reserve(static_cast<size_t>(count - 1));
  const BlockSignals blocked;
  try {
    for (int worker = 1; worker < count; ++worker) threads_.emplace_back([this, worker] { work(worker); });
  } catch (const std::system_error&) {
    // The system refuses more threads, so the pool works with those that were created.
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::enter() { active_runs_.fetch_add(1, std::memory_order_relaxed); }
void ThreadPool::leave() { active_runs_.fetch_sub(1, std::memory_order_relaxed); }

void ThreadPool::run(PoolTask task, void* closure, int workers) {
  if (workers <= 1 || threads_.empty() || busy_.exchange(true, std::memory_order_acquire)) {
    task(closure, 0);
    return;
  }
  // The gate is closed and empty, so no worker accesses the fields. Opening the gate publishes them.
  task_ = task;
  closure_ = closure;
  workers_ = workers;
  callers_core_.store(sched_getcpu(), std::memory_order_relaxed);
  num_others_.store(std::min(workers - 1, static_cast<int>(threads_.size())), std::memory_order_relaxed);
  uint64_t gate = gate_.load(std::memory_order_relaxed);
  gate_.store((static_cast<uint64_t>(epoch_of(gate) + 1) << 32) | kOpen, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) {
    // The empty critical section closes the gap between a sleeper's look at the gate and its wait.
    {
      std::lock_guard lock(mutex_);
    }
    wake_.notify_all();
  }
  task(closure, 0);
  gate = gate_.fetch_and(~kOpen, std::memory_order_acq_rel);
  for (int spins = 0; (gate & kInsideMask) != 0; gate = gate_.load(std::memory_order_acquire)) {
    // With more workers than cores, the worker that the caller waits for may need the caller's core.
    if (++spins % 256 == 0) std::this_thread::yield();
    pause_cpu();
  }
  busy_.store(false, std::memory_order_release);
}

// A worker that woke up on the caller's core runs only when the caller does not, and could be too late each time. It
// moves, at least for the next time, if there are cores for all workers that the caller asks for. It moves to one of
// the cores in its initial affinity mask.
void ThreadPool::leave_callers_core(cpu_set_t cores) const {
  int core = callers_core_.load(std::memory_order_relaxed);
  if (core < 0 || core >= CPU_SETSIZE || sched_getcpu() != core) return;
  CPU_CLR(core, &cores);
  bool enough = CPU_COUNT(&cores) >= num_others_.load(std::memory_order_relaxed);
  if (enough) sched_setaffinity(0, sizeof cores, &cores);  // this thread; failing, it stays
}

bool ThreadPool::wait_for_task(uint32_t seen_epoch, const cpu_set_t& cores) {
  auto has_task = [&] {
    uint64_t gate = gate_.load(std::memory_order_seq_cst);
    return (gate & kOpen) != 0 && epoch_of(gate) != seen_epoch;
  };
  auto now = std::chrono::steady_clock::now(), start = now, last_in_run = now;
  while (now - start < spin_in_run_ && now - last_in_run < kSpinBetweenRuns) {
    for (int i = 0; i < 64; ++i) {
      if (has_task()) return true;
      pause_cpu();
    }
    if (stop_.load(std::memory_order_relaxed)) return false;
    now = std::chrono::steady_clock::now();
    if (active_runs_.load(std::memory_order_relaxed) > 0) last_in_run = now;
  }
  std::unique_lock lock(mutex_);
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while (!stop_.load(std::memory_order_relaxed) && !has_task()) {
    wake_.wait(lock);
    leave_callers_core(cores);
  }
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
  return !stop_.load(std::memory_order_relaxed);
}

void ThreadPool::work(int worker) {
  pthread_setname_np(pthread_self(), "relaxc");
  uint32_t seen_epoch = 0;
  cpu_set_t cores = usable_cores();
  while (wait_for_task(seen_epoch, cores)) {
    uint64_t gate = gate_.load(std::memory_order_acquire);
    while ((gate & kOpen) != 0 && !gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acq_rel)) {
    }
    if ((gate & kOpen) == 0) continue;  // closed while we woke up
    seen_epoch = epoch_of(gate);
    if (worker < workers_) {
      leave_callers_core(cores);
      task_(closure_, worker);
    }
    gate_.fetch_sub(1, std::memory_order_release);
  }
}

bool ScratchArena::make_block(size_t place, int64_t least) noexcept {
  try {
    blocks_.resize(std::max(blocks_.size(), place + 1));
  } catch (const std::bad_alloc&) {
    return false;
  }
  blocks_[place] = {};  // the two together might exceed the limit
  for (int64_t bytes : {std::max(least, int64_t{64} << 10), least}) {
    if (MemoryPool::ScratchBuffer memory = memory_.try_allocate_scratch(bytes)) {
      blocks_[place] = {std::move(memory), bytes};
      return true;
    }
  }
  return false;
}

void* ScratchArena::allocate(int64_t bytes) noexcept {
  if (bytes < 0 || bytes > max_allocation_bytes()) return nullptr;
  int64_t rounded = round_up(std::max<int64_t>(bytes, 1), kAlignment);
  if (blocks_.empty() || blocks_[current_].bytes - used_ < rounded) {
    // Later blocks are unused, and so is this one while it is empty: the next that fits is taken, or a new one is put
    // in its place.
    const size_t next = blocks_.empty() || used_ == 0 ? current_ : current_ + 1;
    if ((next == blocks_.size() || blocks_[next].bytes < rounded) && !make_block(next, rounded)) return nullptr;
    current_ = next;
    used_ = 0;
  }
  void* result = static_cast<char*>(blocks_[current_].memory.get()) + used_;
  used_ += rounded;
  return result;
}

void ScratchArena::release(Mark mark) noexcept {
  current_ = mark.block;
  used_ = mark.used;
  // The arena is empty again. One block as large as all blocks together serves the next call without a search.
  if (current_ == 0 && used_ == 0 && blocks_.size() > 1) {
    int64_t total = 0;
    for (const Block& block : blocks_) total += block.bytes;
    blocks_.resize(1);
    make_block(0, total);
  }
}

namespace {

// The state of the calling thread for the callbacks of the kernel context. It is the only thread-local of the runtime,
// and needed because the C ABI does not pass a context to a parallel body.
struct WorkerScope {
  KernelRuntime* runtime = nullptr;
  ScratchArena* arena = nullptr;
  bool in_parallel = false;
};
thread_local WorkerScope worker_scope;

// The starts of the chunks of a share, in 64ths of it. Chunks shrink, as in guided self-scheduling (Polychronopoulos
// and Kuck, 1987), so that workers finish at the same time although one is slower, without the overhead of many chunks.
constexpr int64_t kChunkBegins[] = {0, 16, 28, 37, 44, 49, 53, 56, 58, 60, 61, 62, 63, 64};
constexpr int64_t kNumChunks = std::size(kChunkBegins) - 1;

// One parallel loop. Each worker has a share of neighbouring iterations, the same in every loop of equal length, so
// that its cache still holds what it wrote there before. A worker that is done steals chunks of others, so that unequal
// iterations or late threads do not matter.
struct ParallelLoop {
  KernelRuntime* runtime;
  std::vector<ScratchArena>& arenas;
  std::vector<KernelRuntime::Share>& shares;
  relaxc_parallel_body body;
  void* closure;
  int64_t n;
  int64_t workers;
  std::atomic<int32_t> status{0};

  int64_t share_begin(int64_t worker) const { return n / workers * worker + std::min(worker, n % workers); }

  bool is_handed_out() const {
    return std::all_of(shares.begin(), shares.begin() + workers, [](const KernelRuntime::Share& share) {
      return share.next.load(std::memory_order_relaxed) >= kNumChunks;
    });
  }

  void work(int worker) {
    ScratchArena& arena = arenas[static_cast<size_t>(worker)];
    Temporarily scope(worker_scope, WorkerScope{runtime, &arena, true});
    for (int64_t i = 0; i < workers; ++i) {
      int64_t owner = (worker + i) % workers;
      int64_t first = share_begin(owner), size = share_begin(owner + 1) - first;
      auto begin_of = [&](int64_t chunk) {
        return first + size / 64 * kChunkBegins[chunk] + size % 64 * kChunkBegins[chunk] / 64;
      };
      while (status.load(std::memory_order_relaxed) == 0) {
        int64_t chunk = shares[static_cast<size_t>(owner)].next.fetch_add(1, std::memory_order_relaxed);
        if (chunk >= kNumChunks) break;
        int64_t begin = begin_of(chunk), end = begin_of(chunk + 1);
        if (begin == end) continue;
        ScratchArena::Mark mark = arena.mark();
        int32_t result = body(closure, begin, end);
        arena.release(mark);
        int32_t none = 0;
        if (result != 0) status.compare_exchange_strong(none, result, std::memory_order_relaxed);
      }
    }
  }
};

}  // namespace

KernelRuntime::KernelRuntime(std::shared_ptr<TaskPool> pool, MemoryPool memory)
    : pool_(std::move(pool)),
      memory_(std::move(memory)),
      shares_(static_cast<size_t>(std::max(1, pool_->num_workers()))) {
  for (size_t i = 0; i < shares_.size(); ++i) arenas_.emplace_back(memory_);
  memory_.set_scratch_release([this] { release_scratch(); });
  context_.pool = this;
  context_.parallel_for = [](relaxc_kernel_context* context, int64_t n, relaxc_parallel_body body, void* closure) {
    return static_cast<KernelRuntime*>(context->pool)->parallel_for(n, body, closure);
  };
  context_.scratch = [](relaxc_kernel_context* context, int64_t bytes) {
    return static_cast<KernelRuntime*>(context->pool)->scratch(bytes);
  };
  context_.report = [](relaxc_kernel_context* context, const char* message, const int64_t* values, int32_t num_values) {
    static_cast<KernelRuntime*>(context->pool)->report(message, std::span(values, static_cast<size_t>(num_values)));
  };
  context_.call_packed = [](relaxc_kernel_context* context, const char* name, const relaxc_value* args,
                            int32_t num_args, relaxc_value* result) {
    return static_cast<KernelRuntime*>(context->pool)
        ->call_packed(name, {args, static_cast<size_t>(num_args)}, *result);
  };
}

KernelRuntime::~KernelRuntime() { memory_.set_scratch_release(nullptr); }

void* KernelRuntime::scratch(int64_t bytes) noexcept {
  void* memory = worker_scope.arena == nullptr ? nullptr : worker_scope.arena->allocate(bytes);
  if (!memory) refused_scratch_.store(bytes, std::memory_order_relaxed);
  return memory;
}

// A host function that a kernel calls may ask for memory while the kernel has its scratch.
void KernelRuntime::release_scratch() noexcept {
  if (worker_scope.runtime == this) return;
  for (ScratchArena& arena : arenas_) arena.clear();
}

int32_t KernelRuntime::call_packed(std::string_view name, std::span<const relaxc_value> args,
                                   relaxc_value& result) noexcept {
  try {
    std::lock_guard lock(packed_mutex_);
    if (!packed_call_) throw_runtime_error("this host has no functions");
    result = packed_call_(name, args);
    return 0;
  } catch (const std::exception& error) {
    report(formatted("{}: {}", name, error.what()), {});
  } catch (...) {  // of the host's own kind
    report(formatted("{}: failed", name), {});
  }
  return 1;
}

int32_t KernelRuntime::call(const Kernel& kernel, void* const* data, const int64_t* scalars) {
  ScratchArena& arena = arenas_[0];
  Temporarily scope(worker_scope, WorkerScope{this, &arena, false});
  context_.error = nullptr;
  refused_scratch_.store(0, std::memory_order_relaxed);
  relaxc_kernel_args args{data, scalars, &context_};
  ScratchArena::Mark mark = arena.mark();
  int32_t status = 1;
  try {
    status = kernel(&args);
  } catch (const std::exception& error) {  // a kernel of the user's may be C++
    report(error.what(), {});
  } catch (...) {
    report("it threw an exception of its own kind", {});
  }
  arena.release(mark);
  return status;
}

void KernelRuntime::report(std::string_view message, std::span<const int64_t> values) noexcept {
  std::lock_guard lock(error_mutex_);
  std::atomic_ref<const char*> error(context_.error);  // kernels also set it directly
  if (error.load(std::memory_order_relaxed) != nullptr) return;
  error_text_ = with_values(message, values);
  error.store(error_text_.c_str(), std::memory_order_relaxed);
}

int32_t KernelRuntime::parallel_for(int64_t n, relaxc_parallel_body body, void* closure) {
  if (n <= 0) return 0;
  int64_t workers = std::min<int64_t>(n, std::ssize(arenas_));
  // A nested loop runs on its thread alone, and so does a call from a thread that is not part of the pool.
  if (workers == 1 || worker_scope.runtime != this || worker_scope.in_parallel) return body(closure, 0, n);
  for (int64_t w = 0; w < workers; ++w) shares_[static_cast<size_t>(w)].next.store(0, std::memory_order_relaxed);
  ParallelLoop loop{this, arenas_, shares_, body, closure, n, workers};
  auto enter = [](void* self, int worker) {
    auto& entered = *static_cast<ParallelLoop*>(self);
    if (worker >= 0 && worker < entered.workers) entered.work(worker);
  };
  pool_->run(enter, &loop, static_cast<int>(workers));
  const int32_t status = loop.status.load(std::memory_order_relaxed);
  if (status != 0 || loop.is_handed_out()) return status;
  report("the thread pool of the host returned before the work was done: its run() has to call task(closure, 0)", {});
  return 1;
}

}  // namespace relaxc::vm
