// Elementwise operators and activations.
#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

namespace {

Expr zero_like(Node& n, const Expr& x) { return n.scalar_like(0, x); }
Expr relu(Node& n, const Expr& x) { return n.op("nn.relu", {x}); }
Expr where(Node& n, const Expr& c, const Expr& a, const Expr& b) {
  std::vector<Expr> shape = n.broadcast(n.shape_of(c), n.broadcast(n.shape_of(a), n.shape_of(b)));
  return n.op("where", {n.stretched(c, shape), n.stretched(a, shape), n.stretched(b, shape)});
}

// Before opset 7 the second operand broadcasts only where an attribute says so, aligned at an axis.
Expr aligned_operand(Node& n) {
  Expr b = n.tensor(1);
  if (n.opset() >= 7 || !n.attr_int("broadcast", 0) || !n.has_attr("axis")) return b;
  int64_t rank = n.rank(0), axis = n.axis(n.attr_int("axis", 0), rank);
  std::vector<Expr> shape = n.shape_of(b);
  if (axis + std::ssize(shape) > rank)
    n.fail("axis is {}, too large for operands of rank {} and {}", axis, rank, shape.size());
  while (axis + std::ssize(shape) < rank) shape.push_back(int_imm(1));
  return n.reshape(b, shape);
}
Expr variadic(Node& n, const Expr& x, const char* op) {
  Expr result = x;
  for (size_t i = 1; i < n.inputs(); ++i) result = n.binary(op, result, n.tensor(i));
  return result;
}
Expr mean(Node& n, const Expr& x) {
  Expr sum = variadic(n, x, "add");
  return n.div(sum, n.scalar_like(static_cast<double>(n.inputs()), sum));
}

Expr pow(Node& n) {
  Expr base = n.tensor(0), exponent = aligned_operand(n);
  DType dtype = n.dtype(0), other = n.dtype(1);
  if (dtype == other) return n.binary("power", base, exponent);
  if (dtype.is_float()) return n.binary("power", base, n.cast(exponent, dtype));
  return n.cast(n.binary("power", n.cast(base, kFloat64), n.cast(exponent, kFloat64)), dtype);
}
Expr mod(Node& n) {
  bool fmod = n.attr_int("fmod", 0) != 0;
  if (!fmod && n.dtype(0).is_float()) n.fail("floats need fmod=1");
  return n.binary(fmod ? "mod" : "floor_mod", n.tensor(0), n.tensor(1));
}
Expr bit_shift(Node& n) {
  std::string direction = n.attr_string("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") n.fail("direction is '{}', expected LEFT or RIGHT", direction);
  return n.binary(direction == "LEFT" ? "left_shift" : "right_shift", n.tensor(0), n.tensor(1));
}
Expr reciprocal(Node& n, const Expr& x) { return n.div(n.scalar_like(1, x), x); }

Expr where_op(Node& n) {
  if (n.dtype(1) != n.dtype(2)) n.fail("inputs have dtypes {} and {}", to_string(n.dtype(1)), to_string(n.dtype(2)));
  return where(n, n.tensor(0), n.tensor(1), n.tensor(2));
}
Expr is_inf(Node& n) {
  bool negative = n.attr_int("detect_negative", 1) != 0, positive = n.attr_int("detect_positive", 1) != 0;
  Expr x = n.tensor(0), inf = n.op("isinf", {x});
  if (negative && positive) return inf;
  if (!negative && !positive) return n.op("logical_and", {inf, n.op("logical_not", {inf})});
  return n.op("logical_and", {inf, n.op(negative ? "less" : "greater", {x, zero_like(n, x)})});
}

Expr cast(Node& n) { return convert(n, n.tensor(0), n.attr_dtype("to", kFloat32)); }
Expr cast_like(Node& n) { return convert(n, n.tensor(0), n.dtype(1)); }

Expr bit_cast(Node& n) {
  if (!n.has_attr("to")) n.fail("attribute 'to' is missing");
  DType to = n.attr_dtype("to", kFloat32);
  return n.op("bitcast", {n.tensor(0)}, DTypeAttrs{to});
}

Expr clip(Node& n) {
  Expr x = n.tensor(0);
  if (n.dtype(0).is_complex()) n.fail("the input is {}, expected real numbers", to_string(n.dtype(0)));
  auto limit = [&](const char* name, size_t input) -> std::optional<Expr> {
    if (n.opset() >= 11) return n.optional_tensor(input);
    return n.has_attr(name) ? std::optional(n.scalar_like(n.attr_float(name, 0), x)) : std::nullopt;
  };
  std::optional<Expr> low = limit("min", 1), high = limit("max", 2);
  auto value = [&](const std::optional<Expr>& bound) -> std::optional<double> {
    const Constant* constant = bound ? bound->as<Constant>() : nullptr;
    if (!constant || constant->data.size() != 1 || !constant->data.dtype().is_float()) return std::nullopt;
    return constant->data.as_double(0);
  };
  if (auto a = value(low), b = value(high); a && b && n.dtype_of_tensor(*low) == n.dtype(0)) return n.clip(x, *a, *b);
  if (low) x = n.binary("maximum", x, *low);
  return high ? n.binary("minimum", x, *high) : x;
}

Expr leaky_relu(Node& n) { return n.op("nn.leakyrelu", {n.tensor(0)}, LeakyReluAttrs{n.attr_float("alpha", 0.01)}); }
Expr prelu(Node& n, const Expr& x) {
  Expr slope = n.tensor(1);
  std::vector<Expr> shape = n.shape_of(slope);
  if (shape.size() == 1 && n.rank(0) > 1) {
    if (n.opset() < 7) {  // a slope per channel
      while (std::ssize(shape) < n.rank(0) - 1) shape.push_back(int_imm(1));
    }
    if (shape.size() == 1) shape.insert(shape.begin(), int_imm(1));  // it broadcasts
    slope = n.reshape(slope, shape);
  }
  return n.binary("nn.prelu", x, slope);
}
// Returns x above zero, and alpha * (exp(x / divisor) - 1) below.
Expr exponential_unit(Node& n, const Expr& x, double alpha, double divisor = 1) {
  Expr negative = n.binary("minimum", x, zero_like(n, x));
  if (divisor != 1) negative = n.div(negative, n.scalar_like(divisor, x));
  Expr below = n.sub(n.op("exp", {negative}), n.scalar_like(1, x));
  return n.add(relu(n, x), n.scaled(below, alpha));
}
Expr elu(Node& n) { return exponential_unit(n, n.tensor(0), n.attr_float("alpha", 1)); }
Expr selu(Node& n) {
  bool old = n.opset() < 6;
  double alpha = n.attr_float("alpha", old ? 1.6732 : 1.67326319217681884765625);
  double gamma = n.attr_float("gamma", old ? 1.0507 : 1.05070102214813232421875);
  return n.scaled(exponential_unit(n, n.tensor(0), alpha), gamma);
}
Expr celu(Node& n, const Expr& x) {
  double alpha = n.attr_float("alpha", 1);
  if (alpha == 0) n.fail("alpha is 0");
  return exponential_unit(n, x, alpha, alpha);
}
Expr clip_unit(Node& n, const Expr& x) { return n.clip(x, 0, 1); }
Expr hard_sigmoid(Node& n, const Expr& x) {
  return clip_unit(n, n.add(n.scaled(x, n.attr_float("alpha", 0.2)), n.scalar_like(n.attr_float("beta", 0.5), x)));
}
Expr hard_swish(Node& n, const Expr& x) {
  return n.mul(x, clip_unit(n, n.add(n.scaled(x, 1.0 / 6), n.scalar_like(0.5, x))));
}
Expr thresholded_relu(Node& n, const Expr& x) {
  Expr above = n.binary("greater", x, n.scalar_like(n.attr_float("alpha", 1), x));
  return where(n, above, x, zero_like(n, x));
}
Expr shrink(Node& n, const Expr& x) {
  double lambda = n.attr_float("lambd", 0.5), bias = n.attr_float("bias", 0);
  DType dtype = n.dtype(0);
  Expr real = dtype.is_float() ? x : n.cast(x, kFloat64);
  Expr inner = where(n, n.binary("greater", real, n.scalar_like(lambda, real)), n.sub(real, n.scalar_like(bias, real)),
                     zero_like(n, real));
  Expr result =
      where(n, n.binary("less", real, n.scalar_like(-lambda, real)), n.add(real, n.scalar_like(bias, real)), inner);
  return n.cast(result, dtype);
}
Expr softsign(Node& n, const Expr& x) { return n.div(x, n.add(n.op("abs", {x}), n.scalar_like(1, x))); }
Expr erf(Node& n, const Expr& x) {
  const DType dtype = n.dtype(0);
  return n.cast(n.op("erf", {dtype.is_float() ? x : n.cast(x, kFloat64)}), dtype);
}
Expr gelu(Node& n, const Expr& x) {
  std::string form = n.attr_string("approximate", "none");
  if (form != "none" && form != "tanh") n.unsupported("attribute 'approximate' is '{}'", form);
  return n.op(form == "tanh" ? "nn.gelu_tanh" : "nn.gelu", {x});
}
Expr mish(Node& n, const Expr& x) { return n.mul(x, n.op("tanh", {n.op("nn.softplus", {x})})); }
Expr swish(Node& n, const Expr& x) {
  double alpha = n.attr_float("alpha", 1);
  if (alpha == 1) return n.op("nn.silu", {x});
  return n.mul(x, n.op("sigmoid", {n.scaled(x, alpha)}));
}
// Gated linear units (Shazeer, "GLU variants improve transformer", 2020).
Expr gated(Node& n, const Expr& activated) {
  if (n.rank(0) != n.rank(1)) n.fail("the gate has rank {} and the value {}", n.rank(0), n.rank(1));
  for (size_t d = 0; d < n.shape(0).size(); ++d) n.require_equal(n.dim(0, d), n.dim(1, d), "dims of gate and value");
  return n.mul(activated, n.tensor(1));
}
Expr swiglu(Node& n, const Expr& gate) { return gated(n, swish(n, gate)); }
Expr geglu(Node& n, const Expr& gate) { return gated(n, gelu(n, gate)); }
Expr affine(Node& n, const Expr& x) {
  return n.add(n.scaled(x, n.attr_float("alpha", 1)), n.scalar_like(n.attr_float("beta", 0), x));
}
// Operators that were tried out before opset 7, which converters from CoreML and others have written.
Expr scaled_tanh(Node& n, const Expr& x) {
  return n.scaled(n.op("tanh", {n.scaled(x, n.attr_float("beta", 1))}), n.attr_float("alpha", 1));
}
Expr parametric_softplus(Node& n, const Expr& x) {
  return n.scaled(n.op("nn.softplus", {n.scaled(x, n.attr_float("beta", 1))}), n.attr_float("alpha", 1));
}
Expr scale(Node& n, const Expr& x) { return n.scaled(x, n.attr_float("scale", 1)); }

}  // namespace

