#include "vm/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <list>
#include <map>
#include <memory_resource>
#include <mutex>
#include <optional>

#include "support/checked_math.h"
#include "vm/error.h"

namespace relaxc::vm {

int64_t max_allocation_bytes() {
  static const int64_t kLimit = [] {
    int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE), bytes = 0;
    constexpr int64_t kUnknown = int64_t{1} << 40;
    if (pages <= 0 || page <= 0 || __builtin_mul_overflow(pages, page * 2, &bytes)) return kUnknown;
    return bytes;
  }();
  return kLimit;
}

AlignedBuffer try_allocate_aligned(int64_t bytes, const Allocator& allocator) noexcept {
  if (bytes < 0 || bytes > max_allocation_bytes()) return nullptr;
  if (allocator.allocate) {
    void* memory = allocator.allocate(allocator.user, static_cast<size_t>(std::max<int64_t>(bytes, 1)), kAlignment);
    return AlignedBuffer(memory, {allocator, std::max<int64_t>(bytes, 1)});
  }
  constexpr int64_t kLargePage = int64_t{2} << 20;
  // Large memory uses large pages, since a kernel that streams weights would miss the TLB otherwise.
  size_t alignment = bytes >= 2 * kLargePage ? kLargePage : kAlignment;
  // aligned_alloc requires a multiple of the alignment; the limit keeps the rounding from overflowing.
  auto rounded = static_cast<size_t>(round_up(std::max<int64_t>(bytes, 1), static_cast<int64_t>(alignment)));
  AlignedBuffer result(std::aligned_alloc(alignment, rounded));
  if (result && alignment == kLargePage) madvise(result.get(), rounded, MADV_HUGEPAGE);  // only a hint
  return result;
}

AlignedBuffer allocate_aligned(int64_t bytes) {
  AlignedBuffer buffer = try_allocate_aligned(bytes);
  if (!buffer) throw OutOfMemory(formatted("cannot allocate {} bytes, the limit is {}", bytes, max_allocation_bytes()));
  return buffer;
}

struct MemoryPool::State {
  struct IdleBlock {
    AlignedBuffer memory;
    int64_t bytes = 0;
  };
  using IdleList = std::pmr::list<IdleBlock>;

  std::pmr::synchronized_pool_resource nodes;  // of the lists below, and of the handles of blocks in use
  std::mutex mutex;
  int64_t limit = 0;
  Allocator allocator;
  Stats stats;
  int64_t scratch_bytes = 0;
  std::function<void()> release_scratch;
  IdleList idle{&nodes};                                          // oldest first
  std::pmr::multimap<int64_t, IdleList::iterator> sizes{&nodes};  // the idle blocks by size

  // Returns the idle block that fits; the mutex is held.
  std::optional<IdleBlock> take(int64_t bytes, Fit fit) {
    auto found = sizes.lower_bound(bytes);
    if (found == sizes.end() || (fit == Fit::kTight && found->first > bytes + bytes / 4)) return std::nullopt;
    if (fit == Fit::kLargest) found = std::prev(sizes.end());
    IdleBlock block = std::move(*found->second);
    idle.erase(found->second);
    sizes.erase(found);
    stats.idle_bytes -= block.bytes;
    return block;
  }

  // Moves the oldest idle blocks to `released` until at most `keep` bytes are idle; they are freed without the mutex.
  void evict(int64_t keep, IdleList& released) {
    while (stats.idle_bytes > keep) {
      auto oldest = idle.begin();
      auto [first, last] = sizes.equal_range(oldest->bytes);
      sizes.erase(std::find_if(first, last, [&](const auto& entry) { return entry.second == oldest; }));
      stats.idle_bytes -= oldest->bytes;
      released.splice(released.end(), idle, oldest);
    }
  }

  // Frees idle blocks, which count toward the limit too, for a request. Returns whether the limit allows it; the mutex
  // is held.
  bool make_room(int64_t bytes, IdleList& released) {
    const int64_t left = limit - stats.live_bytes - scratch_bytes - bytes;
    if (left < 0) return false;
    evict(left, released);
    return true;
  }

  // The mutex is held.
  std::string usage() const {
    const std::string scratch =
        scratch_bytes > 0 ? formatted(", {} of them scratch of kernels", scratch_bytes) : std::string();
    return formatted("{} bytes are in use{}, the limit is {}", stats.live_bytes + scratch_bytes, scratch, limit);
  }

  void give_back(AlignedBuffer memory, int64_t bytes) noexcept {
    IdleList released(&nodes);
    std::lock_guard lock(mutex);
    stats.live_bytes -= bytes;
    try {
      IdleList block(&nodes);
      block.push_back({std::move(memory), bytes});
      sizes.emplace(bytes, block.begin());
      idle.splice(idle.end(), block);
    } catch (const std::bad_alloc&) {
      return;  // the block is freed instead of kept
    }
    stats.idle_bytes += bytes;
    evict(stats.peak_bytes, released);
  }
};

