// The schedule of a block that computes each element by itself: neighbouring axes that every buffer holds one after the
// other become one loop, the last loop vectors where the block walks all buffers element by element, the others run on
// all threads. A last vector that is not full is masked.
#pragma once
#include "tir/rules/lanes.h"

namespace relaxc {

void schedule_elementwise(Schedule& schedule, const BlockRV& block, const Target& target, Decisions& decisions);
std::vector<DecisionRow> elementwise_decisions();

}  // namespace relaxc
