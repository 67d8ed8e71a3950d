#include <algorithm>

#include "tir/edit/step.h"

namespace relaxc {

using namespace scheduling;

void Schedule::reorder_block_iter_var(BlockRV block_rv, Ints new_order) {
  Step step(*this, PrimitiveId::k_reorder_block_iter_var, block_rv, new_order);
  TreeNode* block = step.block(block_rv);
  std::vector<IterVar>& axes = block->block->iter_vars;
  Ints sorted = new_order;
  std::sort(sorted.begin(), sorted.end());
  bool permutes = sorted.size() == axes.size();
  for (size_t i = 0; i < sorted.size(); ++i) permutes = permutes && sorted[i] == static_cast<int64_t>(i);
  if (!permutes) step.refuse({block}, fmt::format("the new order is no permutation of {} axes", axes.size()));
  std::vector<IterVar> reordered;
  for (int64_t i : new_order) reordered.push_back(axes[static_cast<size_t>(i)]);
  axes = std::move(reordered);
  step.done();
}

}  // namespace relaxc
