// The simplifier. Rules, in the order they apply to a floor-div or floor-mod of P by D:
//   constants fold; x // 1, x % 1; (x // a) // b = x // (a*b);
//   P = D*Q + R: P // D = Q + R // D, P % D = R % D      (D a constant or a product of atoms)
//   0 <= R < D: R // D = 0, R % D = R; -D <= R < 0: R // D = -1, R % D = R + D
//   R = g*X + k, D = g*E, 0 <= k % g: R // D = (X + k//g) // E, R % D = g*((X + k//g) % E) + k % g
//   R = g*X + Y, D = g*E, 0 <= Y < g: R // D = X // E, R % D = g*(X % E) + Y
// and to sums: c*(x // c) + x % c = x; x + -x % c = c*((x + c-1) // c), which is x rounded up.
// Above 600 lines: bounds, proofs and rewriting call each other and read the same facts.
#include "ir/arith.h"

#include <algorithm>
#include <numeric>

#include "ir/arith_poly.h"
#include "support/checked_math.h"

namespace relaxc {

namespace {

constexpr int64_t kMinusInfinity = std::numeric_limits<int64_t>::min();
constexpr int64_t kPlusInfinity = std::numeric_limits<int64_t>::max();

bool is_index(const Expr& expr) {
  const PrimType* type = expr.type().as<PrimType>();
  return type && (type->dtype == kInt32 || type->dtype == kInt64);
}

// Any number that the machine has; index arithmetic may count on it as on a dim.
bool is_vscale(const Expr& expr) {
  const Cast* cast = expr.as<Cast>();
  return op_name(cast ? cast->value : expr) == "tir.vscale";
}
constexpr int64_t kMostVscale = 1024;  // RISC-V: registers of 65536 bits; SVE stops at 16
constexpr int kMostDivisionSteps = 8;

// Loaded data may overflow; index arithmetic does not. Cancelling across a division or comparison needs the latter.
bool holds_data(const Expr& expr) {
  bool found = false;
  walk(
      expr, [&](const BufferLoad&) { found = true; }, [&](const Ref<Call>& call) { found = found || !is_vscale(call); },
      [&](const Ref<Cast>& cast) { found = found || !is_vscale(cast); });
  return found;
}
bool holds_data(const Poly& poly) {
  for (const Term& term : poly.terms()) {
    for (const Expr& atom : term.atoms) {
      if (holds_data(atom)) return true;
    }
  }
  return false;
}

// ---- Interval arithmetic; infinities absorb -----------------------------------------------------------------------

int64_t add_bound(int64_t a, int64_t b, int64_t infinity) {
  if (a == infinity || b == infinity) return infinity;
  return checked_add(a, b).value_or(infinity);
}
Interval operator+(Interval a, Interval b) {
  return {add_bound(a.min, b.min, kMinusInfinity), add_bound(a.max, b.max, kPlusInfinity)};
}
// Extended product: 0 * infinity is 0, overflow is infinity of the right sign.
int64_t mul_bound(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  bool infinite = a == kMinusInfinity || a == kPlusInfinity || b == kMinusInfinity || b == kPlusInfinity;
  auto product = infinite ? std::nullopt : checked_mul(a, b);
  return product.value_or((a < 0) == (b < 0) ? kPlusInfinity : kMinusInfinity);
}
Interval operator*(Interval a, Interval b) {
  int64_t corners[] = {mul_bound(a.min, b.min), mul_bound(a.min, b.max), mul_bound(a.max, b.min),
                       mul_bound(a.max, b.max)};
  return {*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4)};
}
int64_t div_bound(int64_t a, int64_t positive) {
  if (a == kMinusInfinity || a == kPlusInfinity) return a;
  return positive == kPlusInfinity ? (a < 0 ? -1 : 0) : floor_div(a, positive);
}
// Quotient by something >= 1.
Interval divide_positive(Interval a, Interval by) {
  int64_t low = std::max<int64_t>(by.min, 1), high = std::max<int64_t>(by.max, 1);
  return {std::min(div_bound(a.min, low), div_bound(a.min, high)),
          std::max(div_bound(a.max, low), div_bound(a.max, high))};
}

}  // namespace

// ---- The simplifier: one use per expression, reads the analyzer's facts ---------------------------------------------

// Sums that the proofs about one expression look at. Networks and default schedules take 360 at most; without a limit,
// ends of loops that are min and max of each other take minutes. What is not proven by then stays as it is.
constexpr int kMostSteps = 500;

class Simplifier {
 public:
  explicit Simplifier(const Analyzer& facts) : facts_(facts) {}

  Expr expr(const Expr& e) const {
    if (is_index(e)) {
      Poly sum = poly(e);
      if (!sum.overflowed()) return reuse(e, sum.to_expr(dtype_of(e)));
    }
    return other(e);
  }

