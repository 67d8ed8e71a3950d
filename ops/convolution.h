// What the files of convolutions share.
#pragma once
#include "ops/layouts.h"
#include "ops/window.h"

namespace relaxc {

// A checked call, the same for both directions. Its dims are in the order of the plain layouts.
struct Conv {
  size_t spatial;
  std::vector<int64_t> strides, dilation;
  Padding padding;
  int64_t groups;
  DType out_dtype;
  Expr batch, in_channels, out_channels, in_per_group, out_per_group;
  std::vector<Expr> kernel;
  std::vector<Expr> out;  // spatial dims of the result
  std::vector<Expr> in;   // and of the data
  Layout data_layout, weight_layout, out_layout;

  std::vector<Expr> result() const { return followed_by({batch, out_channels}, out); }
  Type type(const OpCall& op) const { return tensor_type(dims_in(op, out_layout, result()), out_dtype); }
};

// Returns the result of a transposed convolution in the plain layouts, whose window has constant extents, by others.
Expr convolution_of_phases(const OpCall& op, const Conv& conv, Builder& b);
// Returns the result of a convolution of volumes in the plain layouts by one of images; nullopt where that does not pay
// or the weight's planes are not known.
std::optional<Expr> convolution_of_planes(const OpCall& op, const Conv& conv, Builder& b);
// Does so for a volume whose window has one element in two dims side by side, by an image.
std::optional<Expr> convolution_of_merged_dims(const OpCall& op, const Conv& conv, Builder& b);
// Does so for groups of few channels that are read point by point, by a product.
std::optional<Expr> convolution_of_products(const OpCall& op, const Conv& conv, Builder& b);
// Does so where windows do not overlap and have few elements, by a convolution whose window has one element.
std::optional<Expr> convolution_of_patches(const OpCall& op, const Conv& conv, Builder& b);
// Does so for a sequence of few channels, by a convolution with a window of one element.
std::optional<Expr> convolution_of_elements(const OpCall& op, const Conv& conv, Builder& b);
// Returns the result of a convolution in the plain layouts without the taps that meet the padding only; nullopt where
// each meets the data.
template <int N>
std::optional<Expr> convolution_of_read_taps(const OpCall& op, const Conv& conv, Builder& b);

// The offers of convolutions over one and two spatial dims. (convolution_layouts.cc)
template <int N>
std::optional<LayoutOffer> layouts_of_convolution(const LayoutQuestion& q);

}  // namespace relaxc
