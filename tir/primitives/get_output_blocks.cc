#include "tir/edit/step.h"

namespace relaxc {

using namespace scheduling;

Blocks Schedule::get_output_blocks(BlockRV scope_block) {
  Step step(*this, PrimitiveId::k_get_output_blocks, scope_block);
  std::vector<TreeNode*> result;
  for (TreeNode* child : step.block(scope_block)->children) {
    for (TreeNode* block : blocks_below(child)) {
      if (is_output(block)) result.push_back(block);
    }
  }
  return step.block_results(result);
}

}  // namespace relaxc
