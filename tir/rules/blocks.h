// The schedules of single blocks, which the default rule applies to each block of a program.
#pragma once
#include "tir/rules/lanes.h"

namespace relaxc {

// The schedule of a block that computes each element by itself: neighbouring axes that every buffer holds one after the
// other become one loop, the last loop vectors where the block walks all buffers element by element, the others run on
// all threads. A last vector that is not full is masked.
void schedule_elementwise(Schedule& schedule, const BlockRV& block, const Target& target, Decisions& decisions);
std::vector<DecisionRow> elementwise_decisions();

// The schedule of a reduction, as its operands allow:
//   tiles:   lanes along a spatial axis in which every operand has stride 0 or 1; a register tile of columns, and of
//            rows along an axis that an operand with lanes misses, whose vectors then serve all rows. Products, and
//            sums over outer axes.
//   lanes:   the innermost reduce axis is contiguous: a vector of partial results, whose halves are combined.
//   scalar:  one element after the other.
// Results do not depend on the number of threads, which share elements of the result.
// The epilogue is an elementwise block that reads each result once, at the same axes (fits_as_epilogue).
void schedule_reduction(Schedule& schedule, const BlockRV& block, const std::optional<BlockRV>& epilogue,
                        const Target& target, Decisions& decisions);
std::vector<DecisionRow> reduction_decisions();
bool fits_as_epilogue(Schedule& schedule, const BlockRV& reduction, const BlockRV& epilogue);

}  // namespace relaxc
