#pragma once
#include <fmt/format.h>

#include "tir/edit/index_maps.h"
#include "tir/primitives/primitive.h"

namespace relaxc {

struct ReindexCacheRead {
  BlockRV block;
  BufferArg read_buffer_index;
  StorageScope storage_scope;
  IndexMap index_map;

  static constexpr PrimitiveInfo kInfo{
      "reindex_cache_read", "copies a buffer that the block reads, laid out by the map. Returns the copying block"};
  static constexpr auto fields() {
    return list(required<&ReindexCacheRead::block>("reads the buffer at one place"),
                required<&ReindexCacheRead::read_buffer_index>("the buffer; a position counts the reads"),
                required<&ReindexCacheRead::storage_scope>("of the copy: \"global\", \"local\", \"shared\""),
                required<&ReindexCacheRead::index_map>("from the block's axes to positions in the copy"));
  }
  BlockRV apply(scheduling::Step& step) const {
    auto* accessor = step.block(block);
    Buffer found = step.accessed(accessor, read_buffer_index, scheduling::AccessKind::kRead);
    std::string name = fmt::format("{}_{}", found->name, storage_scope);
    return reindex_stage(step, accessor, found, scheduling::AccessKind::kRead, name, storage_scope, &index_map);
  }
  size_t map_rank(scheduling::Step& step) const { return step.block(block)->axes().size(); }
};

}  // namespace relaxc
