#include "tir/edit/step.h"

namespace relaxc {

using namespace scheduling;

Blocks Schedule::get_child_blocks(Place block_or_loop) {
  Step step(*this, PrimitiveId::k_get_child_blocks, block_or_loop);
  std::vector<TreeNode*> result;
  for (TreeNode* child : step.place(block_or_loop)->children) {
    for (TreeNode* block : blocks_below(child)) result.push_back(block);
  }
  return step.block_results(result);
}

}  // namespace relaxc
