#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct GetProducers {
  BlockRV block;

  static constexpr PrimitiveInfo kInfo{"get_producers",
                                       "returns the blocks of the scope that write buffers which the block reads"};
  static constexpr auto fields() { return list(required<&GetProducers::block>("the reader")); }
  Blocks apply(scheduling::Step& step) const { return step.block_results(producers_of(step.block(block))); }
};

}  // namespace relaxc
