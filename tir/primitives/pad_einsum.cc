#include <algorithm>

#include "tir/edit/accesses.h"
#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

namespace {

// The factors of a product of loads, casts of them included.
bool find_factors(const Expr& e, std::vector<BufferLoad>& loads) {
  if (const Cast* cast = e.as<Cast>()) return find_factors(cast->value, loads);
  if (const BufferLoad* load = e.as<BufferLoad>()) loads.push_back(*load);
  const Binary* node = e.as<Binary>();
  if (!node) return e.is<BufferLoad>();
  return node->op == BinaryOp::kMul && find_factors(node->a, loads) && find_factors(node->b, loads);
}

}  // namespace

// Elements beyond the operands are 0, and so are the products and what they add.
void Schedule::pad_einsum(BlockRV block_rv, Ints padding) {
  Step step(*this, PrimitiveId::k_pad_einsum, block_rv, padding);
  TreeNode* block = step.block(block_rv);
  Tree& tree = *block->tree;
  Block& content = *block->block;
  step.require(not_movable(block), block);
  step.require(not_reduction(block), block);
  step.require(not_reorderable(block), block);
  const BufferStore* update = single_store(block);
  const BufferStore* init = content.init->as<BufferStore>();
  const Binary* add = update ? update->value.as<Binary>() : nullptr;
  std::vector<BufferLoad> factors;
  bool is_einsum = add && add->op == BinaryOp::kAdd && init && add->a.is<BufferLoad>() &&
                   same_node(add->a.as<BufferLoad>()->buffer, update->buffer) && find_factors(add->b, factors) &&
                   (is_int(init->value, 0) || (init->value.is<FloatImm>() && init->value.as<FloatImm>()->value == 0));
  if (!is_einsum) step.refuse({block}, fmt::format("block '{}' is no sum of products from 0", content.name));
  if (padding.size() != content.iter_vars.size())
    step.refuse({block}, fmt::format("there are {} paddings for {} axes", padding.size(), content.iter_vars.size()));
  for (int64_t multiple : padding) {
    if (multiple < 1) step.refuse({block}, fmt::format("padding {} is not positive", multiple));
  }
  auto axis_of = [&](const Expr& index) {
    auto it = std::find_if(content.iter_vars.begin(), content.iter_vars.end(),
                           [&](const IterVar& axis) { return same_node(axis.var, index); });
    return static_cast<size_t>(it - content.iter_vars.begin());
  };
  auto check = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
    for (size_t d = 0; d < indices.size(); ++d) {
      size_t a = axis_of(indices[d]);
      if (a == content.iter_vars.size() || !is_int(content.iter_vars[a].domain.min, 0) ||
          !tree.facts.can_prove_equal(content.iter_vars[a].domain.extent, buffer_type(buffer).shape[d]))
        step.refuse({block}, fmt::format("index {} of '{}' is not an axis over the whole dim", d, buffer->name));
    }
  };
  TreeNode* scope = scope_of(block);
  TreeNode* top = top_of_own_loops(block);
  if (top->parent != scope)
    step.refuse({block, top->parent}, fmt::format("block '{}' shares loops with others", content.name));
  check(update->buffer, update->indices);
  for (size_t i = 0; i < factors.size(); ++i) {
    check(factors[i].buffer, factors[i].indices);
    for (size_t before = 0; before < i; ++before) {
      if (same_node(factors[i].buffer, factors[before].buffer))
        step.refuse({block}, fmt::format("'{}' is two factors", factors[i].buffer->name));
    }
    for (TreeNode* writer : writers(scope, factors[i].buffer)) {
      if (!precedes(writer, top))
        step.refuse({writer, block},
                    fmt::format("block '{}' writes '{}' after", writer->block->name, factors[i].buffer->name));
    }
  }

  std::vector<Expr> extents;
  for (size_t a = 0; a < padding.size(); ++a) {
    const Expr& extent = content.iter_vars[a].domain.extent;
    Expr up = floor_div(extent + (padding[a] - 1), padding[a]) * padding[a];
    bool divides = tree.facts.can_prove_equal(up, extent);
    extents.push_back(divides ? extent : tree.facts.simplify(up));
    auto is_index = [&](const std::vector<Expr>& indices) {
      return std::any_of(indices.begin(), indices.end(), [&](const Expr& index) { return axis_of(index) == a; });
    };
    bool is_seen = is_index(update->indices) ||
                   std::any_of(factors.begin(), factors.end(), [&](const auto& f) { return is_index(f.indices); });
    if (!divides && !is_seen)
      step.refuse({block}, fmt::format("axis '{}' is no index: more of its iterations would add products again",
                                       content.iter_vars[a].var->name));
  }
  auto padded_shape = [&](const Buffer& buffer, const std::vector<Expr>& indices, bool* changes) {
    std::vector<Expr> shape;
    for (size_t d = 0; d < indices.size(); ++d) {
      shape.push_back(extents[axis_of(indices[d])]);
      *changes = *changes || !same_node(shape[d], content.iter_vars[axis_of(indices[d])].domain.extent);
    }
    return cache_buffer(buffer->name + "_pad", buffer, shape, buffer_type(buffer).scope);
  };
  const Buffer result = update->buffer;
  const std::vector<Expr> result_at = update->indices;
  for (const BufferLoad& factor : factors) {
    bool changes = false;
    Buffer to = padded_shape(factor.buffer, factor.indices, &changes);
    if (!changes) continue;
    TreeNode* nest = compute_nest(tree, to->name, buffer_type(to).shape, [&](const std::vector<Expr>& at) {
      std::vector<Expr> conditions;
      for (size_t d = 0; d < at.size(); ++d) {
        const Expr& dim = buffer_type(factor.buffer).shape[d];
        if (!tree.facts.can_prove_equal(dim, buffer_type(to).shape[d])) conditions.push_back(at[d] < dim);
      }
      Expr zero = scalar_imm(0, buffer_type(to).dtype);
      return store(to, if_then_else(*conjunction(conditions), load(factor.buffer, at), zero), at);
    });
    tree.insert(scope, top->position(), nest);
    scope->block->alloc_buffers.push_back(to);
    replace_buffer(block, factor.buffer, to);
  }
  bool changes = false;
  Buffer to = padded_shape(result, result_at, &changes);
  if (changes) {
    std::vector<Expr> shape = buffer_type(result).shape;
    TreeNode* nest = compute_nest(tree, to->name, shape,
                                  [&](const std::vector<Expr>& at) { return store(result, load(to, at), at); });
    tree.insert(scope, top->position() + 1, nest);
    scope->block->alloc_buffers.push_back(to);
    replace_buffer(block, result, to);
  }
  // Loops that are the axes stay, with other extents.
  std::vector<TreeNode*> old = loops_above(block), loops;
  for (size_t a = 0; a < extents.size(); ++a) {
    for (TreeNode* loop : old) {
      bool is_taken = std::find(loops.begin(), loops.end(), loop) != loops.end();
      if (!is_taken && same_node(content.iter_vars[a].value, loop->loop->var)) loops.push_back(loop);
    }
  }
  bool stay = loops.size() == extents.size() && old.size() == extents.size();
  if (!stay) loops.clear();
  for (size_t a = 0; a < extents.size(); ++a) {
    IterVar& axis = content.iter_vars[a];
    if (!stay) loops.push_back(tree.new_loop(fmt::format("ax{}", a), extents[a]));
    For& loop = *loops[a]->loop;
    loop.extent = extents[a];
    tree.facts.bind(loop.var, loop.min, loop.extent);
    axis.domain.extent = extents[a];
    axis.value = loop.var;
    tree.facts.bind(axis.var, axis.domain.min, axis.domain.extent);
  }
  content.predicate.reset();
  block->affine.reset();
  if (!stay) {
    size_t position = top->position();
    tree.detach(block);
    if (top != block) tree.detach(top);
    tree.insert(scope, position, tree.wrap(block, loops));
  }
  refresh_regions(block);
  refresh_regions_above(block);
  step.done();
}

}  // namespace relaxc
