#include "tir/analysis/conditions.h"

#include <algorithm>

#include "ir/op_names.h"

namespace relaxc {

bool uses_var(const std::vector<Expr>& indices, const VarRef& var) {
  return std::ranges::any_of(indices, [&](const Expr& index) { return uses_var(index, var); });
}

std::optional<Branches> branches_of(const Expr& e) {
  if (const Select* node = e.as<Select>()) return Branches{node->condition, node->a, node->b};
  if (const Call* call = as_call(e, ops::kIfThenElse)) return Branches{call->args[0], call->args[1], call->args[2]};
  return std::nullopt;
}

std::vector<Expr> conjuncts(const std::optional<Expr>& predicate) {
  std::vector<Expr> result;
  auto split = [&](auto& self, const Expr& e) -> void {
    const Binary* node = e.as<Binary>();
    if (node && node->op == BinaryOp::kAnd) {
      self(self, node->a);
      self(self, node->b);
    } else {
      result.push_back(e);
    }
  };
  if (predicate) split(split, *predicate);
  return result;
}

std::optional<Expr> conjunction(const std::vector<Expr>& conditions) {
  std::optional<Expr> result;
  for (const Expr& condition : conditions) result = result ? binary(BinaryOp::kAnd, *result, condition) : condition;
  return result;
}

}  // namespace relaxc
