// The simplifier of index arithmetic over an analyzer's facts: rewriting (arith.cc), quotients and remainders
// (arith_division.cc), bounds and proofs (arith_proof.cc). Internal to ir/arith*.cc.
#pragma once
#include "ir/arith.h"
#include "ir/intrinsics.h"

namespace relaxc {

// ---- Sums of products over atoms, the canonical form

// A monomial is a product of atoms, sorted by compare_atoms; the empty one is the constant 1. Atoms are expressions
// that the form does not look into: variables, floor-div and floor-mod of canonical operands, min, max, loads, calls.
using Monomial = std::vector<Expr>;

struct Term {
  Monomial atoms;
  int64_t factor;
};

// Compares by kind, names and structure: a total order without addresses, in which variables of one name are equal.
int compare_atoms(const Expr& a, const Expr& b);
bool same_monomial(const Monomial& a, const Monomial& b);
// Returns the product without its i-th atom.
Monomial without(Monomial atoms, size_t i);

// A sum of factor * atoms. The terms are distinct, their factors are not zero, and the constant is last. Overflow of a
// factor is remembered, and the sum then means nothing.
class Poly {
 public:
  static Poly constant(int64_t value);
  static Poly atom(const Expr& expr);
  static Poly term(Monomial atoms, int64_t factor);

  const std::vector<Term>& terms() const { return terms_; }
  bool overflowed() const { return overflowed_; }
  int64_t constant_part() const;
  std::optional<int64_t> as_constant() const;
  // Returns the only term, when there is exactly one.
  const Term* as_term() const { return terms_.size() == 1 ? &terms_[0] : nullptr; }

  void add(Monomial atoms, int64_t factor);
  Poly plus(Poly other, int64_t factor = 1) &&;
  Poly plus(Poly other, int64_t factor = 1) const& { return Poly(*this).plus(std::move(other), factor); }
  Poly scaled(int64_t factor) &&;
  Poly scaled(int64_t factor) const& { return Poly(*this).scaled(factor); }
  Poly times(const Poly& other) const;
  // Returns the greatest common divisor of the factors other than the constant; 0 when there are none.
  int64_t gcd_without_constant() const;
  // Returns an expression of the dtype: positive terms come first, in order, then `- c` for negative ones.
  Expr to_expr(DType dtype) const;

 private:
  std::vector<Term> terms_;
  bool overflowed_ = false;
};

// Returns a / b when every atom of b is in a.
std::optional<Monomial> divide(const Monomial& a, const Monomial& b);

// ---- The simplifier

constexpr int64_t kMinusInfinity = std::numeric_limits<int64_t>::min();
constexpr int64_t kPlusInfinity = std::numeric_limits<int64_t>::max();

// Returns whether the expression is an int32 or int64 scalar.
bool is_index(const Expr& expr);
// Returns whether the expression depends on data (loads, calls, casts), which may overflow; index arithmetic does not.
// Cancelling across a division or comparison is valid for index arithmetic only.
bool holds_data(const Expr& expr);
bool holds_data(const Poly& poly);

// Simplifies one expression. Its parts call each other: quotients need proofs about dividends, and proofs bound
// quotients.
class Simplifier {
 public:
  explicit Simplifier(const Analyzer& facts) : facts_(facts) {}

  // ---- arith.cc
  Expr expr(const Expr& e) const;
  // Returns the canonical sum of an int32 or int64 scalar.
  Poly poly(const Expr& e) const;

  // ---- arith_proof.cc
  Interval bounds(const Poly& sum) const;
  // Returns whether sum >= 0 is proven for all values of the variables.
  bool non_negative(const Poly& sum, int depth = 0) const;
  // Returns true, false, or nullopt when it is not known.
  std::optional<bool> decide(BinaryOp op, const Poly& a, const Poly& b) const;

  Poly difference(const Expr& a, const Expr& b) const { return recombine(poly(a).plus(poly(b), -1)); }
  // Returns the last value of a range.
  Poly last(const Poly& first, const Expr& extent) const {
    return recombine(first.plus(poly(extent)).plus(Poly::constant(-1)));
  }

