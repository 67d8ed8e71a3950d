#include "tir/primitives/cache_inplace.h"

#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

Blocks CacheInplace::apply(Step& step) const {
  TreeNode* block = step.block(this->block);
  TreeNode* scope = step.scope(block);
  Buffer buffer = step.buffer(block, read_buffer_index, AccessKind::kRead);
  if (!read_of(block, buffer) || !write_of(block, buffer))
    step.refuse({block}, "block '{}' does not both read and write '{}'", block, buffer);
  if (block->uses_outer_vars) step.refuse({block}, "block '{}' uses variables of loops around it directly", block);
  TreeNode* own = child_towards(scope, block);
  step.require_alone(own, block, buffer);
  // Elements that the block does not write are copied back unchanged.
  std::vector<Range> written = *region_at({block}, buffer, AccessKind::kWrite, nullptr), region = written;
  widen(region, region_at(block, *read_of(block, buffer), nullptr), buffer, block->tree->facts);
  TreeNode* before = insert_cache(scope, own->position(), buffer, AccessKind::kRead, storage_scope, region, {block});
  const Buffer cache = before->block->writes[0].buffer;
  TreeNode* after = insert_copy(scope, own->position() + 1, cache->name, cache, buffer, written);
  refresh_regions_above(block);
  return step.block_results({before, after});
}

}  // namespace relaxc
