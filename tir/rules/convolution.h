// Direct convolutions over images in channel blocks: what the schedule and its formulas share.
#pragma once
#include "tir/rules/cost_model.h"
#include "tir/rules/lanes.h"

namespace relaxc {

struct ConvolutionTile {
  int64_t vectors;        // blocks of filters side by side; divides their number
  int64_t rows, columns;  // of pixels
};

// The convolution's block, and the roles of its axes and operands, by its layouts.
struct Convolution : Stage {
  size_t image_axis, filters, y, x, lane;  // of the result; a block of filters fills the lanes
  size_t channels, window_x;               // of the window
  std::optional<size_t> channel_lane;      // where channels are in blocks
  std::optional<size_t> group;             // of the window: the elements whose products an instruction sums
  std::vector<size_t> window;              // all axes of the window, in order
  size_t image_y, image_x;                 // dims of the image
  bool depthwise, has_border;
  Ref<BufferLoad> image, weight;
  std::string intrin = {};     // that instruction
  int constants = 0;           // vectors that it reads beside the sum and the operands
  bool copies_pixels = false;  // those that a window of one pixel reads with a stride, into dense memory
  bool is_one_row = false;     // where rows of pixels do not matter: all of them are one row, which lines divide

  bool has_known_pixels() const { return extent(y) && extent(x); }
};

// Pixels as rows of so many, of which a tile may take several.
struct Pixels {
  std::optional<int64_t> rows, columns;
  int64_t most_rows = cost_model::kMostPixelRows;
};

// How a convolution is scheduled.
struct ConvolutionPlan {
  ConvolutionTile tile;
  Pixels pixels;
  int64_t tiles_of_line;  // of one row of unknown length; 0: it is none
  int64_t parts;          // of the channels
  bool padding_by_conditions, unrolls_epilogue, streams_weights, streams_image;
};

// Returns whether a padded copy of one block of channels is made of the rows of pixels that a tile reads, each time
// again: they stay in the L1 cache, and threads share the rows. Of a few pixels it is made once.
bool copies_by_row(const Convolution& conv);
// Takes the decisions about a convolution.
ConvolutionPlan choose_convolution(const Convolution& conv, const Target& target, Decisions& decisions);

}  // namespace relaxc