 private:
  // Returns the sum of an expression in canonical form; its atoms stay as they are, which ends recursion through facts.
  static Poly stored(const Expr& e);
  static void add_stored(const Expr& e, int64_t sign, Poly& sum);

  // ---- arith.cc
  void add_operands(const Expr& e, int64_t sign, Poly& sum) const;
  Poly extreme(BinaryOp op, const Poly& a, const Poly& b, DType dtype) const;
  Expr other(const Expr& e) const;
  Expr conditional(const Expr& e, const Call& node) const;
  Expr comparison(const Expr& e, const Binary& node) const;
  static Expr fold(BinaryOp op, const Expr& a, const Expr& b);
  // Returns the old node when the new one is structurally equal.
  static Expr reuse(const Expr& old, const Expr& now) { return structural_equal(old, now) ? old : now; }

  // ---- arith_division.cc
  struct Division {
    Poly quotient, remainder;
  };
  // Returns whether 0 <= rest < divisor is proven.
  bool is_remainder(const Poly& rest, const Poly& divisor) const;
  Division division(const Poly& a, const Poly& b, DType dtype) const;
  Division whole_sum(const Poly& a, const Poly& b, DType dtype) const;
  std::optional<Division> by_digits(const Poly& rest, int64_t divisor, DType dtype) const;
  std::optional<Division> by_common_factor(const Poly& rest, int64_t divisor, DType dtype) const;
  std::optional<Division> nested_division(const Poly& rest, int64_t divisor, DType dtype) const;
  Division remainder_division(const Poly& rest, const Poly& b, std::optional<int64_t> divisor, DType dtype) const;
  static Division opaque(const Poly& a, const Poly& b, DType dtype);
  Poly recombine(Poly sum) const;
  std::optional<Poly> rounded_up(const Poly& sum, const Term& term) const;
  std::optional<Poly> quotient_of_quotient(const Expr& x, int64_t divisor) const;
  Poly ceil_division(const Poly& x, int64_t divisor, DType dtype) const;

  // ---- arith_proof.cc
  // The quotient dividend // divisor, with a constant divisor.
  struct Quotient {
    Poly dividend;
    int64_t divisor;
  };
  Interval atom_bounds(const Expr& atom) const;
  Interval bounds_of_atom(const Expr& atom) const;
  Interval bounds_of_binary(const Binary& node) const;
  bool non_negative_at_ends(const Poly& sum, int depth) const;
  bool non_negative_by_facts(const Poly& sum, int depth) const;
  bool non_negative_by_multiples(const Poly& sum, int depth) const;
  bool non_negative_by_pairs(const Poly& sum, int depth) const;
  bool non_negative_by_pair(const Poly& sum, const Term& plus, int depth) const;
  bool non_negative_by_extremes(const Poly& sum, int depth) const;
  bool non_negative_times_divisor(const Poly& sum, int depth) const;
  static std::optional<Quotient> as_quotient(const Term& term);
  // Return the least value of the first atom less the second, if it is known.
  std::optional<int64_t> difference_of_quotients(const Term& plus, const Term& minus) const;
  std::optional<int64_t> difference_of_clamps(const Expr& plus, const Expr& minus) const;
  int direction_of(const Poly& sum, const Expr& var) const;
  static Poly replace(const Poly& sum, const Expr& atom, const Poly& value);

  // The number of sums that the proofs about one expression may look at; each kTermsOfStep terms of a long sum count as
  // one more. Networks and default schedules take 360 at most. Without a limit, loop ends that are min and max of each
  // other take minutes. A claim that is not proven by then counts as not known.
  static constexpr int kMostSteps = 500, kTermsOfStep = 8;
  mutable int steps_left_ = kMostSteps;
  mutable std::unordered_map<const NodeHeader*, std::pair<Expr, Interval>> atom_bounds_;  // with what keeps keys alive
  mutable std::vector<Poly> fact_sums_;  // the facts of facts_.non_negative_, once a proof needs them
  const Analyzer& facts_;
};

}  // namespace relaxc
