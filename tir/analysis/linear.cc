#include "tir/analysis/linear.h"

namespace relaxc {

std::optional<int64_t> coefficient(const Expr& e, const Expr& var, const Analyzer& facts) {
  if (!mentions(e, {var.get()})) return 0;
  return as_int(facts.simplify(substitute(e, {{var.get(), var + 1}}) - e));
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

bool does_nothing(const Stmt& body) {
  bool acts = false;
  walk(
      body, [&](const BufferStore&) { acts = true; }, [&](const Evaluate&) { acts = true; },
      [&](const Assert&) { acts = true; }, [&](const While&) { acts = true; });
  return !acts;
}

}  // namespace relaxc
