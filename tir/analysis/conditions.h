// The variables that an expression or statement depends on, and conditions as lists of conjuncts.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "ir/visit.h"

namespace relaxc {

// Returns whether the variable occurs in one of them.
bool uses_var(const std::vector<Expr>& indices, const VarRef& var);

// Splits a predicate into the conditions that must all hold, and joins them again; an absent predicate is true.
std::vector<Expr> conjuncts(const std::optional<Expr>& predicate);
std::optional<Expr> conjunction(const std::vector<Expr>& conditions);

}  // namespace relaxc
