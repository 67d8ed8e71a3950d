#include "tir/primitives/get_output_blocks.h"

namespace relaxc {

using namespace scheduling;

Blocks GetOutputBlocks::apply(Step& step) const {
  Nodes blocks = blocks_inside(step.block(scope_block));
  std::erase_if(blocks, [](const TreeNode* block) { return !is_output(block); });
  return step.block_results(blocks);
}

}  // namespace relaxc
