// How the axes of a block follow from the loops around it (tir/analysis/iter_map.h).
#pragma once
#include "tir/analysis/iter_map.h"
#include "tir/edit/tree.h"

namespace relaxc::scheduling {

std::optional<IterMap> find_iter_map(const std::vector<Expr>& values, const std::vector<TreeNode*>& loops,
                                     const Analyzer& facts, std::string* why = nullptr);
// The block's axes against the loops around it; kept in TreeNode::affine.
bool has_affine_bindings(TreeNode* block, std::string* why = nullptr);
// The same for some of the loops, the others standing still.
bool has_affine_bindings(const TreeNode* block, const std::vector<TreeNode*>& loops, std::string* why = nullptr);

}  // namespace relaxc::scheduling
