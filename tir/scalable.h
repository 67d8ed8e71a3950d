// Vectors whose length the machine decides: their lanes are a multiple of vscale, which T.vscale() gives at run time
// (on AArch64 with SVE the number of 128-bit parts of a register). Ramp, Broadcast and DType have negative lanes for
// them.
#pragma once
#include "ir/module.h"

namespace relaxc {

// T.vscale(), in that dtype.
Expr vscale(DType dtype);
// The lanes that a loop of that extent has as one vector: a constant, or -4 for 4 * T.vscale().
std::optional<int64_t> vector_lanes(const Expr& extent);
// The same index arithmetic in another dtype: casts stand at the leaves only.
Expr index_in_dtype(const Expr& index, DType dtype);
// The program as a machine with that vscale runs it: no vectors of unknown length are left.
PrimFuncRef with_vscale(const PrimFuncRef& function, int vscale);

}  // namespace relaxc
