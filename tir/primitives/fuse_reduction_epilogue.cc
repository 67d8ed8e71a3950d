#include "tir/primitives/fuse_reduction_epilogue.h"

#include "tir/analysis/combiner.h"
#include "tir/analysis/nests.h"
#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

namespace {

// element + other, or other + element, where the element is loaded from the buffer and the other operand is not.
struct Addition {
  BufferLoad element;
  Expr other;
};
std::optional<Addition> match_addition(const Expr& value, const Buffer& buffer) {
  const Binary* add = value.as<Binary>();
  if (!add || add->op != BinaryOp::kAdd) return std::nullopt;
  auto is_element = [&](const Expr& e) {
    const BufferLoad* load = e.as<BufferLoad>();
    return load && same_node(load->buffer, buffer);
  };
  if (is_element(add->a) == is_element(add->b)) return std::nullopt;
  bool first = is_element(add->a);
  return Addition{*(first ? add->a : add->b).as<BufferLoad>(), first ? add->b : add->a};
}

// Maps each axis of the epilogue to the axis of the sum that runs over the same indices of the sum's buffer.
VarMap match_epilogue_axes(Step& step, TreeNode* sum, TreeNode* epilogue, const BufferStore& update,
                           const BufferLoad& read) {
  const Analyzer& facts = sum->tree->facts;
  VarMap axes;
  for (size_t d = 0; d < update.indices.size(); ++d) {
    const IterVar *a = axis_named(sum, update.indices[d]), *b = axis_named(epilogue, read.indices[d]);
    bool alike = a && b && !axes.contains(b->var.get()) && facts.can_prove_equal(a->domain.min, b->domain.min) &&
                 facts.can_prove_equal(a->domain.extent, b->domain.extent);
    if (!alike) step.refuse({epilogue, sum}, "dim {} of '{}' is not the same axis of both blocks", d, update.buffer);
    axes.emplace(b->var.get(), a->var);
  }
  for (const IterVar& axis : epilogue->axes()) {
    if (!axes.contains(axis.var.get()))
      step.refuse({epilogue}, "axis '{}' is not an axis of block '{}'", axis.var, sum);
  }
  return axes;
}

// Refuses other uses of the sum, and blocks between the two that make operands or read results of the epilogue.
void require_nothing_between(Step& step, TreeNode* sum, TreeNode* epilogue, const Buffer& buffer) {
  TreeNode* scope = scope_of(sum);
  Nodes users = readers(scope, buffer);
  std::erase(users, sum);
  if (users.size() != 1 || is_output(sum))
    step.refuse({sum}, "'{}' is used by others than block '{}', too", buffer, epilogue);
  for (const BufferRegion& other : epilogue->block->reads) {
    for (TreeNode* writer : writers(scope, other.buffer)) {
      if (writer != sum && !precedes(writer, sum))
        step.refuse({writer, sum}, "block '{}' writes '{}' after block '{}'", writer, other.buffer, sum);
    }
  }
  const Buffer& to = single_store(epilogue)->buffer;
  for (TreeNode* reader : readers(scope, to)) {
    if (!precedes(epilogue, reader)) step.refuse({reader, epilogue}, "block '{}' reads '{}' before", reader, to);
  }
}

}  // namespace

// Fuses D = C + e, where C is a sum: that is exact in real numbers. TVM fuses any expression, whose value may
// then differ (a clip of each partial sum is not the clip of the sum).
void FuseReductionEpilogue::apply(Step& step) const {
  TreeNode* sum = step.block(this->reduction_block);
  TreeNode* epilogue = step.block(this->epilogue_block);
  if (sum == epilogue) step.refuse({sum}, "block '{}' cannot be its own epilogue", sum);
  step.require(not_movable(sum), sum);
  step.require(not_movable(epilogue), epilogue);
  if (scope_of(sum) != scope_of(epilogue)) step.refuse({sum, epilogue}, "the blocks are in different blocks");
  step.require(not_reduction(sum), sum);
  step.require(not_complete(epilogue), epilogue);
  const BufferStore *update = single_store(sum), *store = single_store(epilogue);
  std::optional<Combiner> combiner = update ? find_combiner(*sum->block) : std::nullopt;
  if (!combiner || combiner->condition || combiner->parts.front().op != BinaryOp::kAdd)
    step.refuse({sum}, "block '{}' is not a sum", sum);
  const Combiner::Part& part = combiner->parts.front();
  const Buffer buffer = update->buffer;
  std::optional<Addition> more = store ? match_addition(store->value, buffer) : std::nullopt;
  if (!more || uses_var(more->other, buffer))
    step.refuse({epilogue}, "block '{}' does not add something to '{}'", epilogue, buffer);
  VarMap axes = match_epilogue_axes(step, sum, epilogue, *update, more->element);
  require_nothing_between(step, sum, epilogue, buffer);

  std::vector<Expr> at = substitute(store->indices, axes);
  Expr begin = substitute(more->other, axes);
  if (!is_zero(part.init)) begin = part.init + begin;
  const Buffer to = store->buffer;
  sum->block->body = relaxc::store(to, binary(BinaryOp::kAdd, load(to, at), part.value), at);
  sum->block->init = relaxc::store(to, begin, at);
  refresh_regions(sum);
  sum->tree->remove_with_buffer(epilogue, buffer);
  refresh_regions_above(sum);
}

}  // namespace relaxc
