// The range of an index expression, or the region of an access, over all iterations of some loops.
#pragma once
#include "ir/arith.h"
#include "ir/module.h"

namespace relaxc {

// Variables that run over a range while the others stand still.
using RunningVars = std::unordered_map<const NodeHeader*, Range>;

// First and last value, as expressions over the other variables; nullopt when it has no bounds that can be written so.
// Never too narrow; exact for sums of variables with constant factors.
struct Bounds {
  Expr min, max;
};
std::optional<Bounds> bounds_over(const Expr& e, const RunningVars& vars, const Analyzer& facts);

// A constant that the expression never exceeds; also under min and max, of which one side is enough. INT64_MAX: none is
// known.
int64_t constant_above(const Expr& e, const Analyzer& facts);

// The range that covers [min, min + extent) over all iterations; the buffer's whole dim when nothing better is known.
Range range_over(const Range& range, const Expr& dim, const RunningVars& vars, const Analyzer& facts);
// A range around both.
Range hull(const Range& a, const Range& b, const Expr& dim, const Analyzer& facts);
// What is in both.
Range intersection(const Range& a, const Range& b, const Analyzer& facts);
// The hull of `single` over the iterations in which the conditions hold. A condition a < b bounds it when its first
// element is a plus something that stands still: the tail of a tile inside of a larger one.
Range below_conditions(Range hull, const Range& single, const std::vector<Expr>& conditions, const RunningVars& vars,
                       const Analyzer& facts);
bool covers(const Range& outer, const Range& inner, const Analyzer& facts);

}  // namespace relaxc