  Poly difference(const Expr& a, const Expr& b) const { return recombine(poly(a).plus(poly(b), -1)); }

  // The sum of an expression in canonical form already: its atoms are taken as they stand, which ends the recursion of
  // proofs through facts.
  static Poly stored(const Expr& e) {
    if (const IntImm* imm = e.as<IntImm>()) return Poly::constant(imm->value);
    if (const Binary* node = e.as<Binary>()) {
      if (node->op == BinaryOp::kAdd) return stored(node->a).plus(stored(node->b));
      if (node->op == BinaryOp::kSub) return stored(node->a).plus(stored(node->b), -1);
      if (node->op == BinaryOp::kMul) return stored(node->a).times(stored(node->b));
    }
    return Poly::atom(e);
  }

  // The canonical sum of an int32 or int64 scalar.
  Poly poly(const Expr& e) const {
    if (const IntImm* imm = e.as<IntImm>()) return Poly::constant(imm->value);
    if (e.is<Var>()) {
      auto it = facts_.values_.find(e.get());
      return it == facts_.values_.end() ? Poly::atom(e) : stored(it->second);
    }
    if (const Binary* node = e.as<Binary>()) {
      switch (node->op) {
        case BinaryOp::kAdd:
          return recombine(poly(node->a).plus(poly(node->b)));
        case BinaryOp::kSub:
          return recombine(poly(node->a).plus(poly(node->b), -1));
        case BinaryOp::kMul:
          return recombine(poly(node->a).times(poly(node->b)));
        case BinaryOp::kFloorDiv:
          return division(poly(node->a), poly(node->b), dtype_of(e)).quotient;
        case BinaryOp::kFloorMod:
          return division(poly(node->a), poly(node->b), dtype_of(e)).remainder;
        case BinaryOp::kMin:
          return extreme(node->op, poly(node->a), poly(node->b), dtype_of(e));
        case BinaryOp::kMax:
          return extreme(node->op, poly(node->a), poly(node->b), dtype_of(e));
        default:
          break;
      }
    }
    Expr simpler = other(e);
    if (simpler.is<IntImm>() || !same_shape(simpler, e)) return poly(simpler);
    return Poly::atom(simpler);
  }

  Interval bounds(const Poly& sum) const {
    if (sum.overflowed()) return {};
    Interval total{0, 0};
    for (const Term& term : sum.terms()) {
      Interval product{term.factor, term.factor};
      for (size_t i = 0; i < term.atoms.size(); ++i) {
        Interval atom = atom_bounds(term.atoms[i]);
        if (i + 1 < term.atoms.size() && structural_equal(term.atoms[i], term.atoms[i + 1])) {  // a square
          atom = atom * atom;
          atom.min = std::max<int64_t>(atom.min, 0);
          ++i;
        }
        product = product * atom;
      }
      total = total + product;
    }
    return total;
  }

  // sum >= 0 for all values of the variables.
  bool non_negative(const Poly& sum, int depth = 0) const {
    if (sum.overflowed()) return false;
    if (bounds(sum).min >= 0) return true;
    if (depth >= 6 || --steps_left_ <= 0) return false;
    // A variable with a known symbolic end: the sum is least at one of its ends when every term with it pulls one way.
    for (const Term& term : sum.terms()) {
      for (const Expr& atom : term.atoms) {
        auto it = facts_.ranges_.find(atom.get());
        if (it == facts_.ranges_.end()) continue;
        int direction = pull(sum, atom);
        if (direction == 0) continue;
        Poly end = direction > 0 ? stored(it->second.first) : stored(it->second.second);
        if (non_negative(replace(sum, atom, end), depth + 1)) return true;
      }
    }
    for (const Expr& fact : facts_.non_negative_) {
      Poly rest = sum.plus(stored(fact), -1);
      if (bounds(rest).min >= 0 ||
          (depth < 2 && rest.terms().size() < sum.terms().size() && non_negative(rest, depth + 1)))
        return true;
    }
    // x - (c - 1) <= c * (x // c) <= x, where c is a constant or a product of atoms.
    for (const Term& term : sum.terms()) {
      for (const Expr& atom : term.atoms) {
        const Binary* node = atom.as<Binary>();
        if (!node || node->op != BinaryOp::kFloorDiv) continue;
        Poly divisor = stored(node->b);
        if (divisor.terms().size() != 1 || bounds(divisor).min < 1) continue;
        const Term& by = divisor.terms()[0];
        auto others = divide(term.atoms, {atom});
        auto rest = others ? divide(*others, by.atoms) : std::nullopt;
        auto times = exact_div(term.factor, by.factor);
        if (!rest || !rest->empty() || !times) continue;
        Poly quotient;
        quotient.add(term.atoms, term.factor);
        Poly dividend = stored(node->a);
        if (term.factor > 0) dividend = dividend.plus(Poly::constant(1)).plus(divisor, -1);
        Poly least = sum.plus(quotient, -1).plus(dividend, *times);
        if (non_negative(least, depth + 1)) return true;
      }
    }
    for (const Term& term : sum.terms()) {
      if (term.factor > 0 && non_negative_by_quotients(sum, term, depth)) return true;
    }
    for (const Term& term : sum.terms()) {
      if (term.atoms.size() != 1) continue;
      const Binary* node = term.atoms[0].as<Binary>();
      if (!node || (node->op != BinaryOp::kMin && node->op != BinaryOp::kMax)) continue;
      // min(a, b) is one of its operands, so a sum that holds for both holds. One suffices on the side that bounds it,
      // when the sum has no other term with the same atom that pulls the other way.
      Poly with_a = replace(sum, term.atoms[0], stored(node->a)), with_b = replace(sum, term.atoms[0], stored(node->b));
      auto count = std::count_if(sum.terms().begin(), sum.terms().end(),
                                 [&](const Term& other) { return divide(other.atoms, term.atoms).has_value(); });
      bool one_suffices = count == 1 && (node->op == BinaryOp::kMin) == (term.factor < 0);
      bool a = non_negative(with_a, depth + 1);
      if (one_suffices && a) return true;
      if (!a && !one_suffices) continue;
      if (non_negative(with_b, depth + 1)) return true;
    }
    return false;
  }

