#pragma once
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
    return std::tuple(required<&ReadAt::loop>("around the block"), required<&ReadAt::block>("reads the buffer"),
                      required<&ReadAt::read_buffer_index>("the buffer; a position counts the reads"),
                      required<&ReadAt::storage_scope>("of the copy: \"global\", \"local\", \"shared\""));
  }
  BlockRV apply(scheduling::Step& step) const;
};

}  // namespace relaxc
