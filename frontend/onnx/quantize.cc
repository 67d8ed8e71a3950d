// Quantization: values as scale * (integer - zero point).
#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

namespace {

// Gives scales or zero points, one per channel, a shape that broadcasts along the axis. One per tensor remains a
// scalar.
Expr aligned(Node& n, const Expr& parameter, int64_t axis, int64_t rank) {
  std::vector<Expr> shape = n.shape_of(parameter);
  if (shape.empty()) return parameter;
  if (shape.size() > 1) n.unsupported("scales in blocks");
  if (is_int(shape[0], 1)) return n.reshape(parameter, {});
  std::vector<Expr> wide(static_cast<size_t>(rank), int_imm(1));
  wide[static_cast<size_t>(n.axis(axis, rank))] = shape[0];
  return n.reshape(parameter, wide);
}
std::optional<Expr> aligned(Node& n, const std::optional<Expr>& parameter, int64_t axis, int64_t rank) {
  return parameter ? std::optional(aligned(n, *parameter, axis, rank)) : std::nullopt;
}
// Returns x - zero point as int32.
Expr centered(Node& n, const Expr& x, const std::optional<Expr>& zero, int64_t axis) {
  Expr wide = n.cast(x, kInt32);
  int64_t rank = std::ssize(n.shape_of(x));
  return zero ? n.sub(wide, n.cast(aligned(n, *zero, axis, rank), kInt32)) : wide;
}
// Returns round(x / scale) + zero, saturated to the dtype.
Expr quantized(Node& n, const Expr& x, const Expr& scale, const std::optional<Expr>& zero, DType dtype) {
  Expr value = n.op("round", {n.div(x, n.cast(scale, n.dtype_of_tensor(x)))});
  value = n.cast(value, kFloat32);
  if (zero) value = n.add(value, n.cast(*zero, kFloat32));
  double low = dtype.is_uint() ? 0 : -static_cast<double>(int64_t{1} << (dtype.bits - 1));
  double high = low + static_cast<double>((int64_t{1} << dtype.bits) - 1);
  return n.cast(n.cast(n.clip(value, low, high), kInt32), dtype);
}
Expr quantize_linear(Node& n) {
  Expr x = n.tensor(0);
  int64_t rank = n.rank(0), axis = n.attr_int("axis", 1);
  if (n.attr_int("block_size", 0) != 0) n.unsupported("attribute 'block_size'");
  DType dtype = n.has(2) ? n.dtype(2) : n.attr_dtype("output_dtype", DType::uint(8));
  if (n.dtype(0).is_integral()) x = n.cast(x, kFloat32);
  return quantized(n, x, aligned(n, n.tensor(1), axis, rank), aligned(n, n.optional_tensor(2), axis, rank), dtype);
}
Expr dequantize_linear(Node& n) {
  int64_t rank = n.rank(0), axis = n.attr_int("axis", 1);
  if (n.attr_int("block_size", 0) != 0) n.unsupported("attribute 'block_size'");
  Expr scale = aligned(n, n.tensor(1), axis, rank), x = centered(n, n.tensor(0), n.optional_tensor(2), axis);
  return n.mul(n.cast(x, n.dtype_of_tensor(scale)), scale);
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
  Expr weight = centered(n, n.tensor(1), n.optional_tensor(3), 0);
  return convolve(n, centered(n, n.tensor(0), n.optional_tensor(2), 1), weight);
}

// Quantizes by the scale and zero point in inputs 6 and 7.
Value requantized(Node& n, const Expr& x) {
  return n.of(quantized(n, x, n.reshape(n.tensor(6), {}), n.reshape(n.tensor(7), {}), n.dtype(7)));
}
Outputs qlinear_matmul(Node& n) {
  Expr a = centered(n, n.tensor(0), n.tensor(2), -2), b = centered(n, n.tensor(3), n.tensor(5), -1);
  Expr product = n.cast(n.op("matmul", {a, b}), kFloat32);
  Expr scale = n.mul(n.cast(aligned(n, n.tensor(1), -2, n.rank(0)), kFloat32),
                     n.cast(aligned(n, n.tensor(4), -1, n.rank(3)), kFloat32));
  return {requantized(n, n.mul(product, scale))};
}
Outputs qlinear_conv(Node& n) {
  Expr sum = convolve(n, centered(n, n.tensor(0), n.tensor(2), 1), centered(n, n.tensor(3), n.tensor(5), 0));
  auto per_channel = [&](size_t i) { return aligned(n, n.tensor(i), 1, n.rank(0)); };
  if (n.has(8)) sum = n.add(sum, per_channel(8));
  return {requantized(n, n.mul(n.cast(sum, kFloat32), n.mul(per_channel(1), per_channel(4))))};
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
