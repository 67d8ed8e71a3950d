#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct GetConsumers {
  BlockRV block;

  static constexpr PrimitiveInfo kInfo{"get_consumers",
                                       "returns the blocks of the scope that read buffers which the block writes"};
  static constexpr auto fields() { return list(required<&GetConsumers::block>("the writer")); }
  Blocks apply(scheduling::Step& step) const { return step.block_results(consumers_of(step.block(block))); }
};

}  // namespace relaxc
