#include "tir/primitives/defer_factors.h"

#include <algorithm>

#include "tir/analysis/combiner.h"
#include "tir/analysis/nests.h"
#include "tir/edit/accesses.h"
#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

namespace {

// The factors of a sum's values: those that are the same in all iterations of its reduce axes, and the others.
struct SumFactors {
  std::optional<Expr> shared, other;
};

void add_factors(const TreeNode* sum, const Expr& value, SumFactors& factors) {
  const Binary* product = value.as<Binary>();
  if (product && product->op == BinaryOp::kMul) {
    add_factors(sum, product->a, factors);
    add_factors(sum, product->b, factors);
    return;
  }
  const Expr factor = sum->tree->facts.simplify(value);
  const bool varies = std::ranges::any_of(
      sum->axes(), [&](const IterVar& axis) { return axis.kind != IterKind::kSpatial && uses_var(factor, axis.var); });
  std::optional<Expr>& part = varies ? factors.other : factors.shared;
  part = part ? *part * factor : factor;
}

// Maps each axis of the sum that the factors mention to the dim of the sum's buffer whose index it is.
std::vector<std::pair<VarRef, size_t>> dims_of_factors(Step& step, TreeNode* sum, const BufferStore& store,
                                                       const Expr& factors) {
  std::vector<std::pair<VarRef, size_t>> dims;
  for (const IterVar& axis : sum->axes()) {
    if (!uses_var(factors, axis.var)) continue;
    const auto at = std::ranges::find_if(store.indices, [&](const Expr& index) { return same_node(index, axis.var); });
    if (at == store.indices.end())
      step.refuse({sum}, "a factor depends on axis '{}', which is not an index of '{}'", axis.var, store.buffer);
    dims.emplace_back(axis.var, at - store.indices.begin());
  }
  return dims;
}

Nodes readers_of_sum(Step& step, TreeNode* sum, const Buffer& buffer) {
  Nodes result = readers(scope_of(sum), buffer);
  std::erase(result, sum);
  if (result.empty()) step.refuse({sum}, "nothing reads '{}'", buffer);
  for (TreeNode* reader : result) {
    if (other_uses(reader, buffer) || !places_of<BufferStore>(reader, buffer).empty())
      step.refuse({reader, sum}, "block '{}' uses '{}' in another way than loading elements", reader, buffer);
  }
  return result;
}

}  // namespace

// The distributive law, in real numbers: sums of floats are rounded in other places.
void DeferFactors::apply(Step& step) const {
  TreeNode* sum = step.block(this->block);
  step.require_all(sum, not_movable, not_reduction, inputs_change);
  const BufferStore* store = single_store(sum);
  const std::optional<Combiner> combiner = store ? find_combiner(*sum->block) : std::nullopt;
  const bool is_sum = combiner && !combiner->condition && combiner->parts.size() == 1 &&
                      combiner->parts[0].op == BinaryOp::kAdd && is_zero(combiner->parts[0].init);
  if (!is_sum) step.refuse({sum}, "block '{}' is not a sum that begins with 0", sum);
  if (is_output(sum)) step.refuse({sum}, "block '{}' writes an output", sum);
  SumFactors factors;
  add_factors(sum, combiner->parts[0].value, factors);
  if (!factors.shared || !factors.other)
    step.refuse({sum}, "the values that block '{}' adds have no factor that all iterations of a sum share{}", sum,
                factors.other ? "" : " beside another one");
  const Buffer buffer = store->buffer;
  const std::vector<Expr> indices = store->indices;
  const auto dims = dims_of_factors(step, sum, *store, *factors.shared);
  const Nodes users = readers_of_sum(step, sum, buffer);

  sum->block->body = relaxc::store(buffer, binary(BinaryOp::kAdd, load(buffer, indices), *factors.other), indices);
  refresh_regions_around(sum);
  auto multiplied = [&](const BufferLoad& element) -> Expr {
    VarMap at;
    for (const auto& [axis, dim] : dims) at.emplace(axis.get(), cast_to(element.indices[dim], dtype_of(axis)));
    return load(buffer, element.indices) * substitute(*factors.shared, at);
  };
  for (TreeNode* user : users) {
    user->block->body = rewrite(user->block->body, [&](const Ref<BufferLoad>& element) -> std::optional<Expr> {
      return same_node(element->buffer, buffer) ? std::optional(multiplied(*element)) : std::nullopt;
    });
    refresh_regions_around(user);
  }
}

}  // namespace relaxc
