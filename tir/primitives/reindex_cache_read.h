#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct ReindexCacheRead {
  BlockRV block;
  BufferArg read_buffer_index;
  StorageScope storage_scope;
  IndexMap index_map;

  static constexpr std::string_view kName = "reindex_cache_read";
  static constexpr std::string_view kDoc =
      "copies a buffer that the block reads, laid out by the map. Gives the copying block";
  static constexpr auto fields() {
    return std::tuple(
        required("block", &ReindexCacheRead::block, "reads the buffer at one place"),
        required("read_buffer_index", &ReindexCacheRead::read_buffer_index, "the buffer; a position counts the reads"),
        required("storage_scope", &ReindexCacheRead::storage_scope, "of the copy: \"global\", \"local\", \"shared\""),
        required("index_map", &ReindexCacheRead::index_map, "from the block's axes to positions in the copy"));
  }
  BlockRV apply(scheduling::Step& step) const;
  size_t map_rank(scheduling::Step& step) const;
};

}  // namespace relaxc
