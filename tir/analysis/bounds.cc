#include "tir/analysis/bounds.h"

#include <algorithm>

#include "tir/analysis/conditions.h"

namespace relaxc {

namespace {

class BoundsFinder {
 public:
  BoundsFinder(const RunningVars& vars, const Analyzer& facts) : vars_(vars), facts_(facts) {}

  std::optional<Bounds> find(const Expr& e) {
    if (!uses_var(e, vars_)) return Bounds{e, e};
    DType dtype = dtype_of(e);
    if (e.is<Var>()) {
      const Range& range = vars_.at(e.get());
      Expr min = cast_to(range.min, dtype);
      // The ends may depend on other running variables.
      return combined(min, min + cast_to(range.extent, dtype) - 1,
                      [](const Bounds& low, const Bounds& high) { return Bounds{low.min, high.max}; });
    }
    if (const Cast* cast = e.as<Cast>()) {
      DType from = dtype_of(cast->value);
      auto inner =
          dtype.is_integral() && from.is_integral() && dtype.bits >= from.bits ? find(cast->value) : std::nullopt;
      if (!inner) return std::nullopt;
      return Bounds{cast_to(inner->min, dtype), cast_to(inner->max, dtype)};
    }
    auto either = [](const Bounds& a, const Bounds& b) { return Bounds{min(a.min, b.min), max(a.max, b.max)}; };
    if (auto node = branches_of(e)) return combined(node->a, node->b, either);
    const Binary* node = e.as<Binary>();
    if (!node) return std::nullopt;
    return combined(node->a, node->b, [&](const Bounds& a, const Bounds& b) { return binary_bounds(*node, a, b); });
  }

 private:
  template <class Combine>
  std::optional<Bounds> combined(const Expr& x, const Expr& y, Combine combine) {
    auto a = find(x), b = find(y);
    if (!a || !b) return std::nullopt;
    return combine(*a, *b);
  }
  std::optional<Bounds> binary_bounds(const Binary& node, const Bounds& a, const Bounds& b) {
    bool divides = node.op == BinaryOp::kFloorDiv || node.op == BinaryOp::kFloorMod;
    if (divides && (uses_var(node.b, vars_) || !is_positive(node.b, facts_))) return std::nullopt;
    switch (node.op) {
      case BinaryOp::kAdd:
        return Bounds{a.min + b.min, a.max + b.max};
      case BinaryOp::kSub:
        return Bounds{a.min - b.max, a.max - b.min};
      case BinaryOp::kMul:
        return product(node, a, b);
      case BinaryOp::kFloorDiv:
        return Bounds{floor_div(a.min, node.b), floor_div(a.max, node.b)};
      case BinaryOp::kFloorMod: {
        // If all values are in one period, the remainders ascend.
        if (facts_.can_prove_equal(floor_div(a.min, node.b), floor_div(a.max, node.b)))
          return Bounds{floor_mod(a.min, node.b), floor_mod(a.max, node.b)};
        return Bounds{int_imm(0, dtype_of(node.b)), node.b - 1};
      }
      case BinaryOp::kMin:
        return Bounds{min(a.min, b.min), min(a.max, b.max)};
      case BinaryOp::kMax:
        return Bounds{max(a.min, b.min), max(a.max, b.max)};
      default:
        return std::nullopt;
    }
  }
  std::optional<Bounds> product(const Binary& node, const Bounds& a, const Bounds& b) {
    bool left = uses_var(node.a, vars_);
    if (left && uses_var(node.b, vars_)) return std::nullopt;
    const Bounds& varying = left ? a : b;
    const Expr& factor = left ? node.b : node.a;
    if (is_non_negative(factor, facts_)) return Bounds{varying.min * factor, varying.max * factor};
    return as_int(factor) ? std::optional(Bounds{varying.max * factor, varying.min * factor}) : std::nullopt;
  }

