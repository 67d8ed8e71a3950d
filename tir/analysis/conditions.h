// The variables that an expression or statement depends on, and conditions as lists of conjuncts.
#pragma once
#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "ir/visit.h"

namespace relaxc {

// Returns whether the variable occurs in one of them.
bool uses_var(const std::vector<Expr>& indices, const VarRef& var);

// The operands of a Select or an if_then_else.
struct Branches {
  Expr condition, a, b;
};
std::optional<Branches> branches_of(const Expr& e);

// Returns whether the node is one of the list.
template <class Handle>
  requires std::is_convertible_v<Handle, NodeRef>
bool contains(const std::vector<Handle>& list, const NodeRef& node) {
  return std::ranges::any_of(list, [&](const Handle& each) { return same_node(each, node); });
}

// Splits a predicate into the conditions that must all hold, and joins them again; an absent predicate is true.
std::vector<Expr> conjuncts(const std::optional<Expr>& predicate);
std::optional<Expr> conjunction(const std::vector<Expr>& conditions);

}  // namespace relaxc