  // True, false, or not known.
  std::optional<bool> decide(BinaryOp op, const Poly& a, const Poly& b) const {
    Poly difference = recombine(b.plus(a, -1));
    if (difference.overflowed()) return std::nullopt;
    auto at_least = [&](const Poly& p, int64_t least) { return non_negative(p.plus(Poly::constant(-least))); };
    Poly reversed = difference.scaled(-1);
    switch (op) {
      case BinaryOp::kLT:
        if (at_least(difference, 1)) return true;
        if (at_least(reversed, 0)) return false;
        return std::nullopt;
      case BinaryOp::kLE:
        if (at_least(difference, 0)) return true;
        if (at_least(reversed, 1)) return false;
        return std::nullopt;
      case BinaryOp::kGT:
        return decide(BinaryOp::kLT, b, a);
      case BinaryOp::kGE:
        return decide(BinaryOp::kLE, b, a);
      case BinaryOp::kEQ: {
        if (auto known = difference.as_constant()) return *known == 0;
        if (at_least(difference, 1) || at_least(reversed, 1)) return false;
        int64_t gcd = difference.gcd_without_constant();
        if (gcd > 1 && difference.constant_part() % gcd != 0) return false;
        return std::nullopt;
      }
      case BinaryOp::kNE: {
        auto equal = decide(BinaryOp::kEQ, a, b);
        return equal ? std::optional(!*equal) : std::nullopt;
      }
      default:
        return std::nullopt;
    }
  }

 private:
  struct Division {
    Poly quotient, remainder;
  };

  // Remembered: the sums of one proof share their atoms, and those theirs.
  Interval atom_bounds(const Expr& atom) const {
    if (auto it = facts_.bounds_.find(atom.get()); it != facts_.bounds_.end()) return it->second;
    if (!atom.is<Binary>() && !atom.is<Cast>()) return bounds_of_atom(atom);
    if (auto it = atom_bounds_.find(atom.get()); it != atom_bounds_.end()) return it->second.second;
    Interval result = bounds_of_atom(atom);
    atom_bounds_.emplace(atom.get(), std::pair(atom, result));
    return result;
  }
  Interval bounds_of_atom(const Expr& atom) const {
    if (is_vscale(atom)) return {1, kMostVscale};
    if (const Binary* node = atom.as<Binary>()) {
      if (!is_index(node->a)) return {};
      Interval a = bounds(stored(node->a)), b = bounds(stored(node->b));
      switch (node->op) {
        case BinaryOp::kFloorDiv:
          return b.min >= 1 || divisor_is_dim(node->b) ? divide_positive(a, {std::max<int64_t>(b.min, 1), b.max})
                                                       : Interval{};
        case BinaryOp::kFloorMod: {
          if (b.min < 1 && !divisor_is_dim(node->b)) return {};
          Interval result{0, b.max == kPlusInfinity ? kPlusInfinity : b.max - 1};
          if (a.min >= 0) result.max = std::min(result.max, a.max);
          return result;
        }
        case BinaryOp::kMin:
          return {std::min(a.min, b.min), std::min(a.max, b.max)};
        case BinaryOp::kMax:
          return {std::max(a.min, b.min), std::max(a.max, b.max)};
        default:
          return {};
      }
    }
    if (const Select* node = atom.as<Select>()) {
      Interval a = bounds(stored(node->a)), b = bounds(stored(node->b));
      return {std::min(a.min, b.min), std::max(a.max, b.max)};
    }
    if (const Cast* node = atom.as<Cast>()) {
      if (is_index(node->value)) {
        Interval value = bounds(stored(node->value));
        if (dtype_of(atom) == kInt64 || (value.min >= INT32_MIN && value.max <= INT32_MAX)) return value;
      }
    }
    if (dtype_of(atom) == kInt32) return {INT32_MIN, INT32_MAX};
    return {};
  }
  // A divisor that is not negative is taken as positive: dividing by zero has no value to preserve.
  bool divisor_is_dim(const Expr& divisor) const { return bounds(stored(divisor)).min >= 0; }

