// Arithmetic that quantization operators and the programs of quantized products share.
#pragma once
#include "ir/expr.h"
#include "ir/op_names.h"

namespace relaxc {

// Returns the value as `dtype`. A conversion to integers saturates by itself; the narrow floats would overflow.
Expr saturated(const Expr& value, DType dtype);

// table[data], where the bits of data are a number from 0 to 255.
inline constexpr OpName kLookup{"relax.lookup"};
constexpr int64_t kByteTableSize = 256;

}  // namespace relaxc
