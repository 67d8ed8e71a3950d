// Joins and splits for nodes with thousands of operands.
#pragma once
#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

// Binds a scalar expression of many operands to a variable, so that expressions over it stay short. A short expression
// stays as it is, so that more can be proven about it.
Expr named_if_long(Node& n, const Expr& scalar, const char* hint);

// Joins tensors. Thousands of them are joined, or cut, in groups of groups: no kernel then has all of them and no dim
// is a sum of thousands, because the code for either grows with the product of operands and depth.
Expr join(Node& n, const std::vector<Expr>& items, int64_t axis);
// Returns the pieces from offsets[i] to offsets[i + 1].
std::vector<Expr> cut(Node& n, const Expr& x, int64_t axis, const std::vector<Expr>& offsets);

}  // namespace relaxc::onnx_import
