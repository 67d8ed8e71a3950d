#include "tir/edit/step.h"

namespace relaxc {

using namespace scheduling;

Blocks Schedule::get_producers(BlockRV block) {
  Step step(*this, PrimitiveId::k_get_producers, block);
  return step.block_results(producers_of(step.block(block)));
}

}  // namespace relaxc
