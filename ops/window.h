// Helpers that convolution, pooling and regions of interest share: attributes that hold a number per spatial dim,
// window counts, padding.
#pragma once
#include "ops/attributes.h"
#include "ops/data_layout.h"

namespace relaxc {

// Returns one number per spatial dim from an attribute, whose single number stands for all. Each must be >= least.
std::vector<int64_t> per_dim(const OpCall& op, const std::vector<int64_t>& values, size_t rank, const char* what,
                             int64_t least);

// The number of elements that are added before and after each spatial dim.
struct Padding {
  std::vector<int64_t> before, after;
  bool any() const;
};
// Reads Relax's forms: one number, one per dim (both sides), or all begins and then all ends.
Padding read_padding(const OpCall& op, const std::vector<int64_t>& values, size_t rank);

// Returns the number of windows: floor((extent + padding - dilation * (kernel - 1) - 1) / stride) + 1. A constant
// extent smaller than the window is an error.
Expr window_count(const OpCall& op, const Expr& extent, int64_t padding, const Expr& kernel, int64_t stride,
                  int64_t dilation);

// Makes the stage "pad_temp": data [N, C, spatial...], in its layout, with `fill` around it. `shape` has the padded
// dims, in the plain order.
Buffer pad_stage(ComputeBuilder& b, const OpCall& op, const Buffer& data, const Layout& layout,
                 const std::vector<int64_t>& before, const std::vector<Expr>& shape, const Expr& fill);

}  // namespace relaxc
