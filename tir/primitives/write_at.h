#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct WriteAt {
  LoopRV loop;
  BlockRV block;
  BufferArg write_buffer_index;
  StorageScope storage_scope;

  static constexpr PrimitiveInfo kInfo{"write_at",
                                       "lets the block write new memory, which each iteration copies to the buffer at "
                                       "its end. Returns the copying block"};
  static constexpr auto fields() {
    return std::tuple(required<&WriteAt::loop>("around the block"), required<&WriteAt::block>("writes the buffer"),
                      required<&WriteAt::write_buffer_index>("the buffer; a position counts the writes"),
                      required<&WriteAt::storage_scope>("of the copy: \"global\", \"local\", \"shared\""));
  }
  BlockRV apply(scheduling::Step& step) const;
};

}  // namespace relaxc
