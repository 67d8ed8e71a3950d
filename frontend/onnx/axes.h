// Axes that a node reads from a tensor and that only the run tells. Their number is known, so ranks are; dims become
// scalars that the run computes.
#pragma once
#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

// A scalar under a name, so that kernels do not repeat a long expression in each index, and what is known of it.
Expr bounded(Node& n, const Expr& value, const char* hint, Interval bounds);

// The axes in operand `input` as scalars in [0, rank). The run fails for one outside of [-rank, rank).
std::vector<Expr> read_axes(Node& n, size_t input, int64_t rank);

// Constant axes in [0, rank); an error for one out of range and for one named twice.
std::vector<int64_t> distinct_axes(const Node& n, const std::vector<int64_t>& axes, int64_t rank);
// The same of operand `input`, as scalars; an error now where they are constants, else of the run.
std::vector<Expr> distinct_axes(Node& n, size_t input, int64_t rank);

// 1 for each of `rank` axes that the scalars name, else 0.
std::vector<Expr> named_axes(Node& n, const std::vector<Expr>& axes, int64_t rank);

// The run fails where `count` axes named fewer than `count`.
void require_distinct(Node& n, const std::vector<Expr>& named, size_t count);

// 1 or 0 where even the number of axes in operand `input` is the run's. With none, all are named or none, as said.
std::vector<Expr> named_axes_of_any_number(Node& n, size_t input, int64_t rank, bool none_means_all);

// The dims of those axes that are not named, `count` of them.
std::vector<Expr> dims_not_named(Node& n, const std::vector<Expr>& dims, const std::vector<Expr>& named, size_t count);
// The dims with 1 for each axis that is named.
std::vector<Expr> dims_with_ones(Node& n, const std::vector<Expr>& dims, const std::vector<Expr>& named);
// The dims spread over the axes that are not named, with 1 for each other.
std::vector<Expr> dims_between_ones(Node& n, const std::vector<Expr>& dims, const std::vector<Expr>& named);

}  // namespace relaxc::onnx_import
