#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct ReindexCacheWrite {
  BlockRV block;
  BufferArg write_buffer_index;
  StorageScope storage_scope;
  IndexMap index_map;

  static constexpr std::string_view kName = "reindex_cache_write";
  static constexpr std::string_view kDoc =
      "lets the block write a buffer laid out by the map, which is copied afterwards. Gives the copying block";
  static constexpr auto fields() {
    return std::tuple(
        required("block", &ReindexCacheWrite::block, "writes the buffer at one place"),
        required("write_buffer_index", &ReindexCacheWrite::write_buffer_index,
                 "the buffer; a position counts the writes"),
        required("storage_scope", &ReindexCacheWrite::storage_scope, "of the copy: \"global\", \"local\", \"shared\""),
        required("index_map", &ReindexCacheWrite::index_map, "from the block's axes to positions in the copy"));
  }
  BlockRV apply(scheduling::Step& step) const;
  size_t map_rank(scheduling::Step& step) const;
};

}  // namespace relaxc
