#include <algorithm>

#include "tir/edit/affine.h"
#include "tir/edit/move.h"
#include "tir/edit/reduction_order.h"
#include "tir/edit/written.h"

namespace relaxc {

using namespace scheduling;

namespace {

// The consumer's axes for what these writers have made of the buffer in one iteration; refuses by returning why.
std::variant<AxisRanges, std::string> axes_for(const TreeNode* block, const Buffer& buffer, const TreeNode* loop,
                                               const std::vector<TreeNode*>& makers) {
  const BufferRegion& read = *read_of(block, buffer);
  bool exact = true;
  auto made = written_at(makers, buffer, loop);
  if (!made)
    return fmt::format("what an iteration of loop '{}' makes of '{}' is not known to be a box", loop->loop->var->name,
                       buffer->name);
  AxisRanges ranges = solve_axes(block, read.ranges, *made, &exact);
  if (!exact)
    return fmt::format("block '{}' reads '{}' at more than one place for each element", block->block->name,
                       buffer->name);
  for (const Range& range : read.ranges) {
    if (!is_int(range.extent, 1))
      return fmt::format("block '{}' reads '{}' at more than one place for each element", block->block->name,
                         buffer->name);
  }
  if (!writes_all(makers, buffer, nullptr, region_at(block, read, nullptr)))
    return fmt::format("block '{}' is not known to read only what its producers write of '{}'", block->block->name,
                       buffer->name);
  return ranges;
}

// A reduction is to take each value once, those of an element's first reduce iteration before the others: with these
// ranges in each iteration of the nest, the loops from the first one that moves a reduce axis on must give other values
// each time, one after the other, and none may move spatial axes, too.
Refusal not_summable(const TreeNode* block, const AxisRanges& ranges, const std::vector<TreeNode*>& nest) {
  std::vector<Expr> values;
  std::vector<TreeNode*> loops;
  for (size_t a = 0; a < ranges.size(); ++a) {
    const IterVar& axis = block->block->iter_vars[a];
    const Range& range = ranges[a].value_or(axis.domain);
    loops.push_back(block->tree->new_loop(axis.var->name, range.extent));
    values.push_back(range.min + loops.back()->loop->var);
  }
  bool reduces = false;
  for (TreeNode* loop : nest) {
    if (is_int(loop->loop->extent, 0))
      return fmt::format("loop '{}' never runs, and the init of block '{}' would not, either", loop->loop->var->name,
                         block->block->name);
    bool moves[2] = {false, false};
    for (size_t a = 0; a < values.size(); ++a)
      moves[block->block->iter_vars[a].kind == IterKind::kReduce] |= mentions(values[a], loop->loop->var);
    if (moves[0] && moves[1])
      return fmt::format("loop '{}' would drive spatial and reduce axes of block '{}'", loop->loop->var->name,
                         block->block->name);
    ForKind kind = loop->loop->kind;
    if (moves[1] && kind != ForKind::kSerial && kind != ForKind::kUnrolled)
      return fmt::format("loop '{}', which is not serial, would drive a reduce axis of block '{}'",
                         loop->loop->var->name, block->block->name);
    reduces = reduces || moves[1];
    if (reduces) loops.push_back(loop);
  }
  if (block->in_order) {
    std::vector<TreeNode*> in_order = nest;
    in_order.insert(in_order.end(), loops.begin(), loops.begin() + static_cast<long>(values.size()));
    if (!comes_in_order(block, values, in_order))
      return fmt::format("the result of block '{}' depends on the order of its reduce loops, which would change",
                         block->block->name);
  }
  std::string why;
  std::optional<IterMap> map = find_iter_map(values, loops, block->tree->facts, &why);
  if (map && is_injective(*map, {}, block->tree->facts, &why)) return std::nullopt;
  return fmt::format("reduction '{}' would take values again: {}", block->block->name, why);
}

}  // namespace

void Schedule::reverse_compute_at(BlockRV block_rv, LoopRV loop_rv, bool preserve_unit_loops, int64_t index) {
  Step step(*this, PrimitiveId::k_reverse_compute_at, block_rv, loop_rv, preserve_unit_loops, index);
  TreeNode* block = step.block(block_rv);
  // A sampled location may be nowhere else, or in the other block's statement.
  TreeNode* sampled = step.node(loop_rv.var);
  if (sampled == block->tree->root()) return step.done();
  if (sampled == block && !same_node(loop_rv.var, block_rv.var)) {
    reverse_compute_inline(block_rv);
    return step.done();
  }
  TreeNode* loop = step.loop(loop_rv);
  const std::string& name = block->block->name;
  const std::string& loop_name = loop->loop->var->name;
  step.require(not_movable(block), block);
  step.require(not_complete_or_reduction(block), block);
  if (scope_of(block) != scope_of(loop))
    step.refuse({block, loop}, fmt::format("block '{}' and loop '{}' are in different blocks", name, loop_name));
  if (is_ancestor(loop, block))
    step.refuse({block, loop}, fmt::format("block '{}' is in loop '{}' already", name, loop_name));
  if (precedes(block, loop))
    step.refuse({block, loop}, fmt::format("block '{}' comes before loop '{}'", name, loop_name));
  for (const BufferRegion& write : block->block->writes) {
    for (TreeNode* reader : readers(scope_of(block), write.buffer)) {
      if (precedes(reader, block))
        step.refuse({reader, block}, fmt::format("block '{}' reads '{}' before '{}' writes it", reader->block->name,
                                                 write.buffer->name, name));
    }
  }
  std::vector<TreeNode*> inside;
  size_t last = 0;
  std::vector<TreeNode*> outer{loop};
  for (TreeNode* at : loops_above(loop)) outer.push_back(at);
  for (TreeNode* producer : producers_of(block)) {
    if (!is_ancestor(loop, producer)) {
      if (!precedes(producer, loop))
        step.refuse({producer, loop},
                    fmt::format("producer '{}' comes after loop '{}'", producer->block->name, loop_name));
      continue;
    }
    // What is left out of its axes is not made there, and would not be consumed.
    if (producer->partial)
      step.refuse({producer, loop},
                  fmt::format("producer '{}' does not run over all of its axes' domains", producer->block->name));
    if (producer->carried)
      step.refuse({producer}, fmt::format("producer '{}' takes what an earlier iteration made", producer->block->name));
    // Results are final once the reduce loops are done.
    for (const IterVar& axis : producer->block->iter_vars) {
      if (axis.kind != IterKind::kSpatial && mentions_any(axis.value, outer))
        step.refuse({producer, loop},
                    fmt::format("loop '{}' or one around it drives axis '{}' of producer '{}', whose results are not "
                                "final there",
                                loop_name, axis.var->name, producer->block->name));
    }
    inside.push_back(producer);
    last = std::max(last, child_towards(loop, producer)->position() + 1);
  }
  if (inside.empty())
    step.refuse({block, loop}, fmt::format("no producer of block '{}' is in loop '{}'", name, loop_name));

  // The axes follow from what one of the buffers has new; of the others as much must be there.
  std::string why;
  std::optional<AxisRanges> ranges;
  for (const BufferRegion& read : block->block->reads) {
    if (ranges) break;
    auto makers = [&](const Buffer& buffer) {
      std::vector<TreeNode*> result;
      for (TreeNode* producer : inside) {
        if (write_of(producer, buffer)) result.push_back(producer);
      }
      return result;
    };
    if (makers(read.buffer).empty()) continue;
    auto solved = axes_for(block, read.buffer, loop, makers(read.buffer));
    if (const std::string* refusal = std::get_if<std::string>(&solved)) {
      why = *refusal;
      continue;
    }
    AxisRanges& candidate = std::get<AxisRanges>(solved);
    bool enough = true;
    for (const BufferRegion& other : block->block->reads) {
      std::vector<TreeNode*> makers_of_other = makers(other.buffer);
      if (same_node(other.buffer, read.buffer) || makers_of_other.empty()) continue;
      RunningVars vars;
      for (size_t a = 0; a < candidate.size(); ++a) {
        const IterVar& axis = block->block->iter_vars[a];
        vars.emplace(axis.var.get(), candidate[a].value_or(axis.domain));
      }
      std::vector<Range> needed;
      for (size_t d = 0; d < other.ranges.size(); ++d)
        needed.push_back(range_over(other.ranges[d], buffer_type(other.buffer).shape[d], vars, block->tree->facts));
      enough = enough && writes_all(makers_of_other, other.buffer, loop, needed);
      if (!enough) {
        why = fmt::format("an iteration of loop '{}' is not known to have made all of '{}' that block '{}' reads",
                          loop_name, other.buffer->name, name);
        break;
      }
    }
    if (enough) ranges = candidate;
  }
  if (!ranges) step.refuse({block, loop}, why);
  if (block->block->init) {
    std::vector<TreeNode*> nest = loops_above(loop);
    nest.push_back(loop);
    step.require(not_summable(block, *ranges, nest), block);
  }
  size_t position = loop->children.size();
  if (index == -2) position = last;
  if (index >= 0) {
    position = static_cast<size_t>(index);
    if (position < last || position > loop->children.size())
      step.refuse({loop}, fmt::format("position {} is not between the last producer, {}, and the end", index, last));
  }
  move_block(*block->tree, block, loop, position, *ranges, preserve_unit_loops);
  refresh_regions_above(block);
  step.done();
}

}  // namespace relaxc
