#include "tir/primitives/read_at.h"

#include "tir/analysis/annotations.h"
#include "tir/edit/accesses.h"
#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

BlockRV ReadAt::apply(Step& step) const {
  TreeNode* loop = step.loop(this->loop);
  TreeNode* block = step.block(this->block);
  TreeNode* scope = scope_of(block);
  if (!is_ancestor(loop, block) || scope_of(loop) != scope)
    step.refuse({block, loop},
                fmt::format("block '{}' is not in loop '{}'", block->block->name, loop->loop->var->name));
  step.require(has_other_statements(scope), scope);
  Buffer buffer = step.buffer(block, read_buffer_index, AccessKind::kRead);
  if (!read_of(block, buffer))
    step.refuse({block}, fmt::format("block '{}' does not read '{}'", block->block->name, buffer->name));
  TreeNode* child = child_towards(loop, block);
  for (TreeNode* other : blocks_below(loop)) {
    bool before = child_towards(loop, other)->position() < child->position();
    if (write_of(other, buffer) && !before)
      step.refuse({other, block},
                  fmt::format("block '{}' writes '{}' in the same iteration", other->block->name, buffer->name));
  }
  std::vector<Range> region = region_at(block, *read_of(block, buffer), loop);
  Buffer cache = cache_of(buffer, storage_scope);
  TreeNode* copy = insert_copy(loop, child->position(), cache->name, buffer, cache, region);
  scope->block->alloc_buffers.push_back(cache);
  replace_buffer(block, buffer, cache);
  copy->block->annotations.set(annotations::kAutoCopy.name, 1);
  refresh_regions_above(copy);
  return step.block_result(copy);
}

}  // namespace relaxc
