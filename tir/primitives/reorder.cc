#include <algorithm>

#include "tir/edit/step.h"

namespace relaxc {

using namespace scheduling;

void Schedule::reorder(Variadic loop_rvs) {
  Step step(*this, PrimitiveId::k_reorder, loop_rvs);
  std::vector<TreeNode*> loops = step.loops(loop_rvs);
  if (loops.empty()) step.refuse({}, "there are no loops");
  for (size_t i = 0; i < loops.size(); ++i) {
    if (std::count(loops.begin(), loops.end(), loops[i]) > 1)
      step.refuse({loops[i]}, fmt::format("loop '{}' is listed twice", loops[i]->loop->var->name));
  }
  // The chain from the outermost to the innermost of them.
  TreeNode* outer = loops[0];
  TreeNode* inner = loops[0];
  for (TreeNode* loop : loops) {
    if (is_ancestor(loop, outer)) {
      outer = loop;
    } else if (is_ancestor(inner, loop)) {
      inner = loop;
    } else if (!(is_ancestor(outer, loop) && is_ancestor(loop, inner))) {
      step.refuse({outer, loop}, fmt::format("loops '{}' and '{}' are not in one chain", outer->loop->var->name,
                                             loop->loop->var->name));
    }
  }
  std::vector<TreeNode*> chain;
  for (TreeNode* at = inner;; at = at->parent) {
    if (!at->is_loop())
      step.refuse({outer, inner, at}, fmt::format("loops '{}' and '{}' are in different blocks", outer->loop->var->name,
                                                  inner->loop->var->name));
    chain.insert(chain.begin(), at);
    if (at == outer) break;
  }
  for (size_t i = 0; i + 1 < chain.size(); ++i) {
    if (chain[i]->children.size() != 1)
      step.refuse({chain[i]},
                  fmt::format("loop '{}' holds more than the next loop of the chain", chain[i]->loop->var->name));
  }
  for (TreeNode* block : blocks_below(outer)) step.require(not_reorderable(block, outer), block);

  // Loops of the chain that are not listed stay where they are.
  std::vector<TreeNode*> order;
  size_t next = 0;
  for (TreeNode* at : chain) {
    bool listed = std::find(loops.begin(), loops.end(), at) != loops.end();
    order.push_back(listed ? loops[next++] : at);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    for (size_t later = i + 1; later < order.size(); ++later) {
      const For& loop = *order[i]->loop;
      if (mentions(loop.extent, order[later]->loop->var) || mentions(loop.min, order[later]->loop->var))
        step.refuse({order[i], order[later]}, fmt::format("the range of loop '{}' depends on loop '{}'", loop.var->name,
                                                          order[later]->loop->var->name));
    }
  }
  for (const TreeNode* block : blocks_below(outer)) {
    if (!block->in_order) continue;
    std::vector<const TreeNode*> before, after;
    for (size_t i = 0; i < chain.size(); ++i) {
      auto drives_reduce = [&](const TreeNode* loop) {
        return std::any_of(block->block->iter_vars.begin(), block->block->iter_vars.end(), [&](const IterVar& axis) {
          return axis.kind != IterKind::kSpatial && mentions(axis.value, loop->loop->var);
        });
      };
      if (drives_reduce(chain[i])) before.push_back(chain[i]);
      if (drives_reduce(order[i])) after.push_back(order[i]);
    }
    if (before != after)
      step.refuse({outer}, fmt::format("the result of block '{}' depends on the order of its reduce loops (of equal "
                                       "elements the first counts, or the like)",
                                       block->block->name));
  }
  // Only the loops themselves move: each position of the chain gets the content of another.
  Tree& tree = *outer->tree;
  TreeNode* parent = outer->parent;
  size_t position = outer->position();
  std::vector<TreeNode*> body = inner->children;
  for (TreeNode* child : body) tree.detach(child);
  for (TreeNode* at : chain) tree.detach(at);
  tree.insert(parent, position, order.front());
  for (size_t i = 1; i < order.size(); ++i) tree.append(order[i - 1], order[i]);
  for (TreeNode* child : body) tree.append(order.back(), child);
  step.done();
}

}  // namespace relaxc
