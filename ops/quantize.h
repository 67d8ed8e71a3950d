// Arithmetic that quantization operators and the programs of quantized products share.
#pragma once
#include "ir/expr.h"

namespace relaxc {

// Returns the value as `dtype`. A conversion to integers saturates by itself; the narrow floats would overflow.
Expr saturated(const Expr& value, DType dtype);

}  // namespace relaxc
