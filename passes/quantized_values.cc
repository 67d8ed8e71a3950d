#include "passes/quantized_values.h"

#include <algorithm>

#include "ir/attr_names.h"
#include "ops/attributes.h"
#include "ops/common.h"
#include "tir/intrin/tensor_intrin.h"

namespace relaxc {

namespace {

constexpr DType kInt8 = DType::int_(8), kUInt8 = DType::uint(8), kInt16 = DType::int_(16);

// The dims of a weight as [batch, outputs, depth] or, of matrices, [batch, depth, outputs].
struct WeightDims {
  int64_t batch = 1, outputs, depth;
  bool is_matrix;
  int64_t output_of(int64_t i) const { return is_matrix ? i % outputs : i / depth % outputs; }
  int64_t sum_of(int64_t i) const { return i / (outputs * depth) * outputs + output_of(i); }
};
WeightDims dims_of(const std::vector<int64_t>& shape, bool is_matrix) {
  const int64_t size = *element_count(shape);
  if (!is_matrix) return {.outputs = shape[0], .depth = shape[0] == 0 ? 0 : size / shape[0], .is_matrix = false};
  WeightDims dims{.outputs = shape.back(), .depth = shape[shape.size() - 2], .is_matrix = true};
  for (size_t d = 0; d + 2 < shape.size(); ++d) dims.batch *= shape[d];
  return dims;
}

Tensor tensor_of_bytes(const std::vector<int64_t>& shape, const std::vector<int8_t>& numbers) {
  return Tensor::of(shape, kInt8, numbers);
}

}  // namespace

Tensor permuted(const Tensor& tensor, const std::vector<int64_t>& axes) {
  const size_t rank = axes.size();
  std::vector<int64_t> strides(rank, 1), shape, steps, at(rank, 0);
  for (size_t d = rank; d-- > 1;) strides[d - 1] = strides[d] * tensor.shape()[d];
  for (int64_t axis : axes) {
    shape.push_back(tensor.shape()[static_cast<size_t>(axis)]);
    steps.push_back(strides[static_cast<size_t>(axis)]);
  }
  Tensor result = Tensor::empty(shape, tensor.dtype());
  const auto* from = static_cast<const uint8_t*>(tensor.raw());
  auto* to = static_cast<uint8_t*>(result.raw());
  int64_t place = 0;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    to[i] = from[place];
    for (size_t d = rank; d-- > 0;) {
      place += steps[d];
      if (++at[d] < shape[d]) break;
      place -= steps[d] * shape[d];
      at[d] = 0;
    }
  }
  return result;
}

QuantizedValue in_bytes(const QuantizedValue& value) {
  const DType narrow = value.dtype(), wide = narrow.is_int() ? kInt8 : kUInt8;
  auto widened = [&](const Expr& numbers) {
    const Constant* given = numbers.as<Constant>();
    if (!given || given->data.dtype() != narrow) return numbers;
    Tensor bytes = Tensor::empty(given->data.shape(), wide);
    for (int64_t i = 0; i < bytes.size(); ++i) bytes.set_int(i, given->data.as_int(i));
    return constant(std::move(bytes), numbers.span());
  };
  QuantizedValue result = value;
  if (!narrow.is_packed() || !value.numbers.is<Constant>() || (value.zero && !value.zero->is<Constant>()))
    return result;
  result.numbers = widened(value.numbers);
  if (value.zero) result.zero = widened(*value.zero);
  return result;
}

