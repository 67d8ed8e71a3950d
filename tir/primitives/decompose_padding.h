#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct DecomposePadding {
  BlockRV block;
  LoopRV loop;

  static constexpr PrimitiveInfo kInfo{"decompose_padding",
                                       "divides a block that pads into two: one that fills with the pad value, before "
                                       "the loop, and one that copies. Returns the first"};
  static constexpr auto fields() {
    return std::tuple(required<&DecomposePadding::block>("copies, or pads"),
                      required<&DecomposePadding::loop>("around the block"));
  }
  BlockRV apply(scheduling::Step& step) const;
};

}  // namespace relaxc