Expr convert_directly(Node& n, const Expr& x, const char* op) {
  return n.row().least_inputs == 1 ? n.op(op, {x}) : n.binary(op, x, aligned_operand(n));
}

std::vector<ConverterRow> elementwise_converters() {
  return {
      {"Sum", 1, 1, kAny, {variadic, "add"}, "consumed_inputs"},
      {"Max", 1, 1, kAny, {variadic, "maximum"}, "consumed_inputs"},
      {"Min", 1, 1, kAny, {variadic, "minimum"}, "consumed_inputs"},
      {"Mean", 1, 1, kAny, mean, "consumed_inputs"},
      {"Pow", 1, 2, 2, pow, "axis broadcast consumed_inputs"},
      {"Pow", 7, 2, 2, pow},
      {"Mod", 10, 2, 2, mod, "fmod"},
      {"BitShift", 11, 2, 2, bit_shift, "direction"},
      {"Reciprocal", 1, 1, 1, reciprocal, "consumed_inputs"},
      {"Where", 9, 3, 3, where_op},
      {"IsInf", 10, 1, 1, is_inf, "detect_negative detect_positive"},
      {"Cast", 6, 1, 1, cast, "round_mode saturate to"},
      {"CastLike", 15, 2, 2, cast_like, "round_mode saturate"},
      {"BitCast", 26, 1, 1, bit_cast, "to"},
      {"Clip", 1, 1, 1, clip, "consumed_inputs max min"},
      {"Clip", 11, 1, 3, clip},
      {"LeakyRelu", 1, 1, 1, leaky_relu, "alpha consumed_inputs"},
      {"PRelu", 1, 2, 2, prelu, "consumed_inputs"},
      {"Elu", 1, 1, 1, elu, "alpha consumed_inputs"},
      {"Selu", 1, 1, 1, selu, "alpha consumed_inputs gamma"},
      {"Celu", 12, 1, 1, celu, "alpha"},
      {"HardSigmoid", 1, 1, 1, hard_sigmoid, "alpha beta consumed_inputs"},
      {"HardSwish", 14, 1, 1, hard_swish},
      {"ThresholdedRelu", 1, 1, 1, thresholded_relu, "alpha"},
      {"Shrink", 9, 1, 1, shrink, "bias lambd"},
      {"Softsign", 1, 1, 1, softsign},
      {"Erf", 9, 1, 1, erf},
      {"Gelu", 20, 1, 1, gelu, "approximate"},
      {"Mish", 18, 1, 1, mish},
      {"Swish", 24, 1, 1, swish, "alpha"},
      {"SwiGLU", 28, 2, 2, swiglu, "alpha"},
      {"GeGLU", 28, 2, 2, geglu, "approximate"},
      {"Affine", 1, 1, 1, affine, "alpha beta"},
      {"ScaledTanh", 1, 1, 1, scaled_tanh, "alpha beta"},
      {"ParametricSoftplus", 1, 1, 1, parametric_softplus, "alpha beta"},
      {"Scale", 1, 1, 1, scale, "scale"},
  };
}

}  // namespace relaxc::onnx_import
