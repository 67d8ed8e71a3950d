// What the operator groups share: broadcasting, axis normalization, and building a program from a call.
#pragma once
#include "ir/arith.h"
#include "ir/op.h"
#include "tir/compute.h"

namespace relaxc {

// numpy's rule on dims aligned to the right. A dim that is 1 only at run time does not stretch: two dims, neither of
// them the constant 1, are required to be equal.
std::vector<Expr> broadcast_shapes(const OpCall& op, const std::vector<Expr>& a, const std::vector<Expr>& b);
// The element of `buffer` that the broadcast result's element `axes` reads.
Expr load_broadcast(const Buffer& buffer, Axes axes);

// A negative axis counts from the end; an error names axis and rank.
int64_t normalize_axis(const OpCall& op, int64_t axis, int64_t rank);
std::vector<int64_t> normalize_axes(const OpCall& op, const std::vector<int64_t>& axes, int64_t rank);

// The product of the dims.
Expr product(const std::vector<Expr>& dims);
// The row-major position of `indices` in `shape`, and back.
Expr flatten_index(const std::vector<Expr>& indices, const std::vector<Expr>& shape);
std::vector<Expr> unflatten_index(Expr flat, const std::vector<Expr>& shape);

}  // namespace relaxc
