// Helpers of resampling: scalars in float64, and the taps around a source coordinate.
#pragma once
#include "ops/common.h"

namespace relaxc::taps {

Expr real(double value);
Expr as_real(const Expr& x);
Expr divided(const Expr& a, const Expr& b);
Expr rounded(OpName how, const Expr& x);
Expr clamp_index(const Expr& index, const Expr& dim);
Expr is_inside(const Expr& index, const Expr& dim);
// Taps are clamped to elements, so the data must have one wherever there are results (`results` > 0).
void require_elements(const OpCall& op, const Expr& dim, const Expr& results);
void require_one_of(const OpCall& op, const char* name, const std::string& value,
                    const std::vector<std::string>& choices);

// A source position along one axis, and the factor with which its element counts.
struct Tap {
  Expr position;  // int64, not clamped
  Expr weight;    // float64
};
std::vector<Tap> linear_taps(const Expr& x);
// Returns the taps of Keys' cubic convolution ("Cubic convolution interpolation for digital image processing", 1981)
// with parameter a.
std::vector<Tap> cubic_taps(const Expr& x, double a);
// The weight of an element at that distance, in both forms; 0 beyond 1, or 2.
Expr linear_weight(const Expr& distance);
Expr cubic_weight(const Expr& distance, double a);

// Taps as tables, one entry for each place of `shape`, that stages compute once for all elements sampled there: the
// elements' positions along an axis, as `pixel` gives them, and their weights.
struct TapTable {
  Buffer positions, weights;
  Expr position(Axes place) const { return cast_to(at(positions, place), kInt64); }
  Expr weight(Axes place) const { return at(weights, place); }
};
// Returns the dtype of positions along an axis: int32 where they are known to fit, which gathers faster.
DType position_dtype(const Expr& dim);

}  // namespace relaxc::taps
