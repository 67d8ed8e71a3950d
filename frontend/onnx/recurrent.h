// The conversion of recurrent layers, for operators that are one with other weights.
#pragma once
#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

// Converts a node with the inputs and attributes of an LSTM but for the weights, which are given as an LSTM has them.
// Its products get the inputs of all steps, and the hidden state of each step, through DynamicQuantizeLinear.
Outputs dynamically_quantized_lstm(Node& n, const Expr& weights, const Expr& recurrent_weights);

}  // namespace relaxc::onnx_import
