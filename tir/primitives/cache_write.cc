#include "tir/primitives/cache_write.h"

#include <algorithm>

#include "tir/edit/accesses.h"
#include "tir/edit/move.h"
#include "tir/edit/written.h"

namespace relaxc {

using namespace scheduling;

BlockRV CacheWrite::apply(Step& step) const {
  TreeNode* block = step.block(this->block);
  Tree& tree = *block->tree;
  TreeNode* scope = scope_of(block);
  if (!scope) step.refuse({block}, "the root block has no place outside");
  step.require(has_other_statements(scope), scope);
  step.require(not_complete_or_reduction(block), block);
  if (block->partial) step.refuse({block}, fmt::format("block '{}' may leave elements unwritten", block->block->name));
  Buffer buffer = step.buffer(block, write_buffer_index, AccessKind::kWrite);
  std::vector<TreeNode*> readers_of_buffer = readers(scope, buffer);
  std::erase(readers_of_buffer, block);
  for (TreeNode* reader : readers_of_buffer) {
    if (precedes(reader, block))
      step.refuse({reader, block}, fmt::format("block '{}' reads '{}' before '{}' writes it", reader->block->name,
                                               buffer->name, block->block->name));
  }
  std::vector<TreeNode*> consumers = step.blocks(consumer_blocks);
  for (TreeNode* consumer : consumers) {
    if (std::find(readers_of_buffer.begin(), readers_of_buffer.end(), consumer) == readers_of_buffer.end())
      step.refuse({consumer},
                  fmt::format("block '{}' does not read '{}' in the same scope", consumer->block->name, buffer->name));
  }
  std::vector<TreeNode*> involved{block};
  involved.insert(involved.end(), readers_of_buffer.begin(), readers_of_buffer.end());
  TreeNode* place = involved.size() > 1 ? common_ancestor(involved) : scope;
  // Copied once per iteration, a result must be final in it.
  if (auto driven = find_unfinished(block, place))
    step.refuse({block, place}, fmt::format("loop '{}', which readers of '{}' share, drives the reduce axis '{}'",
                                            driven->loop->loop->var->name, buffer->name, driven->axis->var->name));
  for (TreeNode* reader : readers_of_buffer) {
    bool takes_cache = std::find(consumers.begin(), consumers.end(), reader) != consumers.end();
    if (!takes_cache && child_towards(place, reader)->position() <= child_towards(place, block)->position())
      step.refuse({reader, block},
                  fmt::format("no place is behind '{}' and before all readers of '{}'; name those that "
                              "shall read the cache in consumer_blocks",
                              block->block->name, buffer->name));
  }
  std::vector<Range> region = *region_at({block}, buffer, AccessKind::kWrite, place);
  // Copying back must not touch what the block leaves alone and others made.
  std::vector<TreeNode*> blocks = tree.blocks();
  bool is_only_writer = allocating_block(tree, buffer) && std::none_of(blocks.begin(), blocks.end(), [&](TreeNode* b) {
                          return b != block && b->is_leaf_block() && write_of(b, buffer);
                        });
  if (!is_only_writer && !writes_all({block}, buffer, place, region))
    step.refuse({block},
                fmt::format("block '{}' is not known to write all of a box of '{}'", block->block->name, buffer->name));
  Buffer cache = cache_of(buffer, storage_scope);
  size_t behind = child_towards(place, block)->position() + 1;
  TreeNode* copy = insert_copy(place, behind, cache->name, cache, buffer, region);
  scope->block->alloc_buffers.push_back(cache);
  replace_buffer(block, buffer, cache);
  for (TreeNode* consumer : consumers) replace_buffer(consumer, buffer, cache);
  refresh_regions_above(copy);
  return step.block_result(copy);
}

}  // namespace relaxc
