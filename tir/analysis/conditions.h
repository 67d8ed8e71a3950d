// The variables that an expression or statement depends on, and conditions as lists of conjuncts.
#pragma once
#include <optional>
#include <unordered_set>
#include <vector>

#include "ir/visit.h"

namespace relaxc {

// Returns whether the variable, or one of the variables (as keys), occurs.
bool mentions(const NodeRef& node, const VarRef& var);
bool mentions(const NodeRef& node, const std::unordered_set<const NodeHeader*>& vars);

// Splits a predicate into the conditions that must all hold, and joins them again; an absent predicate is true.
std::vector<Expr> conjuncts(const std::optional<Expr>& predicate);
std::optional<Expr> conjunction(const std::vector<Expr>& conditions);

}  // namespace relaxc
