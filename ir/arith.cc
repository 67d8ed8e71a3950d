// The analyzer's facts, and the rewriting into canonical form. Quotients: arith_division.cc; proofs: arith_proof.cc.
#include "ir/arith.h"

#include <algorithm>
#include <numeric>

#include "ir/arith_simplifier.h"
#include "ir/op_names.h"
#include "support/checked_math.h"

namespace relaxc {

bool is_index(const Expr& expr) {
  const PrimType* type = expr.type().as<PrimType>();
  return type && (type->dtype == kInt32 || type->dtype == kInt64);
}

bool holds_data(const Expr& expr) {
  return any_node(expr, [](const NodeRef& node) {
    const Cast* cast = node.as<Cast>();
    bool widens = cast && is_index(cast->value) && dtype_of(cast_handle<Expr>(node)) == kInt64;
    bool is_data = node.is<BufferLoad>() || node.is<Call>() || (cast && !widens);
    return is_data && !is_vscale(cast_handle<Expr>(node));
  });
}
bool holds_data(const Poly& poly) {
  return std::ranges::any_of(poly.terms(), [](const Term& term) {
    return std::ranges::any_of(term.atoms, [](const Expr& atom) { return holds_data(atom); });
  });
}

// ---- Rewriting ----------------------------------------------------------------------------------------------------

Expr Simplifier::expr(const Expr& e) const {
  if (is_index(e)) {
    Poly sum = poly(e);
    if (!sum.overflowed()) return reuse(e, sum.to_expr(dtype_of(e)));
  }
  return other(e);
}

Poly Simplifier::stored(const Expr& e) {
  Poly result;
  add_stored(e, 1, result);
  return result;
}

// Adds e, or -e for a sign of -1, in place: no sum is built for each node of a long chain.
void Simplifier::add_stored(const Expr& e, int64_t sign, Poly& sum) {
  const Binary* node = e.as<Binary>();
  if (node && (node->op == BinaryOp::kAdd || node->op == BinaryOp::kSub)) {
    add_stored(node->a, sign, sum);
    return add_stored(node->b, node->op == BinaryOp::kAdd ? sign : -sign, sum);
  }
  if (const IntImm* imm = e.as<IntImm>()) {
    sum = std::move(sum).plus(Poly::constant(imm->value), sign);
  } else if (node && node->op == BinaryOp::kMul) {
    sum = std::move(sum).plus(stored(node->a).times(stored(node->b)), sign);
  } else {
    sum.add({e}, sign);
  }
}

// Adds the operands of a chain of sums, or subtracts them for a sign of -1: a long one is recombined once.
void Simplifier::add_operands(const Expr& e, int64_t sign, Poly& sum) const {
  const Binary* node = e.as<Binary>();
  if (!node || (node->op != BinaryOp::kAdd && node->op != BinaryOp::kSub)) {
    sum = std::move(sum).plus(poly(e), sign);
    return;
  }
  add_operands(node->a, sign, sum);
  add_operands(node->b, node->op == BinaryOp::kAdd ? sign : -sign, sum);
}

Poly Simplifier::poly(const Expr& e) const {
  if (const IntImm* imm = e.as<IntImm>()) return Poly::constant(imm->value);
  if (e.is<Var>()) {
    auto it = facts_.values_.find(e.get());
    return it == facts_.values_.end() ? Poly::atom(e) : stored(it->second);
  }
  if (const Binary* node = e.as<Binary>()) {
    const IntImm* number = node->b.as<IntImm>();
    switch (node->op) {
      case BinaryOp::kAdd:
      case BinaryOp::kSub: {
        Poly sum;
        add_operands(e, 1, sum);
        return recombine(std::move(sum));
      }
      case BinaryOp::kMul:
        return recombine(number ? poly(node->a).scaled(number->value) : poly(node->a).times(poly(node->b)));
      case BinaryOp::kFloorDiv:
        return division(poly(node->a), poly(node->b), dtype_of(e)).quotient;
      case BinaryOp::kFloorMod:
        return division(poly(node->a), poly(node->b), dtype_of(e)).remainder;
      case BinaryOp::kMin:
      case BinaryOp::kMax:
        return extreme(node->op, poly(node->a), poly(node->b), dtype_of(e));
      default:
        break;
    }
  }
  Expr simpler = other(e);
  if (simpler.is<IntImm>() || simpler.kind() != e.kind()) return poly(simpler);
  return Poly::atom(simpler);
}

Poly Simplifier::extreme(BinaryOp op, const Poly& a, const Poly& b, DType dtype) const {
  if (a.overflowed() || b.overflowed()) return a.plus(b);  // which overflowed, too
  bool want_min = op == BinaryOp::kMin;
  // The difference is not computed, as it may overflow.
  if (auto x = a.as_constant(), y = b.as_constant(); x && y) return (*x <= *y) == want_min ? a : b;
  if (!holds_data(a) && !holds_data(b)) {
    Poly difference = recombine(b.plus(a, -1));
    if (non_negative(difference)) return want_min ? a : b;
    if (non_negative(difference.scaled(-1))) return want_min ? b : a;
  }
  Expr x = a.to_expr(dtype), y = b.to_expr(dtype);
  if (structural_equal(x, y)) return a;
  bool swap = a.as_constant() || (!b.as_constant() && compare_atoms(x, y) > 0);
  return Poly::atom(swap ? binary(op, y, x) : binary(op, x, y));
}

// Simplifies expressions that are not sums: operands are simplified, constants folded, conditions decided.
Expr Simplifier::other(const Expr& e) const {
  if (const Binary* node = e.as<Binary>()) {
    if (info(node->op).compares && is_index(node->a)) return comparison(e, *node);
    Expr a = expr(node->a), b = expr(node->b);
    return reuse(e, fold(node->op, a, b));
  }
  if (const Not* node = e.as<Not>()) {
    Expr value = expr(node->value);
    if (const IntImm* imm = value.as<IntImm>()) return bool_imm(!imm->value);
    if (const Not* inner = value.as<Not>()) return inner->value;
    return reuse(e, not_(value));
  }
  if (const Select* node = e.as<Select>()) {
    Expr condition = expr(node->condition);
    if (auto known = as_int(condition)) return expr(*known ? node->a : node->b);
    Expr a = expr(node->a), b = expr(node->b);
    if (structural_equal(a, b)) return a;
    return reuse(e, select(condition, a, b));
  }
  if (const Cast* node = e.as<Cast>()) return reuse(e, cast_to(expr(node->value), dtype_of(e)));
  if (const Call* node = as_call(e, ops::kIfThenElse)) return conditional(e, *node);
  if (const Let* node = e.as<Let>()) {
    Expr value = expr(node->value);
    if (value.is<IntImm>() || value.is<Var>()) return expr(substitute(node->body, {{node->var.get(), value}}));
    return reuse(e, let(node->var, value, expr(node->body)));
  }
  if (e.is<Var>()) {
    auto it = facts_.values_.find(e.get());
    return it == facts_.values_.end() ? e : it->second;
  }
  NodeRef mapped = map_children(e, [&](const NodeRef& child, Slot slot) -> NodeRef {
    if (slot.exact || !is_expr_kind(child.kind())) return child;
    Expr inner = cast_handle<Expr>(child);
    return inner.type().is<PrimType>() ? expr(inner) : inner;
  });
  return cast_handle<Expr>(mapped);
}

// Simplifies T.if_then_else: each value is simplified under the fact that the condition holds, or does not.
Expr Simplifier::conditional(const Expr& e, const Call& node) const {
  Expr condition = expr(node.args[0]);
  if (auto known = as_int(condition)) return expr(*known ? node.args[1] : node.args[2]);
  Analyzer then_facts = facts_, else_facts = facts_;
  then_facts.assume(condition);
  else_facts.assume(!condition);
  Expr a = then_facts.simplify(node.args[1]), b = else_facts.simplify(node.args[2]);
  return reuse(e, if_then_else(condition, a, b));
}

Expr Simplifier::comparison(const Expr& e, const Binary& node) const {
  Poly a = poly(node.a), b = poly(node.b);
  DType dtype = dtype_of(node.a);
  bool data = holds_data(a) || holds_data(b);
  Poly difference = recombine(a.plus(b, -1));
  // The smallest int64 has no opposite, which the form below may need.
  bool has_least = std::ranges::find(difference.terms(), INT64_MIN, &Term::factor) != difference.terms().end();
  if (difference.overflowed() || has_least || data) return reuse(e, fold(node.op, expr(node.a), expr(node.b)));
  if (auto known = decide(node.op, a, b)) return bool_imm(*known);
  // left < right with positive terms on the left, negative ones and the constant on the right, divided by their gcd.
  BinaryOp op = node.op;
  bool all_negative =
      std::ranges::all_of(difference.terms(), [](const Term& t) { return t.atoms.empty() || t.factor < 0; });
  if (all_negative) {
    difference = difference.scaled(-1);
    op = mirrored(op);
  }
  int64_t gcd = std::max<int64_t>(difference.gcd_without_constant(), 1), bound = -difference.constant_part();
  // x*g < k is x < ceil(k/g); x*g <= k is x <= floor(k/g); and the mirror images. An equation with a k that g does not
  // divide is decided already.
  bool rounds_up = op == BinaryOp::kLT || op == BinaryOp::kGE;
  bound = rounds_up ? ceil_div(bound, gcd) : floor_div(bound, gcd);
  Poly left, right = Poly::constant(bound);
  for (const Term& term : difference.terms()) {
    if (term.atoms.empty()) continue;
    (term.factor > 0 ? left : right).add(term.atoms, std::abs(term.factor) / gcd);
  }
  return reuse(e, binary(op, left.to_expr(dtype), right.to_expr(dtype)));
}

Expr Simplifier::fold(BinaryOp op, const Expr& a, const Expr& b) {
  DType dtype = dtype_of(a);
  if (a.is<IntImm>() && b.is<IntImm>()) return folded_binary(op, a, b);
  if (op == BinaryOp::kAnd) return a && b;
  if (op == BinaryOp::kOr) return a || b;
  bool exact = dtype.is_integral() && dtype.lanes == 1;
  if (exact && op == BinaryOp::kAdd) return a + b;
  if (exact && op == BinaryOp::kSub) return a - b;
  if (exact && op == BinaryOp::kMul) return a * b;
  return binary(op, a, b);
}

// ---- Analyzer -------------------------------------------------------------------------------------------------------

void Analyzer::bind(const VarRef& var, Interval bounds) {
  kept_.push_back(var);
  bounds_[var.get()] = bounds;
}

void Analyzer::bind(const VarRef& var, const Expr& min, const Expr& extent) {
  if (!is_index(min)) return bind(var, Interval{});
  Simplifier simplifier(*this);
  // The end is computed as a sum, which tells when it overflows.
  Poly first = simplifier.poly(min), last = simplifier.last(first, extent);
  bind(var, Interval{simplifier.bounds(first).min, simplifier.bounds(last).max});
  if (first.overflowed() || last.overflowed() || (first.as_constant() && last.as_constant())) return;
  DType dtype = dtype_of(min);
  ranges_.insert_or_assign(var.get(), std::pair(first.to_expr(dtype), last.to_expr(dtype)));
}

void Analyzer::bind(const VarRef& var, const Expr& value) {
  kept_.push_back(var);
  values_.insert_or_assign(var.get(), simplify(value));
}

void Analyzer::assume_dims(const Type& type) {
  walk_nodes(type, [&](const NodeRef& node) {
    visit_children(node, [&](const NodeRef& child, Slot) {
      auto var = try_cast<Var>(child);
      const bool has_dims = (is_type_kind(node.kind()) && !node.is<PrimType>()) || node.is<ShapeExpr>();
      const bool is_dim = var && has_dims && var->type().is<PrimType>();
      if (!is_dim || bounds_.contains(child.get())) return;
      bind(*var, Interval{0, kPlusInfinity});
    });
    return true;
  });
}

void Analyzer::assume(const Expr& condition) {
  const Binary* node = condition.as<Binary>();
  if (!node) return;
  if (node->op == BinaryOp::kAnd) {
    assume(node->a);
    assume(node->b);
    return;
  }
  if (!info(node->op).compares || !is_index(node->a)) return;
  Simplifier simplifier(*this);
  Poly a = simplifier.poly(node->a), b = simplifier.poly(node->b);
  auto fact = [&](const Poly& low, const Poly& high, int64_t gap) {  // high - low - gap >= 0
    Poly difference = high.plus(low, -1).plus(Poly::constant(-gap));
    if (difference.overflowed() || holds_data(difference)) return;
    // A bound of one variable sharpens its interval; any other fact is kept unchanged.
    int64_t constant = difference.constant_part();
    Poly sum = difference.plus(Poly::constant(constant), -1);
    const Term* term = sum.as_term();
    auto var = term && term->atoms.size() == 1 ? try_cast<Var>(term->atoms[0]) : std::nullopt;
    bool is_unit = term && (term->factor == 1 || term->factor == -1);
    if (!var || !is_unit || constant == INT64_MIN)
      return non_negative_.push_back(difference.to_expr(dtype_of(node->a)));
    Interval interval = simplifier.bounds(Poly::atom(*var));
    if (term->factor == 1) interval.min = std::max(interval.min, -constant);
    if (term->factor == -1) interval.max = std::min(interval.max, constant);
    bind(*var, interval);
  };
  bool equal = node->op == BinaryOp::kEQ, strict = node->op == BinaryOp::kLT || node->op == BinaryOp::kGT;
  if (equal || node->op == BinaryOp::kLT || node->op == BinaryOp::kLE) fact(a, b, strict);
  if (equal || node->op == BinaryOp::kGT || node->op == BinaryOp::kGE) fact(b, a, strict);
}

Expr Analyzer::simplify(const Expr& e) const { return e.type().is<PrimType>() ? Simplifier(*this).expr(e) : e; }

Interval Analyzer::bounds(const Expr& e) const {
  if (!is_index(e)) return {};
  Simplifier simplifier(*this);
  return simplifier.bounds(simplifier.poly(e));
}

bool Analyzer::can_prove(const Expr& condition) const { return is_int(simplify(condition), 1); }

Verdict Analyzer::decide_equal(const Expr& a, const Expr& b) const {
  auto proven_if = [](bool proven) { return proven ? Verdict::kProven : Verdict::kPossible; };
  if (structural_equal(a, b)) return Verdict::kProven;
  if (!is_index(a) || dtype_of(a) != dtype_of(b)) return proven_if(structural_equal(simplify(a), simplify(b)));
  Poly difference = Simplifier(*this).difference(a, b);
  if (auto known = difference.as_constant()) return *known == 0 ? Verdict::kProven : Verdict::kContradicted;
  if (difference.overflowed() || non_negative_.empty()) return Verdict::kPossible;
  return proven_if(can_prove(binary(BinaryOp::kLE, a, b)) && can_prove(binary(BinaryOp::kLE, b, a)));
}

int64_t Analyzer::known_divisor(const Expr& e) const {
  if (!is_index(e)) return 1;
  Poly sum = Simplifier(*this).poly(e);
  return sum.overflowed() ? 1 : std::gcd(sum.gcd_without_constant(), sum.constant_part());
}

Expr simplify(const Expr& expr) { return Analyzer().simplify(expr); }

}  // namespace relaxc
