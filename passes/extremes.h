// The least and the greatest element of a tensor, of which dynamic quantization makes a scale: what find_extremes and
// note_extremes share.
#pragma once
#include "ir/module.h"

namespace relaxc {

// Returns the program `x -> (least, greatest)` for a float32 tensor of that shape. (passes/find_extremes.cc)
PrimFuncRef extremes_program(const std::vector<Expr>& shape);
// Returns the same for what was noted about parts of a tensor: noted[0, ...] are least elements, noted[1, ...]
// greatest.
PrimFuncRef noted_extremes_program(const std::vector<Expr>& shape);

}  // namespace relaxc
