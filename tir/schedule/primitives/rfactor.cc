#include <algorithm>

#include "tir/compute.h"
#include "tir/schedule/move.h"

namespace relaxc {

using namespace scheduling;

namespace {

// out = op(out, value), and the value that changes nothing.
struct Combiner {
  BinaryOp op;
  Expr (*identity)(DType);
};
constexpr Combiner kCombiners[] = {
    {BinaryOp::kAdd, zero}, {BinaryOp::kMul, one}, {BinaryOp::kMax, lowest}, {BinaryOp::kMin, highest}};

struct Update {
  const Combiner* combiner;
  Expr value;
};
std::optional<Update> find_update(const BufferStore& store) {
  const Binary* node = store.value.as<Binary>();
  if (!node) return std::nullopt;
  auto is_itself = [&](const Expr& e) {
    const BufferLoad* load = e.as<BufferLoad>();
    if (!load || !same_node(load->buffer, store.buffer)) return false;
    for (size_t d = 0; d < store.indices.size(); ++d) {
      if (!structural_equal(load->indices[d], store.indices[d])) return false;
    }
    return true;
  };
  for (const Combiner& row : kCombiners) {
    if (row.op != node->op) continue;
    if (is_itself(node->a) && !mentions(node->b, store.buffer)) return Update{&row, node->b};
    if (is_itself(node->b) && !mentions(node->a, store.buffer)) return Update{&row, node->a};
  }
  return std::nullopt;
}

}  // namespace

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
  const BufferStore* update = single_store(block);
  const BufferStore* init = content.init->as<BufferStore>();
  std::optional<Update> found = update && init ? find_update(*update) : std::nullopt;
  if (!found) step.refuse({block}, fmt::format("block '{}' is not a sum, product, max or min of values", content.name));
  const Buffer buffer = update->buffer;
  const BufferType& type = buffer_type(buffer);
  auto rank = static_cast<int64_t>(type.shape.size());
  if (factor_axis < -rank - 1 || factor_axis > rank)
    step.refuse({block}, fmt::format("factor_axis {} is not in [{}, {}]", factor_axis, -rank - 1, rank));
  if (factor_axis < 0) factor_axis += rank + 1;

  std::vector<TreeNode*> loops = loops_above(block), spatial_loops;
  TreeNode* top = nullptr;  // the outermost loop that both blocks cannot share
  bool drives_reduce = false;
  for (TreeNode* at : loops) {
    bool spatial = false, reduce = false;
    for (const IterVar& axis : content.iter_vars) {
      if (mentions(axis.value, at->loop->var)) (axis.kind == IterKind::kSpatial ? spatial : reduce) = true;
    }
    if (at == loop) drives_reduce = reduce;
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

  std::vector<Expr> shape = type.shape, at;
  for (const Expr& index : update->indices) at.push_back(substitute(index, positions));
  auto with_factor = [&](std::vector<Expr> list, const Expr& e) {
    list.insert(list.begin() + factor_axis, e);
    return list;
  };
  Buffer sums =
      make_buffer(buffer->name + "_rf", type.dtype,
                  with_factor(shape, shape.empty() ? extent : cast_to(extent, dtype_of(shape[0]))), type.scope);
  Expr identity = found->combiner->identity(type.dtype);
  if (structural_equal(init->value, identity)) identity = init->value;
  Expr value = substitute(found->value, positions);
  if (!guards.empty()) value = if_then_else(*conjunction(guards), value, identity);
  std::vector<Expr> partial_at = with_factor(at, factor);
  Stmt partial_body = store(sums, binary(found->combiner->op, load(sums, partial_at), value), partial_at);
  TreeNode* rf = leaf_block(tree, content.name + "_rf", axes, partial_body, store(sums, identity, partial_at));
  rf->partial = partial;
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
  Stmt body =
      store(buffer,
            binary(found->combiner->op, load(buffer, update->indices), load(sums, with_factor(update->indices, last))),
            update->indices);
  TreeNode* scope = scope_of(block);
  tree.replace(block, rf);
  content.iter_vars = final_axes;
  content.body = body;
  content.annotations = {};
  content.predicate.reset();
  std::vector<Expr> kept;
  for (const Expr& condition : shared) kept.push_back(substitute(condition, renamed));
  content.predicate = conjunction(kept);
  block->affine.reset();
  refresh_regions(block);
  TreeNode* nest = tree.wrap(block, again);
  tree.insert(top->parent, top->position() + 1, nest);
  scope->block->alloc_buffers.push_back(sums);
  refresh_regions_above(block);
  return step.block_result(rf);
}

}  // namespace relaxc
