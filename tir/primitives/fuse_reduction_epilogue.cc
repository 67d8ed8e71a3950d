#include <algorithm>

#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

// Only what is exact for every sum (in real numbers): D = C + e, C a sum. TVM fuses any expression, whose value may
// then differ (a clip of each partial sum is not the clip of the sum).
void Schedule::fuse_reduction_epilogue(BlockRV reduction_rv, BlockRV epilogue_rv) {
  Step step(*this, PrimitiveId::k_fuse_reduction_epilogue, reduction_rv, epilogue_rv);
  TreeNode* sum = step.block(reduction_rv);
  TreeNode* epilogue = step.block(epilogue_rv);
  Tree& tree = *sum->tree;
  TreeNode* scope = scope_of(sum);
  const std::string &sum_name = sum->block->name, &name = epilogue->block->name;
  if (sum == epilogue) step.refuse({sum}, fmt::format("block '{}' cannot be its own epilogue", sum_name));
  step.require(not_movable(sum), sum);
  step.require(not_movable(epilogue), epilogue);
  if (scope != scope_of(epilogue)) step.refuse({sum, epilogue}, "the blocks are in different blocks");
  step.require(not_reduction(sum), sum);
  step.require(not_complete(epilogue), epilogue);
  const BufferStore *update = single_store(sum), *store = single_store(epilogue);
  const BufferStore* init = sum->block->init->as<BufferStore>();
  const Binary *add = update ? update->value.as<Binary>() : nullptr,
               *more = store ? store->value.as<Binary>() : nullptr;
  if (!add || !init || add->op != BinaryOp::kAdd) step.refuse({sum}, fmt::format("block '{}' is no sum", sum_name));
  auto is_load = [&](const Expr& e) {
    const BufferLoad* load = e.as<BufferLoad>();
    return load && same_node(load->buffer, update->buffer);
  };
  if (is_load(add->a) == is_load(add->b)) step.refuse({sum}, fmt::format("block '{}' is no sum", sum_name));
  const Expr value = is_load(add->a) ? add->b : add->a;
  bool adds = more && more->op == BinaryOp::kAdd && is_load(more->a) != is_load(more->b);
  Expr summand = adds ? (is_load(more->a) ? more->b : more->a) : init->value;
  if (!adds || mentions(summand, update->buffer) || mentions(value, update->buffer))
    step.refuse({epilogue}, fmt::format("block '{}' does not add something to '{}'", name, update->buffer->name));
  const BufferLoad& read = *(is_load(more->a) ? more->a : more->b).as<BufferLoad>();

  // Each axis of the epilogue is one of the sum's, over the same domain.
  VarMap axes;
  for (size_t d = 0; d < update->indices.size(); ++d) {
    auto axis_of = [&](const TreeNode* block, const Expr& index) -> const IterVar* {
      for (const IterVar& axis : block->block->iter_vars) {
        if (same_node(axis.var, index)) return &axis;
      }
      return nullptr;
    };
    const IterVar *a = axis_of(sum, update->indices[d]), *b = axis_of(epilogue, read.indices[d]);
    bool alike = a && b && !axes.contains(b->var.get()) && tree.facts.can_prove_equal(a->domain.min, b->domain.min) &&
                 tree.facts.can_prove_equal(a->domain.extent, b->domain.extent);
    if (!alike)
      step.refuse({epilogue, sum},
                  fmt::format("dim {} of '{}' is not the same axis of both blocks", d, update->buffer->name));
    axes.emplace(b->var.get(), a->var);
  }
  for (const IterVar& axis : epilogue->block->iter_vars) {
    if (!axes.contains(axis.var.get()))
      step.refuse({epilogue}, fmt::format("axis '{}' is no axis of block '{}'", axis.var->name, sum_name));
  }
  std::vector<TreeNode*> users = readers(scope, update->buffer);
  std::erase(users, sum);
  if (users.size() != 1 || is_output(sum))
    step.refuse({sum}, fmt::format("'{}' is used by others than block '{}', too", update->buffer->name, name));
  for (const BufferRegion& other : epilogue->block->reads) {
    for (TreeNode* writer : writers(scope, other.buffer)) {
      if (writer != sum && !precedes(writer, sum))
        step.refuse({writer, sum}, fmt::format("block '{}' writes '{}' after block '{}'", writer->block->name,
                                               other.buffer->name, sum_name));
    }
  }
  for (TreeNode* reader : readers(scope, store->buffer)) {
    if (!precedes(epilogue, reader))
      step.refuse({reader, epilogue},
                  fmt::format("block '{}' reads '{}' before", reader->block->name, store->buffer->name));
  }

  const Buffer buffer = update->buffer, to = store->buffer;
  std::vector<Expr> at;
  for (const Expr& index : store->indices) at.push_back(substitute(index, axes));
  Expr begin = substitute(summand, axes);
  bool from_zero = is_int(init->value, 0) || (init->value.is<FloatImm>() && init->value.as<FloatImm>()->value == 0);
  if (!from_zero) begin = init->value + begin;
  sum->block->body = relaxc::store(to, binary(BinaryOp::kAdd, load(to, at), value), at);
  sum->block->init = relaxc::store(to, begin, at);
  refresh_regions(sum);
  tree.remove(epilogue);
  std::erase_if(scope->block->alloc_buffers, [&](const Buffer& own) { return same_node(own, buffer); });
  refresh_regions_above(sum);
  step.done();
}

}  // namespace relaxc
