// Blocks that accumulate in a way that cannot give the sum that they are meant to.
#pragma once
#include "ir/module.h"
#include "support/diagnostic.h"

namespace relaxc {

// Returns an error for each block with T.init and a spatial axis of more than one value that does not choose the
// element: the block starts again in each of its iterations. And a warning for each store that reads its own element
// where nothing else in the program writes the buffer, which then has no value at first. The buffers are those that the
// program allocates and, of a kernel, whose results are params that nobody fills in before, those params.
enum class Results : uint8_t { kAllocated, kParams };
std::vector<Diagnostic> wrong_reductions(const PrimFuncRef& program, Results results);

}  // namespace relaxc
