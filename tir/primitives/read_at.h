#pragma once
#include "tir/analysis/annotations.h"
#include "tir/edit/move.h"
#include "tir/primitives/primitive.h"

namespace relaxc {

struct ReadAt {
  LoopRV loop;
  BlockRV block;
  BufferArg read_buffer_index;
  StorageScope storage_scope;

  static constexpr PrimitiveInfo kInfo{
      "read_at",
      "copies, in each iteration, the part of a buffer that the block reads in it. Returns the copying block"};
  static constexpr auto fields() {
    return list(required<&ReadAt::loop>("around the block"), required<&ReadAt::block>("reads the buffer"),
                required<&ReadAt::read_buffer_index>("the buffer; a position counts the reads"),
                required<&ReadAt::storage_scope>("of the copy: \"global\", \"local\", \"shared\""));
  }
  BlockRV apply(scheduling::Step& step) const {
    auto* loop = step.loop(this->loop);
    auto* block = step.block(this->block);
    step.require_around(loop, block);
    step.scope(block);
    Buffer buffer = step.accessed(block, read_buffer_index, scheduling::AccessKind::kRead);
    size_t position = child_towards(loop, block)->position();
    for (auto* other : blocks_below(loop)) {
      if (write_of(other, buffer) && child_towards(loop, other)->position() >= position)
        step.refuse({other, block}, "block '{}' writes '{}' in the same iteration", other, buffer);
    }
    std::vector<Range> region = region_at(block, *read_of(block, buffer), loop);
    auto* copy = insert_cache(loop, position, buffer, scheduling::AccessKind::kRead, storage_scope, region, {block});
    copy->block->annotations.set(annotation<"auto_copy">(), 1);
    return step.block_result(copy);
  }
};

}  // namespace relaxc
