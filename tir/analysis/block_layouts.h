// The layouts of a block (ir/layout.h), which legalization states where they are not the plain order. They say which
// axis of the block, and which dim of an operand, has which role, so that rules need not guess from the form of
// indices.
#pragma once
#include "ir/layout.h"
#include "ir/module.h"

namespace relaxc {

// The axes of equal letters belong together: "NCHW16c" of the result of a convolution, in which O is C, "IHW16i" of its
// window, "NCHW16c" and "OIHW16i16o" of the image and the weight.
struct BlockLayouts {
  Layout spatial, reduced;  // of the block's axes of these kinds, in order
  std::vector<Layout> operands;

  // Returns the position of an outer part among the block's axes: "N", "C" of the spatial ones, "I" of the others.
  size_t spatial_axis(char axis) const { return spatial.outer_of(spatial.axes().find(axis)); }
  size_t reduced_axis(char axis) const { return spatial.dims().size() + reduced.outer_of(reduced.axes().find(axis)); }
  // Returns that of the innermost part; nullopt where the axis is not split.
  std::optional<size_t> lane_of_spatial(char axis) const;
  std::optional<size_t> lane_of_reduced(char axis) const;
};
// Returns the value of the annotation "layouts".
AttrList layouts_attr(const BlockLayouts& layouts);
// Returns nullopt for a block that has none, or other axes than they say.
std::optional<BlockLayouts> layouts_of(const Block& block);

}  // namespace relaxc
