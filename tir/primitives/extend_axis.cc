#include "tir/primitives/extend_axis.h"

#include "tir/analysis/conditions.h"
#include "tir/edit/accesses.h"
#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

namespace {

// Returns the dim of the stored buffer that the axis is, over all of it.
size_t dim_of_axis(Step& step, TreeNode* block, const BufferStore& store, const IterVar& axis) {
  std::optional<size_t> dim;
  for (size_t d = 0; d < store.indices.size(); ++d) {
    if (!dim && same_node(store.indices[d], axis.var)) {
      dim = d;
    } else if (uses_var(store.indices[d], VarSet{axis.var.get()})) {
      step.refuse({block}, "index {} of '{}' depends on axis '{}', too, or is not the axis", d, store.buffer, axis.var);
    }
  }
  const bool is_whole = dim && is_int(axis.domain.min, 0) &&
                        block->tree->facts.can_prove_equal(axis.domain.extent, buffer_type(store.buffer).shape[*dim]);
  if (!is_whole) step.refuse({block}, "axis '{}' is not an index over a whole dim of '{}'", axis.var, store.buffer);
  return *dim;
}

// Returns what is wrong, or not known to be right, at new positions: a read outside of a buffer, a quotient by data.
// Conditions of the block's own hold where it reads.
Refusal not_readable(const TreeNode* block, const Expr& value, const Analyzer& facts) {
  const BufferLoad* load = value.as<BufferLoad>();
  if (load && write_of(block, load->buffer)) return std::nullopt;  // the element that is stored
  if (std::optional<Branches> choice = branches_of(value)) {
    Analyzer inside = facts;
    for (const Expr& one : conjuncts(choice->condition)) inside.assume(one);
    Refusal refusal = not_readable(block, choice->condition, facts);
    if (!refusal) refusal = not_readable(block, choice->a, inside);
    return refusal ? refusal : not_readable(block, choice->b, facts);
  }
  for (size_t d = 0; load && d < load->indices.size(); ++d) {
    const Expr& index = load->indices[d];
    const DType dtype = dtype_of(index);
    const Expr dim = cast_to(buffer_type(load->buffer).shape[d], dtype);
    if (!facts.can_prove(index >= int_imm(0, dtype)) || !facts.can_prove(index < dim))
      return message("index {} of '{}' is not known to stay in its range with the larger extent", d, load->buffer);
  }
  const Binary* node = value.as<Binary>();
  const bool divides = node && !dtype_of(node->a).is_float() && is_division(node->op);
  if (divides && !as_int(node->b)) return message("block '{}' divides by what may be 0 at new positions", block);
  Refusal refusal;
  visit_children(value, [&](const NodeRef& child, Slot) {
    if (!refusal) refusal = not_readable(block, cast_handle<Expr>(child), facts);
  });
  return refusal;
}

}  // namespace

void ExtendAxis::apply(Step& step) const {
  TreeNode* block = step.block(this->block);
  Tree& tree = *block->tree;
  step.require_all(block, not_movable, not_complete_or_reduction, not_reorderable);
  const BufferStore* store = single_store(block);
  if (!store) step.refuse({block}, "block '{}' does not store one element", block);
  if (axis < 0 || axis >= std::ssize(block->axes())) step.refuse({block}, "block '{}' has no axis {}", block, axis);
  const auto position = static_cast<size_t>(axis);
  const IterVar& extended = block->axes()[position];
  if (extended.kind != IterKind::kSpatial) step.refuse({block}, "axis '{}' is not spatial", extended.var);
  const Expr before = extended.domain.extent, after = int_imm(extent, dtype_of(before));
  if (extent > kLargestNumber) step.refuse({block}, "{} is too large a number", extent);
  if (!tree.facts.can_prove(before <= after))
    step.refuse({block}, "extent {} is not known to be at least that of axis '{}'", extent, extended.var);
  TreeNode* shared = top_of_exclusive_loops(block)->parent;
  if (shared != scope_of(block)) step.refuse({block, shared}, "block '{}' shares loops with others", block);
  const size_t dim = dim_of_axis(step, block, *store, extended);
  const Buffer buffer = store->buffer;
  const bool grows = allocating_block(tree, buffer) != nullptr;
  Analyzer facts = tree.facts;
  facts.bind(extended.var, extended.domain.min, after);
  const Refusal unknown = grows ? not_readable(block, store->value, facts) : std::nullopt;
  if (grows) step.require(other_uses(tree.root(), buffer), block);
  if (block->block->init) {
    step.require(unknown, block);
    if (!grows)
      step.refuse({block}, "'{}' is a param, to which a block with an init stores without a condition", buffer);
  }

  Block& content = *block->block;
  const Expr is_old = extended.var < before;
  if (!grows) content.body = make(IfThenElse{is_old, content.body, std::nullopt}, content.body.span());
  if (unknown)
    content.body = relaxc::store(buffer, if_then_else(is_old, store->value, scalar_imm(0, buffer_type(buffer).dtype)),
                                 store->indices);
  std::vector<Expr> extents = map_each(block->axes(), [](const IterVar& each) { return each.domain.extent; });
  extents[position] = after;
  extend_axes(block, extents);
  if (grows) {
    BufferType type = buffer_type(buffer);
    type.shape[dim] = cast_to(after, dtype_of(type.shape[dim]));
    const Buffer to = with_buffer_type(buffer, type);
    replace_buffer(tree.root(), buffer, to);
    replace_definition(tree, buffer, to);
  }
  refresh_regions_around(block);
}

}  // namespace relaxc
