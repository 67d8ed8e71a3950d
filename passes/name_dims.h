// Kernels that do not know how the graph computed their dims.
#pragma once
#include "ir/visit.h"

namespace relaxc {

struct NamedDims {
  PrimFuncRef program;
  VarMap values;  // of the new variables, in the terms of the old ones
};

// Replaces expressions of dims by new variables where the program needs nothing but their value. A convolution behind
// four poolings has buffers of height `(((H + 1) // 2 - 1) // 2 ...` and uses H nowhere else: to schedule and lower it
// with a height `H` of its own costs the same at any depth of the network, and gives the same kernel at every depth.
// Nothing that the simplifier could prove is lost: an expression with an upper bound, or with a common factor, stays.
NamedDims name_dims(const PrimFuncRef& program);

}  // namespace relaxc
