// Decides whether a block computes what a tensor intrinsic describes, and on which parts of which buffers.
#pragma once
#include "tir/edit/tree.h"
#include "tir/intrin/tensor_intrin.h"

namespace relaxc::scheduling {

struct IntrinMatch {
  std::vector<BufferRegion> regions;        // of each buffer param of the intrinsic
  std::vector<BufferRegion> reads, writes;  // of the block that calls it
};
// Structure is compared: the same loops, axes and statements, buffers at an offset that inner loops do not change.
std::optional<IntrinMatch> match_intrin(const TreeNode& block, const TensorIntrin& intrin, std::string* why);

}  // namespace relaxc::scheduling
