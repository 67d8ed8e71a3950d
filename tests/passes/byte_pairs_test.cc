#include "passes/byte_pairs.h"

#include <numeric>

#include "tests/catch.h"

namespace relaxc::test {

namespace {

Tensor bytes(std::vector<int64_t> shape, uint32_t seed) {
  Tensor result = Tensor::empty(std::move(shape), DType::int_(8));
  for (int64_t i = 0; i < result.size(); ++i) {
    seed = seed * 1664525 + 1013904223;
    result.set_int(i, static_cast<int8_t>(seed >> 24));
  }
  return result;
}

// Returns whether a sum of two products with numbers from 0 to 255 may leave 16 bits.
bool leaves_int16(int64_t a, int64_t b) {
  for (int64_t x : {0, 255}) {
    for (int64_t y : {0, 255}) {
      if (x * a + y * b < INT16_MIN || x * a + y * b > INT16_MAX) return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("all pairs of bytes are known whose sums of products leave 16 bits", "[passes]") {
  for (int64_t a = -128; a < 128; ++a) {
    for (int64_t b = -128; b < 128; ++b) {
      const Tensor pair =
          Tensor::of<int8_t>({1, 1, 2}, DType::int_(8), {static_cast<int8_t>(a), static_cast<int8_t>(b)});
      CAPTURE(a, b);
      REQUIRE((count_large_pairs(pair, 2) == 1) == leaves_int16(a, b));
      const SplitBytes split = split_large_pairs(pair, 0, {});
      REQUIRE(count_large_pairs(split.small, 2) == 0);
      REQUIRE(count_large_pairs(split.halves, split.halves.shape().size() - 1) == 0);
    }
  }
}

TEST_CASE("pairs of bytes lie along any axis", "[passes]") {
  const Tensor weight = bytes({4, 5, 3}, 7);
  for (size_t axis : {0, 1, 2}) {
    int64_t expected = 0;
    const std::vector<int64_t>& shape = weight.shape();
    const int64_t stride =
        std::accumulate(shape.begin() + static_cast<long>(axis) + 1, shape.end(), int64_t{1}, std::multiplies<>());
    for (int64_t i = 0; i < weight.size(); ++i) {
      const int64_t place = i / stride % shape[axis];
      if (place % 2 == 0 && place + 1 < shape[axis])
        expected += leaves_int16(weight.as_int(i), weight.as_int(i + stride));
    }
    CAPTURE(axis);
    CHECK(expected > 0);
    CHECK(count_large_pairs(weight, axis) == expected);
  }
}

TEST_CASE("small bytes and halves at the listed steps are the weight", "[passes]") {
  const Tensor weight = bytes({3, 4, 2, 2, 4}, 11);  // panels, steps, steps, lanes, group
  const SplitBytes split = split_large_pairs(weight, 1, {1, 2});
  const int64_t length = split.steps.shape()[1];
  REQUIRE(split.steps.shape() == std::vector<int64_t>{3, length, 2});
  REQUIRE(split.halves.shape() == std::vector<int64_t>{3, length, 2, 4});
  CHECK(length > 0);
  CHECK(count_large_pairs(split.small, 4) == 0);
  Tensor sum = Tensor::copy_of(weight.shape(), weight.dtype(), split.small.raw());
  for (int64_t panel = 0; panel < 3; ++panel) {
    for (int64_t e = 0; e < length; ++e) {
      const int64_t at = panel * length + e;
      const int64_t step = split.steps.as_int(at * 2) * 2 + split.steps.as_int(at * 2 + 1);
      for (int64_t k = 0; k < 8; ++k) {
        const int64_t i = (panel * 8 + step) * 8 + k;
        sum.set_int(i, sum.as_int(i) + split.halves.as_int(at * 8 + k));
      }
    }
  }
  for (int64_t i = 0; i < weight.size(); ++i) REQUIRE(sum.as_int(i) == weight.as_int(i));
}

}  // namespace relaxc::test
