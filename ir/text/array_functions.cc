// NumPy functions that the reader evaluates on arrays.
#include "ir/text/array_functions.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ir/text/parsing.h"

namespace relaxc::text {

Array filled(const std::vector<int64_t>& shape, DType dtype, const std::function<double(int64_t)>& value) {
  std::optional<int64_t> count = element_count(shape);
  const bool is_number = !dtype.is_handle() && !dtype.is_complex() && dtype.lanes == 1;
  if (!count || *count > kMostArrayElements || !is_number) return std::nullopt;
  Tensor result = Tensor::empty(shape, dtype);
  for (int64_t i = 0; i < *count; ++i)
    dtype.is_float() ? result.set_double(i, value(i)) : result.set_int(i, static_cast<int64_t>(value(i)));
  return result;
}

Array as_dtype(const Tensor& array, DType dtype) {
  if (array.dtype() == dtype) return array;
  bool whole = !dtype.is_float() && !array.dtype().is_float();
  if (!whole) return filled(array.shape(), dtype, [&](int64_t i) { return array.as_double(i); });
  Tensor result = Tensor::empty(array.shape(), dtype);
  for (int64_t i = 0; i < array.size(); ++i)
    result.set_int(i, dtype.is_bool() ? array.as_int(i) != 0 : array.as_int(i));
  return result;
}

Array as_number_beside(const Tensor& array, const Array& number) {
  const bool keeps = !number || (number->dtype().is_float() && !array.dtype().is_float());
  return keeps ? number : as_dtype(*number, array.dtype());
}

namespace {

// Returns the shape to which both broadcast.
std::optional<std::vector<int64_t>> common_shape(const Tensor& a, const Tensor& b) {
  std::vector<int64_t> shape(static_cast<size_t>(std::max(a.ndim(), b.ndim())));
  for (size_t i = 0; i < shape.size(); ++i) {
    auto dim = [&](const Tensor& array) {
      const int64_t at = static_cast<int64_t>(i) + array.ndim() - std::ssize(shape);
      return at < 0 ? 1 : array.shape()[static_cast<size_t>(at)];
    };
    const int64_t x = dim(a), y = dim(b);
    if (x != y && x != 1 && y != 1) return std::nullopt;
    shape[i] = x == 1 ? y : x;
  }
  return shape;
}

// Returns the position in an array of the element that position i of the broadcast shape means.
int64_t position_in(const Tensor& array, const std::vector<int64_t>& shape, int64_t i) {
  int64_t result = 0, stride = 1;
  for (int64_t axis = std::ssize(shape) - 1, own = array.ndim() - 1; own >= 0; --axis, --own) {
    const int64_t extent = shape[static_cast<size_t>(axis)], dim = array.shape()[static_cast<size_t>(own)];
    result += dim == 1 ? 0 : i % extent * stride;
    stride *= dim;
    i /= extent;
  }
  return result;
}

}  // namespace

Array arithmetic_of(std::string_view op, const Tensor& a, const Tensor& b) {
  std::optional<std::vector<int64_t>> shape = common_shape(a, b);
  std::optional<int64_t> count = shape ? element_count(*shape) : std::nullopt;
  if (!count || *count > kMostArrayElements) return std::nullopt;
  bool floats = a.dtype().is_float() || b.dtype().is_float();
  // An array without dims takes the dtype of the other.
  DType dtype = a.dtype() == b.dtype() ? a.dtype() : a.ndim() == 0 ? b.dtype() : b.ndim() == 0 ? a.dtype() : kFloat64;
  if (op == "/" || floats) dtype = dtype.is_float() ? dtype : kFloat64;
  if (dtype.is_float()) {
    auto value = [&](int64_t i) {
      return fold_real(op, a.as_double(position_in(a, *shape, i)), b.as_double(position_in(b, *shape, i)));
    };
    if (*count > 0 && !value(0)) return std::nullopt;
    return filled(*shape, dtype, [&](int64_t i) { return value(i).value_or(std::nan("")); });
  }
  Tensor result = Tensor::empty(*shape, dtype);
  for (int64_t i = 0; i < *count; ++i) {
    std::optional<int64_t> value =
        fold_whole(op, a.as_int(position_in(a, *shape, i)), b.as_int(position_in(b, *shape, i)));
    if (!value) return std::nullopt;
    result.set_int(i, *value);
  }
  return result;
}

Array elementwise(std::string_view name, const Tensor& array) {
  using Function = double (*)(double);
  constexpr std::pair<std::string_view, Function> kFunctions[] = {
      {"sin", std::sin}, {"cos", std::cos}, {"tan", std::tan},   {"tanh", std::tanh},
      {"exp", std::exp}, {"log", std::log}, {"sqrt", std::sqrt}, {"log2", std::log2}};
  const Function* function = row_of(kFunctions, name);
  if (!function) return std::nullopt;
  return filled(array.shape(), array.dtype().is_float() ? array.dtype() : kFloat64,
                [&](int64_t i) { return (*function)(array.as_double(i)); });
}

Array triangle(const Tensor& matrix, bool lower, int64_t diagonal) {
  if (matrix.ndim() != 2) return std::nullopt;
  const int64_t columns = matrix.shape()[1];
  return filled(matrix.shape(), matrix.dtype(), [&](int64_t i) {
    const int64_t distance = i % columns - i / columns;
    return (lower ? distance <= diagonal : distance >= diagonal) ? matrix.as_double(i) : 0.0;
  });
}

Array transposed(const Tensor& array) {
  if (array.dtype().is_packed()) return std::nullopt;
  std::vector<int64_t> shape(array.shape().rbegin(), array.shape().rend()), index(shape.size());
  Tensor result = Tensor::empty(shape, array.dtype());
  const auto size = static_cast<size_t>(array.dtype().bytes());
  for (int64_t i = 0; i < result.size(); ++i) {
    int64_t rest = i, from = 0;
    for (size_t axis = shape.size(); axis-- > 0; rest /= shape[axis]) index[axis] = rest % shape[axis];
    for (size_t axis = shape.size(); axis-- > 0;) from = from * shape[axis] + index[axis];
    std::memcpy(static_cast<std::byte*>(result.raw()) + static_cast<size_t>(i) * size,
                static_cast<const std::byte*>(array.raw()) + static_cast<size_t>(from) * size, size);
  }
  return result;
}

Array with_new_dims(const Tensor& array, std::span<const Syntax* const> indices) {
  std::vector<int64_t> shape;
  size_t next = 0;
  for (const Syntax* each : indices) {
    const bool is_new = is_none(each) || each->text == "newaxis";
    const bool is_whole = each->kind == SyntaxKind::kSlice &&
                          std::ranges::all_of(each->children, [](const Syntax* part) { return part == nullptr; });
    if (!is_new && (!is_whole || next >= array.shape().size())) return std::nullopt;
    shape.push_back(is_new ? 1 : array.shape()[next++]);
  }
  for (; next < array.shape().size(); ++next) shape.push_back(array.shape()[next]);
  return Tensor::copy_of(shape, array.dtype(), array.raw());
}

}  // namespace relaxc::text
