// Programs that count in another integer type than graphs do, as most published ones: made of those that generators
// build in int64.
#pragma once
#include "ir/module.h"

namespace relaxc::test {

// The same program with scalar params, symbolic dims, loops and axes of `dtype`, and the index arithmetic with them.
PrimFuncRef counted_in(const PrimFuncRef& program, DType dtype);
IRModule counted_in(IRModule module, DType dtype);

}  // namespace relaxc::test
