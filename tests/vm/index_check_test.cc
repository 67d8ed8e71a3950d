// The scan of indices against the plain definition: every dtype, list length, and place in and between chunks.
#include "vm/index_check.h"

#include "vm/thread_pool.h"

#include "tests/catch.h"

namespace relaxc::vm {

namespace {

// By one thread and by two, which must agree.
std::optional<BadIndex> find_twice(const Tensor& indices, std::span<const int64_t> dims) {
  static KernelRuntime threads(std::make_shared<ThreadPool>(2));
  std::optional<BadIndex> alone = find_bad_index(indices, dims);
  threads.pool().enter();
  std::optional<BadIndex> together = find_bad_index(indices, dims, threads.context());
  threads.pool().leave();
  CHECK(alone.has_value() == together.has_value());
  if (alone && together) CHECK(alone->position == together->position);
  return alone;
}

}  // namespace

TEST_CASE("the first index out of range is found wherever it is", "[vm]") {
  for (DType dtype :
       {DType::int_(8), DType::uint(8), DType::int_(16), kInt32, DType::uint(32), kInt64, DType::uint(64)}) {
    for (int64_t items : {1, 2, 3}) {
      std::vector<int64_t> dims = {5, 7, 3};
      dims.resize(static_cast<size_t>(items));
      for (int64_t rows : {1, 50, 17000, 140000}) {
        Tensor indices = Tensor::empty({rows, items}, dtype);
        for (int64_t i = 0; i < indices.size(); ++i) indices.set_int(i, i % 3);
        CHECK(!find_twice(indices, dims));
        for (int64_t position : {int64_t{0}, indices.size() / 2, indices.size() - 1}) {
          int64_t dim = dims[static_cast<size_t>(position % items)], old = position % 3;
          for (int64_t value : {dim - 1, dim, -dim, -dim - 1}) {
            if (value < 0 && dtype.is_uint()) continue;
            indices.set_int(position, value);
            auto bad = find_twice(indices, dims);
            CHECK(bad.has_value() == (value < -dim || value >= dim));
            if (bad) CHECK((bad->position == position && bad->dim == dim));
            indices.set_int(position, old);
          }
        }
      }
    }
  }
}

TEST_CASE("the message of an index names its place, value and range", "[vm]") {
  Tensor indices = Tensor::of<int32_t>({2, 2}, kInt32, {0, 1, -9, 0});
  const int64_t dims[] = {4};
  CHECK(describe(*find_bad_index(indices, dims), indices) == "[1, 0] is -9, expected -4 to 3");
  const int64_t empty[] = {0};
  CHECK(describe(*find_bad_index(indices, empty), indices) == "[0, 0] is 0, but the axis is empty");
  Tensor one = Tensor::of<uint64_t>({}, DType::uint(64), {UINT64_MAX});
  CHECK(describe(*find_bad_index(one, dims), one) == " is 18446744073709551615, expected 0 to 3");
}

}  // namespace relaxc::vm
