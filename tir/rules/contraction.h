// The schedule of contractions (matmul, convolution with packed weights, batched products) as primitives: a register
// tile of rows x columns accumulators, columns in vector lanes along an axis in which every operand is contiguous or
// constant, rows along one that reuses the vectors; the elementwise blocks behind it are applied to each tile.
#pragma once
#include "tir/schedule/rule.h"
#include "tir/schedule/schedule.h"
#include "tir/target.h"

namespace relaxc {

struct ContractionTile {
  size_t column_axis, row_axis;  // among the block's axes
  bool has_rows;                 // else row_axis means nothing
  int rows, lanes, vectors;
  int panels = 1;  // of lanes * vectors columns side by side
  // An instruction that sums `group` products in each lane; empty: multiply-add.
  std::string intrin = {};
  int group = 1;
  int columns() const { return lanes * vectors; }
};

// The tile for a product with an operand in panels, y[n / columns, k, columns] or, for instructions that sum several
// products, [n / columns, k / group, columns, group]; nullopt: it has another form, or the target no such instruction.
std::optional<ContractionTile> choose_panel_tile(const Block& block, const Target& target);

// The same, of a product whose operand may be copied into panels first, where enough rows read it.
std::optional<ContractionTile> prepare_panels(Schedule& schedule, const BlockRV& anchor, const Target& target);

// The rule for "matmul" whose operand lies in panels; others do not fit it.
ScheduleRule contraction_rule(const Target& target);

// Schedules the anchor and what follows it. Throws a CompileError with the primitive's reason where the program has
// another form. Any extents: rows and columns that do not fill a tile are a tail of their own.
void schedule_contraction(Schedule& schedule, BlockRV anchor, const ContractionTile& tile);

}  // namespace relaxc
