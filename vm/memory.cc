#include "vm/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <list>
#include <map>
#include <mutex>

#include "support/check.h"
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
  struct Block;
  using Blocks = std::list<Block>;
  using Sizes = std::multimap<int64_t, Blocks::iterator>;
  // Memory, and all that lending it needs: taking an idle block and giving it back move nodes and allocate none.
  struct Block {
    AlignedBuffer memory = nullptr;
    int64_t bytes = 0;
    // Of a block that is lent: its entry in `sizes`, and the pool, which lives as long as it.
    Sizes::node_type size = {};
    std::shared_ptr<State> pool = nullptr;
    alignas(std::max_align_t) std::byte handle[64];  // the control block of the shared_ptr that lends it
  };

  std::mutex mutex;
  int64_t limit = 0;
  Allocator allocator;
  Stats stats;
  bool is_retired = false;  // results of the last runs may live, but no run follows
  int64_t scratch_bytes = 0;
  std::function<void()> release_scratch;
  Blocks idle, lent;  // the idle ones: oldest first
  Sizes sizes;        // the idle blocks by size

  // Moves the idle block that fits to `lent`, and returns it; lent.end() where none fits. The mutex is held.
  Blocks::iterator take(int64_t bytes, Fit fit) {
    auto found = sizes.lower_bound(bytes);
    if (found == sizes.end() || (fit == Fit::kTight && found->first > bytes + bytes / 4)) return lent.end();
    if (fit == Fit::kLargest) found = std::prev(sizes.end());
    const Blocks::iterator block = found->second;
    lent.splice(lent.end(), idle, block);
    block->size = sizes.extract(found);
    stats.idle_bytes -= block->bytes;
    return block;
  }

  // Returns a new block in `lent`, still without memory. The mutex is held.
  Blocks::iterator add_block(int64_t bytes) {
    Blocks block(1);
    block.front().bytes = bytes;
    Sizes entry;
    entry.emplace(bytes, block.begin());
    block.front().size = entry.extract(entry.begin());
    lent.splice(lent.end(), block);
    return std::prev(lent.end());
  }

  // Moves the oldest idle blocks to `released` until at most `keep` bytes are idle; they are freed without the mutex.
  void evict(int64_t keep, Blocks& released) {
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
  bool make_room(int64_t bytes, Blocks& released) {
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

  // Ends the loan of a block, which may be the last owner of the pool.
  static void give_back(Blocks::iterator block) noexcept {
    Blocks released;
    const std::shared_ptr<State> pool = std::move(block->pool);
    std::lock_guard lock(pool->mutex);
    pool->stats.live_bytes -= block->bytes;
    pool->stats.idle_bytes += block->bytes;
    pool->sizes.insert(std::move(block->size));
    pool->idle.splice(pool->idle.end(), pool->lent, block);
    pool->evict(pool->is_retired ? 0 : pool->stats.peak_bytes, released);
  }
};

MemoryPool::MemoryPool(int64_t limit, Allocator allocator) : state_(std::make_shared<State>()) {
  state_->allocator = allocator;
  state_->limit = limit > 0 ? limit : max_allocation_bytes();
}

// Gives the shared_ptr that lends a block the memory that the block has for it. The loan ends with this memory, when
// nothing refers to the shared_ptr any more.
template <class T>
struct MemoryPool::HandleAllocator {
  using value_type = T;
  State::Blocks::iterator block;

  explicit HandleAllocator(State::Blocks::iterator of) : block(of) {}
  template <class U>
  HandleAllocator(const HandleAllocator<U>& other) : block(other.block) {}
  T* allocate(size_t count) {
    static_assert(sizeof(T) <= sizeof(State::Block::handle) && alignof(T) <= alignof(std::max_align_t));
    RELAXC_CHECK(count == 1, "a shared_ptr takes {} control blocks", count);
    return reinterpret_cast<T*>(block->handle);
  }
  void deallocate(T*, size_t) noexcept { State::give_back(block); }
  template <class U>
  bool operator==(const HandleAllocator<U>& other) const {
    return block == other.block;
  }
};

void MemoryPool::ScratchDeleter::operator()(void* memory) const noexcept {
  free(memory);
  std::lock_guard lock(state->mutex);
  state->scratch_bytes -= free.bytes;
}

MemoryPool::ScratchBuffer MemoryPool::try_allocate_scratch(int64_t bytes) noexcept {
  {
    State::Blocks released;
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

void MemoryPool::set_scratch_release(std::function<void()> release) {
  state_->release_scratch = std::move(release);
  if (state_->release_scratch) return;
  State::Blocks released;
  std::lock_guard lock(state_->mutex);
  state_->is_retired = true;
  state_->evict(0, released);
}

std::shared_ptr<void> MemoryPool::allocate(int64_t bytes, Fit fit) {
  if (bytes < 0 || bytes > state_->limit)
    throw OutOfMemory(formatted("cannot allocate {} bytes, the limit is {}", bytes, state_->limit));
  const int64_t rounded = round_up(std::max<int64_t>(bytes, 1), kAlignment);
  State::Blocks released;
  State::Blocks::iterator block;
  {
    std::unique_lock lock(state_->mutex);
    Stats& stats = state_->stats;
    block = state_->take(rounded, fit);
    if (block == state_->lent.end()) {
      if (!state_->make_room(rounded, released)) {
        lock.unlock();
        if (state_->release_scratch) state_->release_scratch();
        lock.lock();
        if (!state_->make_room(rounded, released))
          throw OutOfMemory(formatted("cannot allocate {} bytes: {}", bytes, state_->usage()));
      }
      block = state_->add_block(rounded);
      ++stats.allocations;
    }
    stats.live_bytes += block->bytes;
    stats.peak_bytes = std::max(stats.peak_bytes, stats.live_bytes);
  }
  released.clear();
  if (!block->memory) block->memory = try_allocate_aligned(block->bytes, state_->allocator);
  if (!block->memory) {
    trim();
    block->memory = try_allocate_aligned(block->bytes, state_->allocator);
  }
  if (!block->memory) {
    std::lock_guard lock(state_->mutex);
    state_->stats.live_bytes -= block->bytes;
    state_->lent.erase(block);
    throw OutOfMemory(
        formatted("cannot allocate {} bytes: out of memory with {} in use", bytes, state_->stats.live_bytes));
  }
  block->pool = state_;
  return std::shared_ptr<void>(block->memory.get(), [](void*) {}, HandleAllocator<std::byte>(block));
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
  State::Blocks released;
  std::lock_guard lock(state_->mutex);
  state_->evict(0, released);
}

}  // namespace relaxc::vm
