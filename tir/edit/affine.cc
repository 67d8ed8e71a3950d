#include "tir/edit/affine.h"

namespace relaxc::scheduling {

std::optional<IterMap> find_iter_map(const std::vector<Expr>& values, const Nodes& loops, const Analyzer& facts,
                                     std::string* why) {
  std::vector<LoopRange> ranges;
  for (const TreeNode* loop : loops) ranges.push_back({loop->var(), loop->range()});
  return relaxc::find_iter_map(values, ranges, facts, why);
}

bool has_affine_bindings(const TreeNode* block, const Nodes& loops, std::string* why) {
  std::optional<IterMap> map = find_iter_map(axis_values(block), loops, block->tree->facts, why);
  return map && is_injective(*map, conjuncts(block->block->predicate), block->tree->facts, why);
}

bool has_affine_bindings(TreeNode* block, std::string* why) {
  if (!block->affine || (!*block->affine && why)) block->affine = has_affine_bindings(block, loops_above(block), why);
  return *block->affine;
}

}  // namespace relaxc::scheduling
