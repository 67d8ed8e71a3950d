// Vectors whose length the machine decides. Their lanes are a multiple of vscale, which T.vscale() gives at run time
// (on AArch64 with SVE, the number of 128-bit parts of a register). Ramp, Broadcast and DType express such lanes as
// negative numbers.
#pragma once
#include "ir/module.h"

namespace relaxc {

// Returns T.vscale() in that dtype.
Expr vscale(DType dtype);
// Returns the lanes that a loop of that extent has as one vector: a constant, or -4 for 4 * T.vscale().
std::optional<int64_t> vector_lanes(const Expr& extent);
// Returns the same index arithmetic in another dtype. Only leaves are cast.
Expr index_in_dtype(const Expr& index, DType dtype);
// Returns the program as a machine with that vscale runs it, without vectors of unknown length.
PrimFuncRef with_vscale(const PrimFuncRef& function, int vscale);

}  // namespace relaxc
