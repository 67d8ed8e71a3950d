#include "tir/primitives/decompose_padding.h"

#include <algorithm>

#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

BlockRV DecomposePadding::apply(Step& step) const {
  TreeNode* block = step.block(this->block);
  TreeNode* loop = step.loop(this->loop);
  Tree& tree = *block->tree;
  step.require(not_movable(block), block);
  step.require(not_complete(block), block);
  if (!is_ancestor(loop, block) || scope_of(loop) != scope_of(block))
    step.refuse({block, loop}, "loop '{}' is not around block '{}'", loop, block);
  for (TreeNode* other : blocks_below(loop)) {
    if (other->carried) step.refuse({other}, "block '{}' takes what an earlier iteration made", other);
  }
  const BufferStore* store = single_store(block);
  const Call* choice = store ? as_call(store->value, ops::kIfThenElse) : nullptr;
  const Select* selection = store ? store->value.as<Select>() : nullptr;
  std::optional<Expr> condition, inside, pad;
  if (choice) condition = choice->args[0], inside = choice->args[1], pad = choice->args[2];
  if (selection) condition = selection->condition, inside = selection->a, pad = selection->b;
  if (!pad || !(pad->is<IntImm>() || pad->is<FloatImm>()) || block->block->init)
    step.refuse({block}, "block '{}' does not store a value under a condition and else a constant", block);
  bool loads = false;
  walk(*condition, [&](const BufferLoad&) { loads = true; });
  if (loads) step.refuse({block}, "the condition in block '{}' depends on data", block);

  // The pad value goes to all elements of the loop's iterations first.
  Nodes fill_loops;
  VarMap vars, fill_axes;
  const VarMap values = values_of_axes(block);
  for (TreeNode* at : loops_from(loop, block)) {
    const For& old = *at->loop;
    fill_loops.push_back(tree.new_loop(old.var->name + "_pad", substitute(old.extent, vars), old.kind));
    fill_loops.back()->loop->thread = old.thread;
    vars.emplace(old.var.get(), tree.facts.simplify(substitute(old.min, vars) + fill_loops.back()->var()));
  }
  std::vector<IterVar> axes;
  for (const IterVar& axis : block->axes()) axes.push_back(fresh_axis(axis, vars, fill_axes));
  std::vector<Expr> at = substitute(store->indices, fill_axes);
  TreeNode* fill = leaf_block(tree, block->name() + "_pad_const", axes, relaxc::store(store->buffer, *pad, at));
  if (block->block->predicate) fill->block->predicate = substitute(*block->block->predicate, vars);
  tree.insert(loop->parent, loop->position(), tree.wrap(fill, fill_loops));

  Stmt copy = relaxc::store(store->buffer, *inside, store->indices);
  for (const Expr& one : conjuncts(condition)) restrict_block(block, tree.facts.simplify(substitute(one, values)));
  block->block->body = copy;
  block->partial = true;
  refresh_regions_around(block);
  return step.block_result(fill);
}

}  // namespace relaxc
