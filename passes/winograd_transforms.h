// Winograd's minimal filtering F(m, 3) along one side: m results of a window of 3 from m + 2 products of transformed
// pixels with transformed weights, as in "Fast Algorithms for Convolutional Neural Networks" (Lavin and Gray, 2016).
// All three transforms follow from the points at which the polynomials of pixels and window are multiplied, and so does
// the error: the transforms of images, of weights and the estimate come from this one description.
#pragma once
#include <array>
#include <vector>

#include "ir/expr.h"

namespace relaxc::winograd {

// F(m, 3) for the points 0, infinity and the pairs a, -a. What even and odd powers of a contribute is computed once for
// both points of a pair.
class MinimalFiltering {
 public:
  // Expects one of tiles().
  explicit MinimalFiltering(int64_t tile);

  // The sizes m that exist, small ones first.
  static const std::vector<int64_t>& tiles();

  int64_t tile() const { return tile_; }
  int64_t patch() const { return tile_ + 2; }

  // Returns the patch() transformed pixels of a patch. Value is Expr or double.
  template <class Value>
  std::vector<Value> of_patch(const std::vector<Value>& pixels) const;
  // Returns the tile() results of patch() products.
  template <class Value>
  std::vector<Value> of_products(const std::vector<Value>& products) const;
  // Returns the matrix [patch(), 3] that transforms a window.
  std::vector<std::array<double, 3>> of_window() const;

  // Returns the error of a 3x3 convolution as a multiple of that of direct sums, both as the root of the mean square
  // over all results, for random data and weights.
  //
  // Each of the C additions of a point rounds by a part of the sum so far, which adds up to C (C + 1) / 2 times the
  // variance of a product, that is, the squared norms of the rows that transform pixels and weights. Pixels, weights
  // and results are rounded as they are transformed, which adds some C variances. The result's transform adds these by
  // its squared entries. Direct sums have 9 C additions of plain products, and a window of two dimensions has the
  // product of both sides' factors.
  double error(int64_t channels) const;

 private:
  int64_t tile_;
  std::vector<double> squares_;     // of a, for each pair
  std::vector<double> polynomial_;  // whose roots the squares are, the constant first
  // Returns the one without the root of a pair.
  std::vector<double> polynomial_without(size_t pair) const;
};

}  // namespace relaxc::winograd
