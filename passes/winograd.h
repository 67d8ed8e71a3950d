// 3x3 convolutions, stride 1, by Winograd's minimal filtering F(4x4, 3x3) (Lavin and Gray, "Fast Algorithms for
// Convolutional Neural Networks", 2016), for points other than theirs: 36 products of matrices for each 4x4 results
// instead of 144. tir/rules/winograd.cc makes loops of the program built here.
#pragma once
#include "passes/graph_rewriter.h"

namespace relaxc {

// Returns whether the convolution has a form that Winograd's algorithm computes. Expects data [N, C / b, H, W, b] in
// blocks of the target's vector lanes b and a float32 weight OIHW of known dims; any padding, any extents, also
// symbolic.
bool can_be_winograd(const Call& conv, const Binding& binding, const Target& target);

// Returns the convolution as a call_tir of such a program on transformed weights. Expects
// can_be_winograd(). Weights take four times their memory; those that are not constant are transformed in each run.
//
// Error: 1e-6 to 3e-6 of the largest result for data and weights between -1 and 1 and up to 320 channels, growing with
// the root of their number. Direct sums of float32 have as much, or half of it.
Expr winograd_conv2d(const Call& conv, const Binding& binding, IRModule& module, const Target& target, Builder& b);

// Returns whether it is faster than the direct convolution; `out` are the dims of the result. It is, by a factor of 2
// or 3, except for few patches that do not pay for reading 36 instead of 9 weights: measured, 256 channels at 7x7 and
// 512 at 10x10 are faster directly, 512 at 14x14 gain little. Symbolic images count as large, a symbolic batch as 1.
bool winograd_gains(int64_t in_channels, int64_t out_channels, bool constant_weight, const std::vector<Expr>& out,
                    const Target& target);

}  // namespace relaxc
