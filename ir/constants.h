// <relaxc/constants.h>: tensors of one element, and constants of a graph.
#pragma once
#include <optional>

#include "ir/expr.h"

namespace relaxc {

// Returns whether a tensor has one element, and the element where the tensor is a constant.
bool is_one_element(const Type& tensor);
std::optional<double> constant_element(const Expr& tensor);
// Returns whether two values are the same leaf or equal constants, whose shapes may differ by dims of 1.
bool are_same(const std::optional<Expr>& a, const std::optional<Expr>& b);
// Returns a constant of rank 0.
Expr scalar_constant(double value, DType dtype, const Span& span = {});

}  // namespace relaxc
