#include <algorithm>

#include "support/diagnostic.h"
#include "tir/edit/step.h"

namespace relaxc {

using namespace scheduling;

Blocks Schedule::merge_epilogue(BlockRV block_rv) {
  Step step(*this, PrimitiveId::k_merge_epilogue, block_rv);
  TreeNode* anchor = step.block(block_rv);
  // What depends on the anchor, and what these take from elsewhere.
  std::vector<TreeNode*> behind = consumers_of(anchor);
  for (size_t i = 0; i < behind.size(); ++i) {
    for (TreeNode* next : consumers_of(behind[i])) {
      if (std::find(behind.begin(), behind.end(), next) == behind.end()) behind.push_back(next);
    }
  }
  std::vector<TreeNode*> side;
  for (TreeNode* block : behind) {
    for (TreeNode* producer : producers_of(block)) {
      bool known = producer == anchor || std::find(behind.begin(), behind.end(), producer) != behind.end();
      if (!known && !depend(producer, anchor)) side.push_back(producer);
    }
  }
  side.insert(side.end(), behind.begin(), behind.end());
  for (TreeNode* block : side) {
    if (!is_alive(block) || is_output(block)) continue;
    BlockRV rv{make_var("b", object_type())};
    nodes_.emplace(rv.var.get(), block);
    try {
      compute_inline(rv);
    } catch (const CompileError&) {
      // A reduction, or of another form: it stays where it is.
    }
    nodes_.erase(rv.var.get());
  }
  std::vector<TreeNode*> left = consumers_of(anchor);
  return step.block_results(left);
}

}  // namespace relaxc
