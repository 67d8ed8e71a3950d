#include "tir/analysis/conditions.h"

namespace relaxc {

bool mentions(const NodeRef& node, const VarRef& var) {
  bool found = false;
  walk(node, [&](const Ref<Var>& at) { found = found || same_node(at, var); });
  return found;
}

bool mentions(const NodeRef& node, const std::unordered_set<const NodeHeader*>& vars) {
  bool found = false;
  walk(node, [&](const Ref<Var>& var) { found = found || vars.contains(var.get()); });
  return found;
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
