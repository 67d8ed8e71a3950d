#pragma once
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
    return std::tuple(required<&CacheWrite::block>("writes the buffer"),
                      required<&CacheWrite::write_buffer_index>("the buffer; a position counts the writes"),
                      defaulted<&CacheWrite::storage_scope>("of the new buffer"),
                      defaulted<&CacheWrite::consumer_blocks>("the blocks that read the new buffer"));
  }
  BlockRV apply(scheduling::Step& step) const;
};

}  // namespace relaxc
