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

std::optional<Expr> condition_of(const NodeRef& node) {
  if (const IfThenElse* branch = node.as<IfThenElse>()) return branch->condition;
  const Call* choice = node.is<Call>() ? as_call(cast_handle<Expr>(node), ops::kIfThenElse) : nullptr;
  return choice ? std::optional(choice->args[0]) : std::nullopt;
}

std::optional<Expr> conjunction(const std::vector<Expr>& conditions) {
  std::optional<Expr> result;
  for (const Expr& condition : conditions) result = result ? binary(BinaryOp::kAnd, *result, condition) : condition;
  return result;
}

Expr stepped(const Expr& e, const Expr& var) { return substitute(e, {{var.get(), var + 1}}); }

bool is_positive(const Expr& e, const Analyzer& facts) {
  auto value = as_int(e);
  return value ? *value > 0 : facts.can_prove(e > int_imm(0, dtype_of(e)));
}
bool is_non_negative(const Expr& e, const Analyzer& facts) {
  auto value = as_int(e);
  return value ? *value >= 0 : facts.can_prove(e >= int_imm(0, dtype_of(e)));
}

std::optional<int64_t> coefficient(const Expr& e, const Expr& var, const Analyzer& facts) {
  if (!uses_var(e, VarSet{var.get()})) return 0;
  return as_int(facts.simplify(stepped(e, var) - e));
}

void assume_runs(Analyzer& facts, const For& loop) {
  facts.bind(loop.var, loop.min, loop.extent);
  std::vector<Expr> factors;
  auto split = [&](auto& self, const Expr& e) -> void {
    const Binary* node = e.as<Binary>();
    if (node && node->op == BinaryOp::kMul) {
      self(self, node->a);
      self(self, node->b);
    } else if (!as_int(e)) {
      factors.push_back(e);
    }
  };
  split(split, loop.extent);
  if (!std::ranges::all_of(factors, [&](const Expr& factor) { return is_non_negative(factor, facts); })) return;
  for (const Expr& factor : factors) facts.assume(factor >= int_imm(1, dtype_of(factor)));
}

std::optional<Expr> slack(const Expr& condition) {
  const Binary* node = condition.as<Binary>();
  if (!node || !dtype_of(node->a).is_int() || dtype_of(node->a).lanes != 1) return std::nullopt;
  switch (node->op) {
    case BinaryOp::kLT:
      return node->b - node->a - 1;
    case BinaryOp::kLE:
      return node->b - node->a;
    case BinaryOp::kGT:
      return node->a - node->b - 1;
    case BinaryOp::kGE:
      return node->a - node->b;
    default:  // the rest of the operators
      return std::nullopt;
  }
}

int64_t code_size(const Stmt& body) {
  int64_t size = 0;
  walk(
      body,
      [&](const For& loop) {
        size += code_size(loop.body) * (loop.kind == ForKind::kUnrolled ? as_int(loop.extent).value_or(1) : 1);
        return false;
      },
      [&](const BufferStore&) { ++size; });
  return size;
}

bool stores_to(const NodeRef& node, const Buffer& buffer) {
  return any_node(node, [&](const NodeRef& at) {
    const BufferStore* store = at.as<BufferStore>();
    return store && same_node(store->buffer, buffer);
  });
}

bool does_nothing(const Stmt& body) { return !holds<BufferStore, Evaluate, Assert, While>(body); }

}  // namespace relaxc
