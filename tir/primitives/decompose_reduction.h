#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct DecomposeReduction {
  BlockRV block;
  LoopRV loop;

  static constexpr std::string_view kName = "decompose_reduction";
  static constexpr std::string_view kDoc = "makes the init a block of its own before the loop";
  static constexpr auto fields() {
    return std::tuple(required("block", &DecomposeReduction::block, "the reduction"),
                      required("loop", &DecomposeReduction::loop, "around the reduction"));
  }
  BlockRV apply(scheduling::Step& step) const;
};

}  // namespace relaxc