MemoryPool::MemoryPool(int64_t limit, Allocator allocator) : state_(std::make_shared<State>()) {
  state_->allocator = allocator;
  state_->limit = limit > 0 ? limit : max_allocation_bytes();
}

// Gives handles of blocks memory that the pool keeps. They may be released after the pool is gone.
template <class T>
struct MemoryPool::HandleAllocator {
  using value_type = T;
  std::shared_ptr<State> state;

  explicit HandleAllocator(std::shared_ptr<State> of) : state(std::move(of)) {}
  template <class U>
  HandleAllocator(const HandleAllocator<U>& other) : state(other.state) {}
  T* allocate(size_t count) { return static_cast<T*>(state->nodes.allocate(count * sizeof(T), alignof(T))); }
  void deallocate(T* memory, size_t count) { state->nodes.deallocate(memory, count * sizeof(T), alignof(T)); }
  template <class U>
  bool operator==(const HandleAllocator<U>& other) const {
    return state == other.state;
  }
};

void MemoryPool::ScratchDeleter::operator()(void* memory) const noexcept {
  free(memory);
  std::lock_guard lock(state->mutex);
  state->scratch_bytes -= free.bytes;
}

MemoryPool::ScratchBuffer MemoryPool::try_allocate_scratch(int64_t bytes) noexcept {
  {
    State::IdleList released(&state_->nodes);
    std::lock_guard lock(state_->mutex);
    if (!state_->make_room(bytes, released)) return nullptr;
    state_->scratch_bytes += bytes;
  }
  AlignedBuffer memory = try_allocate_aligned(bytes, state_->allocator);
  const FreeDeleter free{memory.get_deleter().allocator, bytes};
  if (memory) return ScratchBuffer(memory.release(), {state_, free});
  std::lock_guard lock(state_->mutex);
  state_->scratch_bytes -= bytes;
  return nullptr;
}

void MemoryPool::set_scratch_release(std::function<void()> release) { state_->release_scratch = std::move(release); }

std::shared_ptr<void> MemoryPool::allocate(int64_t bytes, Fit fit) {
  if (bytes < 0 || bytes > state_->limit)
    throw OutOfMemory(formatted("cannot allocate {} bytes, the limit is {}", bytes, state_->limit));
  int64_t rounded = round_up(std::max<int64_t>(bytes, 1), kAlignment);
  State::IdleList released(&state_->nodes);
  AlignedBuffer memory;
  int64_t block_bytes = rounded;
  {
    std::unique_lock lock(state_->mutex);
    Stats& stats = state_->stats;
    if (auto block = state_->take(rounded, fit)) {
      memory = std::move(block->memory);
      block_bytes = block->bytes;
    } else {
      if (!state_->make_room(rounded, released)) {
        lock.unlock();
        if (state_->release_scratch) state_->release_scratch();
        lock.lock();
        if (!state_->make_room(rounded, released))
          throw OutOfMemory(formatted("cannot allocate {} bytes: {}", bytes, state_->usage()));
      }
      ++stats.allocations;
    }
    stats.live_bytes += block_bytes;
    stats.peak_bytes = std::max(stats.peak_bytes, stats.live_bytes);
  }
  released.clear();
  if (!memory) memory = try_allocate_aligned(block_bytes, state_->allocator);
  if (!memory) {
    trim();
    memory = try_allocate_aligned(block_bytes, state_->allocator);
  }
  if (!memory) {
    std::lock_guard lock(state_->mutex);
    state_->stats.live_bytes -= block_bytes;
    throw OutOfMemory(
        formatted("cannot allocate {} bytes: out of memory with {} in use", bytes, state_->stats.live_bytes));
  }
  void* data = memory.get();
  // The deleter owns the block: if making the control block throws, the block is freed with it.
  auto give_back = [state = state_, deleter = memory.get_deleter(), block = memory.release(), block_bytes](void*) {
    state->give_back(AlignedBuffer(block, deleter), block_bytes);
  };
  return std::shared_ptr<void>(data, std::move(give_back), HandleAllocator<std::byte>(state_));
}

MemoryPool::Stats MemoryPool::stats() const {
  std::lock_guard lock(state_->mutex);
  return state_->stats;
}

std::string MemoryPool::usage() const {
  std::lock_guard lock(state_->mutex);
  return state_->usage();
}

void MemoryPool::trim() {
  if (state_->release_scratch) state_->release_scratch();
  State::IdleList released(&state_->nodes);
  std::lock_guard lock(state_->mutex);
  state_->evict(0, released);
}

}  // namespace relaxc::vm
