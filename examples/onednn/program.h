// The bytes that the plug-in makes of a part of the graph and the runtime reads: a header, a row for each tensor, the
// steps, then the data: weights, biases and scales, each 64-byte aligned. Values are numbered: the inputs, then the
// result of each step.
#pragma once
#include <cstdint>

namespace onednn {

enum class Kind : int64_t {
  kConv,
  kMatmul,
  kMaxPool,
  kAvgPool,
  kSoftmax,
  kActivation,
  kAdd,
  kMultiply,
  kQuantize,
  kDequantize
};
enum class Type : int64_t { kF32, kS8, kU8, kS32 };
enum class Activation : int64_t { kNone, kRelu, kClip };

struct Header {
  uint64_t hash[2];  // of all that follows
  int64_t num_bytes, num_inputs, num_outputs, num_steps;
  int64_t data;  // where it begins
};

struct TensorRow {
  int64_t rank;
  Type type;
  int64_t value;  // its number
};

// Constants are positions in the data, -1 where there is none.
struct Step {
  Kind kind;
  Type type = Type::kF32;                                     // of the result
  int64_t a = -1, b = -1;                                     // the operands; no b where it is constant
  int64_t weight = -1, weight_rank = 0, weight_dims[5] = {};  // of a convolution with groups: [g, o / g, i / g, h, w]
  int64_t bias = -1;   // one per channel, in float32; added to a product, or the second operand of a sum
  int64_t added = -1;  // a value that is added to the result
  Activation activation = Activation::kNone;
  float low = 0, high = 0;  // of a clip
  int64_t window[2] = {}, strides[2] = {}, padding[4] = {}, dilation[2] = {};
  int64_t axis = 0;         // of softmax
  int64_t counts_pads = 0;  // by average pools

  // A quantization is saturate(round(a / out_scale) + out_zero), a dequantization (a - zero) * scale. A product of
  // integers is saturate(round(activation((sum + int_bias) * scale + bias + added) / out_scale) + out_zero), of which
  // an int32 result has nothing and a float32 result has no rounding. The sum is of (a - zero) * weight.
  int64_t int_bias = -1;                // int32, one per channel
  int64_t scales = -1, num_scales = 0;  // float32, one, or one per channel
  int64_t zero_value = -1;              // the number of a value that holds `zero`, an int32
  int32_t zero = 0;
  int32_t out_zero = 0;
  float out_scale = 0;
};

}  // namespace onednn
