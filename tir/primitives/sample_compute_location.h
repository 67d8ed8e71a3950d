#pragma once
#include <algorithm>

#include "tir/edit/move.h"
#include "tir/primitives/primitive.h"

namespace relaxc {

struct SampleComputeLocation {
  BlockRV block;

  static constexpr PrimitiveInfo kInfo{"sample_compute_location", "chooses a loop that the block may be computed at"};
  static constexpr auto fields() { return list(required<&SampleComputeLocation::block>("the producer")); }
  // The decision is the loop's number from the outermost on; -1: the block stays where it is (compute_at does nothing);
  // -2: it is inlined, for which the block itself stands.
  LoopRV apply(scheduling::Step& step) const {
    scheduling::TreeNode* block = step.block(this->block);
    if (is_output(block)) step.refuse({block}, "block '{}' writes an output", block);
    scheduling::Nodes loops = places(block);
    auto count = static_cast<int64_t>(loops.size());
    int64_t chosen = -1;
    if (step.decision().is_none()) {
      chosen = static_cast<int64_t>(step.workspace().random()() % (loops.size() + 1)) - 1;
    } else if (!from_attr(step.decision(), chosen) || chosen < -2 || chosen >= count) {
      step.refuse({block}, "decision {} is not a place among {} loops", to_string(step.decision()), count);
    }
    step.decide(chosen);
    if (chosen == -2) return step.loop_result(block);
    return step.loop_result(chosen < 0 ? block->tree->root() : loops[static_cast<size_t>(chosen)]);
  }

 private:
  // Returns the loops around all consumers, if the block may go there.
  static scheduling::Nodes places(scheduling::TreeNode* block) {
    if (not_movable(block) || not_complete_or_reduction(block) || inputs_change(block) || is_output(block)) return {};
    scheduling::Nodes consumers = consumers_of(block), result;
    auto is_carried = [](const scheduling::TreeNode* consumer) { return consumer->carried; };
    if (consumers.empty() || std::ranges::any_of(consumers, is_carried)) return {};
    // When the consumers share only a block, no loop is around all of them.
    scheduling::TreeNode* shared = common_ancestor(consumers);
    if (shared->is_block() && shared != consumers[0]) return {};
    result = shared->is_loop() ? loops_down_to(shared) : loops_above(shared);
    std::erase_if(result, [&](const scheduling::TreeNode* loop) { return is_ancestor(loop, block); });
    return result;
  }
};

}  // namespace relaxc
