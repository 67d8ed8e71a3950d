#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct DecomposePadding {
  BlockRV block;
  LoopRV loop;

  static constexpr PrimitiveInfo kInfo{"decompose_padding",
                                       "makes a block that pads two: one that fills with the pad value, before the "
                                       "loop, and one that copies. Gives the first"};
  static constexpr auto fields() {
    return std::tuple(required<&DecomposePadding::block>("copies, or pads"),
                      required<&DecomposePadding::loop>("around the block"));
  }
  BlockRV apply(scheduling::Step& step) const;
};

}  // namespace relaxc
