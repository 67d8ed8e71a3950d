// Constants behind operators that only move elements.
#pragma once
#include "passes/graph.h"

namespace relaxc {

// Puts constants in the place of reshape and permute_dims of constants, and of rows of them (reshape of permute_dims of
// reshape ...): one copy in C++ for a whole row, without intermediate results, code, or a weight that has to be in
// memory as a whole. Equal rows of one constant give one constant.
FunctionRef fold_layout(const FunctionRef& function, const OpTable& ops);

}  // namespace relaxc
