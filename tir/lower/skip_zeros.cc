// Sums over windows that reach beyond an image add nothing there.
#include "ir/op_names.h"
#include "tir/lower/lower.h"

namespace relaxc {

namespace {

bool is_zero_literal(const Expr& e) {
  const FloatImm* number = e.as<FloatImm>();
  return is_int(e, 0) || (number && number->value == 0);
}

// Returns a product without the conditions of its factors `condition ? x : 0`, which are added to the list.
Expr without_conditions(const Expr& product, std::vector<Expr>& conditions) {
  if (const Cast* cast = product.as<Cast>())
    return cast_to(without_conditions(cast->value, conditions), dtype_of(product));
  if (const Call* choice = as_call(product, ops::kIfThenElse); choice && is_zero_literal(choice->args[2])) {
    conditions.push_back(choice->args[0]);
    return without_conditions(choice->args[1], conditions);
  }
  const Binary* product_of = product.as<Binary>();
  if (!product_of || product_of->op != BinaryOp::kMul) return product;
  return without_conditions(product_of->a, conditions) * without_conditions(product_of->b, conditions);
}

}  // namespace

Stmt with_zeros_skipped(const Stmt& s) {
  const BufferStore* store = s.as<BufferStore>();
  const Binary* sum = store ? store->value.as<Binary>() : nullptr;
  const BufferLoad* before = sum && sum->op == BinaryOp::kAdd ? sum->a.as<BufferLoad>() : nullptr;
  if (!before || store->predicate || !same_node(before->buffer, store->buffer)) return s;
  if (!structural_equal(sum->a, load(store->buffer, store->indices))) return s;
  std::vector<Expr> conditions;
  const Expr product = without_conditions(sum->b, conditions);
  if (conditions.empty()) return s;
  Expr all = conditions[0];
  for (size_t i = 1; i < conditions.size(); ++i) all = all && conditions[i];
  Stmt added = edited<BufferStore>(s, [&](BufferStore& copy) { copy.value = sum->a + product; });
  return make(IfThenElse{all, added, std::nullopt}, s.span());
}

}  // namespace relaxc
