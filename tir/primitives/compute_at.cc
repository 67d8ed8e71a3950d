#include "tir/primitives/compute_at.h"

#include <algorithm>

#include "tir/edit/move.h"
#include "tir/edit/parts.h"
#include "tir/primitives/compute_inline.h"

namespace relaxc {

using namespace scheduling;

namespace {

// Returns the blocks that read what the parts make, the parts themselves included.
Nodes consumers_of(const Nodes& parts) {
  Nodes result;
  for (const TreeNode* part : parts) {
    for (TreeNode* consumer : scheduling::consumers_of(part)) {
      if (!contains(result, consumer)) result.push_back(consumer);
    }
  }
  return result;
}

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
AxisRanges ranges_needed(const TreeNode* block, const TreeNode* loop, const Nodes& consumers, bool is_part) {
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
  // When an axis has few values, all of them are computed: computing fewer at a border would cost conditions. A part of
  // a buffer has them anyway.
  constexpr int64_t kFewValues = 8;
  for (size_t a = 0; a < ranges.size(); ++a) {
    const Range& domain = axes[a].domain;
    auto values = as_int(domain.extent);
    if (is_part || !ranges[a] || !values || *values > kFewValues || as_int(ranges[a]->extent)) continue;
    if (facts.can_prove_equal(ranges[a]->min, domain.min) && constant_above(ranges[a]->extent, facts) >= *values)
      ranges[a].reset();
  }
  return ranges;
}

// Removes conditions of the block that follow from its other ones.
void drop_implied(TreeNode* block) {
  std::vector<Expr> all = conjuncts(block->block->predicate);
  for (size_t i = all.size(); i-- > 0;) {
    Analyzer facts = block->tree->facts;
    for (size_t other = 0; other < all.size(); ++other) {
      if (other != i) facts.assume(all[other]);
    }
    if (facts.can_prove(all[i])) all.erase(all.begin() + static_cast<long>(i));
  }
  block->block->predicate = conjunction(all);
}

// Restricts one of several parts to the elements that the consumers need in an iteration of the loop. An iteration may
// need none of them.
void clip(TreeNode* part, const TreeNode* loop, const Nodes& consumers) {
  const Analyzer& facts = part->tree->facts;
  if (part->block->writes.size() != 1) return;
  const BufferRegion& write = part->block->writes[0];
  auto needed = region_at(consumers, write.buffer, AccessKind::kRead, loop);
  VarMap axes = values_of_axes(part);
  for (size_t d = 0; needed && d < write.ranges.size(); ++d) {
    if (!is_int(write.ranges[d].extent, 1)) continue;
    Expr place = substitute(write.ranges[d].min, axes);
    auto restrict_to = [&](const Expr& condition) { restrict_block(part, facts.simplify(condition)); };
    restrict_to(place >= cast_to((*needed)[d].min, dtype_of(place)));
    Expr end = facts.simplify(cast_to(end_of((*needed)[d]), dtype_of(place)));
    const Binary* either = end.as<Binary>();
    bool two = either && either->op == BinaryOp::kMin;  // of which one may be known
    if (two) restrict_to(place < either->a);
    restrict_to(place < (two ? either->b : end));
  }
  drop_implied(part);
}

}  // namespace

void ComputeAt::apply(Step& step) const {
  TreeNode* block = step.block(this->block);
  TreeNode* loop = destination<ComputeInline>(step, this->block, this->loop);
  if (!loop) return;
  Nodes parts = parts_with(block);
  // The parts of a concatenation move together: the step for another of them finds its block there.
  auto is_there = [&](const TreeNode* part) { return is_ancestor(loop, part); };
  if (parts.size() > 1 && std::ranges::all_of(parts, is_there)) return;
  for (TreeNode* part : parts) {
    step.require_all(part, not_movable, not_spatial_or_reduction, inputs_change);
    step.require(not_a_destination(loop, part), {part, loop});
    if (is_output(part)) step.refuse({part}, "block '{}' writes an output, which is needed outside of the loop", part);
    if (parts.size() > 1 && !precedes(part, loop))
      step.refuse({part, loop}, "block '{}' comes after loop '{}'", part, loop);
  }
  step.require(not_apart(parts), parts);
  Nodes consumers = consumers_of(parts);
  size_t position = position_before(step, block, loop, consumers, index);
  for (TreeNode* part : parts) {
    bool is_part = parts.size() > 1;
    AxisRanges ranges = ranges_needed(part, loop, consumers, is_part);
    move_block(*part->tree, part, loop, position++, ranges, preserve_unit_loops);
    if (is_part) clip(part, loop, consumers);
    refresh_regions_above(part);
  }
}

}  // namespace relaxc
