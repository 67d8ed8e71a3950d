// Drops the bindings of a graph function that nothing uses.
#pragma once
#include "ir/op.h"

namespace relaxc {

// Returns the function, or a sequence, without bindings of pure values that nothing uses, branches and local functions
// included. Casts stay: they bind dims, and test.
Expr without_unused(const Expr& function, const IRModule& module, const OpTable& ops);

}  // namespace relaxc
