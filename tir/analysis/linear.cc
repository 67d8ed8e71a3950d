#include "tir/analysis/linear.h"

namespace relaxc {

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

bool does_nothing(const Stmt& body) { return !holds<BufferStore, Evaluate, Assert, While>(body); }

}  // namespace relaxc
