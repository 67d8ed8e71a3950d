// 3x3 convolutions, stride 1, by Winograd's minimal filtering F(4x4, 3x3) (Lavin and Gray, "Fast Algorithms for
// Convolutional Neural Networks", 2016), with the points 0, 1, -1, 2, -2: 36 products of matrices for each 4x4 results
// instead of 144. tir/schedule/rules/winograd.h makes loops of the program built here.
#pragma once
#include "passes/graph.h"

namespace relaxc {

// The convolution as a call_tir of such a program, the weights' transform as operators on the constant. nullopt:
// another form of convolution, or one that Winograd makes slower. Expects data [N, C / b, H, W, b] in blocks of the
// target's vector lanes b and a constant float32 weight OIHW; any padding, any extents, symbolic ones too.
//
// Error: 2e-6 to 8e-6 of the largest result for data and weights of one magnitude (direct: 1e-6 and less).
std::optional<Expr> winograd_conv2d(const Call& conv, const Binding& binding, Builder& builder, IRModule& module,
                                    const Target& target);

// Whether it is faster than the direct convolution.
bool winograd_gains(int64_t in_channels, int64_t out_channels, std::optional<int64_t> patches);

}  // namespace relaxc
