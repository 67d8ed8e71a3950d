// Internal to codegen/: where a multiplication and the addition behind it may be rounded once (FMA contraction).
//
// Kernels that convert between floats and quantized integers round each operation, as the graph states it: then their
// integers are those of the interpreter and of processors without FMA, whichever operators were fused into the kernel.
// Sums that a loop accumulates in floats contract in all kernels; the order of their additions is not stated either.
#pragma once
#include "ir/module.h"

namespace relaxc::codegen {

// Returns whether a program converts integers that it loads to float32, or rounds floats to integers of a dtype.
bool computes_with_quantized(const PrimFuncRef& program);
// Returns whether a statement adds to the element that it stores.
bool accumulates(const BufferStore& store);

}  // namespace relaxc::codegen
