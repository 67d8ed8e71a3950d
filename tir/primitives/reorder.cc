#include "tir/primitives/reorder.h"

#include <algorithm>

namespace relaxc {

using namespace scheduling;

namespace {

// Returns the chain from the outermost to the innermost of these loops; refuses when it holds anything else.
Nodes find_chain(Step& step, const Nodes& loops) {
  auto depth = [](const TreeNode* loop) { return loops_above(loop).size(); };
  TreeNode *outer = std::ranges::min(loops, {}, depth), *inner = std::ranges::max(loops, {}, depth);
  Nodes chain = loops_down_to(inner);
  for (TreeNode* loop : loops) {
    if (!contains(chain, loop)) step.refuse({inner, loop}, "loops '{}' and '{}' are not in one chain", inner, loop);
  }
  chain.erase(chain.begin(), std::ranges::find(chain, outer));
  for (size_t i = 0; i + 1 < chain.size(); ++i) {
    if (chain[i]->children.size() != 1)
      step.refuse({chain[i]}, "loop '{}' holds more than the next loop of the chain", chain[i]);
  }
  return chain;
}

void require_independent_ranges(Step& step, const Nodes& order) {
  for (size_t i = 0; i < order.size(); ++i) {
    for (size_t later = i + 1; later < order.size(); ++later) {
      const For& loop = *order[i]->loop;
      if (uses_var(loop.extent, order[later]->var()) || uses_var(loop.min, order[later]->var()))
        step.refuse({order[i], order[later]}, "the range of loop '{}' depends on loop '{}'", loop.var, order[later]);
    }
  }
}

// Refuses another order of the reduce loops of a block whose result depends on it.
Refusal reduces_otherwise(const TreeNode* block, Nodes before, Nodes after) {
  if (!block->in_order) return std::nullopt;
  for (auto* loops : {&before, &after})
    std::erase_if(*loops, [&](const TreeNode* loop) { return !drives(loop, block->axes()).reduce; });
  if (before == after) return std::nullopt;
  return message(
      "the result of block '{}' depends on the order of its reduce loops (of equal elements the first counts, "
      "or the like)",
      block);
}

}  // namespace

Reorder::Orders Reorder::orders(Step& step) const {
  Nodes loops = step.loops(this->loops);
  if (loops.empty()) step.refuse({}, "there are no loops");
  for (TreeNode* loop : loops) {
    if (std::ranges::count(loops, loop) > 1) step.refuse({loop}, "loop '{}' is listed twice", loop);
  }
  Nodes chain = find_chain(step, loops);
  TreeNode* outer = chain.front();
  for (TreeNode* block : blocks_below(outer)) step.require(not_reorderable_from(outer, block), block);
  auto next = loops.begin();
  Nodes order = map_each(chain, [&](TreeNode* at) { return contains(loops, at) ? *next++ : at; });
  require_independent_ranges(step, order);
  for (const TreeNode* block : blocks_below(outer)) {
    step.require(reduces_otherwise(block, chain, order), outer);
    step.require(reverses_dependence(block, chain, order), outer);
  }
  return {std::move(chain), std::move(order)};
}

void Reorder::apply(Step& step) const {
  // The loops change places; the body of the innermost one stays in the innermost place.
  auto [chain, order] = orders(step);
  TreeNode* outer = chain.front();
  Tree& tree = *outer->tree;
  TreeNode* parent = outer->parent;
  size_t position = outer->position();
  Nodes body = chain.back()->children;
  for (TreeNode* child : body) tree.detach(child);
  for (TreeNode* at : chain) tree.detach(at);
  for (TreeNode* child : body) tree.append(order.back(), child);
  tree.insert(parent, position, tree.wrap(order.back(), {order.begin(), order.end() - 1}));
}

}  // namespace relaxc
