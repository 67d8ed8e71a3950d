// The bytes that the plug-in makes of a part of the graph and the runtime reads: a header, the steps, then the floats
// of weights and biases. Values are numbered: the inputs, then the result of each step.
#pragma once
#include <cstdint>

namespace onednn {

enum class Kind : int64_t { kConv, kMatmul, kMaxPool, kAvgPool, kSoftmax, kRelu, kAdd, kMultiply };

struct Header {
  uint64_t hash[2];  // of all that follows
  int64_t num_bytes, num_inputs, num_steps;
  int64_t ranks[8];  // of the inputs, then of the result
};

struct Step {
  Kind kind;
  int64_t a = -1, b = -1;                        // the operands; no b where it is a weight
  int64_t added = -1;                            // a value that is added to the result
  int64_t relu = 0;                              // then the result is at least 0
  int64_t weight = -1, bias = -1;                // the positions of their floats behind the steps
  int64_t weight_rank = 0, weight_dims[5] = {};  // of a convolution with groups: [g, o / g, i / g, h, w]
  int64_t window[2] = {}, strides[2] = {}, padding[4] = {}, dilation[2] = {};
  int64_t axis = 0;         // of softmax
  int64_t counts_pads = 0;  // by average pools
};

}  // namespace onednn
