// Draws a loop nest as a tree: loops with extents, kinds and the regions of one iteration, and blocks with their axes.
#pragma once
#include "ir/module.h"

namespace relaxc {

//   matmul(A float32[1024, 1024], B ..., C ...)
//   └─ parallel i_0 8                    A 128x1024 (512 KiB), B 1024x1024 (4 MiB), C 128x1024 (512 KiB)
//      └─ j_0 32                         ...
//         └─ block C  S:v_i S:v_j R:v_k
// Sizes are of one iteration of the loop; a symbolic one is an expression.
std::string draw_loops(const std::string& name, const PrimFuncRef& function);

}  // namespace relaxc
