#include "tir/primitives/merge_epilogue.h"

#include <algorithm>

#include "tir/primitives/compute_inline.h"

namespace relaxc {

using namespace scheduling;

Blocks MergeEpilogue::apply(Step& step) const {
  TreeNode* anchor = step.block(this->block);
  // These are the blocks that depend on the anchor, and their inputs from elsewhere.
  std::vector<TreeNode*> behind = consumers_of(anchor);
  for (size_t i = 0; i < behind.size(); ++i) {
    for (TreeNode* next : consumers_of(behind[i])) {
      if (!contains(behind, next)) behind.push_back(next);
    }
  }
  std::vector<TreeNode*> side;
  for (TreeNode* block : behind) {
    for (TreeNode* producer : producers_of(block)) {
      bool known = producer == anchor || contains(behind, producer);
      if (!known && !depend(producer, anchor)) side.push_back(producer);
    }
  }
  side.insert(side.end(), behind.begin(), behind.end());
  for (TreeNode* block : side) {
    if (!is_alive(block) || is_output(block)) continue;
    // A reduction, or a block of another form, stays where it is.
    step.try_apply(ComputeInline{step.variable_of(block)});
  }
  std::vector<TreeNode*> left = consumers_of(anchor);
  return step.block_results(left);
}

}  // namespace relaxc
