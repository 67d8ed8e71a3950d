#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct TransformBlockLayout {
  BlockRV block;
  IndexMap index_map;

  static constexpr PrimitiveInfo kInfo{
      "transform_block_layout",
      "lets the block's axes, and new loops for them, run over the images of a map that is one to one and onto"};
  static constexpr auto fields() {
    return list(required<&TransformBlockLayout::block>("the block"),
                required<&TransformBlockLayout::index_map>("from the block's axes to new ones"));
  }
  void apply(scheduling::Step& step) const;
  size_t map_rank(scheduling::Step& step) const { return step.block(block)->axes().size(); }
};

}  // namespace relaxc
