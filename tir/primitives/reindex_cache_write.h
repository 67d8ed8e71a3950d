#pragma once
#include <fmt/format.h>

#include "tir/edit/index_maps.h"
#include "tir/primitives/primitive.h"

namespace relaxc {

struct ReindexCacheWrite {
  BlockRV block;
  BufferArg write_buffer_index;
  StorageScope storage_scope;
  IndexMap index_map;

  static constexpr PrimitiveInfo kInfo{
      "reindex_cache_write",
      "lets the block write a buffer laid out by the map, which is copied afterwards. Returns the copying block"};
  static constexpr auto fields() {
    return list(required<&ReindexCacheWrite::block>("writes the buffer at one place"),
                required<&ReindexCacheWrite::write_buffer_index>("the buffer; a position counts the writes"),
                required<&ReindexCacheWrite::storage_scope>("of the copy: \"global\", \"local\", \"shared\""),
                required<&ReindexCacheWrite::index_map>("from the block's axes to positions in the copy"));
  }
  BlockRV apply(scheduling::Step& step) const {
    auto* accessor = step.block(block);
    Buffer found = step.accessed(accessor, write_buffer_index, scheduling::AccessKind::kWrite);
    std::string name = fmt::format("{}_{}", found->name, storage_scope);
    return reindex_stage(step, accessor, found, scheduling::AccessKind::kWrite, name, storage_scope, &index_map);
  }
  size_t map_rank(scheduling::Step& step) const { return step.block(block)->axes().size(); }
};

}  // namespace relaxc
