#include "ops/taps.h"

#include <limits>

#include "ir/op_names.h"

namespace relaxc::taps {

Expr real(double value) { return float_imm(value, kFloat64); }
Expr as_real(const Expr& x) {
  if (auto known = as_int(x)) return real(static_cast<double>(*known));
  return cast_to(x, kFloat64);
}
Expr divided(const Expr& a, const Expr& b) { return binary(BinaryOp::kDiv, a, b); }
Expr rounded(OpName how, const Expr& x) { return intrinsic(how, {x}, kFloat64); }
Expr clamp_index(const Expr& index, const Expr& dim) { return max(min(index, dim - 1), int_imm(0)); }
Expr is_inside(const Expr& index, const Expr& dim) { return index >= int_imm(0) && index < dim; }
void require_elements(const OpCall& op, const Expr& dim, const Expr& results) {
  op.require_at_most(simplify(min(results, int_imm(1))), dim, "an axis to sample has no elements");
}
void require_one_of(const OpCall& op, const char* name, const std::string& value,
                    const std::vector<std::string>& choices) {
  if (!contains(choices, value)) op.unsupported("{} '{}'", name, value);
}

DType position_dtype(const Expr& dim) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  return as_int(dim).value_or(kMost) < kMost ? kInt32 : kInt64;
}

std::vector<Tap> linear_taps(const Expr& x) {
  Expr floor = rounded(ops::kScalarFloor, x), t = x - floor, first = cast_to(floor, kInt64);
  return {{first, real(1) - t}, {first + 1, t}};
}
// The two pieces of the cubic, for a distance in [1, 2] and in [0, 1].
static Expr far_weight(const Expr& s, double a) {
  return ((real(a) * s - real(5 * a)) * s + real(8 * a)) * s - real(4 * a);
}
static Expr near_weight(const Expr& s, double a) { return (real(a + 2) * s - real(a + 3)) * s * s + real(1); }
std::vector<Tap> cubic_taps(const Expr& x, double a) {
  Expr floor = rounded(ops::kScalarFloor, x), t = x - floor, first = cast_to(floor, kInt64);
  return {{first - 1, far_weight(t + real(1), a)},
          {first, near_weight(t, a)},
          {first + 1, near_weight(real(1) - t, a)},
          {first + 2, far_weight(real(2) - t, a)}};
}
static Expr magnitude(const Expr& x) { return max(x, real(0) - x); }
Expr linear_weight(const Expr& distance) { return max(real(1) - magnitude(distance), real(0)); }
Expr cubic_weight(const Expr& distance, double a) {
  Expr s = magnitude(distance);
  return select(s <= real(1), near_weight(s, a), select(s < real(2), far_weight(s, a), real(0)));
}

}  // namespace relaxc::taps
