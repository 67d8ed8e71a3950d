// The schedule of Winograd convolutions (passes/winograd.h) as primitives. Rows of patches in groups, whose transformed
// patches and products stay in the L2 cache:
//
//   for group:
//     for row, channel block: for x: pixels, columns (in registers);  for patch: patches    vectors along channels
//     for each of 36, panel of filters, tile of patches:              register tile, the next panel fetched ahead
//     for patch, filter block: rows (in registers), result            with the elementwise operators behind it
#pragma once
#include "tir/schedule/rule.h"
#include "tir/target.h"

namespace relaxc {

// For "nn.conv2d_winograd". Any extents; groups are whole, so that only widths and heights that four does not divide
// leave conditions. Groups run on all threads where there are many, else what is in a group does.
ScheduleRule winograd_rule();

// Patches in a register tile of products with weights in that many vectors of filters.
int64_t patches_in_tile(int64_t vectors, const Target& target);

}  // namespace relaxc
