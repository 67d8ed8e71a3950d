#include "tir/primitives/reverse_compute_at.h"

#include <algorithm>

#include "tir/edit/move.h"
#include "tir/edit/parts.h"
#include "tir/primitives/reverse_compute_inline.h"

namespace relaxc {

using namespace scheduling;

namespace {

// A reduction must take each value once, and the first one of an element, which has the init, before the others. So the
// loops of the nest, from the outermost one that drives a reduce axis on, must be serial, give other values in each
// iteration when the axes have these ranges, and not drive spatial axes as well.
Refusal not_summable(const TreeNode* block, const AxisRanges& ranges, const Nodes& nest) {
  std::vector<IterVar> axes = block->axes();
  std::vector<Expr> values;
  Nodes loops;
  for (size_t a = 0; a < ranges.size(); ++a) {
    const Range& range = ranges[a].value_or(axes[a].domain);
    loops.push_back(block->tree->new_loop(axes[a].var->name, range.extent));
    axes[a].value = range.min + loops.back()->var();
    values.push_back(axes[a].value);
  }
  Nodes in_order = nest;
  in_order.insert(in_order.end(), loops.begin(), loops.end());
  bool reduces = false;
  for (TreeNode* loop : nest) {
    ForKind kind = loop->loop->kind;
    Drives driven = drives(loop, axes);
    if (is_int(loop->loop->extent, 0))
      return message("loop '{}' never runs, and the init of block '{}' would not, either", loop, block);
    if (driven.spatial && driven.reduce)
      return message("loop '{}' would drive spatial and reduce axes of block '{}'", loop, block);
    if (driven.reduce && kind != ForKind::kSerial && kind != ForKind::kUnrolled)
      return message("loop '{}', which is not serial, would drive a reduce axis of block '{}'", loop, block);
    reduces = reduces || driven.reduce;
    if (reduces) loops.push_back(loop);
  }
  if (block->in_order && !comes_in_order(block, values, in_order))
    return message("the result of block '{}' depends on the order of its reduce loops, which would change", block);
  std::string why;
  auto map = find_injective_map(values, ranges_of(loops), {}, block->tree->facts, &why);
  if (map && !reduces_downwards(*map, axes, &why)) return std::nullopt;
  return message("reduction '{}' would take values again: {}", block, why);
}

// Returns the block's producers in the loop, in program order. Refuses results that an iteration leaves incomplete.
Nodes producers_inside(Step& step, TreeNode* block, TreeNode* loop) {
  Nodes inside;
  for (TreeNode* producer : producers_of(block)) {
    if (!is_ancestor(loop, producer)) {
      if (!precedes(producer, loop))
        step.refuse({producer, loop}, "producer '{}' comes after loop '{}'", producer, loop);
      continue;
    }
    // Values that are missing from its axes are not computed there, and would not be consumed.
    if (producer->partial)
      step.refuse({producer, loop}, "producer '{}' does not run over all of its axes' domains", producer);
    if (producer->carried) step.refuse({producer}, "producer '{}' takes what an earlier iteration made", producer);
    if (auto driven = find_unfinished(producer, loop))
      step.refuse({producer, loop},
                  "loop '{}' or one around it drives axis '{}' of producer '{}', whose results are not final there",
                  loop, driven->axis->var, producer);
    inside.push_back(producer);
  }
  if (inside.empty()) step.refuse({block, loop}, "no producer of block '{}' is in loop '{}'", block, loop);
  return inside;
}

Nodes makers_of(Nodes blocks, const Buffer& buffer) {
  std::erase_if(blocks, [&](const TreeNode* block) { return !write_of(block, buffer); });
  return blocks;
}

// Returns the block's axes in the ranges, or in their domains.
RunningVars running_axes(const TreeNode* block, const AxisRanges& ranges) {
  RunningVars vars;
  for (size_t a = 0; a < block->axes().size(); ++a) {
    const IterVar& axis = block->axes()[a];
    vars.emplace(axis.var.get(), a < ranges.size() ? ranges[a].value_or(axis.domain) : axis.domain);
  }
  return vars;
}

std::vector<Range> region_over(const TreeNode* block, const BufferRegion& read, const RunningVars& vars) {
  std::vector<Range> result;
  for (size_t d = 0; d < read.ranges.size(); ++d)
    result.push_back(range_over(read.ranges[d], buffer_type(read.buffer).shape[d], vars, block->tree->facts));
  return result;
}

// Returns whether the axes have no part in where the range is, so that it restricts none of them.
bool is_fixed(const Range& range, const TreeNode* block) {
  return !mentions_axes(range.min, block) && !mentions_axes(range.extent, block);
}

// Returns the consumer's axes for the part of the buffer that its producers make in an iteration of the loop.
std::optional<AxisRanges> axes_for(const TreeNode* block, const Buffer& buffer, const TreeNode* loop,
                                   const Nodes& makers, std::string& why) {
  const BufferRegion& read = *read_of(block, buffer);
  bool exact = std::ranges::all_of(
      read.ranges, [&](const Range& range) { return is_int(range.extent, 1) || is_fixed(range, block); });
  auto made = written_at(makers, buffer, loop);
  AxisRanges ranges = made ? solve_axes(block, read.ranges, *made, &exact) : AxisRanges();
  if (!made) {
    why = message("cannot prove that an iteration of loop '{}' makes a box of '{}'", loop, buffer);
  } else if (!exact) {
    why = message("block '{}' reads '{}' at more than one place for each element", block, buffer);
  } else if (has_other_elements(block, read)) {
    why =
        message("block '{}' has elements for which it does not read '{}', and which no iteration of loop '{}' computes",
                block, buffer, loop);
  } else if (!writes_all(makers, buffer, nullptr, region_over(block, read, running_axes(block, {})))) {
    // The block takes all values of its axes, of which bounds over its loops say less where these end at a minimum.
    why = message("cannot prove that block '{}' reads only elements of '{}' that its producers write", block, buffer);
  } else {
    return ranges;
  }
  return std::nullopt;
}

// Refuses when the block, in these ranges, reads more than an iteration has made: of buffers other than `solved`, and
// of that one where it reads several elements at each point.
Refusal reads_too_much(const TreeNode* block, const Buffer& solved, const AxisRanges& ranges, const TreeNode* loop,
                       const Nodes& producers) {
  RunningVars vars = running_axes(block, ranges);
  for (const BufferRegion& other : block->block->reads) {
    Nodes makers = makers_of(producers, other.buffer);
    bool is_exact = std::ranges::all_of(other.ranges, [](const Range& range) { return is_int(range.extent, 1); });
    if ((same_node(other.buffer, solved) && is_exact) || makers.empty()) continue;
    if (!writes_all(makers, other.buffer, loop, region_over(block, other, vars)))
      return message("an iteration of loop '{}' is not known to have made all of '{}' that block '{}' reads", loop,
                     other.buffer, block);
  }
  return std::nullopt;
}

// Solves the axes from the new part of the first buffer for which the other buffers hold enough.
AxisRanges ranges_in(Step& step, TreeNode* block, TreeNode* loop, const Nodes& producers) {
  std::string why;
  for (const BufferRegion& read : block->block->reads) {
    Nodes makers = makers_of(producers, read.buffer);
    if (makers.empty()) continue;
    auto ranges = axes_for(block, read.buffer, loop, makers, why);
    if (!ranges) continue;
    Refusal refusal = reads_too_much(block, read.buffer, *ranges, loop, producers);
    if (!refusal) return *ranges;
    why = *refusal;
  }
  step.refuse({block, loop}, why);
}

// Returns a position among the loop's children behind all of the producers.
size_t position_behind(Step& step, TreeNode* loop, const Nodes& producers, int64_t index) {
  size_t last = 0;
  for (TreeNode* producer : producers) last = std::max(last, child_towards(loop, producer)->position() + 1);
  if (index < 0) return index == -2 ? last : loop->children.size();
  auto position = static_cast<size_t>(index);
  if (position < last || position > loop->children.size())
    step.refuse({loop}, "position {} is not between the last producer, {}, and the end", index, last);
  return position;
}

void require_behind(Step& step, TreeNode* block, TreeNode* loop) {
  if (precedes(block, loop)) step.refuse({block, loop}, "block '{}' comes before loop '{}'", block, loop);
  for (const BufferRegion& write : block->block->writes) {
    for (TreeNode* reader : readers(scope_of(block), write.buffer)) {
      if (precedes(reader, block))
        step.refuse({reader, block}, "block '{}' reads '{}' before '{}' writes it", reader, write.buffer, block);
    }
  }
}

}  // namespace

void ReverseComputeAt::apply(Step& step) const {
  TreeNode* block = step.block(this->block);
  TreeNode* loop = destination<ReverseComputeInline>(step, this->block, this->loop);
  if (!loop) return;
  step.require_all(block, not_movable, not_spatial_or_reduction);
  step.require(not_apart_from_others(block), block);
  step.require(not_a_destination(loop, block), {block, loop});
  require_behind(step, block, loop);
  Nodes producers = producers_inside(step, block, loop);
  AxisRanges ranges = ranges_in(step, block, loop, producers);
  if (block->block->init) step.require(not_summable(block, ranges, loops_down_to(loop)), block);
  size_t position = position_behind(step, loop, producers, index);
  move_block(*block->tree, block, loop, position, ranges, preserve_unit_loops);
  refresh_regions_above(block);
}

}  // namespace relaxc
