// Interval analysis over loops: the range of an index expression, or the region of an access, over all iterations
// (TVM's region analysis).
#pragma once
#include "ir/arith.h"
#include "ir/module.h"

namespace relaxc {

// A variable that runs over a range while all other variables keep their values.
using RunningVars = std::unordered_map<const NodeHeader*, Range>;

struct Bounds {
  Expr min, max;
};
// Returns the bounds of the expression over the variables that run, as expressions over the others, or nullopt when
// they have no such form. They are never too narrow, and they are exact for sums of variables with constant factors.
std::optional<Bounds> bounds_over(const Expr& e, const RunningVars& vars, const Analyzer& facts);

// Returns a constant that the expression never exceeds, or INT64_MAX when none is known. Under a min (or a
// negated max) a bound of one operand is enough.
int64_t constant_above(const Expr& e, const Analyzer& facts);

// Returns the range that covers [min, min + extent) over all iterations, or the whole dim when no better one is known.
Range range_over(const Range& range, const Expr& dim, const RunningVars& vars, const Analyzer& facts);
// Returns the smallest range known to cover both.
Range hull(const Range& a, const Range& b, const Expr& dim, const Analyzer& facts);
// Returns the intersection of the two.
Range intersection(const Range& a, const Range& b, const Analyzer& facts);
// Returns the hull of `single` over the iterations in which the conditions hold. A condition a < b bounds the hull when
// the start of `single` is a plus a loop-invariant term, as for the tail of a tile inside of a larger tile.
Range below_conditions(Range hull, const Range& single, const std::vector<Expr>& conditions, const RunningVars& vars,
                       const Analyzer& facts);
bool covers(const Range& outer, const Range& inner, const Analyzer& facts);

}  // namespace relaxc
