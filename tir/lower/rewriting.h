// Rewrites and queries that several lowering steps share.
#pragma once
#include "ir/arith.h"
#include "ir/module.h"
#include "tir/analysis/conditions.h"

namespace relaxc {

// Returns the statement with each of its direct child statements replaced by fn's result; nested lists are flattened.
Stmt map_stmts(const Stmt& stmt, const std::function<Stmt(const Stmt&)>& fn);

// Returns the statements, and then the last one.
inline Stmt followed_by(std::vector<Stmt> first, const Stmt& last, const Span& span) {
  first.push_back(last);
  return seq(std::move(first), span);
}

// Maps expressions, by identity, to their replacements.
using Replacements = std::unordered_map<const NodeHeader*, Expr>;
Stmt replace_exprs(const Stmt& stmt, const Replacements& by);

// The most lanes of a vector statement: longer vectorized loops become serial.
constexpr int kMostLanes = 1024;

// The vector base + lane * stride.
struct AffineLanes {
  Expr base;
  int64_t stride, lanes;
};
// Returns a vector of integers in that form, or nullopt when its operations do not show it.
std::optional<AffineLanes> as_affine_lanes(const Expr& e);

// Returns one lane of a vector expression. `other` returns the lane of a load, call or variable.
Expr lane_of(const Expr& e, const Expr& lane, const std::function<Expr(const Expr&)>& other);

// An element of a buffer, or a vector of them.
struct Element {
  Buffer buffer;
  std::vector<Expr> indices;
};
// Returns the statement with each load and store moved to the element that fn returns; nullopt keeps it in place.
using MapElement = std::function<std::optional<Element>(const Buffer& buffer, const std::vector<Expr>& indices)>;
Stmt map_elements(const Stmt& stmt, const MapElement& fn);

// Returns the statement with its loops over the variables `rows` merged into one loop over [0, count) around it, or
// nullopt if a row may use an element that another row writes, or if a statement outside of the rows stores.
std::optional<Stmt> row_by_row(const Stmt& tile, const std::unordered_set<const NodeHeader*>& rows, const Expr& count,
                               const Analyzer& facts);

// Returns a tile at the border of its results that computes what is beyond the border, too, where only its own memory
// holds that (fill_tiles.cc); the tile itself where it cannot.
Stmt fill_tile(const Stmt& tile, const Analyzer& facts);

}  // namespace relaxc
