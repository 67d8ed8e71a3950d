#include "tir/edit/step.h"

namespace relaxc {

using namespace scheduling;

Loops Schedule::get_loops(BlockRV block) {
  Step step(*this, PrimitiveId::k_get_loops, block);
  return step.loop_results(loops_above(step.block(block)));
}

}  // namespace relaxc