  // dividend // divisor, with a constant divisor.
  struct Quotient {
    Poly dividend;
    int64_t divisor;
  };
  // The atom as one quotient: (x // a + k) // b is (x + a*k) // (a*b).
  static std::optional<Quotient> as_quotient(const Term& term) {
    const Binary* node = term.atoms.size() == 1 ? term.atoms[0].as<Binary>() : nullptr;
    auto divisor = node && node->op == BinaryOp::kFloorDiv ? as_int(node->b) : std::nullopt;
    if (!divisor || *divisor < 1) return std::nullopt;
    Quotient result{stored(node->a), *divisor};
    while (result.dividend.terms().size() - (result.dividend.constant_part() != 0) == 1) {
      const Term& only = result.dividend.terms()[0];
      const Binary* inner = only.factor == 1 && only.atoms.size() == 1 ? only.atoms[0].as<Binary>() : nullptr;
      auto by = inner && inner->op == BinaryOp::kFloorDiv ? as_int(inner->b) : std::nullopt;
      auto product = by && *by > 0 ? checked_mul(result.divisor, *by) : std::nullopt;
      if (!product) break;
      result = {stored(inner->a).plus(Poly::constant(result.dividend.constant_part()), *by), *product};
    }
    return result;
  }
  // x // c - y // c >= (x - y) // c: a sum with a term of either sign is not below one with the right side in the place
  // of the two. So (n + 1) // 2 >= n // 2, which is how the sizes of poolings that round up are compared.
  bool non_negative_by_quotients(const Poly& sum, const Term& plus, int depth) const {
    auto x = as_quotient(plus);
    if (!x) return false;
    for (const Term& minus : sum.terms()) {
      auto y = minus.factor < 0 ? as_quotient(minus) : std::nullopt;
      auto common = y ? checked_mul(x->divisor / std::gcd(x->divisor, y->divisor), y->divisor) : std::nullopt;
      if (!common) continue;
      Poly gap = x->dividend.scaled(*common / x->divisor).plus(y->dividend, -(*common / y->divisor));
      Interval known = bounds(gap);
      if (known.min == kMinusInfinity) continue;
      Poly pair;
      int64_t factor = std::min(plus.factor, -std::max(minus.factor, -kPlusInfinity));
      pair.add(plus.atoms, factor);
      pair.add(minus.atoms, -factor);
      Poly least = sum.plus(pair, -1).plus(Poly::constant(floor_div(known.min, *common)), factor);
      if (non_negative(least, depth + 1)) return true;
    }
    return false;
  }

  // +1 when the sum grows with the variable in every term, -1 when it shrinks, 0 when mixed, hidden in another atom, or
  // not linear.
  int pull(const Poly& sum, const Expr& var) const {
    int direction = 0;
    for (const Term& term : sum.terms()) {
      int count = 0, sign = term.factor > 0 ? 1 : -1;
      for (const Expr& atom : term.atoms) {
        if (same_node(atom, var)) {
          ++count;
        } else {
          bool hidden = false;
          if (!atom.is<Var>()) walk(atom, [&](const Ref<Var>& inner) { hidden = hidden || same_node(inner, var); });
          if (hidden) return 0;
        }
      }
      if (count == 0) continue;
      if (count > 1) return 0;
      for (const Expr& atom : term.atoms) {
        if (!same_node(atom, var) && atom_bounds(atom).min < 0) return 0;
      }
      if (direction != 0 && direction != sign) return 0;
      direction = sign;
    }
    return direction;
  }
  Poly replace(const Poly& sum, const Expr& atom, const Poly& value) const {
    Poly result;
    for (const Term& term : sum.terms()) {
      Poly product = Poly::constant(term.factor);
      for (const Expr& factor : term.atoms) {
        bool hit = same_node(factor, atom) || (!atom.is<Var>() && structural_equal(factor, atom));
        product = product.times(hit ? value : Poly::atom(factor));
      }
      result = result.plus(product);
    }
    return result;
  }

