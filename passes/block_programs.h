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
// Returns the program that computes the same elements where these images, and the result, lie in blocks, or why there
// is none. A program of one block can be changed so that stores element [n, c, h, w] from the same element of these
// images. Others are read where they lie.
std::variant<PrimFuncRef, std::string> blocked_program(const KernelCall& call, const PrimFuncRef& program,
                                                       const ImageBlocks& blocks);

}  // namespace relaxc
