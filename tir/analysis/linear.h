// Conditions and indices as linear expressions of loop variables: what buffers and loops are cut by.
#pragma once
#include "ir/arith.h"
#include "tir/analysis/conditions.h"

namespace relaxc {

// The change of the expression when the variable grows by one; nullopt when that is not a constant.
std::optional<int64_t> coefficient(const Expr& e, const Expr& var, const Analyzer& facts);
// `a < b` as b - a - 1, which is >= 0 when the condition holds; nullopt for what is no inequality of integers.
std::optional<Expr> slack(const Expr& condition);
// What a body costs in code: its stores, as often as unrolled loops repeat them.
int64_t code_size(const Stmt& body);

// No store, call or assertion in it; memory alone does nothing.
bool does_nothing(const Stmt& body);

}  // namespace relaxc