  // c*(x // c) + x % c = x, for constant and symbolic c.
  Poly recombine(Poly sum) const {
    for (bool again = true; again && !sum.overflowed();) {
      again = false;
      for (const Term& term : sum.terms()) {
        for (size_t i = 0; !again && i < term.atoms.size(); ++i) {
          const Binary* mod = term.atoms[i].as<Binary>();
          if (!mod || mod->op != BinaryOp::kFloorMod) continue;
          Expr quotient = binary(BinaryOp::kFloorDiv, mod->a, mod->b);
          Monomial others = term.atoms;
          others.erase(others.begin() + static_cast<long>(i));
          Poly rest = Poly();
          rest.add(others, term.factor);
          // What the matching quotient term must be: rest * c * (x // c).
          Poly wanted = rest.times(stored(mod->b)).times(Poly::atom(quotient));
          if (wanted.terms().empty() || wanted.overflowed()) continue;
          if (!contains(sum, wanted)) continue;
          Poly dividend = rest.times(stored(mod->a));
          Poly single;
          single.add(term.atoms, term.factor);
          sum = sum.plus(single, -1).plus(wanted, -1).plus(dividend);
          again = true;
        }
        if (again) break;
      }
    }
    return round_up(std::move(sum));
  }

  // A number rounded up to a multiple of c, as networks pad to whole windows: x + (k - x) % c = c*ceil((x - k) / c) +
  // k, and the same for x + (x - k) % 2, as y % 2 = -y % 2. It is rounded down where the dividend's signs say so.
  Poly round_up(Poly sum) const {
    for (bool again = true; again && !sum.overflowed();) {
      again = false;
      for (const Term& term : sum.terms()) {
        auto rounded = rounded_up(sum, term);
        if (!rounded) continue;
        sum = *rounded;
        again = true;
        break;
      }
    }
    return sum;
  }
  std::optional<Poly> rounded_up(const Poly& sum, const Term& term) const {
    for (size_t i = 0; i < term.atoms.size(); ++i) {
      const Binary* mod = term.atoms[i].as<Binary>();
      auto divisor = mod && mod->op == BinaryOp::kFloorMod ? as_int(mod->b) : std::nullopt;
      if (!divisor || *divisor < 2 || holds_data(mod->a)) continue;
      Poly rest;  // what the remainder is multiplied by
      Monomial others = term.atoms;
      others.erase(others.begin() + static_cast<long>(i));
      rest.add(others, term.factor);
      Poly x = stored(mod->a).scaled(-1);
      for (int sign = 1; sign >= (*divisor == 2 ? -1 : 1); sign -= 2, x = x.scaled(-1)) {
        Poly wanted = rest.times(x.plus(Poly::constant(-x.constant_part())));
        if (wanted.terms().empty() || wanted.overflowed() || !contains(sum, wanted)) continue;
        Poly up = ceil_division(x, *divisor, dtype_of(mod->a));
        Poly multiple = up.scaled(*divisor).plus(Poly::constant(-x.constant_part()));
        Poly remainder;
        remainder.add(term.atoms, term.factor);
        return sum.plus(remainder, -1).plus(wanted, -1).plus(rest.times(multiple));
      }
    }
    return std::nullopt;
  }
  // Of the two forms, the one whose dividend has a positive term first.
  Poly ceil_division(const Poly& x, int64_t divisor, DType dtype) const {
    Poly by = Poly::constant(divisor);
    if (x.terms()[0].factor < 0) return division(x.scaled(-1), by, dtype).quotient.scaled(-1);
    return division(x.plus(Poly::constant(divisor - 1)), by, dtype).quotient;
  }
  static bool contains(const Poly& sum, const Poly& part) {
    return std::all_of(part.terms().begin(), part.terms().end(), [&](const Term& w) {
      return std::any_of(sum.terms().begin(), sum.terms().end(),
                         [&](const Term& t) { return t.factor == w.factor && same_monomial(t.atoms, w.atoms); });
    });
  }

  Division opaque(const Poly& a, const Poly& b, DType dtype) const {
    Expr x = a.to_expr(dtype), y = b.to_expr(dtype);
    return {Poly::atom(binary(BinaryOp::kFloorDiv, x, y)), Poly::atom(binary(BinaryOp::kFloorMod, x, y))};
  }

