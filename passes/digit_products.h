// Products of few rows with a constant matrix of few bits, by dot products of bytes. Unpacking the matrix into floats
// takes longer than reading it from memory; here it is unpacked into bytes, by an AND and a shift for 128 numbers, and
// the activations become fixed-point numbers of three signed digits of 8 bits, so that sums of digits times numbers are
// exact in int32:
//
//   x[m, k] = step[m, c] * sum over d of 256^d * digit[m, c, d, k]     of each chunk c of the depth, of one scale
//   y[m, n] = sum over c of step[m, c] * scale[c, n] * sum over d, k of 256^d * digit[m, c, d, k] * (number[k, n] -
//   zero)
//
// A zero point times the sum of digits is a float32, so it may be a float as well.
//
// Where no instruction sums in 32 bits (x86 without VNNI), pmaddubsw sums in 16 bits, for as many elements of the depth
// as cannot make more of numbers of few bits: 32 for numbers of 4. Bytes have no such product there.
//
// The numbers of float4_e2m1fn are multiples of 1/2 up to 6, so that bytes hold twice the numbers. One instruction
// takes these from a table of 16 bytes, by their codes (tir/analysis/byte_tables.h).
//
// A step is a power of two, at most 2^-22 of the largest element of the chunk, so that the error of such a product is
// that of a sum in float32. With a single digit (activations in int8, as llama.cpp's Q8_0) it is not: a step is then
// 1/127 of the largest element. Activations that are dequantized bytes are a digit each, with the step that they have;
// their zero point is left to the caller. tir/rules/digit_product.cc schedules the program.
#pragma once
#include "passes/pass.h"
#include "passes/quantized_products.h"

namespace relaxc {

// The matrix as such products read it, one stream of memory for each tile of columns.
struct DigitOperand {
  int64_t depth, width;
  int64_t bits;             // of a number
  int64_t lanes, vectors;   // of a tile of columns
  int64_t chunk;            // of the depth, that has one step
  int64_t chunks_of_scale;  // that have one scale
  int64_t digits;           // of an activation
  int64_t pair_depth;       // of a chunk, whose products are summed in 16 bits; 0: in 32
  Expr words;   // uint8 [tile, depth / (4 * numbers in a byte), vector, lane, 4]; with sums of 16 bits int32, without 4
  Expr scales;  // [tile, block, vector, lane], or one number
  std::optional<Expr> zero_points;            // uint8 or floats [tile, block, vector, lane], or one number
  int64_t zero_point = 0;                     // is added to them, or is that of all where there are none
  std::optional<Expr> numbers_of_codes = {};  // uint8 [16]: what the codes in the words stand for

  std::vector<Expr> tensors(const Expr& x) const;
  // Returns the program of x[..., depth], of known shape, times the matrix. Bytes are multiplied by a step, which is
  // the last operand; uint8 ones are 128 less.
  PrimFuncRef program(const std::vector<Expr>& x_shape, DType x_dtype = kFloat32) const;
};

// The numbers that such a product makes of activations: the decision "activations" of the graph rule "packed_product";
// or those that dequantized activations are.
enum class ActivationDigits : uint8_t { kFloat, kInt8, kBytes };

// Returns whether x[..., depth] times the matrix is such a product: the target has the dot product, the numbers are of
// such a form, and the rows are few or symbolic. For many, unpacking the matrix into floats once is faster, unless
// activations are int8.
bool fits_digits(const QuantizedOperand& matrix, const std::vector<Expr>& x_shape, DType x_dtype, DType result,
                 ActivationDigits activations, const PassContext& context);
// Returns the sum of each column of the matrix, by which products with bytes are corrected for their zero point.
Expr column_sums(const QuantizedOperand& matrix);
// Returns the matrix for such products. Its parts are constants.
DigitOperand digit_operand(const QuantizedOperand& matrix, ActivationDigits activations, const PassContext& context);

}  // namespace relaxc
