// Parallel and vectorized loops whose iterations overwrite each other's results, or read them.
#pragma once
#include "ir/module.h"
#include "support/diagnostic.h"

namespace relaxc {

// Returns a warning for each loop of the kind `T.parallel` of which two iterations are known to store different values
// in one element, or one to read an element that another one stores, so that the result depends on the threads; and for
// each `T.vectorized` loop of which an iteration reads an element that it would not read at that moment if the loop
// were serial (a loop-carried dependence; Allen and Kennedy, chapter 2). Nothing is said where that is not certain:
// about elements that loaded values choose, stores behind conditions that differ between iterations, and memory of one
// iteration.
std::vector<Diagnostic> racing_loops(const PrimFuncRef& program);

}  // namespace relaxc
