// Rules ask these questions about a block before they choose its vectors and threads.
#pragma once
#include "ir/arith.h"
#include "tir/analysis/nests.h"
#include "tir/schedule/schedule.h"
#include "tir/target.h"

namespace relaxc {

// Known to be less work than it costs to wake a thread. `work`: of an iteration, in simple operations.
bool is_small(const std::vector<Expr>& extents, const Target& target, int64_t work = 1);

// Computes exp, erf or the like, which become tens of instructions for each vector.
bool is_long(const Block& block);

// The columns of a register tile: vectors of so many lanes side by side. Widths that divide the extent come first, wide
// before narrow: a narrower vector beats a tail. nullopt: an extent not known.
struct ColumnTile {
  int lanes, vectors;
  int columns() const { return lanes * vectors; }
};
ColumnTile choose_column_tile(std::optional<int64_t> extent, int lanes);

// Elements of a full vector of the widest dtype that the block handles; 1 when it handles what has no vector form, or
// vectors already.
int lanes_of(const Block& block, const Target& target);
// The change of the access's row-major position when the variable grows by one; nullopt when that is not constant in
// it, or of a vector.
std::optional<Expr> access_stride(const Buffer& buffer, const std::vector<Expr>& indices, const VarRef& axis,
                                  const Analyzer& facts);

// A block's axes, spatial ones first, and the loop of each, which stand in this order.
struct Nest {
  Ref<Block> block;
  std::vector<IterVar> axes;
  size_t num_spatial;
  Loops loops;

  std::vector<Expr> spatial_extents() const;
  size_t num_reduced() const { return axes.size() - num_spatial; }
};
// Brings the loops into that order. The block stands in a nest of its own (find_nests).
Nest in_order(Schedule& schedule, const BlockRV& block);
// The loops as one, on all threads if told.
void share_out(Schedule& schedule, const Loops& loops, bool parallel);

}  // namespace relaxc
