#pragma once
#include "tir/primitives/compute_inline.h"
#include "tir/primitives/primitive.h"

namespace relaxc {

struct MergeEpilogue {
  BlockRV block;

  static constexpr PrimitiveInfo kInfo{"merge_epilogue",
                                       "inlines the elementwise blocks behind the block into the last of them. Returns "
                                       "that one, or none. TVM has no such primitive"};
  static constexpr auto fields() { return list(required<&MergeEpilogue::block>("the anchor")); }
  Blocks apply(scheduling::Step& step) const {
    auto* anchor = step.block(this->block);
    // These are the blocks that depend on the anchor, and their inputs from elsewhere.
    scheduling::Nodes behind = consumers_of(anchor), inlined;
    for (size_t i = 0; i < behind.size(); ++i) {
      for (auto* next : consumers_of(behind[i])) {
        if (!contains(behind, next)) behind.push_back(next);
      }
    }
    for (auto* block : behind) {
      for (auto* producer : producers_of(block)) {
        if (producer != anchor && !contains(behind, producer) && !depend(producer, anchor)) inlined.push_back(producer);
      }
    }
    inlined.insert(inlined.end(), behind.begin(), behind.end());
    for (auto* block : inlined) {
      if (!is_alive(block) || is_output(block)) continue;
      // A reduction, or a block of another form, stays where it is.
      step.try_apply(ComputeInline{step.variable_of(block)});
    }
    return step.block_results(consumers_of(anchor));
  }
};

}  // namespace relaxc
