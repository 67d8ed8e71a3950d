// 3x3 convolutions, stride 1, by Winograd's minimal filtering F(m x m, 3x3) (Lavin and Gray, "Fast Algorithms for
// Convolutional Neural Networks", 2016): (m + 2)^2 products of matrices for each m x m results instead of 9 m^2.
// winograd_transforms.h has the points, and the error that follows from them; tir/rules/winograd.cc makes loops of the
// program built here.
//
//   m   products for a result   weights   error, times that of direct sums, for many channels and for 16
//   2             4               16/9             0.56   0.72
//   4            2.25              4               1.67   2.3
//   6            1.78             64/9             6.9    9.6
//
// For m = 2 the transforms are sums and differences, but for the factor 1/2 of weights along a side: integers stay
// integers where weights are multiplied by 4, and sums divided by it.
#pragma once
#include "passes/graph_rewriter.h"

namespace relaxc {

inline constexpr int64_t kTileOfIntegers = 2;  // m for bytes

// Returns whether a convolution of bytes with constant weights, in any layout of the data, is faster by F(2x2, 3x3) in
// integers, where the target has no instruction that sums products of bytes exactly. The results are the same.
// An error of at most 0 asks for direct sums, as below.
bool gains_by_integers(const Call& conv, const Type& result, double most_error, const Target& target);

// Returns whether the convolution has a form that Winograd's algorithm computes. Expects data [N, C / b, H, W, b] in
// blocks of the target's vector lanes b and a weight OIHW of known dims, float32, or constant bytes; any padding, any
// extents, also symbolic.
bool can_be_winograd(const Call& conv, const Binding& binding, const Target& target);

// Returns the convolution as a call_tir of such a program on transformed weights, for tiles of m x m results. Expects
// can_be_winograd(). Weights that are not constant are transformed in each run.
Expr winograd_conv2d(const Call& conv, const Binding& binding, int64_t tile, IRModule& module, const Target& target,
                     Builder& b);

// A 3x3 convolution of stride 1, for the estimate of its time.
struct WindowSums {
  int64_t channels, filters;
  bool has_constant_weight;
  std::vector<Expr> out;  // [N, F / b, H, W, b]; a symbolic batch counts as 1, symbolic sizes as guessed_elements()
};
struct WinogradChoice {
  bool gains;    // against the direct convolution
  int64_t tile;  // the fastest one
};
// Returns the fastest algorithm whose error is at most so many times that of direct sums. Where no tile has so small an
// error, none gains, and the tile is the one of the default.
WinogradChoice choose_winograd(const WindowSums& sums, double most_error, const Target& target);

}  // namespace relaxc
