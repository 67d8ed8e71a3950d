// Elementwise operators. Each is one line, its scalar expression; infer and legalize follow from it.
#include <algorithm>
#include <cmath>

#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/layouts.h"
#include "ops/ops.h"
#include "ops/reference.h"

namespace relaxc {

namespace {

using ScalarFn = std::function<Expr(const std::vector<Expr>&)>;

// Operands are tensors, or scalars that stand for tensors of rank 0.
bool is_scalar(const OpCall& op, size_t i) { return op.arg(i).type().is<PrimType>(); }
std::vector<Expr> broadcast_operands(const OpCall& op) {
  std::vector<Expr> shape;
  for (size_t i = 0; i < op.size(); ++i) {
    if (!is_scalar(op, i)) shape = broadcast_shapes(op, shape, op.shape(i));
  }
  return shape;
}
// Returns the dtype of the result for operands of this dtype, the first `bools` of which are conditions.
DType result_dtype(const ScalarFn& scalar, size_t operands, DType dtype, size_t bools) {
  std::vector<Expr> probes;
  for (size_t i = 0; i < operands; ++i) probes.push_back(make_var("x", prim_type(i < bools ? kBool : dtype)));
  return dtype_of(scalar(probes));
}

// Infers as much of the type as the operands determine. The rank is known when the ranks of all operands are. The dtype
// follows from that of any operand; a comparison always gives bool.
Type infer_elementwise(const OpCall& op, const Domain& domain, const ScalarFn& scalar, size_t bools) {
  int64_t rank = 0;
  std::optional<DType> common;
  bool has_shapes = true, has_tensors = false;
  for (size_t i = 0; i < op.size(); ++i) {
    const Type& type = op.type(i);
    if (!type.is<TensorType>() && !is_scalar(op, i)) op.dtype(i);  // reports that it is not a tensor
    int64_t other = is_scalar(op, i) ? 0 : known_rank(type);
    rank = rank < 0 || other < 0 ? -1 : std::max(rank, other);
    has_shapes = has_shapes && (is_scalar(op, i) || known_shape(type));
    has_tensors = has_tensors || !is_scalar(op, i);
    std::optional<DType> dtype = is_scalar(op, i) ? dtype_of(op.arg(i)) : tensor_dtype(type);
    if (!dtype) continue;
    if (i < bools && !dtype->is_bool()) op.fail("expected bool for argument {}, got {}", i, to_string(*dtype));
    if (i < bools) continue;
    domain.check(op, *dtype);
    if (common.value_or(*dtype) != *dtype)
      op.fail("arguments have different dtypes: {} and {}", to_string(*common), to_string(*dtype));
    common = dtype;
  }
  std::optional<DType> result = result_dtype(scalar, op.size(), common.value_or(domain.example), bools);
  if (!common && !result->is_bool()) result.reset();
  if (!has_tensors) return prim_type(*result);
  return has_shapes ? tensor_type(broadcast_operands(op), result) : tensor_type_of_rank(rank, result);
}

// Makes the row of an operator whose result element is `scalar` of the (broadcast) argument elements. The arguments
// share one dtype, except for the conditions, which are the first `bools` arguments.
OpRow elementwise(const std::string& name, const char* onnx, const char* doc, std::vector<OpInput> inputs,
                  const Domain& domain, const ScalarFn& scalar, size_t bools = 0) {
  return {.name = "relax." + name,
          .doc = doc,
          .onnx = onnx,
          .inputs = inputs,
          .pattern = inputs.size() == 1 ? OpPattern::kElementwise : OpPattern::kBroadcast,
          .infer = [=](const OpCall& op) { return infer_elementwise(op, domain, scalar, bools); },
          .legalize =
              [=](const OpCall& op) {
                Type result = infer_elementwise(op, domain, scalar, bools);
                if (result.is<PrimType>()) op.unsupported("all operands are scalars");
                return compute_program(op, stage_name(name), result, [&](Inputs x, Axes axes) {
                  std::vector<Expr> values;
                  size_t next = 0;
                  for (size_t i = 0; i < op.size(); ++i)
                    values.push_back(is_scalar(op, i) ? op.arg(i) : load_broadcast(x[next++], axes));
                  return scalar(values);
                });
              },
          .layouts = same_layout};
}

OpRow unary(const std::string& name, const char* onnx, const char* doc, const Domain& domain,
            const std::function<Expr(const Expr&)>& fn) {
  const OpInput input{name.starts_with("nn.") ? "data" : "x", "the tensor"};
  return elementwise(name, onnx, doc, {input}, domain, [fn](const std::vector<Expr>& x) { return fn(x[0]); });
}
OpRow binary_op(const char* name, const char* onnx, const char* doc, const Domain& domain,
                const std::function<Expr(const Expr&, const Expr&)>& fn) {
  return elementwise(name, onnx, doc, {{"x1", "left operand"}, {"x2", "right operand"}}, domain,
                     [fn](const std::vector<Expr>& x) { return fn(x[0], x[1]); });
}
OpRow arithmetic(const char* name, const char* onnx, const char* doc, const Domain& domain, BinaryOp op) {
  return binary_op(name, onnx, doc, domain, [op](const Expr& a, const Expr& b) { return binary(op, a, b); });
}
// Of flags a sum is `or` and a product is `and`, as numpy and torch have them, whose graphs add masks.
OpRow with_flags(const char* name, const char* onnx, const char* doc, BinaryOp op, BinaryOp on_flags) {
  return binary_op(name, onnx, doc, kAnyDType,
                   [=](const Expr& a, const Expr& b) { return binary(dtype_of(a).is_bool() ? on_flags : op, a, b); });
}
Expr imm_like(double value, const Expr& x) { return scalar_imm(value, dtype_of(x)); }
Expr call1(const std::string& name, const Expr& x) { return intrinsic("tir." + name, {x}, dtype_of(x)); }

OpRow math(const char* name, const char* onnx, const char* doc, const Domain& domain = kFloats) {
  return unary(name, onnx, doc, domain, [=](const Expr& x) { return call1(name, x); });
}
OpRow predicate(const std::string& name, const char* onnx, const char* doc) {
  return unary(name, onnx, doc, kNumbers, [=](const Expr& x) {
    DType flag = kBool.with_lanes(dtype_of(x).lanes);
    return dtype_of(x).is_float() ? intrinsic("tir." + name, {x}, flag) : scalar_imm(name == "isfinite", flag);
  });
}
// Integers are rounded already.
OpRow rounding(const char* name, const char* onnx, const char* intrinsic_name, const char* doc) {
  return unary(name, onnx, doc, kNumbers,
               [=](const Expr& x) { return dtype_of(x).is_float() ? call1(intrinsic_name, x) : x; });
}

// Repeated squaring for an integer power would need a loop, so pow of integers goes through float64, exact up to 2^53.
Expr power(const Expr& a, const Expr& b) {
  DType dtype = dtype_of(a);
  if (dtype.is_float()) return intrinsic("tir.pow", {a, b}, dtype);
  return cast_to(intrinsic("tir.pow", {cast_to(a, kFloat64), cast_to(b, kFloat64)}, kFloat64), dtype);
}
Expr negative(const Expr& x) { return dtype_of(x).is_float() ? x * imm_like(-1, x) : imm_like(0, x) - x; }
Expr sign(const Expr& x) {
  Expr below = select(x < imm_like(0, x), imm_like(dtype_of(x).is_uint() ? 0 : -1, x), x);
  return select(x > imm_like(0, x), imm_like(1, x), below);
}
Expr positive_or(const Expr& x, const Expr& otherwise) { return select(x > imm_like(0, x), x, otherwise); }
Expr limited(const Expr& x, const Expr& low, const Expr& high) { return min(max(x, low), high); }
Expr gelu(const Expr& x) {
  return x * imm_like(0.5, x) * (imm_like(1, x) + call1("erf", x * imm_like(0.70710678118654752440, x)));
}
Expr gelu_tanh(const Expr& x) {
  Expr inner = x + x * x * x * imm_like(0.044715, x);
  return x * imm_like(0.5, x) * (imm_like(1, x) + call1("tanh", inner * imm_like(0.79788456080286535588, x)));
}
Expr selu(const Expr& x) {
  Expr below = call1("exp", min(x, imm_like(0, x))) + imm_like(-1, x);
  return imm_like(1.05070098735548, x) * positive_or(x, imm_like(1.67326324235438, x) * below);
}
// Returns log(1 + exp(x)), computed without overflow.
Expr softplus(const Expr& x) {
  return max(x, imm_like(0, x)) + call1("log1p", call1("exp", call1("abs", x) * imm_like(-1, x)));
}
Expr scaled_softplus(const Expr& x, const SoftplusAttrs& attrs) {
  if (attrs.beta == 1) return softplus(x);
  return softplus(x * imm_like(attrs.beta, x)) * imm_like(1 / attrs.beta, x);
}
Expr leaky_relu(const Expr& x, const LeakyReluAttrs& attrs) { return positive_or(x, x * imm_like(attrs.alpha, x)); }
Expr log_add_exp(const Expr& a, const Expr& b) {
  return max(a, b) + call1("log1p", call1("exp", call1("abs", a - b) * imm_like(-1, a)));
}

Type infer_float(const OpCall& op) {
  if (std::optional<DType> dtype = tensor_dtype(op.type(0))) kFloats.check(op, *dtype);
  return infer_like_first(op);
}
// Makes the row of an activation with attributes, of floats.
template <class A>
OpRow parametric(const std::string& name, const char* onnx, const char* doc, Expr (*fn)(const Expr&, const A&)) {
  return by_element(
      {.name = "relax." + name,
       .doc = doc,
       .onnx = onnx,
       .inputs = {{"data", "the tensor"}},
       .attrs = op_attrs<A>(),
       .infer = infer_float,
       .layouts = same_layout},
      [=](const OpCall& op, Inputs x, Axes i) { return fn(at(x[0], i), op.attrs<A>()); }, OpPattern::kElementwise);
}

Type infer_cast(const OpCall& op) { return tensor_type(op.shape(0), op.attrs<CastAttrs>().dtype); }
Expr cast_element(const OpCall& op, Inputs x, Axes i) { return cast_to(at(x[0], i), op.attrs<CastAttrs>().dtype); }

// Integers of one size, of which conversion keeps the bits.
bool is_sign_change(DType from, DType to) { return from.is_integral() && to.is_integral() && from.bits == to.bits; }
// A bool is a byte.
Type infer_bitcast(const OpCall& op) {
  DType to = op.attrs<CastAttrs>().dtype, from = op.dtype(0);
  auto bits = [](DType dtype) { return dtype.is_bool() ? 8 : static_cast<int>(dtype.bits); };
  if (to.is_void() || to.is_handle() || bits(to) != bits(from))
    op.fail("the bits of {} cannot be those of {}; the sizes differ", to_string(from), to_string(to));
  if (bits(from) < 8 && from != to && !is_sign_change(from, to))
    op.unsupported("the bits of packed {} as {}", to_string(from), to_string(to));
  return tensor_type(op.shape(0), to);
}
Expr bitcast_element(const OpCall& op, Inputs x, Axes i) {
  DType to = op.attrs<CastAttrs>().dtype, from = op.dtype(0), byte = DType::uint(8);
  Expr value = at(x[0], i);
  if (from.bits < 8 && !from.is_bool() && is_sign_change(from, to)) return cast_to(value, to);
  if (from.is_bool()) value = cast_to(value, byte);
  if (to.is_bool() ? byte != dtype_of(value) : to != dtype_of(value))
    value = intrinsic(ops::kReinterpret, {value}, to.is_bool() ? byte : to);
  return cast_to(value, to);
}

Type infer_clip(const OpCall& op) {
  for (size_t i : {1, 2}) require_scalar(op, i);
  return infer_like_first(op);
}
Expr clip_element(const OpCall& op, Inputs x, Axes i) {
  Expr low = cast_to(op.arg(1), op.dtype(0)), high = cast_to(op.arg(2), op.dtype(0));
  return limited(at(x[0], i), low, high);
}

// Returns the axis that an alpha of rank 1 varies along; other alphas broadcast.
std::optional<int64_t> slope_axis(const OpCall& op) {
  if (op.rank(1) != 1 || op.rank(0) < 2) return std::nullopt;
  return normalize_axis(op, op.attrs<PReluAttrs>().axis, op.rank(0));
}
Type infer_prelu(const OpCall& op) {
  require_same_dtype(op, 0, 1);
  kNumbers.check(op, op.dtype(0));
  std::vector<Expr> alpha = op.shape(1);
  if (auto axis = slope_axis(op)) {
    alpha.assign(op.shape(0).size(), int_imm(1));
    alpha[*axis] = op.shape(1)[0];
  }
  return tensor_type(broadcast_shapes(op, op.shape(0), alpha), op.dtype(0));
}
Expr prelu_element(const OpCall& op, Inputs x, Axes i) {
  auto axis = slope_axis(op);
  Expr value = load_broadcast(x[0], i), slope = load_broadcast(x[1], axis ? std::vector<Expr>{i[*axis]} : i);
  return select(value < imm_like(0, value), value * slope, value);  // 0 stays 0, whatever the slope
}

template <class Op>
double of_bits(reference::Values x) {
  return static_cast<double>(Op()(static_cast<int64_t>(x[0]), static_cast<int64_t>(x[1])));
}

}  // namespace

std::vector<OpRow> elementwise_ops() {
  using reference::Values, reference::with_formula;
  return {
      math("abs", "Abs", "absolute value", kNumbers),
      math("acos", "Acos", "arc cosine"),
      math("acosh", "Acosh", "inverse hyperbolic cosine"),
      math("asin", "Asin", "arc sine"),
      math("asinh", "Asinh", "inverse hyperbolic sine"),
      math("atan", "Atan", "arc tangent"),
      math("atanh", "Atanh", "inverse hyperbolic tangent"),
      with_formula(math("bitwise_not", "BitwiseNot", "complement of each bit", kIntegers),
                   [](double x) { return -x - 1; }),
      rounding("ceil", "Ceil", "ceil", "least integer not below"),
      math("cos", "Cos", "cosine"),
      math("cosh", "Cosh", "hyperbolic cosine"),
      math("erf", "", "error function"),
      math("exp", "Exp", "e to the power x"),
      rounding("floor", "Floor", "floor", "greatest integer not above"),
      math("log", "Log", "natural logarithm"),
      math("rsqrt", "", "1 / sqrt(x)"),
      math("sigmoid", "Sigmoid", "1 / (1 + exp(-x))"),
      math("sin", "Sin", "sine"),
      math("sinh", "Sinh", "hyperbolic sine"),
      math("sqrt", "Sqrt", "square root"),
      math("tan", "Tan", "tangent"),
      math("tanh", "Tanh", "hyperbolic tangent"),
      with_formula(rounding("trunc", "", "trunc", "integer part"), [](double x) { return std::trunc(x); }),
      rounding("round", "Round", "nearbyint", "nearest integer, ties to even"),
      predicate("isfinite", "", "neither infinite nor NaN"),
      predicate("isinf", "", "infinite"),
      predicate("isnan", "IsNaN", "not a number"),
      unary("negative", "Neg", "-x", kNumbers, negative),
      unary("square", "", "x * x", kNumbers, [](const Expr& x) { return x * x; }),
      unary("sign", "Sign", "-1, 0 or 1; NaN for NaN", kNumbers, sign),
      unary("logical_not", "Not", "not x", kFlags, [](const Expr& x) { return not_(x); }),
      unary("nn.relu", "Relu", "max(x, 0)", kNumbers, [](const Expr& x) { return max(x, imm_like(0, x)); }),
      with_formula(
          unary("nn.silu", "", "x * sigmoid(x)", kFloats, [](const Expr& x) { return x * call1("sigmoid", x); }),
          [](double x) { return x / (1 + std::exp(-x)); }),
      with_formula(unary("nn.gelu", "", "x * (1 + erf(x / sqrt(2))) / 2", kFloats, gelu),
                   [](double x) { return x * (1 + std::erf(x / std::sqrt(2))) / 2; }),
      with_formula(
          unary("nn.gelu_tanh", "", "GELU's tanh form: x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))) / 2", kFloats,
                gelu_tanh),
          [](double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * std::pow(x, 3)))); }),
      with_formula(unary("nn.relu6", "", "x limited to [0, 6]", kNumbers,
                         [](const Expr& x) { return limited(x, imm_like(0, x), imm_like(6, x)); }),
                   [](double x) { return std::isnan(x) ? x : std::clamp(x, 0.0, 6.0); }),
      with_formula(unary("nn.selu", "", "lambda * x above 0, lambda * alpha * (exp(x) - 1) below", kFloats, selu),
                   [](double x) { return 1.05070098735548 * (x > 0 ? x : 1.67326324235438 * (std::exp(x) - 1)); }),
      parametric("nn.softplus", "Softplus", "log(1 + exp(beta * x)) / beta", scaled_softplus),
      parametric("nn.leakyrelu", "", "x above 0, alpha * x below", leaky_relu),
      with_flags("add", "Add", "x1 + x2; of flags: or", BinaryOp::kAdd, BinaryOp::kOr),
      arithmetic("subtract", "Sub", "x1 - x2", kNumbers, BinaryOp::kSub),
      with_flags("multiply", "Mul", "x1 * x2; of flags: and", BinaryOp::kMul, BinaryOp::kAnd),
      arithmetic("divide", "Div", "x1 / x2; integers truncate toward zero", kNumbers, BinaryOp::kDiv),
      with_formula(arithmetic("floor_divide", "", "floor(x1 / x2)", kNumbers, BinaryOp::kFloorDiv),
                   [](Values x) { return std::floor(x[0] / x[1]); }),
      arithmetic("floor_mod", "", "remainder with the sign of x2", kNumbers, BinaryOp::kFloorMod),
      arithmetic("mod", "", "remainder with the sign of x1", kNumbers, BinaryOp::kTruncMod),
      arithmetic("maximum", "", "the larger; NaN if either is", kAnyDType, BinaryOp::kMax),
      arithmetic("minimum", "", "the smaller; NaN if either is", kAnyDType, BinaryOp::kMin),
      arithmetic("equal", "Equal", "x1 == x2", kAnyDType, BinaryOp::kEQ),
      with_formula(
          arithmetic("not_equal", "", "x1 != x2", kAnyDType, BinaryOp::kNE),
          [](Values x) { return x[0] != x[1] ? 1.0 : 0.0; }, kBool),
      arithmetic("less", "Less", "x1 < x2", kNumbers, BinaryOp::kLT),
      arithmetic("less_equal", "LessOrEqual", "x1 <= x2", kNumbers, BinaryOp::kLE),
      arithmetic("greater", "Greater", "x1 > x2", kNumbers, BinaryOp::kGT),
      arithmetic("greater_equal", "GreaterOrEqual", "x1 >= x2", kNumbers, BinaryOp::kGE),
      arithmetic("logical_and", "And", "x1 and x2", kFlags, BinaryOp::kAnd),
      arithmetic("logical_or", "Or", "x1 or x2", kFlags, BinaryOp::kOr),
      arithmetic("logical_xor", "Xor", "x1 != x2", kFlags, BinaryOp::kNE),
      with_formula(arithmetic("bitwise_and", "BitwiseAnd", "bits set in both", kIntegers, BinaryOp::kBitAnd),
                   of_bits<std::bit_and<>>),
      with_formula(arithmetic("bitwise_or", "BitwiseOr", "bits set in either", kIntegers, BinaryOp::kBitOr),
                   of_bits<std::bit_or<>>),
      with_formula(arithmetic("bitwise_xor", "BitwiseXor", "bits set in one", kIntegers, BinaryOp::kBitXor),
                   of_bits<std::bit_xor<>>),
      arithmetic("left_shift", "", "x1 << x2", kIntegers, BinaryOp::kShiftLeft),
      arithmetic("right_shift", "", "x1 >> x2", kIntegers, BinaryOp::kShiftRight),
      binary_op("power", "", "x1 to the power x2", kNumbers, power),
      with_formula(binary_op("atan2", "", "angle of the point (x2, x1)", kFloats,
                             [](const Expr& a, const Expr& b) { return intrinsic("tir.atan2", {a, b}, dtype_of(a)); }),
                   [](Values x) { return std::atan2(x[0], x[1]); }),
      with_formula(binary_op("log_add_exp", "", "log(exp(x1) + exp(x2)), without overflow", kFloats, log_add_exp),
                   [](Values x) { return std::log(std::exp(x[0]) + std::exp(x[1])); }),
      with_formula(elementwise("ewise_fma", "", "x1 * x2 + x3", {{"x1", "factor"}, {"x2", "factor"}, {"x3", "summand"}},
                               kNumbers, [](const std::vector<Expr>& x) { return x[0] * x[1] + x[2]; }),
                   [](Values x) { return x[0] * x[1] + x[2]; }),
      moving(elementwise(
          "where", "", "x1 where the condition holds, else x2",
          {{"condition", "bool tensor"}, {"x1", "taken where true"}, {"x2", "taken where false"}}, kAnyDType,
          [](const std::vector<Expr>& x) { return select(x[0], x[1], x[2]); }, 1)),
      by_element({.name = "relax.nn.prelu",
                  .doc = "x above 0, alpha * x below",
                  .inputs = {{"data", "the tensor"},
                             {"alpha", "a slope for each element of the axis, or one that broadcasts"}},
                  .attrs = op_attrs<PReluAttrs>(),
                  .infer = infer_prelu},
                 prelu_element, OpPattern::kBroadcast),
      by_element({.name = "relax.clip",
                  .doc = "x limited to [min, max]; NaN stays",
                  .inputs = {{"x", "the tensor"}, {"min", "scalar"}, {"max", "scalar"}},
                  .infer = infer_clip,
                  .layouts = same_layout},
                 clip_element, OpPattern::kElementwise),
      by_element({.name = "relax.astype",
                  .doc = "the elements converted to another dtype; floats truncate toward zero and saturate",
                  .inputs = {{"x", "the tensor"}},
                  .attrs = op_attrs<DTypeAttrs>(),
                  .infer = infer_cast,
                  .infer_partial = infer_stated_dtype_same_rank,
                  .layouts = same_layout},
                 cast_element, OpPattern::kElementwise, "T_cast"),
      by_element({.name = "relax.bitcast",
                  .doc = "the bits of the elements as those of another dtype of this size",
                  .inputs = {{"x", "the tensor"}},
                  .attrs = op_attrs<DTypeAttrs>(),
                  .moves = true,
                  .infer = infer_bitcast,
                  .infer_partial = infer_stated_dtype_same_rank,
                  .layouts = same_layout},
                 bitcast_element, OpPattern::kElementwise),
  };
}

}  // namespace relaxc
