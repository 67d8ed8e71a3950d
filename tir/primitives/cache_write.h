#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct CacheWrite {
  BlockRV block;
  BufferArg write_buffer_index;
  StorageScope storage_scope = "global";
  Blocks consumer_blocks = {};

  static constexpr std::string_view kName = "cache_write";
  static constexpr std::string_view kDoc =
      "lets the block write a buffer of its own, which is copied afterwards. Gives the copying block";
  static constexpr auto fields() {
    return std::tuple(
        required("block", &CacheWrite::block, "writes the buffer"),
        required("write_buffer_index", &CacheWrite::write_buffer_index, "the buffer; a position counts the writes"),
        defaulted("storage_scope", &CacheWrite::storage_scope, "of the buffer of its own"),
        defaulted("consumer_blocks", &CacheWrite::consumer_blocks, "those that read the buffer of its own"));
  }
  BlockRV apply(scheduling::Step& step) const;
};

}  // namespace relaxc
