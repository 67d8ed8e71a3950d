// Helpers that convolution, pooling and regions of interest share: layouts that attributes state, attributes that hold
// a number per spatial dim, window counts, padding.
#pragma once
#include "ir/layout.h"
#include "ops/attributes.h"
#include "ops/common.h"

namespace relaxc {

// Reads the attribute for the axes `plain`; an empty text means that order. `what` names it in the error.
Layout read_layout(const OpCall& op, const std::string& text, std::string_view plain, const char* what);
// Returns the layout of the result of a window operator, which is that of the data where out_layout is absent.
Layout result_layout(const OpCall& op, const std::optional<std::string>& out_layout, const std::string& data_layout,
                     std::string_view plain);
// Returns the dims in memory of a tensor with these plain dims. Blocks must divide their axis.
std::vector<Expr> dims_in(const OpCall& op, const Layout& layout, const std::vector<Expr>& plain);
// Returns the facts that each axis is in [0, extent).
Analyzer facts_of_axes(Axes axes, const std::vector<Expr>& extents);
// Reports any other layout as unsupported, for operators that are lowered in one layout only.
void require_layout(const OpCall& op, const std::string& layout, std::string_view wanted, const char* what);

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
