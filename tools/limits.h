// What this machine can do at most, measured: the scale on which profiles show kernels.
#pragma once
#include <array>
#include <memory>

#include "vm/thread_pool.h"

namespace relaxc::tools {

// One that all threads of the pool together read from.
struct MemoryLevel {
  const char* name;
  double bytes;  // of data that lie there when they are used again
  double bytes_per_s = 0;
};

// The numbers that products multiply: instructions for narrow ones (dot products of vectors, tiles of matrix registers)
// compute several times as many as those for float32.
enum class ProductKind : uint8_t { kFloat32, kInt8, kBFloat16 };
inline constexpr std::array kProductKinds = {ProductKind::kFloat32, ProductKind::kInt8, ProductKind::kBFloat16};
const char* name_of(ProductKind kind);

// Of all threads of the pool together.
struct MachineLimits {
  // By kind of products; operations, of which a multiply-add is two. That of float32 where the target has no
  // instruction for the kind.
  std::array<double, 3> operations_per_s = {};
  std::array<MemoryLevel, 3> levels;  // the L2 caches, the L3 cache, memory

  double rate_of(ProductKind kind) const { return operations_per_s[static_cast<size_t>(kind)]; }
  // Returns the index of the level that so many bytes come from.
  size_t level_of(double bytes) const;
};

// Measures for about half a second. Other work on the machine makes it slower, so the largest figures that were ever
// measured count: they are kept in the user's cache folder ($XDG_CACHE_HOME, or ~/.cache), in
// relaxc/limits2-PROCESSOR-THREADS.txt. Where that folder cannot be written, nothing is kept.
MachineLimits machine_limits(const std::shared_ptr<vm::TaskPool>& pool);

}  // namespace relaxc::tools
