#include "tir/primitives/get_child_blocks.h"

namespace relaxc {

using namespace scheduling;

Blocks GetChildBlocks::apply(Step& step) const {
  std::vector<TreeNode*> result;
  for (TreeNode* child : step.place(block_or_loop)->children) {
    for (TreeNode* block : blocks_below(child)) result.push_back(block);
  }
  return step.block_results(result);
}

}  // namespace relaxc
