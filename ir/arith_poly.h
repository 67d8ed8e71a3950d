// Sums of products over atoms, the canonical form behind the simplifier. Internal to ir/arith*.
#pragma once
#include "ir/arith.h"

namespace relaxc {

// A product of atoms, sorted by compare_atoms; empty: the constant 1. Atoms are what the form does not look into:
// variables, floor-div and floor-mod of canonical operands, min, max, loads, calls.
using Monomial = std::vector<Expr>;

struct Term {
  Monomial atoms;
  int64_t factor;
};

// A total order that does not depend on addresses: kind, names, structure. Two variables of equal name compare equal
// without being the same.
int compare_atoms(const Expr& a, const Expr& b);
bool same_monomial(const Monomial& a, const Monomial& b);

// factor * atoms summed; terms are distinct, factors not zero, the constant last. Overflow of a factor is remembered,
// and the sum then means nothing.
class Poly {
 public:
  static Poly constant(int64_t value);
  static Poly atom(const Expr& expr);

  const std::vector<Term>& terms() const { return terms_; }
  bool overflowed() const { return overflowed_; }
  int64_t constant_part() const;
  std::optional<int64_t> as_constant() const;
  // The only term, when there is exactly one.
  const Term* as_term() const { return terms_.size() == 1 ? &terms_[0] : nullptr; }

  void add(const Monomial& atoms, int64_t factor);
  Poly plus(const Poly& other, int64_t factor = 1) const;
  Poly times(const Poly& other) const;
  Poly scaled(int64_t factor) const { return Poly().plus(*this, factor); }
  // The greatest common divisor of the factors, the constant's included or not; 0 for the empty sum.
  int64_t gcd_with_constant() const;
  int64_t gcd_without_constant() const;
  // An expression of the dtype: positive terms first, in order, then `- c` for negative ones.
  Expr to_expr(DType dtype) const;

 private:
  std::vector<Term> terms_;
  bool overflowed_ = false;
};

// a / b when every atom of b is in a.
std::optional<Monomial> divide(const Monomial& a, const Monomial& b);

}  // namespace relaxc
