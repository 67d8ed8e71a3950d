#include "tir/primitives/get_output_blocks.h"

namespace relaxc {

using namespace scheduling;

Blocks GetOutputBlocks::apply(Step& step) const {
  std::vector<TreeNode*> result;
  for (TreeNode* child : step.block(scope_block)->children) {
    for (TreeNode* block : blocks_below(child)) {
      if (is_output(block)) result.push_back(block);
    }
  }
  return step.block_results(result);
}

}  // namespace relaxc
