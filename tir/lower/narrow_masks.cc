// Comparisons of vectors of indices in int32 where that is exact: half the registers and instructions for the masks of
// tails. Scalar index arithmetic stays in int64, which costs no more there and needs no widening before an address.
#include "tir/lower/lower.h"

namespace relaxc {

namespace {

constexpr Interval kNarrow{std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
bool fits(int64_t low, int64_t high) { return low >= kNarrow.min && high <= kNarrow.max; }

class Narrower final : public Rewriter {
 public:
  explicit Narrower(Analyzer facts) : facts_(std::move(facts)) {}

  Stmt stmt(const Stmt& s) override {
    if (const For* loop = s.as<For>()) facts_.bind(loop->var, loop->min, loop->extent);
    return Rewriter::stmt(s);
  }
  Expr expr(const Expr& e) override {
    Expr result = Rewriter::expr(e);
    const Binary* node = result.as<Binary>();
    bool is_comparison = node && dtype_of(result).is_bool() && dtype_of(node->a).lanes > 1 &&
                         !dtype_of(node->a).is_scalable() && dtype_of(node->a).element() == kInt64;
    if (!is_comparison) return result;
    auto a = as_lanes(node->a), b = as_lanes(node->b);
    if (!a || !b) return result;
    auto narrow_a = narrow(*a), narrow_b = narrow(*b);
    if (narrow_a && narrow_b) return binary(node->op, *narrow_a, *narrow_b, e.span());
    return node->op == BinaryOp::kLT ? below(*a, *b).value_or(result) : result;
  }

 private:
  // base + lane * stride.
  struct Lanes {
    Expr base;
    int64_t stride, lanes;
  };
  static std::optional<Lanes> as_lanes(const Expr& e) {
    if (const Broadcast* node = e.as<Broadcast>()) return Lanes{node->value, 0, node->lanes};
    if (const Ramp* node = e.as<Ramp>()) {
      auto stride = as_int(node->stride);
      return stride ? std::optional(Lanes{node->base, *stride, node->lanes}) : std::nullopt;
    }
    const Binary* node = e.as<Binary>();
    if (!node || (node->op != BinaryOp::kAdd && node->op != BinaryOp::kSub)) return std::nullopt;
    auto a = as_lanes(node->a), b = as_lanes(node->b);
    if (!a || !b) return std::nullopt;
    int64_t sign = node->op == BinaryOp::kAdd ? 1 : -1;
    return Lanes{binary(node->op, a->base, b->base), a->stride + sign * b->stride, a->lanes};
  }
  std::optional<Expr> narrow(const Lanes& e) const {
    Expr base = facts_.simplify(e.base);
    Interval bounds = facts_.bounds(base);
    int64_t reach = e.stride * (e.lanes - 1);
    if (!fits(bounds.min, bounds.max) || !fits(reach, reach)) return std::nullopt;
    if (!fits(bounds.min + std::min<int64_t>(reach, 0), bounds.max + std::max<int64_t>(reach, 0))) return std::nullopt;
    base = cast_to(base, kInt32);
    return e.stride == 0 ? broadcast(base, e.lanes) : ramp(base, int_imm(e.stride, kInt32), e.lanes);
  }
  // base + lane < end: lane < end - base, of which more than the number of lanes says no more.
  std::optional<Expr> below(const Lanes& position, const Lanes& end) const {
    if (position.stride != 1 || end.stride != 0) return std::nullopt;
    Expr left = facts_.simplify(min(max(end.base - position.base, int_imm(0)), int_imm(position.lanes)));
    return ramp(int_imm(0, kInt32), int_imm(1, kInt32), position.lanes) <
           broadcast(cast_to(left, kInt32), position.lanes);
  }

  Analyzer facts_;
};

}  // namespace

PrimFuncRef narrow_masks(const PrimFuncRef& function) {
  PrimFunc copy = *function;
  copy.body = Narrower(facts_of_params(function)).stmt(function->body);
  if (same_node(copy.body, function->body)) return function;
  return make_prim_func(std::move(copy), function.span());
}

}  // namespace relaxc