  Division division(const Poly& a, const Poly& b, DType dtype) const {
    if (a.overflowed() || b.overflowed()) return opaque(a, b, dtype);
    auto divisor = b.as_constant();
    if (divisor && *divisor == 0) return opaque(a, b, dtype);
    if (auto value = a.as_constant(); value && divisor && !(*divisor == -1 && *value == INT64_MIN)) {
      return {Poly::constant(floor_div(*value, *divisor)), Poly::constant(floor_mod(*value, *divisor))};
    }
    if (divisor && *divisor == 1) return {a, Poly()};
    const Term* by = b.as_term();
    if (!by || holds_data(a) || (divisor && *divisor < 0)) return whole_sum(a, b, dtype);
    // P = D*Q + R.
    Poly quotient, rest;
    for (const Term& term : a.terms()) {
      std::optional<Monomial> atoms = divide(term.atoms, by->atoms);
      int64_t factor = by->factor;
      if (atoms && term.factor % factor == 0) {
        quotient.add(*atoms, term.factor / factor);
      } else if (atoms && divisor && term.atoms.empty()) {  // the constant: keep its residue, in [0, D)
        quotient.add({}, floor_div(term.factor, factor));
        rest.add({}, floor_mod(term.factor, factor));
      } else {
        rest.add(term.atoms, term.factor);
      }
    }
    // -D <= R < 0, of a D that is not a constant: one D less.
    if (!divisor && bounds(rest).max < 0 && bounds(b).min >= 1 && non_negative(rest.plus(b)))
      return {recombine(quotient.plus(Poly::constant(-1))), rest.plus(b)};
    Division inner = remainder_division(rest, b, divisor, dtype);
    return {recombine(quotient.plus(inner.quotient)), inner.remainder};
  }

  // A divisor that is a sum, say n + 1, of a dividend that is a multiple of it or that and something smaller.
  Division whole_sum(const Poly& a, const Poly& b, DType dtype) const {
    if (holds_data(a) || holds_data(b) || b.terms().empty()) return opaque(a, b, dtype);
    // Long division by the term of the highest degree; a few steps, as it need not end.
    auto degree = [](const Term& x, const Term& y) { return x.atoms.size() < y.atoms.size(); };
    const Term& lead = *std::max_element(b.terms().begin(), b.terms().end(), degree);
    Poly quotient, rest = a;
    for (int step = 0; step < kMostDivisionSteps && !rest.terms().empty(); ++step) {
      const Term& term = *std::max_element(rest.terms().begin(), rest.terms().end(), degree);
      std::optional<Monomial> atoms = divide(term.atoms, lead.atoms);
      auto factor = exact_div(term.factor, lead.factor);
      if (!atoms || !factor) break;
      Poly part;
      part.add(*atoms, *factor);
      quotient = quotient.plus(part);
      rest = rest.plus(b.times(part), -1);
    }
    if (rest.terms().empty()) return {quotient, Poly()};
    if (non_negative(rest) && non_negative(b.plus(rest, -1).plus(Poly::constant(-1)))) return {quotient, rest};
    if (non_negative(a) && non_negative(b.plus(a, -1).plus(Poly::constant(-1)))) return {Poly(), a};
    return opaque(a, b, dtype);
  }

  // Terms that a factor g of the divisor divides, and others that together stay below g: these do not carry.
  std::optional<Division> by_digits(const Poly& rest, int64_t divisor, DType dtype) const {
    std::vector<int64_t> radices;
    for (const Term& term : rest.terms()) {
      int64_t radix = std::gcd(term.factor, divisor);
      if (!term.atoms.empty() && radix > 1 && radix < divisor) radices.push_back(radix);
    }
    std::sort(radices.rbegin(), radices.rend());
    for (int64_t radix : radices) {
      Poly high, low;
      for (const Term& term : rest.terms()) {
        if (term.atoms.empty()) {
          high.add({}, floor_div(term.factor, radix));
          low.add({}, floor_mod(term.factor, radix));
        } else if (term.factor % radix == 0) {
          high.add(term.atoms, term.factor / radix);
        } else {
          low.add(term.atoms, term.factor);
        }
      }
      if (low.as_constant() || !non_negative(low) || !non_negative(Poly::constant(radix - 1).plus(low, -1))) continue;
      Division upper = division(high, Poly::constant(divisor / radix), dtype);
      return Division{upper.quotient, upper.remainder.scaled(radix).plus(low)};
    }
    return std::nullopt;
  }

