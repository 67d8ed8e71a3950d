// Block axes as affine functions of the loops around the block (tir/analysis/iter_map.h; TVM's affine bindings).
#pragma once
#include "tir/analysis/iter_map.h"
#include "tir/edit/tree.h"

namespace relaxc::scheduling {

std::optional<IterMap> find_iter_map(const std::vector<Expr>& values, const Nodes& loops, const Analyzer& facts,
                                     std::string* why = nullptr);
// Returns whether the block's axes are affine in the loops around it; the result is kept in TreeNode::affine.
bool has_affine_bindings(TreeNode* block, std::string* why = nullptr);
// Does the same for some of the loops; the other loops' variables are fixed.
bool has_affine_bindings(const TreeNode* block, const Nodes& loops, std::string* why = nullptr);

}  // namespace relaxc::scheduling
