#pragma once
#include "passes/pass.h"

namespace relaxc {

// Computes what depends on constants only. `keeps_weights`: but no floats or wider integers of weights in 8 bits.
IRModule fold(IRModule module, PassContext& context, bool keeps_weights);

}  // namespace relaxc
