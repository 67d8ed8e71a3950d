#include "tir/primitives/reorder.h"

#include <algorithm>

namespace relaxc {

using namespace scheduling;

namespace {

// The loops from the outermost to the innermost of these, between which nothing else stands.
Nodes find_chain(Step& step, const Nodes& loops) {
  TreeNode *outer = loops[0], *inner = loops[0];
  for (TreeNode* loop : loops) {
    if (is_ancestor(loop, outer)) {
      outer = loop;
    } else if (is_ancestor(inner, loop)) {
      inner = loop;
    } else if (!(is_ancestor(outer, loop) && is_ancestor(loop, inner))) {
      step.refuse({outer, loop}, "loops '{}' and '{}' are not in one chain", outer, loop);
    }
  }
  Nodes chain;
  for (TreeNode* at = inner;; at = at->parent) {
    if (!at->is_loop()) step.refuse({outer, inner, at}, "loops '{}' and '{}' are in different blocks", outer, inner);
    chain.insert(chain.begin(), at);
    if (at == outer) break;
  }
  for (size_t i = 0; i + 1 < chain.size(); ++i) {
    if (chain[i]->children.size() != 1)
      step.refuse({chain[i]}, "loop '{}' holds more than the next loop of the chain", chain[i]);
  }
  return chain;
}

// Loops of the chain that are not listed stay where they are.
Nodes new_order(const Nodes& chain, const Nodes& listed) {
  Nodes order;
  auto next = listed.begin();
  for (TreeNode* at : chain) {
    bool is_listed = contains(listed, at);
    order.push_back(is_listed ? *next++ : at);
  }
  return order;
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

// The block's reduce loops would come in another order, and its result depends on that.
Refusal reduces_otherwise(const TreeNode* block, Nodes before, Nodes after) {
  if (!block->in_order) return std::nullopt;
  for (auto* loops : {&before, &after})
    std::erase_if(*loops, [&](const TreeNode* loop) { return !drives(loop, block->axes()).reduce; });
  if (before == after) return std::nullopt;
  return message(
      "the result of block '{}' depends on the order of its reduce loops (of equal elements the first counts, or the "
      "like)",
      block);
}

}  // namespace

void Reorder::apply(Step& step) const {
  Nodes loops = step.loops(this->loops);
  if (loops.empty()) step.refuse({}, "there are no loops");
  for (TreeNode* loop : loops) {
    if (std::ranges::count(loops, loop) > 1) step.refuse({loop}, "loop '{}' is listed twice", loop);
  }
  Nodes chain = find_chain(step, loops);
  TreeNode* outer = chain.front();
  for (TreeNode* block : blocks_below(outer)) step.require(not_reorderable(block, outer), block);
  Nodes order = new_order(chain, loops);
  require_independent_ranges(step, order);
  for (const TreeNode* block : blocks_below(outer)) step.require(reduces_otherwise(block, chain, order), outer);

  // Only the loops themselves move: each position of the chain gets the content of another.
  Tree& tree = *outer->tree;
  TreeNode* parent = outer->parent;
  size_t position = outer->position();
  Nodes body = chain.back()->children;
  for (TreeNode* child : body) tree.detach(child);
  for (TreeNode* at : chain) tree.detach(at);
  tree.insert(parent, position, order.front());
  for (size_t i = 1; i < order.size(); ++i) tree.append(order[i - 1], order[i]);
  for (TreeNode* child : body) tree.append(order.back(), child);
}

}  // namespace relaxc
