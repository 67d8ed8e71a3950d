#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct GetLoops {
  BlockRV block;

  static constexpr PrimitiveInfo kInfo{"get_loops",
                                       "returns the loops around a block up to its scope, outermost first"};
  static constexpr auto fields() { return list(required<&GetLoops::block>("the block inside")); }
  Loops apply(scheduling::Step& step) const { return step.loop_results(loops_above(step.block(block))); }
};

}  // namespace relaxc