  Division remainder_division(const Poly& rest, const Poly& b, std::optional<int64_t> divisor, DType dtype) const {
    if (rest.terms().empty()) return {Poly(), Poly()};
    if (non_negative(rest) && non_negative(b.plus(rest, -1).plus(Poly::constant(-1)))) return {Poly(), rest};
    // With all but the constant divided by it, the constant's own residue does not carry.
    if (divisor) {
      int64_t gcd = std::gcd(rest.gcd_without_constant(), *divisor);
      if (gcd > 1) {
        Poly reduced;
        for (const Term& term : rest.terms())
          reduced.add(term.atoms, term.atoms.empty() ? floor_div(term.factor, gcd) : term.factor / gcd);
        Division smaller = division(reduced, Poly::constant(*divisor / gcd), dtype);
        return {smaller.quotient,
                smaller.remainder.scaled(gcd).plus(Poly::constant(floor_mod(rest.constant_part(), gcd)))};
      }
    }
    if (divisor) {
      if (auto digits = by_digits(rest, *divisor, dtype)) return *digits;
    }
    // (x // a) // b = x // (a*b); the remainder keeps its form.
    if (const Term* term = rest.as_term(); term && term->atoms.size() == 1 && divisor) {
      const Binary* node = term->atoms[0].as<Binary>();
      if (node && node->op == BinaryOp::kFloorDiv && term->factor == 1) {
        auto inner = as_int(node->b);
        auto product = inner && *inner > 0 ? checked_mul(*inner, *divisor) : std::nullopt;
        if (product) {
          Division kept = opaque(rest, b, dtype);
          return {division(poly(node->a), Poly::constant(*product), dtype).quotient, kept.remainder};
        }
      }
      if (node && node->op == BinaryOp::kFloorMod) {  // (c * (x % (a*b))) % b = (c * x) % b
        auto inner = as_int(node->b);
        if (inner && *inner % *divisor == 0) {
          Division kept = opaque(rest, b, dtype);
          return {kept.quotient, division(poly(node->a).scaled(term->factor), b, dtype).remainder};
        }
      }
    }
    return opaque(rest, b, dtype);
  }

  Poly extreme(BinaryOp op, const Poly& a, const Poly& b, DType dtype) const {
    bool want_min = op == BinaryOp::kMin;
    // Not by their difference, which may overflow.
    if (auto x = a.as_constant(), y = b.as_constant(); x && y) return (*x <= *y) == want_min ? a : b;
    if (!holds_data(a) && !holds_data(b)) {
      if (auto less = decide(BinaryOp::kLE, a, b)) return *less == want_min ? a : b;
      if (auto less = decide(BinaryOp::kLE, b, a)) return *less == want_min ? b : a;
    }
    Expr x = a.to_expr(dtype), y = b.to_expr(dtype);
    if (structural_equal(x, y)) return a;
    bool swap = a.as_constant() || (!b.as_constant() && compare_atoms(x, y) > 0);
    return Poly::atom(swap ? binary(op, y, x) : binary(op, x, y));
  }

