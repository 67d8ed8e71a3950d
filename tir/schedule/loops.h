// Small builders of loop nests that the default schedules share.
#pragma once
#include "tir/schedule/stages.h"

namespace relaxc {

// A loop over [0, extent) whose body is made from the variable; just the body, at 0, when the extent is 1.
template <class F>
Stmt make_loop(const char* name, const Expr& extent, ForKind kind, F&& body) {
  if (is_int(extent, 1)) return body(int_imm(0));
  VarRef var = make_dim(name);
  return loop(var, extent, body(static_cast<const Expr&>(var)), kind);
}
// One loop over all extents' product; the body gets one index per extent. Parallel unless the total is known to be
// small.
Stmt fused_loop(const std::vector<Expr>& extents, ForKind kind,
                const std::function<Stmt(const std::vector<Expr>&)>& body);
// The work of a nest when it is a constant below the cost of waking a thread.
bool is_small(const std::vector<Expr>& extents, int64_t work_per_iteration = 1);
// A copy of the statement with variables replaced and every variable bound inside made new.
Stmt instantiate(const Stmt& stmt, const VarMap& axes);
// The columns of a register tile: vectors of so many lanes side by side. Widths that divide the extent come first, wide
// before narrow: a narrower vector beats a scalar tail. nullopt: an extent not known.
struct ColumnTile {
  int lanes, vectors;
  int columns() const { return lanes * vectors; }
};
ColumnTile choose_column_tile(std::optional<int64_t> extent, int lanes);
// Elements of a full vector for the widest dtype the stage handles; 1 when it handles what has no vector form.
int stage_lanes(const Stage& stage, const Target& target);

}  // namespace relaxc
