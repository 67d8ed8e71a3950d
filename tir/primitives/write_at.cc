#include "tir/primitives/write_at.h"

#include <algorithm>

#include "tir/analysis/annotations.h"
#include "tir/edit/accesses.h"
#include "tir/edit/affine.h"
#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

namespace {

// The iterations inside of the loop do not write each element of a box: what lies between would be copied, too.
Refusal not_a_box(const TreeNode* block, const Buffer& buffer, const TreeNode* loop) {
  const Analyzer& facts = block->tree->facts;
  std::vector<TreeNode*> inside;
  for (TreeNode* at = block->parent; at != loop; at = at->parent) inside.insert(inside.begin(), at);
  std::vector<const NodeHeader*> seen;
  for (const Range& range : write_of(block, buffer)->ranges) {
    bool is_fine = is_int(range.extent, 1);
    for (const IterVar& axis : block->block->iter_vars) {
      if (!mentions(range.min, axis.var)) continue;
      is_fine = is_fine && same_node(range.min, axis.var) && !std::count(seen.begin(), seen.end(), axis.var.get());
      seen.push_back(axis.var.get());
      auto map = find_iter_map({axis.value}, inside, facts);
      if (!map) is_fine = false;
      if (!is_fine) break;
      Expr count = int_imm(1, dtype_of(axis.var));
      for (const IterDigit& digit : map->sums[0].digits) count = count * cast_to(digit.extent, dtype_of(count));
      is_fine = facts.can_prove_equal(count, map->sums[0].extent);
    }
    if (!is_fine)
      return fmt::format("block '{}' is not known to write all of a box of '{}' in an iteration of loop '{}'",
                         block->block->name, buffer->name, loop->loop->var->name);
  }
  return std::nullopt;
}

}  // namespace

BlockRV WriteAt::apply(Step& step) const {
  TreeNode* loop = step.loop(this->loop);
  TreeNode* block = step.block(this->block);
  TreeNode* scope = scope_of(block);
  if (!is_ancestor(loop, block) || scope_of(loop) != scope)
    step.refuse({block, loop},
                fmt::format("block '{}' is not in loop '{}'", block->block->name, loop->loop->var->name));
  step.require(has_other_statements(scope), scope);
  step.require(not_complete_or_reduction(block), block);
  if (block->partial) step.refuse({block}, fmt::format("block '{}' may leave elements unwritten", block->block->name));
  Buffer buffer = step.buffer(block, write_buffer_index, AccessKind::kWrite);
  if (!write_of(block, buffer))
    step.refuse({block}, fmt::format("block '{}' does not write '{}'", block->block->name, buffer->name));
  if (auto driven = find_unfinished(block, loop))
    step.refuse({block, driven->loop == loop ? loop : block},
                fmt::format("loop '{}' drives axis '{}', results are not final in an iteration",
                            driven->loop->loop->var->name, driven->axis->var->name));
  step.require(not_a_box(block, buffer, loop), block);
  TreeNode* child = child_towards(loop, block);
  for (TreeNode* other : blocks_below(child)) {
    if (other != block && (read_of(other, buffer) || write_of(other, buffer)))
      step.refuse({other, block},
                  fmt::format("block '{}', in the same loops, uses '{}', too", other->block->name, buffer->name));
  }
  std::vector<Range> region = *region_at({block}, buffer, AccessKind::kWrite, loop);
  Buffer cache = cache_of(buffer, storage_scope);
  TreeNode* copy = insert_copy(loop, child->position() + 1, cache->name, cache, buffer, region);
  scope->block->alloc_buffers.push_back(cache);
  replace_buffer(block, buffer, cache);
  copy->block->annotations.set(annotations::kAutoCopy.name, 1);
  refresh_regions_above(copy);
  return step.block_result(copy);
}

}  // namespace relaxc
