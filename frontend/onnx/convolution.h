// Convolutions and pools: windows over the spatial dims of an input.
#pragma once
#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

// Returns the convolution of x by the node's window attributes. x replaces input 0 of the node and has its shape.
Expr convolve(Node& n, const Expr& x, const Expr& weight);

}  // namespace relaxc::onnx_import
