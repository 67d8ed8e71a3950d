#include "tir/primitives/cache_read.h"

#include <algorithm>

#include "tir/edit/accesses.h"
#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

BlockRV CacheRead::apply(Step& step) const {
  TreeNode* block = step.block(this->block);
  TreeNode* scope = scope_of(block);
  if (!scope) step.refuse({block}, "the root block has no place outside");
  step.require(has_other_statements(scope), scope);
  Buffer buffer = step.buffer(block, read_buffer_index, AccessKind::kRead);
  std::vector<TreeNode*> consumers = step.blocks(consumer_blocks);
  if (consumers.empty()) consumers = readers(scope, buffer);
  if (consumers.empty()) step.refuse({block}, fmt::format("no block reads '{}'", buffer->name));
  std::vector<TreeNode*> involved = consumers;
  for (TreeNode* consumer : consumers) {
    if (!read_of(consumer, buffer) || scope_of(consumer) != scope)
      step.refuse({consumer},
                  fmt::format("block '{}' does not read '{}' in the same scope", consumer->block->name, buffer->name));
    for (TreeNode* writer : writers(scope, buffer)) {
      if (writer == consumer || !precedes(writer, consumer))
        step.refuse({writer, consumer}, fmt::format("block '{}' writes '{}', which '{}' reads before or at once",
                                                    writer->block->name, buffer->name, consumer->block->name));
      involved.push_back(writer);
    }
  }
  // Before the first consumer, as far out as the producers allow.
  TreeNode* place = involved.size() > consumers.size() ? common_ancestor(involved) : scope;
  TreeNode* before = nullptr;
  for (TreeNode* consumer : consumers) {
    TreeNode* child = child_towards(place, consumer);
    if (!before || child->position() < before->position()) before = child;
  }
  for (TreeNode* writer : involved) {
    bool writes = write_of(writer, buffer) != nullptr;
    if (writes && child_towards(place, writer)->position() >= before->position())
      step.refuse({writer, before},
                  fmt::format("no place is behind '{}', which writes '{}', and before all of its readers; name "
                              "the readers meant in consumer_blocks",
                              writer->block->name, buffer->name));
  }
  Buffer cache = cache_of(buffer, storage_scope);
  std::vector<Range> region =
      place->is_loop() ? *region_at(consumers, buffer, AccessKind::kRead, place) : whole_buffer(buffer);
  TreeNode* copy = insert_copy(place, before->position(), cache->name, buffer, cache, region);
  scope->block->alloc_buffers.push_back(cache);
  for (TreeNode* consumer : consumers) replace_buffer(consumer, buffer, cache);
  refresh_regions_above(copy);
  return step.block_result(copy);
}

}  // namespace relaxc
