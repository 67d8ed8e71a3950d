#pragma once
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
    return std::tuple(required<&CacheInplace::block>("reads and writes the buffer"),
                      required<&CacheInplace::read_buffer_index>("the buffer; a position counts the reads"),
                      required<&CacheInplace::storage_scope>("of the copy: \"global\", \"local\", \"shared\""));
  }
  Blocks apply(scheduling::Step& step) const;
};

}  // namespace relaxc
