#pragma once
#include "tir/edit/accesses.h"
#include "tir/primitives/primitive.h"

namespace relaxc {

struct SetScope {
  BlockRV block;
  BufferArg buffer_index;
  StorageScope storage_scope;

  static constexpr PrimitiveInfo kInfo{"set_scope", "changes the storage scope of a buffer that the block writes"};
  static constexpr auto fields() {
    return list(required<&SetScope::block>("writes the buffer"),
                required<&SetScope::buffer_index>("the buffer; a position counts the writes"),
                required<&SetScope::storage_scope>("the new scope"));
  }
  void apply(scheduling::Step& step) const {
    auto* writer = step.block(block);
    Buffer from = step.allocated(writer, buffer_index);
    BufferType type = buffer_type(from);
    type.scope = storage_scope;
    Buffer to = scheduling::with_buffer_type(from, type);
    replace_buffer(writer->tree->root(), from, to);
    replace_definition(*writer->tree, from, to);
  }
};

}  // namespace relaxc