  const RunningVars& vars_;
  const Analyzer& facts_;
};

Range in_dtype(const Range& range, DType dtype) { return {cast_to(range.min, dtype), cast_to(range.extent, dtype)}; }
bool same_range(const Range& a, const Range& b) {
  return structural_equal(a.min, b.min) && structural_equal(a.extent, b.extent);
}

}  // namespace

std::optional<Bounds> bounds_over(const Expr& e, const RunningVars& vars, const Analyzer& facts) {
  // c * (x // c) + x % c is x, whose bounds are narrower than the sum's.
  auto result = BoundsFinder(vars, facts).find(uses_var(e, vars) ? facts.simplify(e) : e);
  if (!result || uses_var(result->min, vars) || uses_var(result->max, vars)) return std::nullopt;
  return result;
}

int64_t constant_above(const Expr& e, const Analyzer& facts) {
  int64_t least = facts.bounds(e).max;
  auto is_extreme = [](const Binary& node) { return node.op == BinaryOp::kMin || node.op == BinaryOp::kMax; };
  std::optional<Expr> extreme = first_operation(e, is_extreme);
  if (!extreme) return least;
  const Binary& node = *extreme->as<Binary>();
  auto with = [&](const Expr& side) {
    return rewrite(e, [&](const Ref<Binary>& any) -> std::optional<Expr> {
      return same_node(any, *extreme) ? std::optional(side) : std::nullopt;
    });
  };
  VarRef stand_in = make_var("extreme", extreme->type());
  auto factor = as_int(facts.simplify(with(stand_in + 1) - with(stand_in)));
  if (!factor || (*factor > 0) != (node.op == BinaryOp::kMin)) return least;
  for (const Expr& side : {node.a, node.b}) least = std::min(least, constant_above(facts.simplify(with(side)), facts));
  return least;
}

Range range_over(const Range& range, const Expr& dim, const RunningVars& vars, const Analyzer& facts) {
  if (!uses_var(range.min, vars) && !uses_var(range.extent, vars)) return range;
  auto low = bounds_over(range.min, vars, facts);
  auto last = bounds_over(range.min + cast_to(range.extent, dtype_of(range.min)) - 1, vars, facts);
  if (!low || !last) return {int_imm(0, dtype_of(dim)), dim};
  Expr min = facts.simplify(low->min);
  return {min, facts.simplify(last->max - min + 1)};
}

Range hull(const Range& x, const Range& y, const Expr& dim, const Analyzer& facts) {
  if (same_range(x, y)) return x;
  Range a = in_dtype(x, dtype_of(dim)), b = in_dtype(y, dtype_of(dim));
  auto ordered = [&](const Expr& low, const Expr& high) { return facts.can_prove(low <= high); };
  auto smaller = [&](const Expr& p, const Expr& q) { return ordered(p, q) ? p : ordered(q, p) ? q : min(p, q); };
  auto larger = [&](const Expr& p, const Expr& q) { return ordered(q, p) ? p : ordered(p, q) ? q : max(p, q); };
  Expr first = smaller(a.min, b.min), end = larger(a.min + a.extent, b.min + b.extent);
  return {facts.simplify(first), facts.simplify(end - first)};
}

Range intersection(const Range& x, const Range& y, const Analyzer& facts) {
  if (covers(y, x, facts)) return x;
  if (covers(x, y, facts)) return y;
  Range a = in_dtype(x, dtype_of(x.min)), b = in_dtype(y, dtype_of(x.min));
  Expr first = facts.simplify(max(a.min, b.min));
  return {first, facts.simplify(min(a.min + a.extent, b.min + b.extent) - first)};
}

bool covers(const Range& outer, const Range& inner, const Analyzer& facts) {
  if (same_range(outer, inner)) return true;
  Range in = in_dtype(inner, dtype_of(outer.min)), out = in_dtype(outer, dtype_of(outer.min));
  return facts.can_prove(out.min <= in.min) && facts.can_prove(in.min + in.extent <= out.min + out.extent);
}

Range below_conditions(Range hull, const Range& single, const std::vector<Expr>& conditions, const RunningVars& vars,
                       const Analyzer& facts) {
  for (const Expr& condition : conditions) {
    const Binary* compare = condition.as<Binary>();
    if (!compare || compare->op != BinaryOp::kLT || dtype_of(compare->a) != dtype_of(single.min)) continue;
    Expr rest = facts.simplify(single.min - compare->a);
    if (uses_var(rest, vars) || uses_var(compare->b, vars) || uses_var(single.extent, vars)) continue;
    Expr end = facts.simplify(compare->b + rest + cast_to(single.extent, dtype_of(rest)) - 1);
    Expr end_of_hull = facts.simplify(hull.min + cast_to(hull.extent, dtype_of(hull.min)));
    if (dtype_of(end) != dtype_of(end_of_hull) || facts.can_prove(end >= end_of_hull)) continue;
    hull.extent = facts.simplify(min(end_of_hull, end) - hull.min);
  }
  return hull;
}

}  // namespace relaxc
