#include <algorithm>

#include "tir/analysis/combiner.h"
#include "tir/analysis/nests.h"
#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

// The loop's iterations reduce side by side into elements of their own, along a new dim; a second block, which keeps
// the name, reduces those.
BlockRV Schedule::rfactor(LoopRV loop_rv, int64_t factor_axis) {
  Step step(*this, PrimitiveId::k_rfactor, loop_rv, factor_axis);
  TreeNode* loop = step.loop(loop_rv);
  Tree& tree = *loop->tree;
  std::vector<TreeNode*> below = blocks_below(loop);
  if (below.size() != 1)
    step.refuse({loop}, fmt::format("loop '{}' holds {} blocks, expected one", loop->loop->var->name, below.size()));
  TreeNode* block = below[0];
  Block& content = *block->block;
  step.require(not_reduction(block), block);
  step.require(not_reorderable(block), block);
  step.require(not_movable(block), block);
  const std::optional<Combiner> combiner = find_combiner(content);
  if (!combiner)
    step.refuse({block}, fmt::format("block '{}' is neither a sum, product, max or min of values for each buffer that "
                                     "it writes, nor chooses between such values by comparing them",
                                     content.name));
  if (!combiner->regroups)
    step.refuse({block}, fmt::format("what block '{}' chooses depends on how its iterations are grouped (of equal "
                                     "elements the last counts, or the like)",
                                     content.name));
  auto rank = static_cast<int64_t>(combiner->parts.front().store->indices.size());
  for (const Combiner::Part& part : combiner->parts) {
    if (!is_element(part.store->indices))
      step.refuse({block}, fmt::format("block '{}' reduces vectors of '{}'; write their lanes as a loop",
                                       block->block->name, part.store->buffer->name));
    if (static_cast<int64_t>(part.store->indices.size()) != rank)
      step.refuse({block}, fmt::format("the buffers that block '{}' writes differ in rank", content.name));
  }
  if (factor_axis < -rank - 1 || factor_axis > rank)
    step.refuse({block}, fmt::format("factor_axis {} is not in [{}, {}]", factor_axis, -rank - 1, rank));
  if (factor_axis < 0) factor_axis += rank + 1;

  std::vector<TreeNode*> loops = loops_above(block), spatial_loops;
  TreeNode* top = nullptr;  // the outermost loop that both blocks cannot share
  bool drives_reduce = false, reduces = false, is_outermost = false;
  for (TreeNode* at : loops) {
    bool spatial = false, reduce = false;
    for (const IterVar& axis : content.iter_vars) {
      if (mentions(axis.value, at->loop->var)) (axis.kind == IterKind::kSpatial ? spatial : reduce) = true;
    }
    if (at == loop) drives_reduce = reduce;
    if (at == loop) is_outermost = !reduces;
    reduces = reduces || (reduce && !is_int(at->loop->extent, 1));
    if (!top && reduce) top = at;
    if (top && at->children.size() != 1)
      step.refuse({at, block}, fmt::format("loop '{}' holds more than block '{}'", at->loop->var->name, content.name));
    if (mentions_any(at->loop->extent, loops))
      step.refuse({at}, fmt::format("the extent of loop '{}' depends on another loop", at->loop->var->name));
    if (!reduce) spatial_loops.push_back(at);
  }
  if (!drives_reduce)
    step.refuse({loop, block},
                fmt::format("loop '{}' drives no reduce axis of block '{}'", loop->loop->var->name, content.name));
  if (!is_outermost && !combiner->commutes)
    step.refuse({loop, block}, fmt::format("block '{}' keeps the first of equal elements: of its reduce loops only the "
                                           "outermost can be factored, '{}' is not",
                                           content.name, loop->loop->var->name));
  while (top->parent->is_loop() && top->parent->children.size() == 1) top = top->parent;
  auto first_own = std::find(loops.begin(), loops.end(), top);

  // Loops that drive the same reduce axes become axes of their own, this one a spatial axis.
  DType dtype = dtype_of(loop->loop->var);
  VarRef factor = make_var("v" + loop->loop->var->name, prim_type(dtype));
  Expr zero_index = int_imm(0, dtype), extent = loop->loop->extent;
  std::vector<IterVar> axes{{factor, {zero_index, extent}, IterKind::kSpatial, loop->loop->var}}, reduce_axes;
  VarMap loop_axes{{loop->loop->var.get(), factor}}, positions;
  for (const IterVar& axis : content.iter_vars) {
    VarRef var = make_var(axis.var->name, axis.var.type());
    bool factored = mentions(axis.value, loop->loop->var);
    if (!factored) {
      positions.emplace(axis.var.get(), var);
      (axis.kind == IterKind::kSpatial ? axes : reduce_axes).push_back({var, axis.domain, axis.kind, axis.value});
      continue;
    }
    for (TreeNode* at : loops) {
      if (!mentions(axis.value, at->loop->var) || loop_axes.contains(at->loop->var.get())) continue;
      VarRef own = make_var("v" + at->loop->var->name, at->loop->var.type());
      loop_axes.emplace(at->loop->var.get(), own);
      reduce_axes.push_back({own, {at->loop->min, at->loop->extent}, IterKind::kReduce, at->loop->var});
    }
    positions.emplace(axis.var.get(), substitute(axis.value, loop_axes));
  }
  axes.insert(axes.end(), reduce_axes.begin(), reduce_axes.end());
  // A condition on the factor's iterations would leave elements without a value: there the update takes the identity.
  // It can be said in the axes when all of its loops are axes.
  std::vector<Expr> conditions, guards, shared;
  bool partial = false;  // a condition on what are axes now leaves out some of their values
  for (const Expr& condition : conjuncts(content.predicate)) {
    if (!mentions(condition, loop->loop->var)) {
      conditions.push_back(condition);
      bool reduces = false;
      for (TreeNode* at : loops) {
        bool is_spatial = std::find(spatial_loops.begin(), spatial_loops.end(), at) != spatial_loops.end();
        reduces = reduces || (!is_spatial && mentions(condition, at->loop->var));
      }
      if (!reduces) shared.push_back(condition);
      partial = partial || reduces;
      continue;
    }
    guards.push_back(substitute(condition, loop_axes));
    if (mentions_any(guards.back(), loops))
      step.refuse({block}, "a condition of the block ties the loop to loops that drive other axes");
  }

  // One around the other, the block's own inside: it may read memory, which the others guard.
  std::vector<Expr> nested;
  if (combiner->condition) nested.push_back(substitute(*combiner->condition, positions));
  if (!guards.empty()) nested.push_back(*conjunction(guards));
  auto with_factor = [&](std::vector<Expr> list, const Expr& e) {
    list.insert(list.begin() + factor_axis, e);
    return list;
  };
  std::vector<Buffer> partial_buffers;
  std::vector<Ref<BufferLoad>> part_at, whole_at;  // elements of one buffer after the other
  std::vector<Expr> values;
  std::vector<Stmt> inits;
  for (size_t i = 0; i < combiner->parts.size(); ++i) {
    const Combiner::Part& part = combiner->parts[i];
    const BufferType& type = buffer_type(part.store->buffer);
    Expr dim = type.shape.empty() ? extent : cast_to(extent, dtype_of(type.shape[0]));
    partial_buffers.push_back(
        make_buffer(part.store->buffer->name + "_rf", type.dtype, with_factor(type.shape, dim), type.scope));
    std::vector<Expr> at;
    for (const Expr& index : part.store->indices) at.push_back(substitute(index, positions));
    part_at.push_back(cast<BufferLoad>(load(partial_buffers[i], with_factor(at, factor))));
    whole_at.push_back(cast<BufferLoad>(load(part.store->buffer, part.store->indices)));
    Expr init = part.init;
    if (part.op && !structural_equal(init, combiner->identity(i))) init = combiner->identity(i);
    inits.push_back(store(partial_buffers[i], substitute(init, positions), part_at[i]->indices));
    values.push_back(substitute(part.value, positions));
    for (const Expr& guard : part.op ? nested : std::vector<Expr>()) values[i] = if_then_else(guard, values[i], init);
  }
  Stmt partial_body = combiner->body(part_at, values);
  for (const Expr& guard : combiner->is_choice() ? nested : std::vector<Expr>())
    partial_body = make(IfThenElse{guard, partial_body, std::nullopt}, content.body.span());
  TreeNode* rf = leaf_block(tree, content.name + "_rf", axes, partial_body, seq(inits));
  rf->partial = partial;
  rf->in_order = block->in_order;
  rf->block->predicate = conjunction(conditions);
  rf->block->annotations = content.annotations;
  rf->span = block->span;

  // The block itself: the spatial loops again, then the factor's.
  std::vector<TreeNode*> again;
  VarMap renamed;
  for (auto it = first_own; it != loops.end(); ++it) {
    bool is_spatial = std::find(spatial_loops.begin(), spatial_loops.end(), *it) != spatial_loops.end();
    if (!is_spatial && *it != loop) continue;
    const For& old = *(*it)->loop;
    again.push_back(tree.new_loop(old.var->name, old.extent, *it == loop ? ForKind::kSerial : old.kind));
    again.back()->loop->thread = old.thread;
    again.back()->loop->annotations = old.annotations;
    renamed.emplace(old.var.get(), again.back()->loop->var);
  }
  VarRef last = make_var(factor->name, factor.type());
  tree.facts.bind(last, zero_index, extent);
  std::vector<IterVar> final_axes{{last, {zero_index, extent}, IterKind::kReduce, renamed.at(loop->loop->var.get())}};
  for (const IterVar& axis : content.iter_vars) {
    if (axis.kind == IterKind::kSpatial)
      final_axes.push_back({axis.var, axis.domain, axis.kind, substitute(axis.value, renamed)});
  }
  values.clear();
  for (size_t i = 0; i < combiner->parts.size(); ++i)
    values.push_back(load(partial_buffers[i], with_factor(combiner->parts[i].store->indices, last)));
  TreeNode* scope = scope_of(block);
  tree.replace(block, rf);
  content.iter_vars = final_axes;
  content.body = combiner->body(whole_at, values);
  content.annotations = {};
  content.predicate.reset();
  std::vector<Expr> kept;
  for (const Expr& condition : shared) kept.push_back(substitute(condition, renamed));
  content.predicate = conjunction(kept);
  block->affine.reset();
  refresh_regions(block);
  TreeNode* nest = tree.wrap(block, again);
  tree.insert(top->parent, top->position() + 1, nest);
  for (const Buffer& buffer : partial_buffers) scope->block->alloc_buffers.push_back(buffer);
  refresh_regions_above(block);
  return step.block_result(rf);
}

}  // namespace relaxc
