#include "tir/primitives/cache_read.h"

#include <algorithm>

#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

BlockRV CacheRead::apply(Step& step) const {
  TreeNode* block = step.block(this->block);
  TreeNode* scope = step.scope(block);
  Buffer buffer = step.buffer(block, read_buffer_index, AccessKind::kRead);
  Nodes consumers = step.blocks(consumer_blocks), producers = writers(scope, buffer);
  if (consumers.empty()) consumers = readers(scope, buffer);
  if (consumers.empty()) step.refuse({block}, "no block reads '{}'", buffer);
  for (TreeNode* consumer : consumers) {
    if (!read_of(consumer, buffer) || scope_of(consumer) != scope)
      step.refuse({consumer}, "block '{}' does not read '{}' in the same scope", consumer, buffer);
    for (TreeNode* writer : producers) {
      if (writer == consumer || !precedes(writer, consumer))
        step.refuse({writer, consumer}, "block '{}' writes '{}', which '{}' reads before or at once", writer, buffer,
                    consumer);
    }
  }
  // The copy stands before the first consumer, as far out as the producers allow.
  Nodes involved = consumers;
  involved.insert(involved.end(), producers.begin(), producers.end());
  TreeNode* place = producers.empty() ? scope : common_ancestor(involved);
  auto position_in_place = [&](TreeNode* user) { return child_towards(place, user)->position(); };
  size_t before = std::ranges::min(map_each(consumers, position_in_place));
  for (TreeNode* writer : producers) {
    if (position_in_place(writer) >= before)
      step.refuse({writer, place->children[before]},
                  "no place is behind '{}', which writes '{}', and before all of its readers; name the readers meant "
                  "in consumer_blocks",
                  writer, buffer);
  }
  std::vector<Range> region =
      place->is_loop() ? *region_at(consumers, buffer, AccessKind::kRead, place) : whole_buffer(buffer);
  return step.block_result(insert_cache(place, before, buffer, AccessKind::kRead, storage_scope, region, consumers));
}

}  // namespace relaxc
