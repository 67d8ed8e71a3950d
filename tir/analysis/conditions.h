// Conditions as lists of conjuncts, and conditions and indices as linear functions of one variable.
#pragma once
#include <algorithm>
#include <optional>
#include <vector>

#include "ir/arith.h"
#include "ir/visit.h"

namespace relaxc {

// Returns whether the variable occurs in one of them.
bool uses_var(const std::vector<Expr>& indices, const VarRef& var);

// Returns whether one of the variables that are the map's keys occurs.
template <class Value>
bool uses_var(const NodeRef& node, const std::unordered_map<const NodeHeader*, Value>& vars) {
  return any_node(node, [&](const NodeRef& at) { return vars.contains(at.get()); });
}

// Returns the outermost operation that matches, the leftmost of several.
template <class Matches>
std::optional<Expr> first_operation(const Expr& e, Matches matches) {
  std::optional<Expr> found;
  walk(e, [&](const Ref<Binary>& node) {
    if (!found && matches(*node)) found = node;
    return !found;
  });
  return found;
}

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
// Returns the condition under which a branch or an if_then_else takes its first side; nullopt for another node.
std::optional<Expr> condition_of(const NodeRef& node);
std::optional<Expr> conjunction(const std::vector<Expr>& conditions);

// Returns the expression with var + 1 in place of the variable.
Expr stepped(const Expr& e, const Expr& var);
// Returns whether the number is known to be greater than 0, or not less than 0.
bool is_positive(const Expr& e, const Analyzer& facts);
bool is_non_negative(const Expr& e, const Analyzer& facts);
// Returns the change of the expression when the variable grows by one, or nullopt when that is not a constant.
std::optional<int64_t> coefficient(const Expr& e, const Expr& var, const Analyzer& facts);
// Adds what is known in a loop's body: the loop's range, and that it runs, so that no factor of its extent is 0.
void assume_runs(Analyzer& facts, const For& loop);
// Returns `a < b` as b - a - 1, which is >= 0 when it holds; nullopt when it is not an inequality of integers.
std::optional<Expr> slack(const Expr& condition);
// Estimates the code size of a body: the number of its stores, each counted as often as unrolled loops repeat it.
int64_t code_size(const Stmt& body);

// Returns whether the node stores elements of the buffer.
bool stores_to(const NodeRef& node, const Buffer& buffer);
// Returns whether the body has no store, call or assertion; an allocation alone does nothing.
bool does_nothing(const Stmt& body);

}  // namespace relaxc
