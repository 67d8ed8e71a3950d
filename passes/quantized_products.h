// Products of floats with a constant matrix of few bits: matmul(x, dequantize(numbers, scale, zero_point)), perhaps
// with permute_dims between. The numbers are integers of 2, 4 or 8 bits, or floats of 4 or 8. Such a matrix stays as it
// is in memory, and the product makes its elements real as it reads them (pack_quantized.cc).
#pragma once
#include "passes/graph_rewriter.h"

namespace relaxc {

// The right operand [depth, width] of such a product.
struct QuantizedOperand {
  Expr numbers, scale, zero_point;  // the operands of dequantize; the latter of the numbers' dtype or floats
  bool is_transposed;               // they are [width, depth]
  int64_t depth, width;
  int64_t block;    // of the depth, whose elements share a scale; all of it where a column has one
  int64_t columns;  // that share a scale; of a block of 1 if there are several
  DType dtype;      // to which dequantize rounds

  bool has_float_zero_point() const;
};

// Matches a product by the types of its operands. `value_of` returns the value that a variable is bound to; null: it is
// not known.
using ValueOf = std::function<const Expr*(const Expr& var)>;
std::optional<QuantizedOperand> find_quantized_operand(const Call& matmul, const Type& result, const ValueOf& value_of);

// Returns the variables of dequantized matrices, and of their transposes, that only such products use. To compute them
// while compiling would make the weights floats.
VarSet operands_of_quantized_products(const FunctionRef& function);

}  // namespace relaxc
