// The primitives that return the blocks in a certain relation to another one.
#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct GetChildBlocks {
  Place block_or_loop;

  static constexpr PrimitiveInfo kInfo{"get_child_blocks", "returns the blocks directly inside, in program order"};
  static constexpr auto fields() { return list(required<&GetChildBlocks::block_or_loop>("what they stand in")); }
  Blocks apply(scheduling::Step& step) const { return step.block_results(blocks_inside(step.place(block_or_loop))); }
};

struct GetProducers {
  BlockRV block;

  static constexpr PrimitiveInfo kInfo{"get_producers",
                                       "returns the blocks of the scope that write buffers which the block reads"};
  static constexpr auto fields() { return list(required<&GetProducers::block>("the reader")); }
  Blocks apply(scheduling::Step& step) const { return step.block_results(producers_of(step.block(block))); }
};

struct GetConsumers {
  BlockRV block;

  static constexpr PrimitiveInfo kInfo{"get_consumers",
                                       "returns the blocks of the scope that read buffers which the block writes"};
  static constexpr auto fields() { return list(required<&GetConsumers::block>("the writer")); }
  Blocks apply(scheduling::Step& step) const { return step.block_results(consumers_of(step.block(block))); }
};

struct GetOutputBlocks {
  BlockRV scope_block;

  static constexpr PrimitiveInfo kInfo{"get_output_blocks",
                                       "returns the blocks of a scope that write buffers which are seen outside of it"};
  static constexpr auto fields() {
    return list(required<&GetOutputBlocks::scope_block>("the block that is the scope, such as \"root\""));
  }
  Blocks apply(scheduling::Step& step) const {
    scheduling::Nodes blocks = blocks_inside(step.block(scope_block));
    std::erase_if(blocks, [](const scheduling::TreeNode* block) { return !is_output(block); });
    return step.block_results(blocks);
  }
};

}  // namespace relaxc
