// Quantized operators of com.microsoft: the inputs as real numbers, the operator, and the result quantized.
#include "frontend/onnx/contrib.h"
#include "frontend/onnx/recurrent.h"

namespace relaxc::onnx_import {

namespace {

// Returns the real numbers of input i, whose scale and zero point follow it.
Expr real(Node& n, size_t i) {
  return n.standard("DequantizeLinear", {n.tensor(i), n.tensor(i + 1), n.optional_tensor(i + 2)});
}
// Quantizes by the scale in input i and the zero point behind it, which is 0 of input 0's dtype if it is absent.
Expr quantized_by(Node& n, const Expr& x, size_t i) {
  Expr zero = n.has(i + 1) ? n.tensor(i + 1) : n.broadcast_to(n.scalar(0, n.dtype(0)), n.shape(i));
  return n.standard("QuantizeLinear", {x, n.tensor(i), zero});
}
Expr qlinear_binary(Node& n, const Expr&, const char* op) {
  return quantized_by(n, n.binary(op, real(n, 0), real(n, 3)), 6);
}
Expr qlinear_unary(Node& n, const Expr&, const char* op) { return quantized_by(n, n.standard(op, {real(n, 0)}), 3); }
// Quantizes to 8 bits as ONNX Runtime's pools of these operators do. The average adds the zero point before it rounds,
// unlike QuantizeLinear.
Expr saturated(Node& n, const Expr& x) {
  const DType dtype = n.dtype(0);
  const double low = dtype.is_uint() ? 0 : -128;
  return n.cast(n.cast(n.clip(x, low, low + 255), kInt32), dtype);
}
Expr quantized_average(Node& n, const Expr& x) {
  if (!n.dtype(0).is_integral() || n.dtype(0).bits != 8) return quantized_by(n, x, 3);
  Expr quotient = n.div(x, n.reshape(n.tensor(3), {}));
  if (n.has(4)) quotient = n.add(quotient, n.cast(n.reshape(n.tensor(4), {}), kFloat32));
  return saturated(n, n.op("round", {quotient}));
}
// The average of all positions is an int32 sum times one factor.
Expr quantized_mean(Node& n, const Expr& x) {
  const int64_t rank = n.rank(0);
  Expr wide = n.cast(x, kInt32);
  if (n.has(2)) wide = n.sub(wide, n.cast(n.reshape(n.tensor(2), {}), kInt32));
  const std::vector<int64_t> axes = int_range(2, rank);
  Expr count = n.simplify(product(items_at(n.shape_of(x), axes)));
  Expr number = n.cast(n.tensor(n.of(KnownTensor{kInt64, {}, {count}})), kFloat32);
  Expr factor = n.div(n.reshape(n.tensor(1), {}), n.mul(n.reshape(n.tensor(3), {}), number));
  Expr sum = n.op("round", {n.mul(n.cast(n.reduce("sum", wide, axes, true), kFloat32), factor)});
  if (n.has(4)) sum = n.add(sum, n.cast(n.reshape(n.tensor(4), {}), kFloat32));
  return saturated(n, sum);
}
Expr in_channels_first(Node& n, const Expr& x, const std::function<Expr(const Expr& x)>& pool) {
  if (n.attr_int("channels_last", 0) == 0) return pool(x);
  return channels_last(n, pool(channels_first(n, x)));
}
Expr qlinear_average_pool(Node& n) {
  return in_channels_first(n, real(n, 0),
                           [&](const Expr& x) { return quantized_average(n, n.standard("AveragePool", {x})); });
}
Expr qlinear_global_average_pool(Node& n) {
  if (n.dtype(0).is_integral() && n.dtype(0).bits == 8)
    return in_channels_first(n, n.tensor(0), [&](const Expr& x) { return quantized_mean(n, x); });
  return in_channels_first(n, real(n, 0),
                           [&](const Expr& x) { return quantized_by(n, n.standard("GlobalAveragePool", {x}), 3); });
}
Expr qlinear_softmax(Node& n) {
  const int64_t opset = n.attr_int("opset", 13);
  Expr result = n.standard("Softmax", {real(n, 0)}, {{"axis", n.attr_int("axis", opset < 13 ? 1 : -1)}}, opset);
  return quantized_by(n, result, 3);
}
Expr qlinear_reduce_mean(Node& n) {
  std::vector<int64_t> axes = n.attr_ints("axes").value_or(n.all_axes());
  for (int64_t& axis : axes) axis = n.axis(axis, n.rank(0), "axes");
  return quantized_by(n, n.reduce("mean", real(n, 0), axes, n.attr_int("keepdims", 1) != 0), 3);
}
Expr qlinear_where(Node& n) { return quantized_by(n, n.standard("Where", {n.tensor(0), real(n, 1), real(n, 4)}), 7); }
Expr qlinear_concat(Node& n) {
  if (n.inputs() % 3 != 2) n.fail("{} inputs, expected a scale, a zero point and triples", n.inputs());
  std::vector<std::optional<Expr>> items;
  for (size_t i = 2; i < n.inputs(); i += 3) items.emplace_back(real(n, i));
  Expr all = n.standard("Concat", items);
  return n.standard("QuantizeLinear", {all, n.tensor(0), n.tensor(1)});
}
Expr contrib_qlinear_conv(Node& n) {
  const bool is_last = n.attr_int("channels_last", 0) != 0;
  std::vector<std::optional<Expr>> inputs = optional_tensors(n);
  if (is_last) inputs[0] = channels_first(n, *inputs[0]);
  Expr result = n.standard("QLinearConv", inputs);
  return is_last ? channels_last(n, result) : result;
}
// Weights are [directions, inputs, gates], with a scale for all, each direction, or each gate.
Outputs dynamic_quantize_lstm(Node& n) {
  auto weights = [&](size_t i, size_t scale) {
    auto aligned = [&](size_t k) {
      std::vector<Expr> dims = n.shape(k);
      if (dims.size() == 1) dims.push_back(int_imm(1));
      if (dims.size() != 2) n.fail("input {} has rank {}, expected 1 or 2", k, dims.size());
      return n.reshape(n.tensor(k), {dims[0], int_imm(1), dims[1]});
    };
    Expr x = n.sub(n.cast(n.tensor(i), kInt32), n.cast(aligned(scale + 1), kInt32));
    return n.transpose(n.mul(n.cast(x, kFloat32), aligned(scale)), {0, 2, 1});
  };
  return dynamically_quantized_lstm(n, weights(1, 8), weights(2, 10));
}
// C is int32 in units of the product's scale.
Expr qgemm(Node& n) {
  auto operand = [&](size_t i, const char* swaps) {
    Expr x = n.tensor(i);
    return n.attr_int(swaps, 0) ? n.transpose(x, {1, 0}) : x;
  };
  Expr sum = n.standard("MatMulInteger", {operand(0, "transA"), operand(3, "transB"), n.tensor(2), n.tensor(5)});
  if (n.has(6)) sum = n.add(sum, n.tensor(6));
  Expr scale = n.scaled(n.mul(n.reshape(n.tensor(1), {}), n.tensor(4)), n.attr_float("alpha", 1));
  Expr result = n.mul(n.cast(sum, kFloat32), scale);
  if (!n.has(7)) return result;
  return n.standard("QuantizeLinear", {result, n.tensor(7),
                                       n.has(8) ? n.tensor(8) : n.broadcast_to(n.scalar(0, n.dtype(0)), n.shape(7))});
}

}  // namespace

std::vector<ConverterRow> contrib_quantize_converters() {
  constexpr uint32_t kBinary = 0b100100, kUnary = 0b100;  // zero points
  return in_domain(
      "com.microsoft",
      {
          {"QuantizeLinear", 1, 2, 3, {same_as_standard, "QuantizeLinear"}, "axis"},
          {"DequantizeLinear", 1, 2, 3, {same_as_standard, "DequantizeLinear"}, "axis"},
          {"QLinearAdd", 1, 7, 8, {qlinear_binary, "add"}, "", "", kBinary},
          {"QLinearMul", 1, 7, 8, {qlinear_binary, "multiply"}, "", "", kBinary},
          {"QLinearSigmoid", 1, 4, 5, {qlinear_unary, "Sigmoid"}, "", "", kUnary},
          {"QLinearLeakyRelu", 1, 4, 5, {qlinear_unary, "LeakyRelu"}, "alpha", "", kUnary},
          {"QLinearAveragePool", 1, 4, 5, qlinear_average_pool,
           "auto_pad ceil_mode channels_last count_include_pad kernel_shape pads strides", "", kUnary},
          {"QLinearGlobalAveragePool", 1, 5, 5, qlinear_global_average_pool, "channels_last", "", kUnary},
          {"QLinearSoftmax", 1, 5, 5, qlinear_softmax, "axis opset", "", kUnary},
          {"QLinearReduceMean", 1, 4, 5, qlinear_reduce_mean, "axes keepdims", "", kUnary},
          {"QLinearWhere", 1, 9, 9, qlinear_where},
          {"QLinearConcat", 1, 3, kAny, qlinear_concat, "axis"},
          {"QLinearConv", 1, 8, 9, contrib_qlinear_conv,
           "auto_pad channels_last dilations group kernel_shape pads strides"},
          {"DynamicQuantizeLSTM", 1, 12, 12, dynamic_quantize_lstm,
           "activation_alpha activation_beta activations clip direction hidden_size input_forget", "", 0b11111000},
          {"QGemm", 1, 6, 9, qgemm, "alpha transA transB"},
      });
}

}  // namespace relaxc::onnx_import
