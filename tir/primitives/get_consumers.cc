#include "tir/edit/step.h"

namespace relaxc {

using namespace scheduling;

Blocks Schedule::get_consumers(BlockRV block) {
  Step step(*this, PrimitiveId::k_get_consumers, block);
  return step.block_results(consumers_of(step.block(block)));
}

}  // namespace relaxc
