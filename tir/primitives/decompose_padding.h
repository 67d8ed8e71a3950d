#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct DecomposePadding {
  BlockRV block;
  LoopRV loop;

  static constexpr std::string_view kName = "decompose_padding";
  static constexpr std::string_view kDoc =
      "makes a block that pads two: one that fills with the pad value, before the loop, and one that copies. Gives the "
      "first";
  static constexpr auto fields() {
    return std::tuple(required("block", &DecomposePadding::block, "copies, or pads"),
                      required("loop", &DecomposePadding::loop, "around the block"));
  }
  BlockRV apply(scheduling::Step& step) const;
};

}  // namespace relaxc
