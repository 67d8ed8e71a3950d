// Products whose columns are used in equal parts, element by element: the gates of a recurrent layer, or the two halves
// of SwiGLU. Such a product is made in bands, y[..., band, column], so that a register tile holds the same columns of
// all bands and what combines them is done there (fuse_cells.cc).
#pragma once
#include "ir/layout.h"
#include "passes/graph_rewriter.h"

namespace relaxc {

// Which products are used in bands, and how.
struct ProductBands {
  struct Slice {
    const NodeHeader* of;  // a product, or a value behind it
    int64_t band;
  };
  std::unordered_map<const NodeHeader*, int64_t> products;  // variables of products -> the number of bands
  std::unordered_set<const NodeHeader*> behind;             // variables that are computed from all columns, one by one
  std::unordered_map<const NodeHeader*, Slice> slices;      // variables of slices
};
// Finds the float32 products with a constant matrix of which, directly or behind elementwise operators, only slices are
// used, each one band, and of which an elementwise operator, directly or behind others, combines several.
ProductBands find_product_bands(const FunctionRef& function, const OpTable& ops);

// A constant right operand [depth, bands * columns] as it is stored for such a product.
struct BandedMatmul {
  int64_t depth, bands, columns, panel;

  // Returns the layout of [depth, bands, columns]: [columns / panel, depth, bands, panel], or [1, depth, bands,
  // columns] where no panel divides the columns.
  Layout layout() const;
  Expr pack(const Expr& constant, Builder& builder) const;
  // Returns the dims of x[..., k] times the operand.
  std::vector<Expr> result(const std::vector<Expr>& x_shape) const;
  PrimFuncRef program(const std::vector<Expr>& x_shape, DType dtype) const;
};
// Returns the program that takes a band of such a product.
PrimFuncRef band_program(const std::vector<Expr>& product_shape, DType dtype, int64_t band);

}  // namespace relaxc
