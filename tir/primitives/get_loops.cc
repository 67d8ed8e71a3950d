#include "tir/primitives/get_loops.h"

namespace relaxc {

using namespace scheduling;

Loops GetLoops::apply(Step& step) const { return step.loop_results(loops_above(step.block(block))); }

}  // namespace relaxc
