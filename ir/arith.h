// Arithmetic on symbolic integers: a canonical form for sums of products with floor-div and floor-mod, constant bounds,
// and proofs. Used for dims of the graph and for index arithmetic of tensor programs alike.
//
// Integers are taken as mathematical (index arithmetic does not overflow). Division by a symbolic dim assumes that it
// is not zero.
#pragma once
#include <limits>

#include "ir/visit.h"

namespace relaxc {

// A closed interval; the extreme int64 values stand for minus and plus infinity.
struct Interval {
  int64_t min = std::numeric_limits<int64_t>::min();
  int64_t max = std::numeric_limits<int64_t>::max();
};

// Says whether a claim holds for all values of its variables, for some as far as is known, or for none.
enum class Verdict : uint8_t { kProven, kPossible, kContradicted };

class Analyzer {
 public:
  // The variable is in [min, min + extent). A symbolic extent is kept as `var < min + extent`.
  void bind(const VarRef& var, const Expr& min, const Expr& extent);
  // The variable is in the interval.
  void bind(const VarRef& var, Interval bounds);
  // The variable stands for the value in all that follows.
  void bind(const VarRef& var, const Expr& value);
  // The variables that occur as a dim of a buffer, tensor or shape type are >= 0.
  void assume_dims(const Type& type);
  // The fact holds in what follows. It is `a < b`, `a <= b`, `a == b`, or a conjunction of such facts.
  void assume(const Expr& condition);

  // Returns an equal expression in canonical form: simplify(a) and simplify(b) are structurally equal for all a == b
  // that the canonical form decides; simplify(simplify(a)) is simplify(a). Also simplifies inside comparisons, selects,
  // min, max, and arguments of calls and loads. Floats keep their value bit for bit: no rule applies to their sums.
  Expr simplify(const Expr& expr) const;
  Interval bounds(const Expr& expr) const;
  // Returns whether the condition (a bool) holds for all values of the variables in their bounds. false: not proven.
  bool can_prove(const Expr& condition) const;
  Verdict decide_equal(const Expr& a, const Expr& b) const;
  bool can_prove_equal(const Expr& a, const Expr& b) const { return decide_equal(a, b) == Verdict::kProven; }
  // Returns the largest constant known to divide the expression; 0 for the constant 0.
  int64_t known_divisor(const Expr& expr) const;

 private:
  friend class Simplifier;
  std::unordered_map<const NodeHeader*, Interval> bounds_;
  std::unordered_map<const NodeHeader*, Expr> values_;
  std::unordered_map<const NodeHeader*, std::pair<Expr, Expr>> ranges_;  // symbolic first and last value
  // Differences known to be >= 0, in canonical form.
  std::vector<Expr> non_negative_;
  std::vector<VarRef> kept_;  // keeps keys alive
};

// Simplifies without facts.
Expr simplify(const Expr& expr);
// Simplifies every expression in the statement, with loop ranges, axis domains, buffer dims and conditions as facts.
// Removes loops and branches that never run and unwraps those that always run once.
Stmt simplify(const Stmt& stmt, const Analyzer& facts = {});

}  // namespace relaxc
