// Conversions to narrow types, and quantization: values as scale * (number - zero point).
#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

namespace {

constexpr DType kE8M0{DTypeCode::kFloat8E8M0FNU, 8};

// Returns x limited to the finite numbers of the dtype. NaN stays.
Expr saturated(Node& n, const Expr& x, DType dtype) {
  double most = largest_of(dtype);
  return n.clip(x, -most, most);
}
// Returns the power of two that the mode chooses for the float32 x, as float32; infinity where it is too large.
Expr power_of_two(Node& n, const Expr& x, const std::string& mode) {
  Expr nearest = n.cast(n.cast(saturated(n, x, kE8M0), kE8M0), kFloat32);  // of two that are equally near, either
  auto choose = [&](const char* compares, const Expr& a, const Expr& b, double factor) {
    return n.op("where", {n.binary(compares, a, b), n.scaled(nearest, factor), nearest});
  };
  if (mode == "up") return choose("less", nearest, x, 2);
  if (mode == "down") return choose("greater", nearest, x, 0.5);
  if (mode == "nearest") return choose("less_equal", n.scaled(nearest, 1.5), x, 2);
  n.fail("round_mode is '{}', expected 'up', 'down' or 'nearest'", mode);
}

}  // namespace

// Integers of less than 8 bits get the low bits of the whole part, as in ONNX's reference, which leaves open what
// becomes of values out of range.
Expr convert(Node& n, const Expr& x, DType dtype) {
  DType from = n.dtype_of_tensor(x);
  if (from == dtype) return x;
  if (dtype.is_integral() && dtype.is_packed() && from.is_float()) {
    Expr real = from.is_small_float() ? n.cast(x, kFloat32) : x;
    return n.cast(n.cast(real, kInt32), dtype);
  }
  if (!dtype.is_small_float()) return n.cast(x, dtype);
  bool is_wide = from == kFloat64 || (from.is_integral() && from.bits > 16);
  Expr real = n.cast(x, is_wide && dtype != kE8M0 ? kFloat64 : kFloat32);
  bool saturates = n.attr_int("saturate", 1) != 0;
  if (dtype == kE8M0) {
    // Infinity becomes NaN, but what rounding makes infinite is saturated.
    Expr power = power_of_two(n, real, n.attr_string("round_mode", "up"));
    if (saturates) power = saturated(n, power, dtype);
    return n.cast(n.op("where", {n.op("isinf", {real}), real, power}), dtype);
  }
  return n.cast(saturates ? saturated(n, real, dtype) : real, dtype);
}

