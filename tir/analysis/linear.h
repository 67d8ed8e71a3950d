// Conditions and indices as linear expressions of loop variables, by which buffers and loops are cut.
#pragma once
#include "ir/arith.h"
#include "tir/analysis/conditions.h"

namespace relaxc {

// Returns the expression with var + 1 in place of the variable.
Expr stepped(const Expr& e, const Expr& var);
// Returns whether the number is known to be greater than 0, or not less.
bool is_positive(const Expr& e, const Analyzer& facts);
bool is_non_negative(const Expr& e, const Analyzer& facts);
// Returns the change of the expression when the variable grows by one, or nullopt when that is not a constant.
std::optional<int64_t> coefficient(const Expr& e, const Expr& var, const Analyzer& facts);
// Returns `a < b` as b - a - 1, which is >= 0 when the condition holds; nullopt when it is not an inequality of
// integers.
std::optional<Expr> slack(const Expr& condition);
// Returns the size of a body in code: the number of its stores, as often as unrolled loops repeat them.
int64_t code_size(const Stmt& body);

// Returns whether the body has no store, call or assertion; an allocation alone does nothing.
bool does_nothing(const Stmt& body);

}  // namespace relaxc