std::optional<SignedWeight> signed_weight(const QuantizedValue& weight, bool is_matrix) {
  const Constant *numbers = weight.numbers.as<Constant>(), *zero = weight.zero ? weight.zero->as<Constant>() : nullptr;
  if (!numbers || (weight.zero && !zero) || numbers->data.ndim() < 2) return std::nullopt;
  const std::vector<int64_t>& shape = numbers->data.shape();
  const WeightDims dims = dims_of(shape, is_matrix);
  if (dims.depth > kMostDepth || (zero && zero->data.size() != 1 && zero->data.size() != dims.outputs))
    return std::nullopt;
  std::vector<int64_t> zeros(static_cast<size_t>(dims.outputs), 0);
  for (int64_t o = 0; zero && o < dims.outputs; ++o)
    zeros[static_cast<size_t>(o)] = zero->data.as_int(zero->data.size() == 1 ? 0 : o);
  const int64_t size = numbers->data.size();
  const bool is_signed = numbers->data.dtype() == kInt8;
  const auto* bytes = static_cast<const uint8_t*>(numbers->data.raw());
  std::vector<int8_t> whole(static_cast<size_t>(size)), rest;
  std::vector<int32_t> sums(static_cast<size_t>(dims.batch * dims.outputs), 0);
  auto number = [&](int64_t i) {
    const int64_t byte = is_signed ? static_cast<int8_t>(bytes[i]) : bytes[i];
    return byte - zeros[static_cast<size_t>(dims.output_of(i))];
  };
  bool fits = true;
  for (int64_t i = 0; i < size; ++i) {
    const int64_t value = number(i);
    fits = fits && value >= -128 && value <= 127;
    sums[static_cast<size_t>(dims.sum_of(i))] += static_cast<int32_t>(value);
    whole[static_cast<size_t>(i)] = static_cast<int8_t>(value);
  }
  for (int64_t i = 0; !fits && i < size; ++i) {
    const int64_t value = number(i);
    whole[static_cast<size_t>(i)] = static_cast<int8_t>(value >> 1);
    rest.push_back(static_cast<int8_t>(value & 1));
  }
  std::vector<int64_t> sums_shape = {dims.outputs};
  if (shape.size() > 2 && is_matrix) {
    sums_shape = shape;
    sums_shape[shape.size() - 2] = 1;
  }
  SignedWeight result{constant(tensor_of_bytes(shape, whole)), std::nullopt,
                      constant(Tensor::of(sums_shape, kInt32, sums))};
  if (!fits) result.rest = constant(tensor_of_bytes(shape, rest));
  return result;
}

std::optional<DType> activations_for_dots(const Target& target) {
  for (DType dtype : {kUInt8, kInt8, kInt16}) {
    if (find_dot_form(dtype, kInt8, kInt32, target)) return dtype;
  }
  return std::nullopt;
}

Expr with_other_sign(const Expr& numbers, Builder& b) {
  const bool is_signed = tensor_dtype(numbers.type()) == kInt8;
  auto cast = [&](const Expr& x, DType dtype) { return b.op("astype", {x}, DTypeAttrs{dtype}); };
  const Expr moved = b.op("add", {cast(numbers, kInt16), scalar_constant(is_signed ? 128 : -128, kInt16)});
  return cast(moved, is_signed ? kUInt8 : kInt8);
}
Expr zero_of_other_sign(const QuantizedValue& value, Builder& b) {
  const double shift = value.dtype() == kInt8 ? 128 : -128;
  const std::optional<double> known = value.zero ? constant_element(*value.zero) : std::optional(0.0);
  if (known) return scalar_constant(*known + shift, kInt32);
  return b.op("add", {b.op("astype", {*value.zero}, DTypeAttrs{kInt32}), scalar_constant(shift, kInt32)});
}

bool can_sum(int64_t depth) { return depth <= kMostDepth; }

FunctionRef with_dims_of_sums(const FunctionRef& function, const std::set<std::string>& dims) {
  if (dims.empty()) return function;
  Function copy = *function;
  const AttrValue* given = function->attrs.find(attr_names::kUpperBound);
  Attrs most = given && given->as<Attrs>() ? *given->as<Attrs>() : Attrs();
  for (const std::string& dim : dims) most.set(dim, std::min(most.get_int(dim, kMostDepth), kMostDepth));
  copy.attrs.set(attr_names::kUpperBound, most);
  return make_function(std::move(copy), function.span());
}

bool has_same_batch(const std::vector<Expr>& left, const std::vector<Expr>& right) {
  return left.size() == right.size() &&
         std::equal(right.begin(), right.end() - 2, left.begin(),
                    [](const Expr& a, const Expr& b) { return equal_dims(a, b) == Verdict::kProven; });
}

