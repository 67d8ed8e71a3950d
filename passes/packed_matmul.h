// Products with a right operand in panels of a tile's columns (BLIS): how the operand lies, and the programs.
// pack_weights makes them.
#pragma once
#include "ir/layout.h"
#include "ir/module.h"

namespace relaxc {

// A right operand [batch..., depth, width] in panels, of which the last may be padding. Dims may be symbolic.
struct PackedMatmul {
  std::vector<Expr> batch;  // the dims in front of a matrix; the left operand has them, or 1 or nothing in their place
  Expr depth, width;        // of which `depth` is a multiple of the layout's block
  Expr padded;              // the columns of all panels
  Layout layout;            // of [batch..., depth, padded]

  // Returns the program of x[..., k] times the packed operand.
  PrimFuncRef program(const std::vector<Expr>& x_shape, DType x_dtype, DType y_dtype, DType result) const;
  std::vector<Expr> packed_shape() const;
};

// Returns the program that copies a tensor and adds zeros at the ends of its axes, which then have these extents.
PrimFuncRef padding_program(const std::vector<Expr>& shape, const std::vector<Expr>& padded, DType dtype);

}  // namespace relaxc
