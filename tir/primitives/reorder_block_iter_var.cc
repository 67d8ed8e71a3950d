#include "tir/primitives/reorder_block_iter_var.h"

#include <algorithm>
#include <numeric>

namespace relaxc {

using namespace scheduling;

void ReorderBlockIterVar::apply(Step& step) const {
  TreeNode* block = step.block(this->block);
  std::vector<IterVar>& axes = block->axes();
  Ints sorted = new_order;
  std::ranges::sort(sorted);
  Ints all(axes.size());
  std::iota(all.begin(), all.end(), 0);
  if (sorted != all) step.refuse({block}, "the new order is no permutation of {} axes", axes.size());
  std::vector<IterVar> reordered;
  for (int64_t i : new_order) reordered.push_back(axes[static_cast<size_t>(i)]);
  axes = std::move(reordered);
}

}  // namespace relaxc
