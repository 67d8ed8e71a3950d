#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct CacheIndex {
  BlockRV block;
  StorageScope storage_scope;
  int64_t cse_thresh = 0;

  static constexpr PrimitiveInfo kInfo{
      "cache_index",
      "stores the values of frequent index expressions of loads in buffers beforehand. Returns the blocks that do so"};
  static constexpr auto fields() {
    return list(required<&CacheIndex::block>("holds the loads"), required<&CacheIndex::storage_scope>("of the buffers"),
                defaulted<&CacheIndex::cse_thresh>("how often an expression must occur"));
  }
  Blocks apply(scheduling::Step& step) const;
};

}  // namespace relaxc
