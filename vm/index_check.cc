#include "vm/index_check.h"

#include <algorithm>
#include <type_traits>

#include "support/joined.h"
#include "vm/error.h"

namespace relaxc::vm {

namespace {

// The number of elements that one thread reads between tests for a bad index.
constexpr int64_t kChunk = 1 << 14;
constexpr int64_t kParallelElements = 1 << 17;

// One comparison tests both ends: [-dim, dim) moved up by dim is [0, 2 * dim) in unsigned numbers.
template <class T>
bool is_bad(T index, uint64_t dim) {
  if constexpr (std::is_unsigned_v<T>) return index >= dim;
  return static_cast<uint64_t>(static_cast<int64_t>(index)) + dim >= 2 * dim;
}

// Returns a number that is negative where the index is bad. Whatever wraps around is so far off that its index is bad.
template <class T>
int64_t badness(T index, uint64_t dim) {
  const uint64_t below = std::is_unsigned_v<T> ? 0 : dim, last = below + dim - 1;
  const uint64_t moved = static_cast<uint64_t>(static_cast<int64_t>(index)) + below;
  return static_cast<int64_t>(moved | (last - moved));
}

// The loop has no early exit and no comparison, and sums that do not wait for each other. `begin` is a multiple of the
// dims' count.
template <class T>
bool any_bad(const T* indices, int64_t begin, int64_t end, std::span<const int64_t> dims) {
  int64_t first = 0, second = 0, third = 0, fourth = 0;
  const int64_t step = std::ssize(dims);
  for (int64_t k = 0; k < step; ++k) {
    const uint64_t dim = static_cast<uint64_t>(dims[static_cast<size_t>(k)]);
    const T* at = indices + begin + k;
    int64_t left = (end - begin - k + step - 1) / step;
    for (; left >= 4; left -= 4, at += 4 * step) {
      first |= badness(at[0], dim);
      second |= badness(at[step], dim);
      third |= badness(at[2 * step], dim);
      fourth |= badness(at[3 * step], dim);
    }
    for (; left > 0; --left, at += step) first |= badness(*at, dim);
  }
  return (first | second | third | fourth) < 0;
}

template <class T>
std::optional<BadIndex> find_in(const Tensor& tensor, std::span<const int64_t> dims, relaxc_kernel_context* kernels) {
  struct Scan {
    const T* indices;
    int64_t size, chunk;
    std::span<const int64_t> dims;
    bool is_bad_chunk(int64_t c) const { return any_bad(indices, c * chunk, std::min(size, (c + 1) * chunk), dims); }
  };
  const int64_t step = std::ssize(dims);
  Scan scan{static_cast<const T*>(tensor.raw()), tensor.size(), kChunk / step * step, dims};
  const int64_t chunks = (scan.size + scan.chunk - 1) / scan.chunk;
  if (kernels != nullptr && scan.size >= kParallelElements) {
    auto body = [](void* closure, int64_t begin, int64_t end) -> int32_t {
      const Scan& part = *static_cast<const Scan*>(closure);
      bool bad = false;
      for (int64_t c = begin; c < end; ++c) bad = bad || part.is_bad_chunk(c);
      return bad ? 1 : 0;
    };
    if (kernels->parallel_for(kernels, chunks, body, &scan) == 0) return std::nullopt;
  }
  for (int64_t c = 0; c < chunks; ++c) {
    if (!scan.is_bad_chunk(c)) continue;
    for (int64_t i = c * scan.chunk;; ++i) {
      const int64_t dim = dims[static_cast<size_t>(i % step)];
      if (is_bad(scan.indices[i], static_cast<uint64_t>(dim))) return BadIndex{i, dim};
    }
  }
  return std::nullopt;
}

template <class Signed, class Unsigned>
std::optional<BadIndex> find_as(const Tensor& tensor, std::span<const int64_t> dims, relaxc_kernel_context* kernels) {
  return tensor.dtype().is_int() ? find_in<Signed>(tensor, dims, kernels) : find_in<Unsigned>(tensor, dims, kernels);
}

}  // namespace

std::optional<BadIndex> find_bad_index(const Tensor& indices, std::span<const int64_t> dims,
                                       relaxc_kernel_context* kernels) {
  if (indices.size() == 0 || dims.empty()) return std::nullopt;
  int bits = indices.dtype().bits;
  if (bits == 8) return find_as<int8_t, uint8_t>(indices, dims, kernels);
  if (bits == 16) return find_as<int16_t, uint16_t>(indices, dims, kernels);
  if (bits == 32) return find_as<int32_t, uint32_t>(indices, dims, kernels);
  if (bits == 64) return find_as<int64_t, uint64_t>(indices, dims, kernels);
  throw_runtime_error("expected integers as indices, got {}", describe(indices));
}

std::string describe(const BadIndex& bad, const Tensor& indices) {
  int64_t index = indices.as_int(bad.position);
  bool is_signed = indices.dtype().is_int();
  std::vector<int64_t> at = indices_of(bad.position, indices.shape());
  std::string place = at.empty() ? "" : formatted("[{}]", joined(at));
  std::string value = is_signed ? formatted("{}", index) : formatted("{}", static_cast<uint64_t>(index));
  if (bad.dim == 0) return formatted("{} is {}, but the axis is empty", place, value);
  return formatted("{} is {}, expected {} to {}", place, value, is_signed ? -bad.dim : 0, bad.dim - 1);
}

}  // namespace relaxc::vm
