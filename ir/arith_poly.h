// Sums of products over atoms, the canonical form behind the simplifier. Internal to ir/arith*.
#pragma once
#include "ir/arith.h"

namespace relaxc {

// A monomial is a product of atoms, sorted by compare_atoms; the empty one is the constant 1. Atoms are expressions
// that the form does not look into: variables, floor-div and floor-mod of canonical operands, min, max, loads, calls.
using Monomial = std::vector<Expr>;

struct Term {
  Monomial atoms;
  int64_t factor;
};

// Compares by kind, names and structure: a total order that does not depend on addresses. Two variables of equal name
// compare equal without being the same.
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

  void add(const Monomial& atoms, int64_t factor);
  void add_scaled(const Poly& other, int64_t factor);
  Poly plus(const Poly& other, int64_t factor = 1) const;
  Poly times(const Poly& other) const;
  Poly scaled(int64_t factor) const { return Poly().plus(*this, factor); }
  // Returns the greatest common divisor of the factors, the constant's included or not; 0 for the empty sum.
  int64_t gcd_with_constant() const;
  int64_t gcd_without_constant() const;
  // Returns an expression of the dtype: positive terms come first, in order, then `- c` for negative ones.
  Expr to_expr(DType dtype) const;

 private:
  std::vector<Term> terms_;
  bool overflowed_ = false;
};

// Returns a / b when every atom of b is in a.
std::optional<Monomial> divide(const Monomial& a, const Monomial& b);

}  // namespace relaxc