namespace {

// Gives scales or zero points, one per channel, a shape that broadcasts along the axis. One per tensor remains a
// scalar.
Expr aligned(Node& n, const Expr& parameter, int64_t axis, int64_t rank) {
  std::vector<Expr> shape = n.shape_of(parameter);
  if (shape.empty()) return parameter;
  if (shape.size() > 1) n.fail("a scale or zero point has rank {}, but there is no block_size", shape.size());
  if (is_int(shape[0], 1)) return n.reshape(parameter, {});
  std::vector<Expr> wide(static_cast<size_t>(rank), int_imm(1));
  wide[static_cast<size_t>(n.axis(axis, rank))] = shape[0];
  return n.reshape(parameter, wide);
}
// Returns x - zero point as int32. The zero point has a shape that broadcasts to x.
Expr centered(Node& n, const Expr& x, const std::optional<Expr>& zero) {
  Expr wide = n.cast(x, kInt32);
  return zero ? n.sub(wide, n.cast(*zero, kInt32)) : wide;
}
// Returns input `zero` for input `x`, with one per channel along the axis.
std::optional<Expr> zero_point(Node& n, size_t zero, size_t x, int64_t axis) {
  return n.has(zero) ? std::optional(aligned(n, n.tensor(zero), axis, n.rank(x))) : std::nullopt;
}
// Returns a scale or zero point of matrices: one for all, one for each row (axis -2) or column (axis -1), or those of
// each matrix in a batch, which have the rank of the operand.
Expr of_matrices(Node& n, size_t i, int64_t axis, int64_t rank) {
  if (rank < 2) return n.reshape(n.tensor(i), {});
  return n.rank(i) > 1 && n.rank(i) == rank ? n.tensor(i) : aligned(n, n.tensor(i), axis, rank);
}
// Gives a scale or zero point in blocks the shape of x: each element stands for `size` along the axis.
Expr spread(Node& n, const Expr& parameter, const std::vector<Expr>& shape, int64_t axis, int64_t size) {
  const std::vector<Expr> blocks = n.shape_of(parameter);
  int64_t rank = std::ssize(shape);
  if (std::ssize(blocks) != rank) n.fail("a scale in blocks has rank {}, expected {}", blocks.size(), rank);
  axis = n.axis(axis, rank);
  for (int64_t d = 0; d < rank; ++d) {
    size_t at = static_cast<size_t>(d);
    Expr expected = d == axis ? ceil_div(shape[at], size) : shape[at];
    n.require_equal(blocks[at], expected, "a dim of a scale in blocks");
  }
  Expr wide = n.op("repeat", {parameter}, RepeatAttrs{size, axis});
  const Expr& dim = shape[static_cast<size_t>(axis)];
  if (n.provably_equal(n.dim_of(wide, axis), dim)) return wide;
  return n.slice(wide, axis, int_imm(0), dim);
}
// Gives the scale or zero point in input i a shape that broadcasts to input 0.
Expr parameter(Node& n, size_t i) {
  int64_t axis = n.attr_int("axis", 1), size = n.attr_int("block_size", 0);
  if (size < 0) n.fail("block_size is {}, expected >= 0", size);
  return size > 0 ? spread(n, n.tensor(i), n.shape(0), axis, size) : aligned(n, n.tensor(i), axis, n.rank(0));
}
DType output_dtype(Node& n, DType otherwise) {
  return n.attr_int("output_dtype", 0) != 0 ? n.attr_dtype("output_dtype", otherwise) : otherwise;
}

// Returns whether relax.dequantize takes the numbers: integers, and floats of 8 bits and less.
bool has_few_bits(DType dtype) { return (dtype.is_integral() && dtype.bits <= 8) || dtype.is_small_float(); }
// Returns whether relax.quantize and relax.dequantize convert between the dtypes as ONNX does. Their scales and zero
// points are those of a whole tensor or of an axis.
bool has_operator(Node& n, const Expr& real, DType numbers) {
  return numbers.is_integral() && !numbers.is_packed() && n.dtype_of_tensor(real) == kFloat32;
}
// Returns input i, a scale or zero point, as these operators take it: a scalar, or a vector along the axis.
Expr vector_parameter(Node& n, size_t i) {
  const std::vector<Expr>& shape = n.shape(i);
  if (shape.size() > 1) n.fail("a scale or zero point has rank {}, but there is no block_size", shape.size());
  return shape.size() == 1 && is_int(shape[0], 1) ? n.reshape(n.tensor(i), {}) : n.tensor(i);
}
// Returns the zero point in input i; 0 of that dtype where it is absent.
Expr vector_zero_point(Node& n, size_t i, DType dtype) {
  return n.has(i) ? vector_parameter(n, i) : n.scalar(0, dtype);
}

// Returns round(x / scale) + zero, saturated to the dtype.
Expr quantized(Node& n, const Expr& x, const Expr& scale, const std::optional<Expr>& zero, DType dtype) {
  const bool is_whole = n.shape_of(scale).empty() && (!zero || n.shape_of(*zero).empty());
  if (is_whole && has_operator(n, x, dtype))
    return n.op("quantize", {x, n.cast(scale, kFloat32), zero ? *zero : n.scalar(0, dtype)},
                QuantizeAttrs{.out_dtype = dtype});
  Expr value = n.op("round", {n.div(x, n.cast(scale, n.dtype_of_tensor(x)))});
  value = n.cast(value, kFloat32);
  if (zero) value = n.add(value, n.cast(*zero, kFloat32));
  double low = dtype.is_uint() ? 0 : -static_cast<double>(int64_t{1} << (dtype.bits - 1));
  double high = low + static_cast<double>((int64_t{1} << dtype.bits) - 1);
  return n.cast(n.cast(n.clip(value, low, high), kInt32), dtype);
}
Expr quantize_linear(Node& n) {
  // The division is in the precision of the scale unless the node says otherwise.
  DType precision = n.dtype(1);
  if (!precision.is_float() || precision.is_small_float()) precision = kFloat32;
  if (n.attr_int("precision", 0) != 0) precision = n.attr_dtype("precision", precision);
  if (!precision.is_float() || precision.is_small_float())
    n.fail("precision is {}, expected float16, bfloat16, float32 or float64", to_string(precision));
  DType dtype = output_dtype(n, n.has(2) ? n.dtype(2) : DType::uint(8));
  if (n.has(2) && n.dtype(2) != dtype)
    n.fail("output_dtype is {}, but the zero point is {}", to_string(dtype), to_string(n.dtype(2)));
  Expr x = n.cast(n.tensor(0), precision);
  const bool is_blocked = n.attr_int("block_size", 0) != 0;
  if (!is_blocked && has_operator(n, x, dtype))
    return n.op("quantize", {x, n.cast(vector_parameter(n, 1), kFloat32), vector_zero_point(n, 2, dtype)},
                QuantizeAttrs{n.attr_int("axis", 1), dtype});
  Expr scale = n.cast(parameter(n, 1), precision);
  if (dtype == kE8M0) n.unsupported("a result of {}", to_string(dtype));
  if (dtype.is_small_float()) return convert(n, n.div(x, scale), dtype);  // the zero point is 0
  return quantized(n, x, scale, n.has(2) ? std::optional(parameter(n, 2)) : std::nullopt, dtype);
}
Expr dequantize_linear(Node& n) {
  DType dtype = output_dtype(n, n.dtype(1));
  if (!dtype.is_float() || dtype.is_small_float())
    n.fail("the result is {}, expected float16, bfloat16, float32 or float64; set output_dtype", to_string(dtype));
  const int64_t block_size = n.attr_int("block_size", 0);
  if (block_size > 0 && has_few_bits(n.dtype(0)) && dtype.bits <= 32) {
    Expr zero = n.has(2) ? n.tensor(2) : n.op("zeros", {shape_expr({})}, FillAttrs{n.dtype(0)});
    return n.op("dequantize", {n.tensor(0), n.tensor(1), zero},
                DequantizeAttrs{n.axis(n.attr_int("axis", 1), n.rank(0)), dtype, block_size});
  }
  Expr x = n.tensor(0);
  const bool are_bytes = n.dtype(1) == kFloat32 && has_operator(n, n.tensor(1), n.dtype(0));
  if (block_size == 0 && dtype == kFloat32 && (n.dtype(0).is_small_float() || n.dtype(0).is_packed() || are_bytes))
    return n.op("dequantize", {x, vector_parameter(n, 1), vector_zero_point(n, 2, n.dtype(0))},
                DequantizeAttrs{n.attr_int("axis", 1), dtype});
  Expr scale = n.cast(parameter(n, 1), kFloat32);
  if (n.dtype(0).is_small_float()) {
    x = n.cast(x, kFloat32);
    if (n.has(2)) x = n.sub(x, n.cast(parameter(n, 2), kFloat32));
  } else {
    x = n.cast(x, kInt32);
    if (n.has(2)) x = n.sub(x, n.cast(parameter(n, 2), kInt32));
  }
  return n.cast(n.mul(n.cast(x, kFloat32), scale), dtype);
}
Outputs dynamic_quantize_linear(Node& n) {
  Expr x = n.tensor(0);
  const std::vector<int64_t> all = n.all_axes();
  Expr zero = n.scalar(0, kFloat32);
  Expr high = n.binary("maximum", n.reduce("max", x, all, false), zero);
  Expr low = n.binary("minimum", n.reduce("min", x, all, false), zero);
  Expr scale = n.div(n.sub(high, low), n.scalar(255, kFloat32));
  Expr point = n.op("round", {n.clip(n.div(n.op("negative", {low}), scale), 0, 255)});
  Expr zero_point = n.cast(n.cast(point, kInt32), DType::uint(8));
  return {n.of(quantized(n, x, scale, zero_point, DType::uint(8))), n.of(scale), n.of(zero_point)};
}

Expr conv_integer(Node& n) {
  Expr weight = centered(n, n.tensor(1), zero_point(n, 3, 1, 0));
  return convolve(n, centered(n, n.tensor(0), zero_point(n, 2, 0, 1)), weight);
}

// Returns the int32 sum times scale / y_scale, with one rounding each, rounded, plus the zero point of y, as ONNX
// defines these operators. The parameters of y are a scalar or broadcast to the sum.
Expr requantized(Node& n, const Expr& sum, const Expr& scale, const Expr& y_scale, const Expr& y_zero, DType dtype) {
  Expr x = n.mul(n.cast(sum, kFloat32), n.div(scale, n.cast(y_scale, kFloat32)));
  return quantized(n, x, n.scalar(1, kFloat32), y_zero, dtype);
}
Outputs qlinear_matmul(Node& n) {
  const int64_t a = n.rank(0), b = n.rank(3);
  Expr product = n.op("matmul", {centered(n, n.tensor(0), of_matrices(n, 2, -2, a)),
                                 centered(n, n.tensor(3), of_matrices(n, 5, -1, b))});
  auto scale = [&](size_t i, int64_t axis, int64_t rank) { return n.cast(of_matrices(n, i, axis, rank), kFloat32); };
  const int64_t rank = std::ssize(n.shape_of(product));
  return {n.of(requantized(n, product, n.mul(scale(1, -2, a), scale(4, -1, b)), of_matrices(n, 6, -2, rank),
                           of_matrices(n, 7, -2, rank), n.dtype(7)))};
}
Outputs qlinear_conv(Node& n) {
  Expr sum =
      convolve(n, centered(n, n.tensor(0), zero_point(n, 2, 0, 1)), centered(n, n.tensor(3), zero_point(n, 5, 3, 0)));
  auto per_channel = [&](size_t i) { return aligned(n, n.tensor(i), 1, n.rank(0)); };
  if (n.has(8)) sum = n.add(sum, per_channel(8));
  return {n.of(requantized(n, sum, n.mul(per_channel(1), per_channel(4)), n.reshape(n.tensor(6), {}),
                           n.reshape(n.tensor(7), {}), n.dtype(7)))};
}

}  // namespace

std::vector<ConverterRow> quantize_converters() {
  return {
      {"QuantizeLinear", 10, 2, 3, quantize_linear, "axis block_size output_dtype precision saturate"},
      {"DequantizeLinear", 10, 2, 3, dequantize_linear, "axis block_size output_dtype"},
      {"DynamicQuantizeLinear", 11, 1, 1, dynamic_quantize_linear},
      {"QLinearMatMul", 10, 8, 8, qlinear_matmul},
      {"ConvInteger", 10, 2, 4, conv_integer, "auto_pad dilations group kernel_shape pads strides"},
      {"QLinearConv", 10, 8, 9, qlinear_conv, "auto_pad dilations group kernel_shape pads strides"},
  };
}

}  // namespace relaxc::onnx_import
