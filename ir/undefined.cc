#include "ir/undefined.h"

namespace relaxc {

std::optional<Expr> doubtful_operand(const Binary& node, const Analyzer& facts) {
  DType dtype = dtype_of(node.b);
  bool divides = is_division(node.op);
  if (!dtype.is_integral() || (!divides && !is_shift(node.op))) return std::nullopt;
  bool in_range = false;
  if (auto number = as_int(node.b)) {
    in_range = divides ? *number != 0 : *number >= 0 && *number < dtype.bits;
  } else if (dtype.lanes == 1) {
    in_range = facts.can_prove(node.b >= int_imm(divides ? 1 : 0, dtype)) &&
               (divides || facts.can_prove(node.b < int_imm(dtype.bits, dtype)));
  }
  return in_range ? std::nullopt : std::optional(node.b);
}

Expr harmless_operand(const Binary& node, DType dtype) { return int_imm(is_shift(node.op) ? 0 : 1, dtype); }

Expr defined_operand(const Binary& node, const Expr& operand, const Analyzer& facts) {
  DType dtype = dtype_of(operand);
  Expr instead = harmless_operand(node, dtype), zero = int_imm(0, dtype);
  if (is_shift(node.op)) return select(operand >= zero && operand < int_imm(dtype.bits, dtype), operand, instead);
  return facts.can_prove(operand >= zero) ? max(operand, instead) : select(equal(operand, zero), instead, operand);
}

bool may_be_undefined(const Expr& e, const Analyzer& facts) {
  bool found = false;
  walk(e, [&](const Binary& node) { found = found || doubtful_operand(node, facts); });
  return found;
}

Expr with_defined_operands(const Expr& e, const Analyzer& facts) {
  return rewrite(e, [&](const Ref<Binary>& node) -> std::optional<Expr> {
    if (!doubtful_operand(*node, facts)) return std::nullopt;
    Expr a = with_defined_operands(node->a, facts), b = with_defined_operands(node->b, facts);
    return binary(node->op, a, defined_operand(*node, b, facts), node.span());
  });
}

}  // namespace relaxc
