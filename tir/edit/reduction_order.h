// Whether the iterations of a reduction may come in another order.
#pragma once
#include "tir/edit/tree.h"

namespace relaxc::scheduling {

// True unless each thing that the block writes is known to be the same in every order of its reduce iterations (sums of
// floats count as that): a sum, product, largest, smallest or the like, or the position of the largest or smallest
// element if of equal ones the position decides: `x > best or x == best and i < at`.
bool needs_order(const Block& block);
// The loops bring the block's reduce axes through their values in lexicographic order, as new loops over them would.
bool comes_in_order(const TreeNode* block);
// The same for other values of the axes, in other loops (outermost first).
bool comes_in_order(const TreeNode* block, const std::vector<Expr>& axis_values, const std::vector<TreeNode*>& loops);

}  // namespace relaxc::scheduling
