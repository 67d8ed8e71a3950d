// Results of which a tensor program provably does not write every element.
#pragma once
#include "ir/module.h"
#include "support/diagnostic.h"

namespace relaxc {

// Returns a warning, at the place of the param, for each of the buffers to which the program stores nothing, and for
// each of which it leaves out the first or the last elements along a dim, whatever the dims are (from 1). Nothing is
// said of gaps between elements, nor of memory that a window, a view or a function may write.
std::vector<Diagnostic> unwritten_results(const PrimFuncRef& program, const std::vector<Buffer>& results);

// Returns the buffer params that the program can only have for its results, for somebody who knows no call of it: those
// that it writes and does not read, or the last one, if nothing uses that.
std::vector<Buffer> likely_results(const PrimFuncRef& program);

}  // namespace relaxc
