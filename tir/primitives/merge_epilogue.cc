#include "tir/primitives/merge_epilogue.h"

#include <algorithm>
#include <functional>

#include "tir/edit/step.h"
#include "tir/primitives/compute_inline.h"

namespace relaxc {

using namespace scheduling;

namespace {

bool is_reduction(const TreeNode* block) {
  return block->block->init ||
         std::ranges::any_of(block->axes(), [](const IterVar& axis) { return axis.kind != IterKind::kSpatial; });
}

// Returns whether the block stores each element from elements at the same place, as far as `made` are read.
bool is_elementwise(const TreeNode* block, const Nodes& made) {
  const BufferStore* stored = single_store(block);
  if (!stored) return false;
  bool is_same = true;
  walk(block->block->body, [&](const BufferLoad& load) {
    bool is_made = std::ranges::any_of(made, [&](const TreeNode* maker) { return write_of(maker, load.buffer); });
    is_same = is_same && (!is_made || load.indices.size() == stored->indices.size());
    for (size_t d = 0; is_same && is_made && d < load.indices.size(); ++d) {
      const bool is_only = is_int(load.indices[d], 0) && is_int(buffer_type(stored->buffer).shape[d], 1);
      is_same = is_only || structural_equal(load.indices[d], stored->indices[d]);
    }
  });
  return is_same;
}

// Returns the blocks that depend on this one.
Nodes all_behind(TreeNode* block) {
  Nodes result = consumers_of(block);
  for (size_t i = 0; i < result.size(); ++i) {
    for (auto* next : consumers_of(result[i])) {
      if (!contains(result, next)) result.push_back(next);
    }
  }
  return result;
}

// Returns the epilogue of the anchor: what depends on it. Where that includes reductions, as in a program of several
// anchors, the epilogue ends before the first of them, and before padding and other changes of place for it.
Nodes epilogue_of(TreeNode* anchor) {
  auto leads_to_reduction = [](TreeNode* block) { return std::ranges::any_of(all_behind(block), is_reduction); };
  Nodes result, from = {anchor};
  for (size_t i = 0; i < from.size(); ++i) {
    const Nodes next = consumers_of(from[i]);
    bool belongs = std::ranges::all_of(next, [&](TreeNode* block) {
      return !is_reduction(block) && (!leads_to_reduction(block) || is_elementwise(block, from));
    });
    if (!belongs) continue;
    for (auto* block : next) {
      if (contains(result, block)) continue;
      result.push_back(block);
      from.push_back(block);
    }
  }
  return result;
}

}  // namespace

Blocks MergeEpilogue::apply(Step& step) const {
  auto* anchor = step.block(this->block);
  const Nodes behind = epilogue_of(anchor);
  auto is_inside = [&](TreeNode* block) { return contains(behind, block); };
  Nodes inlined;  // first the inputs of the epilogue from elsewhere, and what these are computed from
  std::function<void(TreeNode*)> add_inputs = [&](TreeNode* block) {
    for (auto* producer : producers_of(block)) {
      const bool is_input = producer != anchor && !is_inside(producer) && !depend(producer, anchor);
      if (!is_input || contains(inlined, producer) || is_reduction(producer)) continue;
      add_inputs(producer);
      inlined.push_back(producer);
    }
  };
  std::ranges::for_each(behind, add_inputs);
  std::ranges::copy_if(behind, std::back_inserter(inlined),
                       [&](TreeNode* block) { return std::ranges::all_of(consumers_of(block), is_inside); });
  for (auto* block : inlined) {
    if (!is_alive(block) || is_output(block)) continue;
    // A reduction, or a block of another form, stays where it is.
    step.try_apply(ComputeInline{step.variable_of(block)});
  }
  Nodes last = consumers_of(anchor);
  if (behind.empty()) last.clear();
  return step.block_results(last);
}

}  // namespace relaxc
