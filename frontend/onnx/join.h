// What nodes of thousands of operands are made of.
#pragma once
#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

// A scalar expression of many operands bound to a variable, so that what is computed from it stays short; a short one
// stays as it is, so that more can be proven about it.
Expr named_if_long(Node& n, const Expr& scalar, const char* hint);

// Thousands of tensors are joined, or cut, in groups of groups: no kernel then has all of them, and no dim is a sum of
// thousands, as what is made of either grows with the product of operands and depth.
Expr join(Node& n, const std::vector<Expr>& items, int64_t axis);
// Pieces from offsets[i] to offsets[i + 1].
std::vector<Expr> cut(Node& n, const Expr& x, int64_t axis, const std::vector<Expr>& offsets);

}  // namespace relaxc::onnx_import
