#include "tir/primitives/compute_at.h"

#include <algorithm>

#include "tir/edit/move.h"
#include "tir/primitives/compute_inline.h"

namespace relaxc {

using namespace scheduling;

namespace {

// Returns a position among the loop's children before all of the consumers.
size_t position_before(Step& step, TreeNode* block, TreeNode* loop, const Nodes& consumers, int64_t index) {
  if (consumers.empty()) step.refuse({block}, "block '{}' has no consumers", block);
  size_t first = loop->children.size();
  for (TreeNode* consumer : consumers) {
    if (!is_ancestor(loop, consumer))
      step.refuse({consumer, loop}, "consumer '{}' is not in loop '{}'", consumer, loop);
    if (consumer->carried) step.refuse({consumer}, "consumer '{}' takes what an earlier iteration made", consumer);
    first = std::min(first, child_towards(loop, consumer)->position());
  }
  if (index < -2) step.refuse({loop}, "position {}; -1 is the last possible, -2 the first", index);
  if (index < 0) return index == -2 ? 0 : first;
  if (static_cast<size_t>(index) > first)
    step.refuse({loop}, "position {} is behind a consumer, which is at {}", index, first);
  return static_cast<size_t>(index);
}

// Returns the ranges that the consumers need in an iteration of the loop.
AxisRanges ranges_needed(const TreeNode* block, const TreeNode* loop, const Nodes& consumers) {
  const std::vector<IterVar>& axes = block->axes();
  const Analyzer& facts = block->tree->facts;
  AxisRanges ranges(axes.size());
  for (const BufferRegion& write : block->block->writes) {
    auto needed = region_at(consumers, write.buffer, AccessKind::kRead, loop);
    if (!needed) continue;
    AxisRanges asked = solve_axes(block, write.ranges, *needed);
    bool is_first_buffer = &write == &block->block->writes[0];
    for (size_t a = 0; a < ranges.size(); ++a) {
      // With several results the axes must serve all of them.
      if (is_first_buffer) {
        ranges[a] = asked[a];
      } else if (ranges[a] && asked[a]) {
        ranges[a] = hull(*ranges[a], *asked[a], axes[a].domain.extent, facts);
      } else {
        ranges[a].reset();
      }
    }
  }
  // When an axis has few values, all of them are computed: computing fewer at a border would cost conditions.
  constexpr int64_t kFewValues = 8;
  for (size_t a = 0; a < ranges.size(); ++a) {
    const Range& domain = axes[a].domain;
    auto values = as_int(domain.extent);
    if (!ranges[a] || !values || *values > kFewValues || as_int(ranges[a]->extent)) continue;
    if (facts.can_prove_equal(ranges[a]->min, domain.min) && constant_above(ranges[a]->extent, facts) >= *values)
      ranges[a].reset();
  }
  return ranges;
}

}  // namespace

void ComputeAt::apply(Step& step) const {
  TreeNode* block = step.block(this->block);
  TreeNode* loop = destination<ComputeInline>(step, this->block, this->loop);
  if (!loop) return;
  step.require_all(block, not_movable, not_complete_or_reduction, inputs_change);
  step.require(not_a_destination(loop, block), {block, loop});
  if (is_output(block)) step.refuse({block}, "block '{}' writes an output, which is needed outside of the loop", block);
  Nodes consumers = consumers_of(block);
  size_t position = position_before(step, block, loop, consumers, index);
  move_block(*block->tree, block, loop, position, ranges_needed(block, loop, consumers), preserve_unit_loops);
  refresh_regions_above(block);
}

}  // namespace relaxc
