#include "tir/analysis/bounds.h"

#include <algorithm>

namespace relaxc {

namespace {

bool runs(const Expr& e, const RunningVars& vars) {
  bool found = false;
  walk(e, [&](const Ref<Var>& var) { found = found || vars.contains(var.get()); });
  return found;
}

class BoundsFinder {
 public:
  BoundsFinder(const RunningVars& vars, const Analyzer& facts) : vars_(vars), facts_(facts) {}

  std::optional<Bounds> find(const Expr& e) {
    if (!runs(e, vars_)) return Bounds{e, e};
    if (e.is<Var>()) {
      const Range& range = vars_.at(e.get());
      DType dtype = dtype_of(e);
      Expr min = cast_to(range.min, dtype), last = min + cast_to(range.extent, dtype) - int_imm(1, dtype);
      // The ends may depend on enclosing loops that run, too.
      auto low = find(min), high = find(last);
      if (!low || !high) return std::nullopt;
      return Bounds{low->min, high->max};
    }
    if (const Cast* cast = e.as<Cast>()) {
      if (!dtype_of(e).is_integral() || !dtype_of(cast->value).is_integral()) return std::nullopt;
      if (dtype_of(e).bits < dtype_of(cast->value).bits) return std::nullopt;
      auto inner = find(cast->value);
      if (!inner) return std::nullopt;
      return Bounds{cast_to(inner->min, dtype_of(e)), cast_to(inner->max, dtype_of(e))};
    }
    if (const Select* node = e.as<Select>()) return either(node->a, node->b);
    if (const Call* call = as_call(e, "tir.if_then_else")) return either(call->args[1], call->args[2]);
    const Binary* node = e.as<Binary>();
    if (!node) return std::nullopt;
    auto a = find(node->a), b = find(node->b);
    if (!a || !b) return std::nullopt;
    switch (node->op) {
      case BinaryOp::kAdd:
        return Bounds{a->min + b->min, a->max + b->max};
      case BinaryOp::kSub:
        return Bounds{a->min - b->max, a->max - b->min};
      case BinaryOp::kMul:
        return product(node, *a, *b);
      case BinaryOp::kFloorDiv:
        if (runs(node->b, vars_) || !positive(node->b)) return std::nullopt;
        return Bounds{floor_div(a->min, node->b), floor_div(a->max, node->b)};
      case BinaryOp::kFloorMod: {
        if (runs(node->b, vars_) || !positive(node->b)) return std::nullopt;
        // All values are in one period, so the remainders ascend.
        if (facts_.can_prove_equal(floor_div(a->min, node->b), floor_div(a->max, node->b)))
          return Bounds{floor_mod(a->min, node->b), floor_mod(a->max, node->b)};
        return Bounds{int_imm(0, dtype_of(e)), node->b - int_imm(1, dtype_of(e))};
      }
      case BinaryOp::kMin:
        return Bounds{min(a->min, b->min), min(a->max, b->max)};
      case BinaryOp::kMax:
        return Bounds{max(a->min, b->min), max(a->max, b->max)};
      default:
        return std::nullopt;
    }
  }

 private:
  bool positive(const Expr& e) const {
    auto value = as_int(e);
    return value ? *value > 0 : facts_.can_prove(e > int_imm(0, dtype_of(e)));
  }
  bool non_negative(const Expr& e) const {
    auto value = as_int(e);
    return value ? *value >= 0 : facts_.can_prove(e >= int_imm(0, dtype_of(e)));
  }
  std::optional<Bounds> either(const Expr& x, const Expr& y) {
    auto a = find(x), b = find(y);
    if (!a || !b) return std::nullopt;
    return Bounds{min(a->min, b->min), max(a->max, b->max)};
  }
  std::optional<Bounds> product(const Binary* node, const Bounds& a, const Bounds& b) {
    bool left = runs(node->a, vars_);
    if (left && runs(node->b, vars_)) return std::nullopt;
    const Bounds& varying = left ? a : b;
    const Expr& factor = left ? node->b : node->a;
    if (non_negative(factor)) return Bounds{varying.min * factor, varying.max * factor};
    auto value = as_int(factor);
    if (value) return Bounds{varying.max * factor, varying.min * factor};
    return std::nullopt;
  }

