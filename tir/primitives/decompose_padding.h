#pragma once
#include "tir/edit/move.h"
#include "tir/primitives/primitive.h"

namespace relaxc {

struct DecomposePadding {
  BlockRV block;
  LoopRV loop;

  static constexpr PrimitiveInfo kInfo{"decompose_padding",
                                       "divides a block that pads into two: one that fills with the pad value, before "
                                       "the loop, and one that copies. Returns the first"};
  static constexpr auto fields() {
    return list(required<&DecomposePadding::block>("copies, or pads"),
                required<&DecomposePadding::loop>("around the block"));
  }
  BlockRV apply(scheduling::Step& step) const {
    auto* block = step.block(this->block);
    auto* loop = step.loop(this->loop);
    auto& tree = *block->tree;
    step.require_all(block, scheduling::not_movable, scheduling::not_complete);
    step.require_around(loop, block);
    for (auto* other : blocks_below(loop)) {
      if (other->carried) step.refuse({other}, "block '{}' takes what an earlier iteration made", other);
    }
    const BufferStore* store = single_store(block);
    std::optional<Branches> choice = store ? branches_of(store->value) : std::nullopt;
    if (!choice || !(choice->b.is<IntImm>() || choice->b.is<FloatImm>()) || block->block->init)
      step.refuse({block}, "block '{}' does not store a value under a condition and else a constant", block);
    if (holds<BufferLoad>(choice->condition))
      step.refuse({block}, "the condition in block '{}' depends on data", block);

    // The pad value goes to all elements of the loop's iterations first.
    scheduling::Nodes fill_loops;
    VarMap vars, fill_axes;
    const VarMap values = values_of_axes(block);
    for (auto* at : loops_from(loop, block)) {
      const For& old = *at->loop;
      fill_loops.push_back(tree.new_loop(old.var->name + "_pad", substitute(old.extent, vars), old.kind));
      fill_loops.back()->loop->thread = old.thread;
      vars.emplace(old.var.get(), tree.facts.simplify(substitute(old.min, vars) + fill_loops.back()->var()));
    }
    std::vector<IterVar> axes;
    for (const IterVar& axis : block->axes()) axes.push_back(scheduling::fresh_axis(axis, vars, fill_axes));
    std::vector<Expr> at = scheduling::substitute(store->indices, fill_axes);
    auto* fill = leaf_block(tree, block->name() + "_pad_const", axes, relaxc::store(store->buffer, choice->b, at));
    if (block->block->predicate) fill->block->predicate = substitute(*block->block->predicate, vars);
    tree.insert(loop->parent, loop->position(), tree.wrap(fill, fill_loops));

    Stmt copy = relaxc::store(store->buffer, choice->a, store->indices);
    for (const Expr& one : conjuncts(choice->condition))
      restrict_block(block, tree.facts.simplify(substitute(one, values)));
    block->block->body = copy;
    block->partial = true;
    refresh_regions_around(block);
    return step.block_result(fill);
  }
};

}  // namespace relaxc
