// Rounds weights to integers with scales: value = scale * integer, without a zero point.
#pragma once
#include <optional>

#include "vm/tensor.h"

namespace relaxc::onnx_import {

// Which elements of a weight share a scale: all, those of each channel, or blocks of them.
struct ScaleGroups {
  std::optional<int64_t> axis = {};  // of the channels, or along which blocks lie; nullopt: one scale for all
  int64_t block = 0;                 // elements of a block; 0: there is a scale for each place along the axis
};
struct QuantizedWeight {
  Tensor integers;  // int8 or int4, of the weight's shape
  Tensor scales;    // float32: [], [channels], or the weight's shape with the number of blocks along the axis
};
// Rounds a float32 tensor to integers of 8 or 4 bits. The largest magnitude of a group gets 127; with 4 bits, where the
// error of all matters more, the scale is the one of a few below that which leaves the least squared error.
QuantizedWeight quantize_weight(const Tensor& weight, const ScaleGroups& groups, int bits);

// Returns round(value / scale) as int32 for a vector of biases and as many scales, or one; nullopt where a number does
// not fit.
std::optional<Tensor> quantize_bias(const Tensor& bias, const Tensor& scales);

}  // namespace relaxc::onnx_import
