#pragma once
#include "tir/edit/move.h"
#include "tir/primitives/primitive.h"

namespace relaxc {

struct CacheInplace {
  BlockRV block;
  BufferArg read_buffer_index;
  StorageScope storage_scope;

  static constexpr PrimitiveInfo kInfo{
      "cache_inplace",
      "lets a block that updates a buffer work on a copy, which is copied back after it. Returns both copying blocks"};
  static constexpr auto fields() {
    return list(required<&CacheInplace::block>("reads and writes the buffer"),
                required<&CacheInplace::read_buffer_index>("the buffer; a position counts the reads"),
                required<&CacheInplace::storage_scope>("of the copy: \"global\", \"local\", \"shared\""));
  }
  Blocks apply(scheduling::Step& step) const {
    auto* block = step.block(this->block);
    auto* scope = step.scope(block);
    Buffer buffer = step.buffer(block, read_buffer_index, scheduling::AccessKind::kRead);
    if (!read_of(block, buffer) || !write_of(block, buffer))
      step.refuse({block}, "block '{}' does not both read and write '{}'", block, buffer);
    if (block->uses_outer_vars) step.refuse({block}, "block '{}' uses variables of loops around it directly", block);
    auto* top = child_towards(scope, block);
    step.require_alone(top, block, buffer);
    // Elements that the block does not write are copied back unchanged.
    std::vector<Range> written = *region_at({block}, buffer, scheduling::AccessKind::kWrite, nullptr), region = written;
    scheduling::widen(region, region_at(block, *read_of(block, buffer), nullptr), buffer, block->tree->facts);
    auto* before =
        insert_cache(scope, top->position(), buffer, scheduling::AccessKind::kRead, storage_scope, region, {block});
    const Buffer cache = before->block->writes[0].buffer;
    auto* after = insert_copy(scope, top->position() + 1, cache->name, cache, buffer, written);
    refresh_regions_above(block);
    return step.block_results({before, after});
  }
};

}  // namespace relaxc
