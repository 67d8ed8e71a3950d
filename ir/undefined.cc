#include "ir/undefined.h"

#include "ir/visit.h"

namespace relaxc {

std::optional<Expr> doubtful_operand(const Binary& node, const Analyzer& facts) {
  DType dtype = dtype_of(node.b);
  bool divides = node.op == BinaryOp::kDiv || node.op == BinaryOp::kTruncMod || node.op == BinaryOp::kFloorDiv ||
                 node.op == BinaryOp::kFloorMod;
  bool shifts = node.op == BinaryOp::kShiftLeft || node.op == BinaryOp::kShiftRight;
  if (!dtype.is_integral() || (!divides && !shifts)) return std::nullopt;
  bool in_range = false;
  if (auto number = as_int(node.b)) {
    in_range = divides ? *number != 0 : *number >= 0 && *number < dtype.bits;
  } else if (dtype.lanes == 1) {
    in_range =
        divides ? facts.can_prove(node.b >= int_imm(1, dtype))
                : facts.can_prove(node.b >= int_imm(0, dtype)) && facts.can_prove(node.b < int_imm(dtype.bits, dtype));
  }
  return in_range ? std::nullopt : std::optional(node.b);
}

bool may_be_undefined(const Expr& e, const Analyzer& facts) {
  bool found = false;
  walk(e, [&](const Binary& node) { found = found || doubtful_operand(node, facts); });
  return found;
}

}  // namespace relaxc
