#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct GetChildBlocks {
  Place block_or_loop;

  static constexpr PrimitiveInfo kInfo{"get_child_blocks", "returns the blocks directly inside, in program order"};
  static constexpr auto fields() { return list(required<&GetChildBlocks::block_or_loop>("the place around them")); }
  Blocks apply(scheduling::Step& step) const { return step.block_results(blocks_inside(step.place(block_or_loop))); }
};

}  // namespace relaxc
