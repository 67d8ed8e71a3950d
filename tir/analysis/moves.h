// Tensor programs that move elements and compute nothing: slices, concatenations, transposes of dims of 1.
#pragma once
#include "ir/arith.h"
#include "ir/module.h"

namespace relaxc {

// Neighbouring elements of an operand that are neighbours in the result, in the same order. Positions are row-major and
// count elements.
struct MovedRun {
  Buffer from;
  Expr first;  // position in the operand
  Expr count;
};
// Returns the runs that the result consists of, in order, if the program has one result and does nothing but copy such
// runs from its operands.
//
//   for i, j in T.grid(1, 24): y[i, j] = T.if_then_else(j < 16, a[i, j], b[i, j - 16])    two runs: 16 of a, 8 of b
//   for i, j in T.grid(2, 24): ... the same                                               none: four runs would be
//   for i, j in T.grid(4, 3): y[i, j] = x[i + 2, j]                                       a run: 12 of x from 6 on
//
// A choice is by one axis, in the ascending order of its values. A concatenation along any but the first dim that is
// not 1 has no such form.
std::optional<std::vector<MovedRun>> moved_runs(const PrimFuncRef& program);

}  // namespace relaxc
