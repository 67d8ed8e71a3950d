// Bounds sums by interval arithmetic, and proves that a sum is not negative. All comparisons are reduced to that proof.
#include <algorithm>
#include <numeric>

#include "ir/arith_simplifier.h"
#include "support/checked_math.h"

namespace relaxc {

namespace {

constexpr int64_t kMostVscale = 1024;  // RISC-V: registers of 65536 bits; SVE stops at 16

// ---- Interval arithmetic; infinities absorb -----------------------------------------------------------------------

int64_t add_bound(int64_t a, int64_t b, int64_t infinity) {
  if (a == infinity || b == infinity) return infinity;
  return checked_add(a, b).value_or(infinity);
}
Interval operator+(Interval a, Interval b) {
  return {add_bound(a.min, b.min, kMinusInfinity), add_bound(a.max, b.max, kPlusInfinity)};
}
// Multiplies extended integers: 0 * infinity is 0, and overflow is infinity of the right sign.
int64_t mul_bound(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  bool infinite = a == kMinusInfinity || a == kPlusInfinity || b == kMinusInfinity || b == kPlusInfinity;
  auto product = infinite ? std::nullopt : checked_mul(a, b);
  return product.value_or((a < 0) == (b < 0) ? kPlusInfinity : kMinusInfinity);
}
Interval operator*(Interval a, Interval b) {
  auto [least, most] =
      std::minmax({mul_bound(a.min, b.min), mul_bound(a.min, b.max), mul_bound(a.max, b.min), mul_bound(a.max, b.max)});
  return {least, most};
}
int64_t div_bound(int64_t a, int64_t positive) {
  if (a == kMinusInfinity || a == kPlusInfinity) return a;
  return positive == kPlusInfinity ? (a < 0 ? -1 : 0) : floor_div(a, positive);
}
// Divides by an interval of values >= 1.
Interval divide_positive(Interval a, Interval by) {
  int64_t low = std::max<int64_t>(by.min, 1), high = std::max<int64_t>(by.max, 1);
  return {std::min(div_bound(a.min, low), div_bound(a.min, high)),
          std::max(div_bound(a.max, low), div_bound(a.max, high))};
}

}  // namespace

Interval Simplifier::bounds(const Poly& sum) const {
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

// Bounds are memoized: the sums of one proof share atoms, and those atoms share others.
Interval Simplifier::atom_bounds(const Expr& atom) const {
  if (auto it = facts_.bounds_.find(atom.get()); it != facts_.bounds_.end()) return it->second;
  if (!atom.is<Binary>() && !atom.is<Cast>()) return bounds_of_atom(atom);
  if (auto it = atom_bounds_.find(atom.get()); it != atom_bounds_.end()) return it->second.second;
  Interval result = bounds_of_atom(atom);
  atom_bounds_.emplace(atom.get(), std::pair(atom, result));
  return result;
}

Interval Simplifier::bounds_of_atom(const Expr& atom) const {
  if (is_vscale(atom)) return {1, kMostVscale};
  if (const Binary* node = atom.as<Binary>()) return bounds_of_binary(*node);
  if (const Select* node = atom.as<Select>()) {
    Interval a = bounds(stored(node->a)), b = bounds(stored(node->b));
    return {std::min(a.min, b.min), std::max(a.max, b.max)};
  }
  if (const Cast* node = atom.as<Cast>(); node && is_index(node->value)) {
    Interval value = bounds(stored(node->value));
    if (dtype_of(atom) == kInt64 || (value.min >= INT32_MIN && value.max <= INT32_MAX)) return value;
  }
  return dtype_of(atom) == kInt32 ? Interval{INT32_MIN, INT32_MAX} : Interval{};
}

// A divisor that is not negative is taken as positive: dividing by zero has no value to preserve.
Interval Simplifier::bounds_of_binary(const Binary& node) const {
  if (!is_index(node.a)) return {};
  Interval a = bounds(stored(node.a)), b = bounds(stored(node.b));
  switch (node.op) {
    case BinaryOp::kFloorDiv:
      return b.min >= 0 ? divide_positive(a, b) : Interval{};
    case BinaryOp::kFloorMod: {
      if (b.min < 0) return {};
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

// ---- Proofs -------------------------------------------------------------------------------------------------------

bool Simplifier::non_negative(const Poly& sum, int depth) const {
  if (sum.overflowed()) return false;
  if (bounds(sum).min >= 0) return true;
  if (depth >= 6 || steps_left_ <= 0) return false;
  steps_left_ -= 1 + static_cast<int>(sum.terms().size()) / kTermsOfStep;
  return non_negative_at_ends(sum, depth) || non_negative_by_facts(sum, depth) ||
         non_negative_by_multiples(sum, depth) || non_negative_by_pairs(sum, depth) ||
         non_negative_by_extremes(sum, depth) || non_negative_times_divisor(sum, depth);
}

// Handles a variable with a known symbolic end: the sum is least at one of its ends when all its terms are monotonic in
// it in the same direction.
bool Simplifier::non_negative_at_ends(const Poly& sum, int depth) const {
  for (const Term& term : sum.terms()) {
    for (const Expr& atom : term.atoms) {
      auto it = facts_.ranges_.find(atom.get());
      if (it == facts_.ranges_.end()) continue;
      int direction = direction_of(sum, atom);
      if (direction == 0) continue;
      Poly end = direction > 0 ? stored(it->second.first) : stored(it->second.second);
      if (non_negative(replace(sum, atom, end), depth + 1)) return true;
    }
  }
  return false;
}

// Subtracts a fact, which is a sum that is not negative: it suffices that the rest is not negative.
bool Simplifier::non_negative_by_facts(const Poly& sum, int depth) const {
  if (fact_sums_.empty()) std::ranges::transform(facts_.non_negative_, std::back_inserter(fact_sums_), stored);
  for (const Poly& fact : fact_sums_) {
    Poly rest = sum.plus(fact, -1);
    if (bounds(rest).min >= 0 ||
        (depth < 2 && rest.terms().size() < sum.terms().size() && non_negative(rest, depth + 1)))
      return true;
  }
  return false;
}

// Uses x - (c - 1) <= c * (x // c) <= x, where c is a constant or a product of atoms.
bool Simplifier::non_negative_by_multiples(const Poly& sum, int depth) const {
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
      Poly dividend = stored(node->a);
      if (term.factor > 0) dividend = dividend.plus(Poly::constant(1)).plus(divisor, -1);
      Poly least = sum.plus(Poly::term(term.atoms, term.factor), -1).plus(dividend, *times);
      if (non_negative(least, depth + 1)) return true;
    }
  }
  return false;
}

bool Simplifier::non_negative_by_pairs(const Poly& sum, int depth) const {
  return std::ranges::any_of(
      sum.terms(), [&](const Term& term) { return term.factor > 0 && non_negative_by_pair(sum, term, depth); });
}

// Handles a sum with two atoms of either sign of which the least difference is known: the sum is at least the one with
// this difference in place of the two. So (n + 1) // 2 >= n // 2, which is how the sizes of poolings that round up are
// compared.
bool Simplifier::non_negative_by_pair(const Poly& sum, const Term& plus, int depth) const {
  if (plus.atoms.size() != 1 || !plus.atoms[0].is<Binary>()) return false;
  for (const Term& minus : sum.terms()) {
    if (minus.factor >= 0 || minus.atoms.size() != 1) continue;
    auto least_difference = difference_of_quotients(plus, minus);
    if (!least_difference) least_difference = difference_of_clamps(plus.atoms[0], minus.atoms[0]);
    if (!least_difference) continue;
    Poly pair;
    int64_t factor = std::min(plus.factor, -std::max(minus.factor, -kPlusInfinity));
    pair.add(plus.atoms, factor);
    pair.add(minus.atoms, -factor);
    Poly least = sum.plus(pair, -1).plus(Poly::constant(*least_difference), factor);
    if (non_negative(least, depth + 1)) return true;
  }
  return false;
}

// Uses x // c - y // c >= (x - y) // c.
std::optional<int64_t> Simplifier::difference_of_quotients(const Term& plus, const Term& minus) const {
  auto x = as_quotient(plus), y = x ? as_quotient(minus) : std::nullopt;
  auto common = y ? checked_mul(x->divisor / std::gcd(x->divisor, y->divisor), y->divisor) : std::nullopt;
  if (!common) return std::nullopt;
  Poly gap = x->dividend.scaled(*common / x->divisor).plus(y->dividend, -(*common / y->divisor));
  Interval known = bounds(gap);
  return known.min == kMinusInfinity ? std::nullopt : std::optional(floor_div(known.min, *common));
}

// Uses min(x, a) - min(x, b) >= min(a - b, 0), and the same of max: so the slice x[1:2] of n elements, which has
// min(n, 2) - min(n, 1), has at most one.
std::optional<int64_t> Simplifier::difference_of_clamps(const Expr& plus, const Expr& minus) const {
  const Binary *x = plus.as<Binary>(), *y = minus.as<Binary>();
  bool are_clamps = x && y && x->op == y->op && (x->op == BinaryOp::kMin || x->op == BinaryOp::kMax);
  if (!are_clamps || !structural_equal(x->a, y->a)) return std::nullopt;
  int64_t gap = bounds(stored(x->b).plus(stored(y->b), -1)).min;
  return gap == kMinusInfinity ? std::nullopt : std::optional(std::min<int64_t>(gap, 0));
}

// Returns the atom as one quotient: (x // a + k) // b is (x + a*k) // (a*b).
std::optional<Simplifier::Quotient> Simplifier::as_quotient(const Term& term) {
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

bool Simplifier::non_negative_by_extremes(const Poly& sum, int depth) const {
  for (const Term& term : sum.terms()) {
    if (term.atoms.size() != 1) continue;
    const Binary* node = term.atoms[0].as<Binary>();
    if (!node || (node->op != BinaryOp::kMin && node->op != BinaryOp::kMax)) continue;
    // min(a, b) is one of its operands, so a claim that holds with either operand in its place holds. One operand
    // suffices on the side that bounds the sum, when no other term with the same atom has the opposite sign.
    auto holds_with = [&](const Expr& operand) {
      return non_negative(replace(sum, term.atoms[0], stored(operand)), depth + 1);
    };
    auto count = std::ranges::count_if(sum.terms(),
                                       [&](const Term& other) { return divide(other.atoms, term.atoms).has_value(); });
    bool one_suffices = count == 1 && (node->op == BinaryOp::kMin) == (term.factor < 0);
    bool a = holds_with(node->a);
    if (one_suffices && a) return true;
    if ((a || one_suffices) && holds_with(node->b)) return true;
  }
  return false;
}

// Multiplies by the divisor of a quotient that stands in the sum once: r >= x // c is c*r + c - 1 >= x for integers,
// and x // c >= r is x >= c*r. So x // c < n where x < n*c.
bool Simplifier::non_negative_times_divisor(const Poly& sum, int depth) const {
  for (const Term& term : sum.terms()) {
    const Binary* node = term.atoms.size() == 1 ? term.atoms[0].as<Binary>() : nullptr;
    if (!node || node->op != BinaryOp::kFloorDiv || (term.factor != 1 && term.factor != -1)) continue;
    const Poly divisor = stored(node->b);
    if (divisor.terms().size() != 1 || bounds(divisor).min < 0) continue;
    Poly scaled = sum.plus(Poly::term(term.atoms, term.factor), -1).times(divisor).plus(stored(node->a), term.factor);
    if (term.factor < 0) scaled = scaled.plus(divisor).plus(Poly::constant(-1));
    if (non_negative(recombine(scaled), depth + 1)) return true;
  }
  return false;
}

// Returns +1 when the sum grows with the variable in every term, -1 when it shrinks, 0 when the signs are mixed, the
// variable is hidden in another atom, or the sum is not linear in it.
int Simplifier::direction_of(const Poly& sum, const Expr& var) const {
  int direction = 0;
  VarSet vars{var.get()};
  for (const Term& term : sum.terms()) {
    int count = 0, sign = term.factor > 0 ? 1 : -1;
    for (const Expr& atom : term.atoms) {
      bool is_var = same_node(atom, var);
      count += is_var;
      if (!is_var && !atom.is<Var>() && uses_var(atom, vars)) return 0;
    }
    if (count == 0) continue;
    bool is_scaled = std::ranges::all_of(
        term.atoms, [&](const Expr& atom) { return same_node(atom, var) || atom_bounds(atom).min >= 0; });
    if (count > 1 || !is_scaled || direction == -sign) return 0;
    direction = sign;
  }
  return direction;
}

Poly Simplifier::replace(const Poly& sum, const Expr& atom, const Poly& value) {
  Poly result;
  auto is_atom = [&](const Expr& factor) {
    return same_node(factor, atom) || (!atom.is<Var>() && structural_equal(factor, atom));
  };
  for (const Term& term : sum.terms()) {
    Poly product = Poly::term(term.atoms, term.factor);
    if (std::ranges::any_of(term.atoms, is_atom)) {
      product = Poly::constant(term.factor);
      for (const Expr& factor : term.atoms) product = product.times(is_atom(factor) ? value : Poly::atom(factor));
    }
    result = std::move(result).plus(std::move(product));
  }
  return result;
}

std::optional<bool> Simplifier::decide(BinaryOp op, const Poly& a, const Poly& b) const {
  if (op == BinaryOp::kGT || op == BinaryOp::kGE) return decide(mirrored(op), b, a);
  if (op == BinaryOp::kNE) {
    auto equal = decide(BinaryOp::kEQ, a, b);
    return equal ? std::optional(!*equal) : std::nullopt;
  }
  Poly difference = recombine(b.plus(a, -1));
  if (difference.overflowed()) return std::nullopt;
  auto at_least = [&](const Poly& p, int64_t least) { return non_negative(p.plus(Poly::constant(-least))); };
  Poly reversed = difference.scaled(-1);
  if (op == BinaryOp::kLT || op == BinaryOp::kLE) {
    bool strict = op == BinaryOp::kLT;
    if (at_least(difference, strict)) return true;
    return at_least(reversed, !strict) ? std::optional(false) : std::nullopt;
  }
  if (op != BinaryOp::kEQ) return std::nullopt;
  if (auto known = difference.as_constant()) return *known == 0;
  if (at_least(difference, 1) || at_least(reversed, 1)) return false;
  int64_t gcd = difference.gcd_without_constant();
  return gcd > 1 && difference.constant_part() % gcd != 0 ? std::optional(false) : std::nullopt;
}

}  // namespace relaxc
