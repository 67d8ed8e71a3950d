#include "passes/byte_pairs.h"

#include <algorithm>

namespace relaxc {

namespace {

// 255 * 128 is an int16, 255 * 129 is none; of negative numbers 255 * -128 is the last one, too.
bool is_large(int8_t a, int8_t b) {
  const int positive = std::max<int>(a, 0) + std::max<int>(b, 0), negative = std::min<int>(a, 0) + std::min<int>(b, 0);
  return positive > 128 || negative < -128;
}

int64_t product_of(const std::vector<int64_t>& shape, size_t begin, size_t end) {
  int64_t result = 1;
  for (size_t d = begin; d < end; ++d) result *= shape[d];
  return result;
}

}  // namespace

int64_t count_large_pairs(const Tensor& weight, size_t axis) {
  const std::vector<int64_t>& shape = weight.shape();
  const int64_t length = shape[axis], stride = product_of(shape, axis + 1, shape.size());
  const int8_t* numbers = weight.data<int8_t>();
  int64_t count = 0;
  for (int64_t row = 0; row < weight.size(); row += length * stride) {
    for (int64_t i = 0; i + 1 < length; i += 2) {
      const int8_t* pair = numbers + row + i * stride;
      for (int64_t k = 0; k < stride; ++k) count += is_large(pair[k], pair[k + stride]);
    }
  }
  return count;
}

SplitBytes split_large_pairs(const Tensor& weight, size_t panel_dims, const std::vector<size_t>& listed) {
  const std::vector<int64_t>& shape = weight.shape();
  const size_t lane = shape.size() - 2;
  const int64_t panels = product_of(shape, 0, panel_dims), steps = product_of(shape, panel_dims, lane),
                bytes = product_of(shape, lane, shape.size());
  Tensor small = Tensor::copy_of(shape, weight.dtype(), weight.raw());
  std::vector<std::vector<int64_t>> large(static_cast<size_t>(panels));  // steps
  std::vector<int8_t> halves_of(static_cast<size_t>(weight.size()), 0);
  for (int64_t i = 0; i < panels * steps; ++i) {
    int8_t* numbers = small.data<int8_t>() + i * bytes;
    int8_t* halves = halves_of.data() + i * bytes;
    bool has_large = false;
    for (int64_t at = 0; at < bytes; at += 2) {
      if (!is_large(numbers[at], numbers[at + 1])) continue;
      has_large = true;
      for (int64_t k : {at, at + 1}) {
        halves[k] = static_cast<int8_t>(numbers[k] / 2);
        numbers[k] = static_cast<int8_t>(numbers[k] - halves[k]);
      }
    }
    if (has_large) large[static_cast<size_t>(i / steps)].push_back(i % steps);
  }
  const auto longest = std::ranges::max_element(large, {}, &std::vector<int64_t>::size);
  const auto length = static_cast<int64_t>(longest->size()), num_listed = static_cast<int64_t>(listed.size());

  std::vector<int64_t> list_shape(shape.begin(), shape.begin() + static_cast<long>(panel_dims));
  list_shape.push_back(length);
  std::vector<int64_t> halves_shape = list_shape, steps_shape = list_shape;
  halves_shape.insert(halves_shape.end(), shape.begin() + static_cast<long>(lane), shape.end());
  steps_shape.push_back(num_listed);
  std::vector<int8_t> halves(static_cast<size_t>(panels * length * bytes), 0);
  std::vector<int32_t> places(static_cast<size_t>(panels * length * num_listed), 0);
  for (int64_t panel = 0; panel < panels; ++panel) {
    int64_t entry = panel * length;
    for (int64_t step : large[static_cast<size_t>(panel)]) {
      std::copy_n(halves_of.begin() + (panel * steps + step) * bytes, bytes, halves.begin() + entry * bytes);
      for (int64_t i = 0; i < num_listed; ++i) {
        const size_t dim = listed[static_cast<size_t>(i)];
        places[static_cast<size_t>(entry * num_listed + i)] =
            static_cast<int32_t>(step / product_of(shape, dim + 1, lane) % shape[dim]);
      }
      ++entry;
    }
  }
  return {std::move(small), Tensor::of(halves_shape, weight.dtype(), halves),
          Tensor::of(steps_shape, DType::int_(32), places)};
}

}  // namespace relaxc
