// NumPy functions that the reader evaluates on arrays; nullopt for all others. Internal to ir/text/.
#pragma once
#include <functional>
#include <optional>
#include <span>

#include "ir/text/syntax.h"
#include "vm/tensor.h"

namespace relaxc::text {

using Array = std::optional<Tensor>;
inline constexpr int64_t kMostArrayElements = int64_t{1} << 24;

// Makes an array of element i's values.
Array filled(const std::vector<int64_t>& shape, DType dtype, const std::function<double(int64_t)>& value);
Array as_dtype(const Tensor& array, DType dtype);
// A number of Python takes the dtype of the array beside it, but for a fraction beside integers.
Array as_number_beside(const Tensor& array, const Array& number);
Array arithmetic_of(std::string_view op, const Tensor& a, const Tensor& b);
// Computes functions of each element, with numpy's dtypes: integers become float64.
Array elementwise(std::string_view name, const Tensor& array);
// Keeps the elements of a matrix below (lower) or above a diagonal.
Array triangle(const Tensor& matrix, bool lower, int64_t diagonal);
// Returns the array with its dims in the opposite order.
Array transposed(const Tensor& array);
// Returns x[:, None], where each index is a whole range, or None for a new dim.
Array with_new_dims(const Tensor& array, std::span<const Syntax* const> indices);

}  // namespace relaxc::text
