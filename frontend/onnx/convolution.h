// Convolutions and pools: windows over the spatial dims of an input.
#pragma once
#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

// The convolution of x, which stands for input 0 of the node and has its shape, by the node's window attributes.
Expr convolve(Node& n, const Expr& x, const Expr& weight);

}  // namespace relaxc::onnx_import