  const RunningVars& vars_;
  const Analyzer& facts_;
};

Range whole(const Expr& dim) { return {int_imm(0, dtype_of(dim)), dim}; }

Range in_dtype(const Range& range, DType dtype) { return {cast_to(range.min, dtype), cast_to(range.extent, dtype)}; }

}  // namespace

std::optional<Bounds> bounds_over(const Expr& e, const RunningVars& vars, const Analyzer& facts) {
  // c * (x // c) + x % c is x, whose bounds are narrower than the sum's.
  auto result = BoundsFinder(vars, facts).find(runs(e, vars) ? facts.simplify(e) : e);
  if (!result || runs(result->min, vars) || runs(result->max, vars)) return std::nullopt;
  return result;
}

int64_t constant_above(const Expr& e, const Analyzer& facts) {
  int64_t least = facts.bounds(e).max;
  std::optional<Expr> extreme;
  walk(e, [&](const Ref<Binary>& node) {
    bool wanted = node->op == BinaryOp::kMin || node->op == BinaryOp::kMax;
    if (wanted && !extreme) extreme = node;
    return !wanted;
  });
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
  if (!runs(range.min, vars) && !runs(range.extent, vars)) return range;
  DType dtype = dtype_of(range.min);
  auto low = bounds_over(range.min, vars, facts);
  auto last = bounds_over(range.min + cast_to(range.extent, dtype) - int_imm(1, dtype), vars, facts);
  if (!low || !last) return whole(dim);
  Expr min = facts.simplify(low->min);
  return {min, facts.simplify(last->max - min + int_imm(1, dtype))};
}

Range hull(const Range& x, const Range& y, const Expr& dim, const Analyzer& facts) {
  if (structural_equal(x.min, y.min) && structural_equal(x.extent, y.extent)) return x;
  DType dtype = dtype_of(dim);
  Range a = in_dtype(x, dtype), b = in_dtype(y, dtype);
  auto earlier = [&](const Expr& p, const Expr& q, const Expr& otherwise) {
    if (facts.can_prove(p <= q)) return p;
    return facts.can_prove(q <= p) ? q : otherwise;
  };
  Expr first = earlier(a.min, b.min, min(a.min, b.min));
  Expr end_a = a.min + a.extent, end_b = b.min + b.extent;
  Expr end = facts.can_prove(end_a >= end_b) ? end_a : facts.can_prove(end_b >= end_a) ? end_b : max(end_a, end_b);
  return {facts.simplify(first), facts.simplify(end - first)};
}

Range intersection(const Range& x, const Range& y, const Analyzer& facts) {
  if (covers(y, x, facts)) return x;
  if (covers(x, y, facts)) return y;
  DType dtype = dtype_of(x.min);
  Range a = in_dtype(x, dtype), b = in_dtype(y, dtype);
  Expr first = facts.simplify(max(a.min, b.min));
  return {first, facts.simplify(min(a.min + a.extent, b.min + b.extent) - first)};
}

bool covers(const Range& outer, const Range& inner, const Analyzer& facts) {
  if (structural_equal(outer.min, inner.min) && structural_equal(outer.extent, inner.extent)) return true;
  DType dtype = dtype_of(outer.min);
  Range in = in_dtype(inner, dtype), out = in_dtype(outer, dtype);
  return facts.can_prove(out.min <= in.min) && facts.can_prove(in.min + in.extent <= out.min + out.extent);
}

Range below_conditions(Range hull, const Range& single, const std::vector<Expr>& conditions, const RunningVars& vars,
                       const Analyzer& facts) {
  for (const Expr& condition : conditions) {
    const Binary* compare = condition.as<Binary>();
    if (!compare || compare->op != BinaryOp::kLT || dtype_of(compare->a) != dtype_of(single.min)) continue;
    Expr rest = facts.simplify(single.min - compare->a);
    if (runs(rest, vars) || runs(compare->b, vars) || runs(single.extent, vars)) continue;
    Expr end = facts.simplify(compare->b + rest + cast_to(single.extent, dtype_of(rest)) - int_imm(1, dtype_of(rest)));
    Expr own = facts.simplify(hull.min + cast_to(hull.extent, dtype_of(hull.min)));
    if (dtype_of(end) != dtype_of(own) || facts.can_prove(end >= own)) continue;
    hull.extent = facts.simplify(min(own, end) - hull.min);
  }
  return hull;
}

}  // namespace relaxc
