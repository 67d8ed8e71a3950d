#include "tir/primitives/get_consumers.h"

namespace relaxc {

using namespace scheduling;

Blocks GetConsumers::apply(Step& step) const { return step.block_results(consumers_of(step.block(block))); }

}  // namespace relaxc
