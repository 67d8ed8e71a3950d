#include "tir/primitives/pad_einsum.h"

#include <algorithm>

#include "tir/analysis/combiner.h"
#include "tir/analysis/nests.h"
#include "tir/edit/accesses.h"
#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

namespace {

// Appends the factors of a product of loads, or of casts of loads; returns false when it is something else.
bool find_factors(const Expr& e, std::vector<BufferLoad>& loads) {
  if (const Cast* cast = e.as<Cast>()) return find_factors(cast->value, loads);
  if (const BufferLoad* load = e.as<BufferLoad>()) {
    auto is_it = [&](const BufferLoad& other) {
      return same_node(other.buffer, load->buffer) &&
             std::ranges::equal(other.indices, load->indices,
                                [](const Expr& a, const Expr& b) { return structural_equal(a, b); });
    };
    if (std::ranges::none_of(loads, is_it)) loads.push_back(*load);  // x * x has one operand
    return true;
  }
  const Binary* node = e.as<Binary>();
  return node && node->op == BinaryOp::kMul && find_factors(node->a, loads) && find_factors(node->b, loads);
}

// result[indices] += product of factors, from 0.
struct Einsum {
  TreeNode* block;
  Buffer result;
  std::vector<Expr> indices;
  std::vector<BufferLoad> factors;
};

std::optional<Einsum> match_einsum(TreeNode* block) {
  std::optional<Combiner> sum = single_store(block) ? find_combiner(*block->block) : std::nullopt;
  if (!sum || sum->condition) return std::nullopt;
  const Combiner::Part& part = sum->parts.front();
  std::vector<BufferLoad> factors;
  bool is_einsum = part.op == BinaryOp::kAdd && is_zero(part.init) && find_factors(part.value, factors);
  return is_einsum ? std::optional(Einsum{block, part.store->buffer, part.store->indices, factors}) : std::nullopt;
}

Refusal not_paddings(const Block& block, const Ints& padding) {
  if (padding.size() != block.iter_vars.size())
    return message("there are {} paddings for {} axes", padding.size(), block.iter_vars.size());
  for (int64_t multiple : padding) {
    if (multiple < 1) return message("padding {} is not positive", multiple);
  }
  return std::nullopt;
}

Refusal not_over_whole_dims(const TreeNode* block, const Buffer& buffer, const std::vector<Expr>& indices) {
  for (size_t d = 0; d < indices.size(); ++d) {
    const IterVar* axis = axis_named(block, indices[d]);
    if (!axis || !is_int(axis->domain.min, 0) ||
        !block->tree->facts.can_prove_equal(axis->domain.extent, buffer_type(buffer).shape[d]))
      return message("index {} of '{}' is not an axis over the whole dim", d, buffer);
  }
  return std::nullopt;
}

// Refuses operands of which copies made before the block would differ from the values that it reads.
void require_copyable_operands(Step& step, const Einsum& einsum) {
  TreeNode* block = einsum.block;
  TreeNode* top = top_of_exclusive_loops(block);
  step.require(not_over_whole_dims(block, einsum.result, einsum.indices), block);
  for (size_t i = 0; i < einsum.factors.size(); ++i) {
    const Buffer& buffer = einsum.factors[i].buffer;
    step.require(not_over_whole_dims(block, buffer, einsum.factors[i].indices), block);
    for (size_t before = 0; before < i; ++before) {
      if (same_node(buffer, einsum.factors[before].buffer))
        step.refuse({block}, "'{}' is two factors, with different indices", buffer);
    }
    for (TreeNode* writer : writers(scope_of(block), buffer)) {
      if (!precedes(writer, top)) step.refuse({writer, block}, "block '{}' writes '{}' after", writer, buffer);
    }
  }
}

// Returns the extent of each axis, rounded up; it is the same node where nothing changes.
std::vector<Expr> padded_extents(Step& step, const Einsum& einsum, const Ints& padding) {
  std::vector<Expr> extents;
  const Analyzer& facts = einsum.block->tree->facts;
  for (size_t a = 0; a < padding.size(); ++a) {
    const IterVar& axis = einsum.block->axes()[a];
    const Expr& extent = axis.domain.extent;
    Expr up = floor_div(extent + (padding[a] - 1), padding[a]) * padding[a];
    bool divides = facts.can_prove_equal(up, extent);
    extents.push_back(divides ? extent : facts.simplify(up));
    auto sees = [&](const auto& access) { return contains(access.indices, axis.var); };
    bool is_seen = sees(einsum) || std::ranges::any_of(einsum.factors, sees);
    if (!divides && !is_seen)
      step.refuse({einsum.block}, "axis '{}' is not an index: more of its iterations would add products again",
                  axis.var);
  }
  return extents;
}

// Returns a buffer for the larger axes, or nullopt when the given one is large enough.
std::optional<Buffer> padded(const TreeNode* block, const Buffer& buffer, const std::vector<Expr>& indices,
                             const std::vector<Expr>& extents) {
  std::vector<Expr> shape;
  bool changes = false;
  for (const Expr& index : indices) {
    const IterVar* axis = axis_named(block, index);
    shape.push_back(extents[static_cast<size_t>(axis - block->axes().data())]);
    changes = changes || !same_node(shape.back(), axis->domain.extent);
  }
  if (!changes) return std::nullopt;
  return cache_buffer(buffer->name + "_pad", buffer, shape, buffer_type(buffer).scope);
}

// Lets the block use the larger buffer. The nest copies between the two.
void use_padded(TreeNode* block, const Buffer& from, const Buffer& to, TreeNode* nest, size_t position) {
  TreeNode* scope = scope_of(block);
  block->tree->insert(scope, position, nest);
  scope->block->alloc_buffers.push_back(to);
  replace_buffer(block, from, to);
}

void pad_buffers(const Einsum& einsum, const std::vector<Expr>& extents) {
  TreeNode* block = einsum.block;
  TreeNode* top = top_of_exclusive_loops(block);
  Tree& tree = *block->tree;
  for (const BufferLoad& factor : einsum.factors) {
    std::optional<Buffer> to = padded(block, factor.buffer, factor.indices, extents);
    if (!to) continue;
    const std::vector<Expr>&old = buffer_type(factor.buffer).shape, &shape = buffer_type(*to).shape;
    TreeNode* nest = compute_nest(tree, (*to)->name, shape, [&](const std::vector<Expr>& at) {
      std::vector<Expr> conditions;
      for (size_t d = 0; d < at.size(); ++d) {
        if (!tree.facts.can_prove_equal(old[d], shape[d])) conditions.push_back(at[d] < old[d]);
      }
      Expr zero = scalar_imm(0, buffer_type(*to).dtype);
      return store(*to, if_then_else(*conjunction(conditions), load(factor.buffer, at), zero), at);
    });
    use_padded(block, factor.buffer, *to, nest, top->position());
  }
  std::optional<Buffer> to = padded(block, einsum.result, einsum.indices, extents);
  if (!to) return;
  TreeNode* nest = compute_nest(tree, (*to)->name, buffer_type(einsum.result).shape,
                                [&](const std::vector<Expr>& at) { return store(einsum.result, load(*to, at), at); });
  use_padded(block, einsum.result, *to, nest, top->position() + 1);
}

}  // namespace

// Elements beyond the operands are 0, and so are the products and what they add.
void PadEinsum::apply(Step& step) const {
  TreeNode* block = step.block(this->block);
  step.require_all(block, not_movable, not_reduction, not_reorderable);
  std::optional<Einsum> einsum = match_einsum(block);
  if (!einsum) step.refuse({block}, "block '{}' is not a sum of products from 0", block);
  step.require(not_paddings(*block->block, padding), block);
  TreeNode* shared = top_of_exclusive_loops(block)->parent;
  if (shared != scope_of(block)) step.refuse({block, shared}, "block '{}' shares loops with others", block);
  require_copyable_operands(step, *einsum);
  std::vector<Expr> extents = padded_extents(step, *einsum, padding);
  pad_buffers(*einsum, extents);
  extend_axes(block, extents);
  refresh_regions_around(block);
}

}  // namespace relaxc
