// Parallel loops whose iterations overwrite each other's results.
#pragma once
#include "ir/module.h"
#include "support/diagnostic.h"

namespace relaxc {

// Returns a warning for each loop of the kind `T.parallel` of which two iterations are known to store different values
// in one element, so that the result depends on the threads. Nothing is said where that is not certain: about elements
// that loaded values choose, stores behind conditions that differ between iterations, and memory of one iteration.
std::vector<Diagnostic> racing_loops(const PrimFuncRef& program);

}  // namespace relaxc
