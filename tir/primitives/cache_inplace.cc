#include "tir/primitives/cache_inplace.h"

#include "tir/edit/accesses.h"
#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

Blocks CacheInplace::apply(Step& step) const {
  TreeNode* block = step.block(this->block);
  Tree& tree = *block->tree;
  TreeNode* scope = scope_of(block);
  if (!scope) step.refuse({block}, "the root block has no place outside");
  step.require(has_other_statements(scope), scope);
  Buffer buffer = step.buffer(block, read_buffer_index, AccessKind::kRead);
  if (!read_of(block, buffer) || !write_of(block, buffer))
    step.refuse({block}, fmt::format("block '{}' does not both read and write '{}'", block->block->name, buffer->name));
  if (block->uses_outer_vars)
    step.refuse({block}, fmt::format("block '{}' uses variables of loops around it directly", block->block->name));
  TreeNode* own = child_towards(scope, block);
  for (TreeNode* other : blocks_below(own)) {
    if (other != block && (read_of(other, buffer) || write_of(other, buffer)))
      step.refuse({other, block},
                  fmt::format("block '{}', in the same loops, uses '{}', too", other->block->name, buffer->name));
  }
  // Elements that the block does not write are copied back unchanged.
  std::vector<Range> written = *region_at({block}, buffer, AccessKind::kWrite, nullptr), region = written;
  std::vector<Range> read = region_at(block, *read_of(block, buffer), nullptr);
  for (size_t d = 0; d < region.size(); ++d)
    region[d] = hull(written[d], read[d], buffer_type(buffer).shape[d], tree.facts);
  Buffer cache = cache_of(buffer, storage_scope);
  TreeNode* before = insert_copy(scope, own->position(), cache->name, buffer, cache, region);
  TreeNode* after = insert_copy(scope, own->position() + 1, cache->name, cache, buffer, written);
  scope->block->alloc_buffers.push_back(cache);
  replace_buffer(block, buffer, cache);
  refresh_regions_above(block);
  return step.block_results({before, after});
}

}  // namespace relaxc
