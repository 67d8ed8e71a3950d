// Axes that a node reads from a tensor at run time. Their number is known, so ranks are; dims become scalars.
#pragma once
#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

// Binds a scalar to a variable with known bounds, so that kernels do not repeat a long expression in each index.
Expr bounded(Node& n, const Expr& value, const char* hint, Interval bounds);

// Returns the axes in operand `input` as scalars in [0, rank). The run fails for one outside of [-rank, rank).
// Their number is `count` where the model leaves it open.
std::vector<Expr> read_axes(Node& n, size_t input, int64_t rank, std::optional<int64_t> count = {});

// Returns constant axes in [0, rank). An axis that is out of range or named twice is an error.
std::vector<int64_t> distinct_axes(const Node& n, const std::vector<int64_t>& axes, int64_t rank);
// Returns the axes in operand `input` as scalars, checked in the same way, at run time unless they are constants.
std::vector<Expr> distinct_axes(Node& n, size_t input, int64_t rank, std::optional<int64_t> count = {});

// Returns `rank` scalars for a list of distinct axes of any length: those that it lacks name no axis.
std::vector<Expr> distinct_axes_up_to(Node& n, size_t input, int64_t rank);

// Returns, for each of `rank` axes, 1 when the scalars name it and 0 otherwise.
std::vector<Expr> named_axes(Node& n, const std::vector<Expr>& axes, int64_t rank);

// Makes the run fail where `count` scalars named fewer than `count` different axes.
void require_distinct(Node& n, const std::vector<Expr>& named, size_t count);

// Returns 1 or 0 for each axis where even the number of axes in operand `input` is known at run time only. When there
// are none, `none_means_all` decides whether all axes are named or none.
std::vector<Expr> named_axes_of_any_number(Node& n, size_t input, int64_t rank, bool none_means_all);

// Returns the dims of the `count` axes that are not named.
std::vector<Expr> dims_not_named(Node& n, const std::vector<Expr>& dims, const std::vector<Expr>& named, size_t count);
// Returns the dims with 1 for each axis that is named.
std::vector<Expr> dims_with_ones(Node& n, const std::vector<Expr>& dims, const std::vector<Expr>& named);
// Spreads the dims over the axes that are not named, with 1 for each axis that is named.
std::vector<Expr> dims_between_ones(Node& n, const std::vector<Expr>& dims, const std::vector<Expr>& named);

}  // namespace relaxc::onnx_import
