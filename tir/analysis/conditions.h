// Conditions as lists of conjuncts.
#pragma once
#include <optional>
#include <vector>

#include "ir/visit.h"

namespace relaxc {

// Splits a predicate into the conditions that must all hold, and joins them again; an absent predicate is true.
std::vector<Expr> conjuncts(const std::optional<Expr>& predicate);
std::optional<Expr> conjunction(const std::vector<Expr>& conditions);

}  // namespace relaxc
