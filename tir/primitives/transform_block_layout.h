#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct TransformBlockLayout {
  BlockRV block;
  IndexMap index_map;

  static constexpr std::string_view kName = "transform_block_layout";
  static constexpr std::string_view kDoc =
      "lets the block's axes, and new loops for them, run over the images of a map that is one to one and onto";
  static constexpr auto fields() {
    return std::tuple(required("block", &TransformBlockLayout::block, "the block"),
                      required("index_map", &TransformBlockLayout::index_map, "from the block's axes to new ones"));
  }
  void apply(scheduling::Step& step) const;
  size_t map_rank(scheduling::Step& step) const;
};

}  // namespace relaxc
