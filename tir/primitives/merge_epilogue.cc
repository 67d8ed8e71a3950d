#include "tir/primitives/merge_epilogue.h"

#include "tir/primitives/compute_inline.h"

namespace relaxc {

using namespace scheduling;

Blocks MergeEpilogue::apply(Step& step) const {
  TreeNode* anchor = step.block(this->block);
  // These are the blocks that depend on the anchor, and their inputs from elsewhere.
  Nodes behind = consumers_of(anchor), inlined;
  for (size_t i = 0; i < behind.size(); ++i) {
    for (TreeNode* next : consumers_of(behind[i])) {
      if (!contains(behind, next)) behind.push_back(next);
    }
  }
  for (TreeNode* block : behind) {
    for (TreeNode* producer : producers_of(block)) {
      if (producer != anchor && !contains(behind, producer) && !depend(producer, anchor)) inlined.push_back(producer);
    }
  }
  inlined.insert(inlined.end(), behind.begin(), behind.end());
  for (TreeNode* block : inlined) {
    if (!is_alive(block) || is_output(block)) continue;
    // A reduction, or a block of another form, stays where it is.
    step.try_apply(ComputeInline{step.variable_of(block)});
  }
  return step.block_results(consumers_of(anchor));
}

}  // namespace relaxc
