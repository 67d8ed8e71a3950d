// The positions that sort an axis, for programs of operators that go through elements in order.
#pragma once
#include "tir/compute.h"

namespace relaxc {

// Returns whether b must come before a, strictly. NaN is the largest value.
Expr precedes(const Expr& b, const Expr& a, bool descending);

// Adds the stages of a stable merge sort, and returns the positions along `axis` in the order of the elements. The
// other axes are sorted independently.
Buffer sorted_positions(ComputeBuilder& b, const Buffer& x, int64_t axis, bool descending);

}  // namespace relaxc
