// The schedule of contractions (matmul, convolution with packed weights, batched products) as primitives: a register
// tile of rows x columns accumulators, columns in vector lanes along an axis in which every operand is contiguous or
// constant, rows along one that reuses the vectors; the elementwise blocks that follow are applied to each tile. Panels
// and blocks are those of Goto and van de Geijn ("Anatomy of High-Performance Matrix Multiplication", 2008); their
// sizes follow from caches and bandwidths as in Low et al., "Analytical Modeling Is Enough for High-Performance BLIS"
// (2016).
#pragma once
#include "tir/rules/lanes.h"

namespace relaxc {

struct ContractionTile {
  size_t column_axis, row_axis;  // among the block's axes
  bool has_rows;                 // whether row_axis is valid
  int rows, lanes, vectors;
  std::optional<int64_t> num_panels = {};  // that hold the operand
  int panels = 1;                          // of lanes * vectors columns side by side
  // An instruction that sums `group` products in each lane; empty: multiply-add.
  std::string intrin = {};
  int group = 1;
  bool adds_products = false;   // which the instruction does not: they take registers beside the accumulators
  bool copies_operand = false;  // into panels, first
  // A block before the product unpacks the right operand from words of few bits: in registers, for a tile that has all
  // rows, or once for all row tiles, into a panel that stays in the L2 cache. Rows of the operand share a scale.
  enum class Unpacks : uint8_t { kNothing, kInRegisters, kIntoPanel };
  Unpacks unpacks = Unpacks::kNothing;
  int64_t scaled_rows = 1, unpacked_rows = 1;
  bool sums_before_scaling = false;  // in registers: a sum of scaled_rows products is multiplied by the scale
  int unpacked_lanes = 1;            // that are unpacked at once, in registers
  int64_t row_tiles = 0;             // in a block of rows; 0: threads share panels instead
  bool columns_first = false;        // all products use a panel before the next one
  // From the prefetch of a panel's row to its use; 0: there is none; absent: the next panel is fetched.
  std::optional<int64_t> rows_ahead = {};
  int64_t parts = 1;  // of the reduction
  int64_t step = 1;   // of the innermost reduction, unrolled
  bool unrolls_epilogue = true;
  std::optional<Versions> versions = {};
  // A product in bands, y[..., band, column], has the same columns of all bands in a tile.
  std::optional<size_t> band_axis = {};
  int bands = 1;
  int columns() const { return lanes * vectors; }
  int row_vectors() const { return bands * panels * vectors; }  // accumulators of a row
  // Returns whether the rows that share a scale are a loop of the reduction, of so many steps, outside of which the
  // scale is read.
  bool unpacks_scaled_rows(int64_t depth) const {
    return unpacks == Unpacks::kInRegisters && scaled_rows < depth && depth % scaled_rows == 0;
  }
  // Returns whether one tile has all rows, so that each panel is read once. Memory then takes most of the time.
  bool reads_panels_once(std::optional<int64_t> num_rows) const { return !has_rows || (num_rows && *num_rows <= rows); }
};

// Returns the axes, lanes, vectors and instruction of the tile for a product whose operand lies in panels, y[n /
// columns, k, columns] or, for instructions that sum several products, [n / columns, k / group, columns, group], in
// bands [n / columns, k, band, columns] or [0, k, band, n], or is unpacked by a block before it, or is a matrix that
// may be copied into panels first. Returns the reason if the product has another form, the target has no such
// instruction, or it is decided not to copy.
using ContractionMatch = std::variant<ContractionTile, std::string>;
ContractionMatch match_contraction(const Stage& product, const Target& target, Decisions& decisions);
// Takes the decisions about such a tile.
ContractionTile choose_contraction(const Stage& product, ContractionTile tile, const Target& target,
                                   Decisions& decisions);
// Decides kSpecialize: the numbers of rows, where these are symbolic, that have separate code (the tile's `versions`).
inline constexpr const char* kSpecialize = "specialize";
std::optional<Versions> choose_specialized_rows(const Stage& product, const ContractionTile& tile, const Target& target,
                                                Decisions& decisions);
std::vector<DecisionRow> contraction_decisions();  // about a tile

// Schedules the anchor and the blocks after it, for any extents: rows and columns that do not fill a tile are a tail.
void schedule_contraction(Schedule& schedule, BlockRV anchor, const ContractionTile& tile);

}  // namespace relaxc
