#include "tir/primitives/get_producers.h"

namespace relaxc {

using namespace scheduling;

Blocks GetProducers::apply(Step& step) const { return step.block_results(producers_of(step.block(block))); }

}  // namespace relaxc