  // Everything that is not a sum: simplified operands, constants folded, conditions decided.
  Expr other(const Expr& e) const {
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
    if (const Call* node = as_call(e, "tir.if_then_else")) {
      Expr condition = expr(node->args[0]);
      if (auto known = as_int(condition)) return expr(*known ? node->args[1] : node->args[2]);
      Analyzer then_facts = facts_, else_facts = facts_;
      then_facts.assume(condition);
      else_facts.assume(!condition);
      Expr a = then_facts.simplify(node->args[1]), b = else_facts.simplify(node->args[2]);
      return reuse(e, if_then_else(condition, a, b));
    }
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

  Expr comparison(const Expr& e, const Binary& node) const {
    Poly a = poly(node.a), b = poly(node.b);
    DType dtype = dtype_of(node.a);
    bool data = holds_data(a) || holds_data(b);
    Poly difference = recombine(a.plus(b, -1));
    if (a.overflowed() || b.overflowed() || difference.overflowed() || data) {
      return reuse(e, fold(node.op, expr(node.a), expr(node.b)));
    }
    if (auto known = decide(node.op, a, b)) return bool_imm(*known);
    // left < right with positive terms on the left, negative ones and the constant on the right, divided by their gcd.
    BinaryOp op = node.op;
    bool all_negative = std::all_of(difference.terms().begin(), difference.terms().end(),
                                    [](const Term& t) { return t.atoms.empty() || t.factor < 0; });
    if (all_negative) {
      difference = difference.scaled(-1);
      if (op == BinaryOp::kLT)
        op = BinaryOp::kGT;
      else if (op == BinaryOp::kLE)
        op = BinaryOp::kGE;
      else if (op == BinaryOp::kGT)
        op = BinaryOp::kLT;
      else if (op == BinaryOp::kGE)
        op = BinaryOp::kLE;
    }
    int64_t gcd = std::max<int64_t>(difference.gcd_without_constant(), 1), bound = -difference.constant_part();
    if (gcd > 1) {  // x*g < k is x < ceil(k/g); x*g <= k is x <= floor(k/g); and the mirror images
      if (op == BinaryOp::kLT || op == BinaryOp::kGE)
        bound = ceil_div(bound, gcd);
      else if (op == BinaryOp::kEQ || op == BinaryOp::kNE)
        bound = bound / gcd;  // decided already when it does not divide
      else
        bound = floor_div(bound, gcd);
    }
    Poly left, right = Poly::constant(bound);
    for (const Term& term : difference.terms()) {
      if (term.atoms.empty()) continue;
      (term.factor > 0 ? left : right).add(term.atoms, std::abs(term.factor) / gcd);
    }
    return reuse(e, binary(op, left.to_expr(dtype), right.to_expr(dtype)));
  }

  static Expr fold(BinaryOp op, const Expr& a, const Expr& b) {
    DType dtype = dtype_of(a);
    const IntImm* x = a.as<IntImm>();
    const IntImm* y = b.as<IntImm>();
    if (x && y) {
      if (auto value = fold_int(op, x->value, y->value, dtype))
        return int_imm(*value, info(op).compares ? kBool : dtype);
    }
    if (op == BinaryOp::kAnd) return a && b;
    if (op == BinaryOp::kOr) return a || b;
    bool exact = dtype.is_integral() && dtype.lanes == 1;
    if (exact && (op == BinaryOp::kAdd || op == BinaryOp::kSub) && is_int(b, 0)) return a;
    if (exact && op == BinaryOp::kAdd && is_int(a, 0)) return b;
    if (exact && op == BinaryOp::kMul && (is_int(b, 1) || is_int(a, 0))) return a;
    if (exact && op == BinaryOp::kMul && (is_int(a, 1) || is_int(b, 0))) return b;
    return binary(op, a, b);
  }

  // The old node when the new one says the same.
  static Expr reuse(const Expr& old, const Expr& now) { return structural_equal(old, now) ? old : now; }
  static bool same_shape(const Expr& a, const Expr& b) { return a.kind() == b.kind(); }

  mutable int steps_left_ = kMostSteps;
  mutable std::unordered_map<const NodeHeader*, std::pair<Expr, Interval>> atom_bounds_;  // with what keeps keys alive
  const Analyzer& facts_;
};

// ---- Analyzer -------------------------------------------------------------------------------------------------------

void Analyzer::bind(const VarRef& var, Interval bounds) {
  kept_.push_back(var);
  bounds_[var.get()] = bounds;
}

void Analyzer::bind(const VarRef& var, const Expr& min, const Expr& extent) {
  Expr low = simplify(min), high = simplify(min + extent - 1);
  Interval bounds_low = bounds(low), bounds_high = bounds(high);
  bind(var, Interval{bounds_low.min, bounds_high.max});
  if (!as_int(low) || !as_int(high)) ranges_.insert_or_assign(var.get(), std::pair(low, high));
}

void Analyzer::bind(const VarRef& var, const Expr& value) {
  kept_.push_back(var);
  values_.insert_or_assign(var.get(), simplify(value));
}

void Analyzer::assume_dims(const Type& type) {
  walk_nodes(type, [&](const NodeRef& node) {
    visit_children(node, [&](const NodeRef& child, Slot) {
      auto var = try_cast<Var>(child);
      bool is_dim = var && (is_type_kind(node.kind()) || node.is<ShapeExpr>()) && var->type().is<PrimType>();
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
    // A bound of one variable sharpens its interval; anything else is kept as it stands.
    if (difference.terms().size() <= 2 && !difference.terms().empty() && difference.terms()[0].atoms.size() == 1) {
      const Term& term = difference.terms()[0];
      auto var = try_cast<Var>(term.atoms[0]);
      if (var && std::abs(term.factor) == 1 &&
          (difference.terms().size() == 1 || difference.terms()[1].atoms.empty())) {
        Interval interval = simplifier.bounds(Poly::atom(*var));
        int64_t constant = difference.constant_part();
        if (term.factor == 1) {
          interval.min = std::max(interval.min, -constant);
        } else {
          interval.max = std::min(interval.max, constant);
        }
        bind(*var, interval);
        return;
      }
    }
    non_negative_.push_back(difference.to_expr(dtype_of(node->a)));
  };
  switch (node->op) {
    case BinaryOp::kLT:
      fact(a, b, 1);
      break;
    case BinaryOp::kLE:
      fact(a, b, 0);
      break;
    case BinaryOp::kGT:
      fact(b, a, 1);
      break;
    case BinaryOp::kGE:
      fact(b, a, 0);
      break;
    case BinaryOp::kEQ:
      fact(a, b, 0);
      fact(b, a, 0);
      break;
    default:
      break;
  }
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
  return sum.overflowed() ? 1 : std::abs(sum.gcd_with_constant());
}

Expr simplify(const Expr& expr) { return Analyzer().simplify(expr); }

}  // namespace relaxc
