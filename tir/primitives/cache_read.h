#pragma once
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
    return std::tuple(
        required<&CacheRead::block>("reads the buffer"),
        required<&CacheRead::read_buffer_index>("the buffer; a position counts the reads"),
        defaulted<&CacheRead::storage_scope>("of the copy"),
        defaulted<&CacheRead::consumer_blocks>("the blocks that read the copy; none: all that read the buffer"));
  }
  BlockRV apply(scheduling::Step& step) const;
};

}  // namespace relaxc
