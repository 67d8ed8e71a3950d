// Tensor programs over images, for images whose channels lie in blocks (passes/block_channels.cc).
#pragma once
#include <variant>
#include <vector>

#include "ir/kernel_call.h"

namespace relaxc {

// How the images of a call [N, C, H, W] lie: as [N, C / block, H, W, block], where the last block may be padded.
struct ImageBlocks {
  std::vector<bool> are_blocked;  // by tensor of the call
  int64_t channels, block;
};
// Returns the program that computes the same elements where these images, and the results, lie in blocks, or why there
// is none. A program can be changed so whose blocks store elements [n, c, h, w] of its results, or of images that it
// keeps to itself, from the same elements of these images and of what it has stored. Others are read where they lie.
std::variant<PrimFuncRef, std::string> blocked_program(const KernelCall& call, const PrimFuncRef& program,
                                                       const ImageBlocks& blocks);

}  // namespace relaxc
