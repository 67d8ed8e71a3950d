#pragma once
#include <algorithm>

#include "tir/edit/move.h"
#include "tir/primitives/primitive.h"

namespace relaxc {

struct CacheRead {
  BlockRV block;
  BufferArg read_buffer_index;
  StorageScope storage_scope = "global";
  Blocks consumer_blocks = {};

  static constexpr PrimitiveInfo kInfo{
      "cache_read",
      "copies a buffer that the block reads. Its consumers read the copy instead. Returns the copying block"};
  static constexpr auto fields() {
    return list(
        required<&CacheRead::block>("reads the buffer"),
        required<&CacheRead::read_buffer_index>("the buffer; a position counts the reads"),
        defaulted<&CacheRead::storage_scope>("of the copy"),
        defaulted<&CacheRead::consumer_blocks>("the blocks that read the copy; none: all that read the buffer"));
  }
  BlockRV apply(scheduling::Step& step) const {
    auto* block = step.block(this->block);
    auto* scope = step.scope(block);
    Buffer buffer = step.buffer(block, read_buffer_index, scheduling::AccessKind::kRead);
    scheduling::Nodes consumers = step.blocks(consumer_blocks), producers = writers(scope, buffer);
    if (consumers.empty()) consumers = readers(scope, buffer);
    if (consumers.empty()) step.refuse({block}, "no block reads '{}'", buffer);
    for (auto* consumer : consumers) {
      if (!read_of(consumer, buffer) || scope_of(consumer) != scope)
        step.refuse({consumer}, "block '{}' does not read '{}' in the same scope", consumer, buffer);
      for (auto* writer : producers) {
        if (writer == consumer || !precedes(writer, consumer))
          step.refuse({writer, consumer}, "block '{}' writes '{}', which '{}' reads before or at once", writer, buffer,
                      consumer);
      }
    }
    // The copy stands before the first consumer, as far out as the producers allow.
    scheduling::Nodes involved = consumers;
    involved.insert(involved.end(), producers.begin(), producers.end());
    auto* place = producers.empty() ? scope : common_ancestor(involved);
    auto position_in_place = [&](scheduling::TreeNode* user) { return child_towards(place, user)->position(); };
    size_t before = std::ranges::min(map_each(consumers, position_in_place));
    for (auto* writer : producers) {
      if (position_in_place(writer) >= before)
        step.refuse({writer, place->children[before]},
                    "no place is behind '{}', which writes '{}', and before all of its readers; name the readers meant "
                    "in consumer_blocks",
                    writer, buffer);
    }
    std::vector<Range> region = place->is_loop() ? *region_at(consumers, buffer, scheduling::AccessKind::kRead, place)
                                                 : scheduling::whole_buffer(buffer);
    return step.block_result(
        insert_cache(place, before, buffer, scheduling::AccessKind::kRead, storage_scope, region, consumers));
  }
};

}  // namespace relaxc
