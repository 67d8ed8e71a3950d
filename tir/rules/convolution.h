// The schedule of convolutions over images in channel blocks (passes/block_channels.cc) as primitives: a register tile
// of pixels x filters, filters in vector lanes; the elementwise blocks behind are applied to each tile.
//
// No extent needs to divide: rows and columns of pixels that do not fill a tile are tiles of their own size, also where
// the image's extents are symbolic. The blocks of channels fill vectors, which is what makes them blocks.
#pragma once
#include "tir/schedule/rule.h"
#include "tir/target.h"

namespace relaxc {

struct ConvolutionTile {
  int64_t vectors;        // blocks of filters side by side; divides their number
  int64_t rows, columns;  // of pixels
};
// The tile with the fewest cycles for an image of that many pixels (nullopt: symbolic); see the cost in the source.
ConvolutionTile choose_convolution_tile(int64_t filter_blocks, std::optional<int64_t> height,
                                        std::optional<int64_t> width, bool depthwise, const Target& target);

// The rule for "nn.conv2d"; other convolutions do not fit it.
ScheduleRule convolution_rule(const Target& target);

}  // namespace relaxc