namespace {

// The sums by which a sum of products is corrected for zero points. Those of an operand's numbers broadcast to the
// result.
struct Corrections {
  std::function<Expr()> left_sums, right_sums;
  std::function<Expr()> depth;  // int32
  int64_t axes_behind;          // of the result, behind the axis of a vector of zero points
};
bool are_zeros(const Expr& zero) {
  const Constant* constant = zero.as<Constant>();
  for (int64_t i = 0; constant && i < constant->data.size(); ++i) {
    if (constant->data.as_int(i) != 0) return false;
  }
  return constant != nullptr;
}
// sum((x - x0) * (w - w0)) = sum(x * w) - w0 * sum(x) - x0 * (sum(w) - depth * w0)
Expr corrected(Expr sum, const QuantizedValue& x, const QuantizedValue& w, const Corrections& corrections, Builder& b) {
  auto zero_of = [&](const QuantizedValue& value) -> std::optional<Expr> {
    if (!value.zero || are_zeros(*value.zero)) return std::nullopt;
    std::vector<Expr> dims;
    if (!is_one_element(value.zero->type())) {
      dims = {int_imm(*element_count(*constant_shape(value.zero->type())))};
      dims.insert(dims.end(), static_cast<size_t>(corrections.axes_behind), int_imm(1));
    }
    return reshape(b.op("astype", {*value.zero}, DTypeAttrs{kInt32}), dims, b);
  };
  auto subtracted = [&](const Expr& from, const Expr& factor, const Expr& by) {
    return b.op("subtract", {from, b.op("multiply", {factor, by})});
  };
  const std::optional<Expr> x_zero = zero_of(x), w_zero = zero_of(w);
  if (w_zero) sum = subtracted(sum, corrections.left_sums(), *w_zero);
  if (!x_zero) return sum;
  Expr right = corrections.right_sums();
  if (w_zero) right = subtracted(right, *w_zero, corrections.depth());
  return subtracted(sum, right, *x_zero);
}
// Returns a dim as an int32 tensor of one element.
Expr number_of(const Expr& dim, Builder& b) {
  if (const auto known = as_int(dim)) return scalar_constant(static_cast<double>(*known), kInt32);
  return reshape(b.op("astype", {b.op("shape_to_tensor", {shape_expr({dim})})}, DTypeAttrs{kInt32}), {}, b);
}
Expr sum_over(const Expr& numbers, std::vector<int64_t> axes, bool keepdims, Builder& b) {
  return b.op("sum", {b.op("astype", {numbers}, DTypeAttrs{kInt32})},
              ReduceAttrs{.axis = std::move(axes), .keepdims = keepdims});
}

}  // namespace

Expr sums_of_matrices(const QuantizedValue& x, const QuantizedValue& matrices, const EmitProduct& product, Builder& b) {
  const Expr& depth = known_shape(matrices.numbers.type())->end()[-2];
  const Corrections corrections{[&] { return sum_over(x.numbers, {-1}, true, b); },
                                [&] { return sum_over(matrices.numbers, {-2}, true, b); },
                                [&] { return number_of(depth, b); }, 0};
  return corrected(product(x.numbers, matrices.numbers), x, matrices, corrections, b);
}

// The sums of the data in each window are those with filters of ones, of which one is enough where all read the same.
Expr sums_of_filters(const QuantizedValue& x, const QuantizedValue& filters, int64_t channel_axes_behind,
                     bool has_groups, const EmitProduct& convolution, Builder& b) {
  const std::vector<int64_t> shape = *constant_shape(filters.numbers.type());
  auto sums_of_windows = [&] {
    std::vector<int64_t> dims = shape;
    if (!has_groups) dims[0] = 1;
    return convolution(x.numbers, constant(tensor_of_bytes(dims, std::vector<int8_t>(*element_count(dims), 1))));
  };
  auto sums_of_each = [&] {
    std::vector<Expr> dims = {int_imm(shape[0])};
    dims.insert(dims.end(), static_cast<size_t>(channel_axes_behind), int_imm(1));
    return reshape(sum_over(filters.numbers, int_range(1, std::ssize(shape)), false, b), dims, b);
  };
  const int64_t depth = *element_count(std::span(shape).subspan(1));
  return corrected(convolution(x.numbers, filters.numbers), x, filters,
                   {sums_of_windows, sums_of_each, [&] { return number_of(int_imm(depth), b); }, channel_axes_behind},
                   b);
}

Expr integer_sums(const QuantizedValue& x, const SignedWeight& weight, int64_t channel_axes_behind,
                  const EmitProduct& product, Builder& b) {
  Expr sum = product(x.numbers, weight.numbers);
  if (weight.rest) {
    const Expr rest = product(x.numbers, *weight.rest);
    sum = b.op("add", {b.op("multiply", {sum, scalar_constant(2, kInt32)}), rest});
  }
  if (!x.zero || constant_element(*x.zero) == 0.0) return sum;
  Expr sums = weight.sums;
  if (channel_axes_behind > 0) {
    std::vector<Expr> dims = *known_shape(sums.type());
    dims.insert(dims.end(), static_cast<size_t>(channel_axes_behind), int_imm(1));
    sums = reshape(sums, dims, b);
  }
  const Expr zero = reshape(b.op("astype", {*x.zero}, DTypeAttrs{kInt32}), {}, b);
  return b.op("subtract", {sum, b.op("multiply", {sums, zero})});
}

}  // namespace relaxc
