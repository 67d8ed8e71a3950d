#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct DecomposeReduction {
  BlockRV block;
  LoopRV loop;

  static constexpr PrimitiveInfo kInfo{"decompose_reduction",
                                       "makes the init a separate block before the loop. Returns that block"};
  static constexpr auto fields() {
    return list(required<&DecomposeReduction::block>("the reduction"),
                required<&DecomposeReduction::loop>("around the reduction"));
  }
  BlockRV apply(scheduling::Step& step) const;
};

}  // namespace relaxc
