// Decides whether the iterations of a reduction may come in another order.
#pragma once
#include "tir/edit/tree.h"

namespace relaxc::scheduling {

// Returns true unless every value that the block writes is known to be the same in every order of its reduce iterations
// (sums of floats count as that): a sum, product, max, min or the like, or the position of the largest or smallest
// element, if the position decides between equal elements: `x > best or x == best and i < at`.
bool needs_order(const Block& block);
// Returns whether the loops bring the block's reduce axes through their values in lexicographic order, as new loops
// would.
bool comes_in_order(const TreeNode* block);
// Does the same for other values of the axes, in other loops (outermost first).
bool comes_in_order(const TreeNode* block, const std::vector<Expr>& axis_values, const Nodes& loops);

}  // namespace relaxc::scheduling
