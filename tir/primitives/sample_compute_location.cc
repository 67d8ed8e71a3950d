#include "tir/primitives/sample_compute_location.h"

#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

namespace {

// The loops around all consumers, if the block may go there.
Nodes places(TreeNode* block) {
  if (not_movable(block) || not_complete_or_reduction(block) || inputs_change(block) || is_output(block)) return {};
  Nodes consumers = consumers_of(block), result;
  if (consumers.empty()) return {};
  for (const TreeNode* consumer : consumers) {
    if (consumer->carried) return {};
  }
  TreeNode* shared = common_ancestor(consumers);
  if (shared->is_block() && shared != consumers[0]) return {};
  for (TreeNode* at = shared; at; at = at->parent) {
    if (at->is_block() && at != consumers[0]) break;
    if (at->is_loop() && !is_ancestor(at, block)) result.insert(result.begin(), at);
  }
  return result;
}

}  // namespace

// The decision is the loop's number from the outermost on; -1: the block stays where it is (compute_at does nothing);
// -2: it is inlined, for which the block itself stands.
LoopRV SampleComputeLocation::apply(Step& step) const {
  TreeNode* block = step.block(this->block);
  if (is_output(block)) step.refuse({block}, "block '{}' writes an output", block);
  Nodes loops = places(block);
  auto count = static_cast<int64_t>(loops.size());
  int64_t chosen = -1;
  if (step.decision().is_none()) {
    chosen = static_cast<int64_t>(step.workspace().random()() % (loops.size() + 1)) - 1;
  } else if (!from_attr(step.decision(), chosen) || chosen < -2 || chosen >= count) {
    step.refuse({block}, "decision {} is no place among {} loops", to_string(step.decision()), count);
  }
  step.decide(chosen);
  if (chosen == -2) return step.loop_result(block);
  return step.loop_result(chosen < 0 ? block->tree->root() : loops[static_cast<size_t>(chosen)]);
}

}  // namespace relaxc
