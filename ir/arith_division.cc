// Quotients and remainders in canonical form, Euclidean division over sums of products. Rules, in the order in which
// they apply to a floor-div or floor-mod of P by D:
//   constants fold; x // 1, x % 1; (x // a) // b = x // (a*b);
//   P = D*Q + R: P // D = Q + R // D, P % D = R % D      (D a constant or a product of atoms)
//   0 <= R < D: R // D = 0, R % D = R; -D <= R < 0: R // D = -1, R % D = R + D
//   R = g*X + k, D = g*E, 0 <= k % g: R // D = (X + k//g) // E, R % D = g*((X + k//g) % E) + k % g
//   R = g*X + Y, D = g*E, 0 <= Y < g: R // D = X // E, R % D = g*(X % E) + Y
// and to sums: c*(x // c) + x % c = x; x + -x % c = c*((x + c-1) // c), which is x rounded up.
#include <algorithm>
#include <numeric>

#include "ir/arith_simplifier.h"
#include "support/checked_math.h"

namespace relaxc {

namespace {

constexpr int kMostDivisionSteps = 8;

// Returns whether every term of `part` occurs in the sum.
bool has_terms(const Poly& sum, const Poly& part) {
  return std::ranges::all_of(part.terms(), [&](const Term& w) {
    return std::ranges::any_of(sum.terms(),
                               [&](const Term& t) { return t.factor == w.factor && same_monomial(t.atoms, w.atoms); });
  });
}

// Rewrites the sum by rule(sum, term), which returns the new sum if it applies to the term, until it applies to none.
template <class Rule>
Poly rewrite_terms(Poly sum, Rule rule) {
  for (bool again = true; again && !sum.overflowed();) {
    again = false;
    for (const Term& term : sum.terms()) {
      std::optional<Poly> rewritten = rule(sum, term);
      if (!rewritten || rewritten->overflowed()) continue;
      sum = std::move(*rewritten);
      again = true;
      break;
    }
  }
  return sum;
}

}  // namespace

bool Simplifier::is_remainder(const Poly& rest, const Poly& divisor) const {
  return non_negative(rest) && non_negative(divisor.plus(rest, -1).plus(Poly::constant(-1)));
}

Simplifier::Division Simplifier::division(const Poly& a, const Poly& b, DType dtype) const {
  if (a.overflowed() || b.overflowed()) return opaque(a, b, dtype);
  auto divisor = b.as_constant();
  if (divisor && *divisor == 0) return opaque(a, b, dtype);
  if (auto value = a.as_constant(); value && divisor && !(*divisor == -1 && *value == INT64_MIN))
    return {Poly::constant(floor_div(*value, *divisor)), Poly::constant(floor_mod(*value, *divisor))};
  if (divisor && *divisor == 1) return {a, Poly()};
  const Term* by = b.as_term();
  if (!by || holds_data(a) || (divisor && *divisor < 0)) return whole_sum(a, b, dtype);
  // P = D*Q + R.
  Poly quotient, rest;
  for (const Term& term : a.terms()) {
    std::optional<Monomial> atoms = divide(term.atoms, by->atoms);
    auto factor = exact_div(term.factor, by->factor);
    if (atoms && factor) {
      quotient.add(*atoms, *factor);
    } else if (atoms && divisor && term.atoms.empty()) {  // the constant: keep its residue, in [0, D)
      quotient.add({}, floor_div(term.factor, *divisor));
      rest.add({}, floor_mod(term.factor, *divisor));
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

// Handles a divisor that is a sum, say n + 1, and a dividend that is a multiple of it, perhaps with a smaller rest.
Simplifier::Division Simplifier::whole_sum(const Poly& a, const Poly& b, DType dtype) const {
  if (holds_data(a) || holds_data(b) || b.terms().empty()) return opaque(a, b, dtype);
  // Long division by the term of the highest degree; a few steps, as it need not end.
  auto degree = [](const Term& x, const Term& y) { return x.atoms.size() < y.atoms.size(); };
  const Term& lead = *std::max_element(b.terms().begin(), b.terms().end(), degree);
  Poly quotient, rest = a;
  for (int step = 0; step < kMostDivisionSteps && !rest.terms().empty() && !rest.overflowed(); ++step) {
    const Term& term = *std::max_element(rest.terms().begin(), rest.terms().end(), degree);
    std::optional<Monomial> atoms = divide(term.atoms, lead.atoms);
    auto factor = exact_div(term.factor, lead.factor);
    if (!atoms || !factor) break;
    Poly part = Poly::term(*atoms, *factor);
    quotient = quotient.plus(part);
    rest = rest.plus(b.times(part), -1);
  }
  if (rest.terms().empty() && !rest.overflowed()) return {quotient, Poly()};
  if (is_remainder(rest, b)) return {quotient, rest};
  if (is_remainder(a, b)) return {Poly(), a};
  return opaque(a, b, dtype);
}

// Splits the terms into those that a factor g of the divisor divides, and others whose sum stays below g and does not
// carry.
std::optional<Simplifier::Division> Simplifier::by_digits(const Poly& rest, int64_t divisor, DType dtype) const {
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
    if (low.as_constant() || !is_remainder(low, Poly::constant(radix))) continue;
    Division upper = division(high, Poly::constant(divisor / radix), dtype);
    return Division{upper.quotient, upper.remainder.scaled(radix).plus(low)};
  }
  return std::nullopt;
}

// Computes R // D and R % D, where no term of R is a multiple of D. `divisor` is b when it is a constant.
Simplifier::Division Simplifier::remainder_division(const Poly& rest, const Poly& b, std::optional<int64_t> divisor,
                                                    DType dtype) const {
  if (rest.terms().empty()) return {Poly(), Poly()};
  if (is_remainder(rest, b)) return {Poly(), rest};
  std::optional<Division> found;
  if (divisor) found = by_common_factor(rest, *divisor, dtype);
  if (divisor && !found) found = by_digits(rest, *divisor, dtype);
  if (divisor && !found) found = nested_division(rest, *divisor, dtype);
  if (found && !found->quotient.overflowed() && !found->remainder.overflowed()) return *found;
  // A residue of more than half of the dtype's range would overflow when the other terms are added: (n - 1) // D does
  // not become (n + (D - 1)) // D - 1.
  bool is_far = divisor && rest.constant_part() > (dtype == kInt32 ? INT32_MAX : INT64_MAX) / 2;
  if (!is_far) return opaque(rest, b, dtype);
  Division lower = opaque(rest.plus(Poly::constant(-*divisor)), b, dtype);
  return {lower.quotient.plus(Poly::constant(1)), lower.remainder};
}

// When everything but the constant is divisible by a factor of the divisor, the constant's residue does not carry.
std::optional<Simplifier::Division> Simplifier::by_common_factor(const Poly& rest, int64_t divisor, DType dtype) const {
  int64_t gcd = std::gcd(rest.gcd_without_constant(), divisor);
  if (gcd <= 1) return std::nullopt;
  Poly reduced;
  for (const Term& term : rest.terms())
    reduced.add(term.atoms, term.atoms.empty() ? floor_div(term.factor, gcd) : term.factor / gcd);
  Division smaller = division(reduced, Poly::constant(divisor / gcd), dtype);
  Poly residue = Poly::constant(floor_mod(rest.constant_part(), gcd));
  return Division{smaller.quotient, smaller.remainder.scaled(gcd).plus(residue)};
}

// (x // a) // b = x // (a*b), and (c * (x % (a*b))) % b = (c * x) % b; the other part keeps its form.
std::optional<Simplifier::Division> Simplifier::nested_division(const Poly& rest, int64_t divisor, DType dtype) const {
  const Term* term = rest.as_term();
  const Binary* node = term && term->atoms.size() == 1 ? term->atoms[0].as<Binary>() : nullptr;
  std::optional<int64_t> inner = node ? as_int(node->b) : std::nullopt;
  if (!inner) return std::nullopt;
  Poly by = Poly::constant(divisor);
  if (node->op == BinaryOp::kFloorDiv && term->factor == 1) {
    auto product = *inner > 0 ? checked_mul(*inner, divisor) : std::nullopt;
    if (!product) return std::nullopt;
    Poly quotient = division(poly(node->a), Poly::constant(*product), dtype).quotient;
    return Division{quotient, opaque(rest, by, dtype).remainder};
  }
  if (node->op == BinaryOp::kFloorMod && *inner % divisor == 0) {
    Poly remainder = division(poly(node->a).scaled(term->factor), by, dtype).remainder;
    return Division{opaque(rest, by, dtype).quotient, remainder};
  }
  return std::nullopt;
}

Simplifier::Division Simplifier::opaque(const Poly& a, const Poly& b, DType dtype) {
  if (a.overflowed() || b.overflowed()) return {a.plus(b), a.plus(b)};  // which overflowed, too
  Expr x = a.to_expr(dtype), y = b.to_expr(dtype);
  return {Poly::atom(binary(BinaryOp::kFloorDiv, x, y)), Poly::atom(binary(BinaryOp::kFloorMod, x, y))};
}

// Returns x // c for x = y // d + rest in the form that (y + d * rest) // (c * d) has: where y is 16*z + w, the
// quotient of y // 28 by 28 is z // 49.
std::optional<Poly> Simplifier::quotient_of_quotient(const Expr& x, int64_t divisor) const {
  Poly sum = stored(x);
  for (const Term& term : sum.terms()) {
    const Binary* inner = term.factor == 1 && term.atoms.size() == 1 ? term.atoms[0].as<Binary>() : nullptr;
    auto by = inner && inner->op == BinaryOp::kFloorDiv ? as_int(inner->b) : std::nullopt;
    auto product = by && *by > 0 ? checked_mul(*by, divisor) : std::nullopt;
    if (!product) continue;
    Poly whole = sum.plus(Poly::term(term.atoms, term.factor), -1).scaled(*by).plus(stored(inner->a));
    if (whole.overflowed()) continue;
    return division(whole, Poly::constant(*product), dtype_of(x)).quotient;
  }
  return std::nullopt;
}

// Applies c*(x // c) + x % c = x, for constant and symbolic c.
Poly Simplifier::recombine(Poly sum) const {
  sum = rewrite_terms(std::move(sum), [this](const Poly& whole, const Term& term) -> std::optional<Poly> {
    for (size_t i = 0; i < term.atoms.size(); ++i) {
      const Binary* mod = term.atoms[i].as<Binary>();
      if (!mod || mod->op != BinaryOp::kFloorMod) continue;
      Poly rest = Poly::term(without(term.atoms, i), term.factor);
      // The quotient term that would match: rest * c * (x // c).
      auto with_quotient = [&](const Poly& quotient) -> std::optional<Poly> {
        Poly wanted = rest.times(stored(mod->b)).times(quotient);
        if (wanted.terms().empty() || wanted.overflowed() || !has_terms(whole, wanted)) return std::nullopt;
        return whole.plus(Poly::term(term.atoms, term.factor), -1).plus(wanted, -1).plus(rest.times(stored(mod->a)));
      };
      auto result = with_quotient(Poly::atom(binary(BinaryOp::kFloorDiv, mod->a, mod->b)));
      auto divisor = as_int(mod->b);
      if (!result && divisor && *divisor > 0 && whole.terms().size() > 1) {
        if (auto quotient = quotient_of_quotient(mod->a, *divisor)) result = with_quotient(*quotient);
      }
      if (result) return result;
    }
    return std::nullopt;
  });
  return rewrite_terms(std::move(sum), [this](const Poly& whole, const Term& term) { return rounded_up(whole, term); });
}

// Recognizes a number rounded up to a multiple of c, as networks pad to whole windows: x + (k - x) % c = c*ceil((x - k)
// / c) + k, and the same for x + (x - k) % 2, as y % 2 = -y % 2. The form rounds down where the dividend begins with a
// negative term.
std::optional<Poly> Simplifier::rounded_up(const Poly& sum, const Term& term) const {
  for (size_t i = 0; i < term.atoms.size(); ++i) {
    const Binary* mod = term.atoms[i].as<Binary>();
    auto divisor = mod && mod->op == BinaryOp::kFloorMod ? as_int(mod->b) : std::nullopt;
    if (!divisor || *divisor < 2 || holds_data(mod->a)) continue;
    Poly rest = Poly::term(without(term.atoms, i), term.factor);  // the factors of the remainder
    Poly x = stored(mod->a).scaled(-1);
    for (int sign = 1; sign >= (*divisor == 2 ? -1 : 1); sign -= 2, x = x.scaled(-1)) {
      Poly constant = Poly::constant(x.constant_part());
      Poly wanted = rest.times(x.plus(constant, -1));
      if (wanted.terms().empty() || wanted.overflowed() || !has_terms(sum, wanted)) continue;
      Poly up = ceil_division(x, *divisor, dtype_of(mod->a));
      Poly multiple = up.scaled(*divisor).plus(constant, -1);
      return sum.plus(Poly::term(term.atoms, term.factor), -1).plus(wanted, -1).plus(rest.times(multiple));
    }
  }
  return std::nullopt;
}

// Chooses the form whose dividend begins with a positive term.
Poly Simplifier::ceil_division(const Poly& x, int64_t divisor, DType dtype) const {
  Poly by = Poly::constant(divisor);
  if (x.terms()[0].factor < 0) return division(x.scaled(-1), by, dtype).quotient.scaled(-1);
  return division(x.plus(Poly::constant(divisor - 1)), by, dtype).quotient;
}

}  // namespace relaxc
