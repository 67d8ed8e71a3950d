// The primitives that copy a buffer in another layout.
#pragma once
#include "tir/edit/index_maps.h"
#include "tir/primitives/primitive.h"

namespace relaxc {

struct Reindex {
  BlockRV block;
  BufferArg buffer;

  static constexpr PrimitiveInfo kInfo{
      "reindex", "copies a buffer that the block reads or writes, laid out by its axes. Returns the copying block"};
  static constexpr auto fields() {
    return list(required<&Reindex::block>("accesses the buffer at one place"),
                required<&Reindex::buffer>("the buffer; a position counts the reads"));
  }
  BlockRV apply(scheduling::Step& step) const {
    auto* accessor = step.block(block);
    Buffer found = step.buffer(accessor, buffer, scheduling::AccessKind::kRead);
    auto kind = write_of(accessor, found) ? scheduling::AccessKind::kWrite : scheduling::AccessKind::kRead;
    return reindex_stage(step, accessor, found, kind, found->name + "_reindex", buffer_type(found).scope);
  }
};

// Copies the buffer, laid out by the map, between the program's memory and the new one.
inline BlockRV reindex_cache(scheduling::Step& step, const BlockRV& block, const BufferArg& buffer,
                             scheduling::AccessKind kind, const std::string& storage_scope, const IndexMap& map) {
  auto* accessor = step.block(block);
  Buffer found = step.accessed(accessor, buffer, kind);
  std::string name = fmt::format("{}_{}", found->name, storage_scope);
  return reindex_stage(step, accessor, found, kind, name, storage_scope, &map);
}

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
    return reindex_cache(step, block, read_buffer_index, scheduling::AccessKind::kRead, storage_scope, index_map);
  }
  size_t map_rank(scheduling::Step& step) const { return step.block(block)->axes().size(); }
};

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
    return reindex_cache(step, block, write_buffer_index, scheduling::AccessKind::kWrite, storage_scope, index_map);
  }
  size_t map_rank(scheduling::Step& step) const { return step.block(block)->axes().size(); }
};

}  // namespace relaxc
