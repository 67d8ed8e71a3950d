#pragma once
#include "tir/edit/index_maps.h"
#include "tir/primitives/primitive.h"

namespace relaxc {

struct Reindex {
  BlockRV block;
  BufferArg buffer;

  static constexpr PrimitiveInfo kInfo{
      "reindex", "copies a buffer that the block reads or writes, laid out by its axes. Returns the copying block"};
  static constexpr auto fields() {
    return list(required<&Reindex::block>("accesses the buffer at one place"),
                required<&Reindex::buffer>("the buffer; a position counts the reads"));
  }
  BlockRV apply(scheduling::Step& step) const {
    auto* accessor = step.block(block);
    Buffer found = step.buffer(accessor, buffer, scheduling::AccessKind::kRead);
    auto kind = write_of(accessor, found) ? scheduling::AccessKind::kWrite : scheduling::AccessKind::kRead;
    return reindex_stage(step, accessor, found, kind, found->name + "_reindex", buffer_type(found).scope);
  }
};

}  // namespace relaxc
