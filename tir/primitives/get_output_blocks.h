#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct GetOutputBlocks {
  BlockRV scope_block;

  static constexpr PrimitiveInfo kInfo{"get_output_blocks",
                                       "returns the blocks of a scope that write buffers which are seen outside of it"};
  static constexpr auto fields() {
    return list(required<&GetOutputBlocks::scope_block>("the block that is the scope, such as \"root\""));
  }
  Blocks apply(scheduling::Step& step) const {
    scheduling::Nodes blocks = blocks_inside(step.block(scope_block));
    std::erase_if(blocks, [](const scheduling::TreeNode* block) { return !is_output(block); });
    return step.block_results(blocks);
  }
};

}  // namespace relaxc
