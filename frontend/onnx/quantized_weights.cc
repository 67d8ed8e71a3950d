#include "frontend/onnx/quantized_weights.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace relaxc::onnx_import {

namespace {

// Tells the scale of each element: a weight is [outer, size, inner] around the axis.
class GroupMap {
 public:
  GroupMap(const Tensor& weight, const ScaleGroups& groups) : groups_(groups) {
    if (!groups.axis) return;
    const auto& shape = weight.shape();
    const auto axis = static_cast<size_t>(*groups.axis);
    size_ = shape[axis];
    for (size_t d = axis + 1; d < shape.size(); ++d) inner_ *= shape[d];
    if (groups.block == 0) {
      scales_ = {size_};
      return;
    }
    blocks_ = (size_ + groups.block - 1) / groups.block;
    scales_ = shape;
    scales_[axis] = blocks_;
  }
  const std::vector<int64_t>& shape_of_scales() const { return scales_; }
  size_t scale_of(int64_t element) const {
    if (!groups_.axis) return 0;
    const int64_t place = element / inner_ % size_;
    if (groups_.block == 0) return static_cast<size_t>(place);
    const int64_t outer = element / inner_ / size_;
    return static_cast<size_t>((outer * blocks_ + place / groups_.block) * inner_ + element % inner_);
  }

 private:
  ScaleGroups groups_;
  std::vector<int64_t> scales_;
  int64_t size_ = 1, inner_ = 1, blocks_ = 1;
};

double rounded(double value, double scale, int bits) {
  const double most = std::ldexp(1, bits - 1) - 1;
  return std::clamp(std::nearbyint(value / scale), -most - 1, most);
}

// Returns the scale of each group that leaves the least squared error, of those that these factors make.
std::vector<float> scales_of(const Tensor& weight, const GroupMap& map, int bits, size_t count) {
  const auto* values = weight.data<float>();
  std::vector<double> most(count, 0);
  for (int64_t i = 0; i < weight.size(); ++i) {
    double& group = most[map.scale_of(i)];
    group = std::max(group, std::abs(static_cast<double>(values[i])));
  }
  const std::vector<double> factors =
      bits == 8 ? std::vector<double>{1} : std::vector<double>{1, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7};
  std::vector<double> least(count, HUGE_VAL);
  std::vector<float> best(count, 1);
  for (double factor : factors) {
    std::vector<float> scales(count);
    std::vector<double> errors(count, 0);
    for (size_t g = 0; g < count; ++g)
      scales[g] = static_cast<float>(std::max(most[g] * factor / (std::ldexp(1, bits - 1) - 1), 1e-30));
    for (int64_t i = 0; i < weight.size() && factors.size() > 1; ++i) {
      const size_t g = map.scale_of(i);
      const double error = values[i] - scales[g] * rounded(values[i], scales[g], bits);
      errors[g] += error * error;
    }
    for (size_t g = 0; g < count; ++g) {
      if (errors[g] < least[g]) least[g] = errors[g], best[g] = scales[g];
    }
  }
  return best;
}

}  // namespace

QuantizedWeight quantize_weight(const Tensor& weight, const ScaleGroups& groups, int bits) {
  const GroupMap map(weight, groups);
  Tensor scales = Tensor::empty(map.shape_of_scales(), kFloat32);
  const std::vector<float> chosen = scales_of(weight, map, bits, static_cast<size_t>(scales.size()));
  std::ranges::copy(chosen, scales.data<float>());
  Tensor integers = Tensor::empty(weight.shape(), DType::int_(bits));
  if (integers.bytes() > 0) std::fill_n(static_cast<char*>(integers.raw()), integers.bytes(), 0);
  const auto* values = weight.data<float>();
  for (int64_t i = 0; i < weight.size(); ++i)
    integers.set_int(i, static_cast<int64_t>(rounded(values[i], chosen[map.scale_of(i)], bits)));
  return {integers, scales};
}

std::optional<Tensor> quantize_bias(const Tensor& bias, const Tensor& scales) {
  Tensor integers = Tensor::empty(bias.shape(), kInt32);
  for (int64_t i = 0; i < bias.size(); ++i) {
    const double value = std::nearbyint(bias.as_double(i) / scales.as_double(scales.size() == 1 ? 0 : i));
    if (!(std::abs(value) < std::ldexp(1, 31))) return std::nullopt;
    integers.set_int(i, static_cast<int64_t>(value));
  }
  return integers;
}

}  // namespace relaxc::onnx_import
