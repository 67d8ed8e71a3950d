// Rewrites and questions that several lowering steps share.
#pragma once
#include "ir/arith.h"
#include "ir/module.h"
#include "tir/analysis/conditions.h"

namespace relaxc {

// Returns the statement with fn's result in place of each statement directly in it; lists in lists become one.
Stmt map_stmts(const Stmt& stmt, const std::function<Stmt(const Stmt&)>& fn);

// Maps expressions, by identity, to those that take their places.
using Replacements = std::unordered_map<const NodeHeader*, Expr>;
Stmt replace_exprs(const Stmt& stmt, const Replacements& by);

// The vector base + lane * stride.
struct AffineLanes {
  Expr base;
  int64_t stride, lanes;
};
// Returns a vector of integers in that form, where its operations show it.
std::optional<AffineLanes> as_affine_lanes(const Expr& e);

// Returns one lane of a vector expression; `other` gives that of loads, calls and variables.
Expr lane_of(const Expr& e, const Expr& lane, const std::function<Expr(const Expr&)>& other);

// An element of a buffer, or a vector of them.
struct Element {
  Buffer buffer;
  std::vector<Expr> indices;
};
// Returns the statement with each load and store at the element that fn returns; nullopt keeps it.
using MapElement = std::function<std::optional<Element>(const Buffer& buffer, const std::vector<Expr>& indices)>;
Stmt map_elements(const Stmt& stmt, const MapElement& fn);

// Returns the statement with its loops over these variables (as keys) merged into one loop over [0, count) around it.
// Returns nullopt where a row may use an element that another one writes, and where a statement outside of them stores.
std::optional<Stmt> row_by_row(const Stmt& tile, const std::unordered_set<const NodeHeader*>& rows, const Expr& count,
                               const Analyzer& facts);

}  // namespace relaxc
