#include "tir/edit/regions.h"

namespace relaxc::scheduling {

RunningVars running(const Nodes& loops) {
  RunningVars result;
  for (const TreeNode* loop : loops) result.emplace(loop->var().get(), loop->range());
  return result;
}

void widen(std::vector<Range>& region, const std::vector<Range>& more, const Buffer& buffer, const Analyzer& facts) {
  for (size_t d = 0; d < region.size(); ++d) region[d] = hull(region[d], more[d], buffer_type(buffer).shape[d], facts);
}

std::vector<Range> region_at(const TreeNode* block, const BufferRegion& region, const TreeNode* below) {
  VarMap axes = values_of_axes(block);
  RunningVars vars = running(loops_above(block, below));
  const Analyzer& facts = block->tree->facts;
  std::vector<Range> result;
  for (size_t d = 0; d < region.ranges.size(); ++d) {
    const Expr& dim = buffer_type(region.buffer).shape[d];
    Range range = substitute(region.ranges[d], axes);
    result.push_back(range_over(range, dim, vars, facts));
    // Under a predicate the loops go beyond the axes' domains. Where the block runs, a single element is inside.
    if (!block->block->predicate || is_int(result.back().extent, 1)) continue;
    result.back() = below_conditions(result.back(), range, conjuncts(block->block->predicate), vars, facts);
    RunningVars domains = vars;  // which a block may name beside its axes
    for (const IterVar& axis : block->axes()) domains.emplace(axis.var.get(), axis.domain);
    Range most = range_over(region.ranges[d], dim, domains, facts);
    if (!covers(most, result.back(), facts)) result.back() = intersection(most, result.back(), facts);
  }
  return result;
}

std::optional<std::vector<Range>> region_at(const Nodes& blocks, const Buffer& buffer, AccessKind kind,
                                            const TreeNode* below) {
  std::optional<std::vector<Range>> result;
  for (const TreeNode* block : blocks) {
    for (const BufferRegion& region : kind == AccessKind::kRead ? block->block->reads : block->block->writes) {
      if (!same_node(region.buffer, buffer)) continue;
      std::vector<Range> ranges = region_at(block, region, below);
      if (result) widen(*result, ranges, buffer, block->tree->facts);
      if (!result) result = std::move(ranges);
    }
  }
  return result;
}

}  // namespace relaxc::scheduling
