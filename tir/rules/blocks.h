// The schedules of single blocks, which the default rule applies to each block of a program. A choose_ function takes
// the decisions about a block as the blocks scheduled before have left it; a schedule_ function only follows them.
#pragma once
#include "tir/rules/lanes.h"

namespace relaxc {

// An axis of filters in groups: the windows of a filter take the channels of its group, floor_div(axis, filters).
struct GroupAxis {
  size_t axis;
  int64_t filters;
};

// The schedule of an elementwise block. Neighbouring axes in which every buffer is contiguous become one loop. The last
// loop is vectorized if all accesses have stride 0 or 1 in it, and the others run on all threads. A partial last vector
// is masked.
struct ElementwisePlan {
  bool parallel;
  std::vector<long> merged = {};  // the number of axes of each loop; empty: threads share all axes
  int64_t lanes = 1;
  int64_t piece = 0;  // vectors that a thread takes of one long loop; 0: threads share the loops around it
  bool has_whole_pieces = false;
  // The loop along which an operand has its neighbours, where the last one has those of the result (a transpose). Both
  // are cut into tiles, whose columns are gathered, or which are transposed in registers.
  std::optional<size_t> rows = {};
  int64_t tile = 1;  // rows of a tile
};
ElementwisePlan choose_elementwise(const Ref<Block>& block, const Analyzer& facts, const Target& target,
                                   Decisions& decisions);
void schedule_elementwise(Schedule& schedule, const BlockRV& block, const ElementwisePlan& plan);
std::vector<DecisionRow> elementwise_decisions();

// The schedule of a reduction, as its operands allow:
//   tiles:   lanes along a spatial axis in which every operand has stride 0 or 1, or a few elements; a register tile of
//            columns, and of rows along an axis that an operand with lanes does not have, so that all rows reuse its
//            vectors. For products, and sums over outer axes.
//   windows: tiles whose rows lie along an axis on which a window slides, so that they share what they read (pooling,
//            depthwise convolutions). A small window is unrolled, and the padding becomes conditions that lowering
//            removes except in the tiles at the border.
//   lanes:   the innermost reduce axis is contiguous: a vector of partial results, whose halves are combined.
//   scalar:  one element after the other.
// Results do not depend on the number of threads: these share elements of the result, not parts of a sum.
// The epilogue is an elementwise block that reads each result once, at the same axes (fits_as_epilogue).
struct ReductionPlan {
  bool parallel;
  bool has_combiner = true;                               // else its spatial loops stay as they are
  std::optional<size_t> row_axis = {}, column_axis = {};  // positions among the spatial axes
  int64_t rows = 1, vectors = 1;
  int64_t lanes = 1;            // of a vector of columns; without a column axis, of partial results
  long merged = 1;              // the innermost reduce axes that partial results take as one loop
  size_t window = 0;            // the innermost reduce axes that are a window's
  size_t unrolled = 0;          // how many of these are unrolled
  bool columns_inside = false;  // tiles follow each other along the columns, so that results are stored in their order
  bool masks_columns = false;   // one code for whole and partial vectors, where the number of columns is symbolic
  // The border of the image, or whatever else makes the windows' operand, is computed in a band of that many row tiles,
  // or of everything inside of the axes that no window slides along; nullopt: it is computed before.
  std::optional<int64_t> band = {};
  std::optional<GroupAxis> groups = {};  // of which each takes the operand of a band for all of its filters
};
// `makes_operand`: whether blocks before it are left that only it reads (those of schedule_reduction).
ReductionPlan choose_reduction(const Ref<Block>& block, const Analyzer& facts, const Target& target,
                               Decisions& decisions, bool makes_operand = false);
// `producers` are the blocks that a plan with bands computes in these.
void schedule_reduction(Schedule& schedule, const BlockRV& block, const std::optional<BlockRV>& epilogue,
                        const ReductionPlan& plan, const Blocks& producers = {});
std::vector<DecisionRow> reduction_decisions();
// Makes the last two axes of the result one where that fills vectors better and every access, also of the epilogue,
// takes them as one, such as the rows and columns of an image that a convolution reads point by point. The block then
// has an epilogue, if only a copy.
void merge_last_axes(Schedule& schedule, const BlockRV& block, std::optional<BlockRV>& epilogue, const Target& target);
// Makes the innermost loop of the reduction a vector of partial results, whose halves are combined. Returns the loops
// around it.
Loops reduce_in_lanes(Schedule& schedule, const BlockRV& block, LoopRV loop, int64_t lanes);
bool fits_as_epilogue(Schedule& schedule, const BlockRV& reduction, const BlockRV& epilogue);

}  // namespace relaxc
