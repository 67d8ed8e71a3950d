#pragma once
#include <algorithm>

#include "tir/edit/move.h"
#include "tir/primitives/primitive.h"

namespace relaxc {

struct CacheWrite {
  BlockRV block;
  BufferArg write_buffer_index;
  StorageScope storage_scope = "global";
  Blocks consumer_blocks = {};

  static constexpr PrimitiveInfo kInfo{
      "cache_write",
      "lets the block write a new buffer, which is copied to the old one afterwards. Returns the copying block"};
  static constexpr auto fields() {
    return list(required<&CacheWrite::block>("writes the buffer"),
                required<&CacheWrite::write_buffer_index>("the buffer; a position counts the writes"),
                defaulted<&CacheWrite::storage_scope>("of the new buffer"),
                defaulted<&CacheWrite::consumer_blocks>("the blocks that read the new buffer"));
  }
  BlockRV apply(scheduling::Step& step) const {
    auto* block = step.block(this->block);
    auto& tree = *block->tree;
    auto* scope = step.scope(block);
    step.require(not_complete_or_reduction(block), block);
    if (block->partial) step.refuse({block}, "block '{}' may leave elements unwritten", block);
    Buffer buffer = step.buffer(block, write_buffer_index, scheduling::AccessKind::kWrite);
    scheduling::Nodes all_readers = readers(scope, buffer), users = step.blocks(consumer_blocks);
    std::erase(all_readers, block);
    for (auto* reader : all_readers) {
      if (precedes(reader, block))
        step.refuse({reader, block}, "block '{}' reads '{}' before '{}' writes it", reader, buffer, block);
    }
    for (auto* user : users) {
      if (!contains(all_readers, user))
        step.refuse({user}, "block '{}' does not read '{}' in the same scope", user, buffer);
    }
    scheduling::Nodes involved = all_readers;
    involved.push_back(block);
    auto* place = all_readers.empty() ? scope : common_ancestor(involved);
    // A result that is copied once per iteration must be final in that iteration.
    if (auto driven = find_unfinished(block, place))
      step.refuse({block, place}, "loop '{}', which readers of '{}' share, drives the reduce axis '{}'", driven->loop,
                  buffer, driven->axis->var);
    size_t behind = child_towards(place, block)->position() + 1;
    for (auto* reader : all_readers) {
      if (!contains(users, reader) && child_towards(place, reader)->position() < behind)
        step.refuse({reader, block},
                    "no place is behind '{}' and before all readers of '{}'; name those that shall read the cache in "
                    "consumer_blocks",
                    block, buffer);
    }
    std::vector<Range> region = *region_at({block}, buffer, scheduling::AccessKind::kWrite, place);
    // Copying back must not overwrite elements that other blocks made and this one does not write.
    bool is_only_writer =
        allocating_block(tree, buffer) && std::ranges::none_of(tree.blocks(), [&](scheduling::TreeNode* other) {
          return other != block && other->is_leaf_block() && write_of(other, buffer);
        });
    if (!is_only_writer && !writes_all({block}, buffer, place, region))
      step.refuse({block}, "block '{}' is not known to write all of a box of '{}'", block, buffer);
    users.push_back(block);
    return step.block_result(
        insert_cache(place, behind, buffer, scheduling::AccessKind::kWrite, storage_scope, region, users));
  }
};

}  // namespace relaxc
