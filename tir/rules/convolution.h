// The schedule of convolutions over images in channel blocks (passes/block_channels.cc) as primitives: a register tile
// of pixels x filters, filters in vector lanes; the elementwise blocks behind are applied to each tile.
//
// No extent needs to divide: rows and columns of pixels that do not fill a tile are tiles of their own size, also where
// the image's extents are symbolic. The blocks of channels fill vectors, which is what makes them blocks.
#pragma once
#include "tir/schedule/rule.h"
#include "tir/target.h"

namespace relaxc {

// The rule for "nn.conv2d".
ScheduleRule convolution_rule();

}  // namespace relaxc
