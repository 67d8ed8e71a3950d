// Elementwise operators. Each is one line, its scalar expression; infer and legalize follow from it.
#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace relaxc {

namespace {

// The set of dtypes that an operator takes.
enum class Domain : uint8_t { kAny, kNumber, kFloat, kInteger, kBool };

bool accepts(Domain domain, DType dtype) {
  switch (domain) {
    case Domain::kAny:
      return true;
    case Domain::kNumber:
      return !dtype.is_bool();
    case Domain::kFloat:
      return dtype.is_float();
    case Domain::kInteger:
      return dtype.is_integral();
    case Domain::kBool:
      return dtype.is_bool();
  }
  return false;
}
const char* describe_domain(Domain domain) {
  switch (domain) {
    case Domain::kAny:
      return "any dtype";
    case Domain::kNumber:
      return "a number";
    case Domain::kFloat:
      return "a float";
    case Domain::kInteger:
      return "an integer";
    case Domain::kBool:
      return "bool";
  }
  return "";
}

using ScalarFn = std::function<Expr(const std::vector<Expr>&)>;

// Operands are tensors, or scalars that stand for tensors of rank 0.
bool is_scalar(const OpCall& op, size_t i) { return op.arg(i).type().is<PrimType>(); }
std::vector<Expr> operand_shape(const OpCall& op, size_t i) {
  return is_scalar(op, i) ? std::vector<Expr>() : op.shape(i);
}
DType operand_dtype(const OpCall& op, size_t i) { return is_scalar(op, i) ? dtype_of(op.arg(i)) : op.dtype(i); }
std::vector<Expr> broadcast_operands(const OpCall& op) {
  std::vector<Expr> shape = operand_shape(op, 0);
  for (size_t i = 1; i < op.size(); ++i) shape = broadcast_shapes(op, shape, operand_shape(op, i));
  return shape;
}

// The rank is known where the ranks of all operands are. The dtype follows from that of any operand; that of a
// comparison is always bool.
Type infer_partly(const OpCall& op, Domain domain, const ScalarFn& scalar, size_t bools) {
  int64_t rank = 0;
  std::optional<DType> dtype;
  bool has_shapes = true;
  for (size_t i = 0; i < op.size(); ++i) {
    const Type& type = op.arg(i).type();
    has_shapes = has_shapes && (type.is<PrimType>() || known_shape(type));
    int64_t own = type.is<PrimType>() ? 0 : known_rank(type);
    rank = rank < 0 || own < 0 ? -1 : std::max(rank, own);
    if (i >= bools && !dtype) dtype = type.is<PrimType>() ? dtype_of(op.arg(i)) : tensor_dtype(type);
  }
  auto result_of = [&](DType operands) {
    std::vector<Expr> probes;
    for (size_t i = 0; i < op.size(); ++i) probes.push_back(make_var("x", prim_type(i < bools ? kBool : operands)));
    return dtype_of(scalar(probes));
  };
  if (dtype && !accepts(domain, *dtype)) op.fail("expected {}, got {}", describe_domain(domain), to_string(*dtype));
  if (dtype) return tensor_type_of_rank(rank, result_of(*dtype));
  DType example = domain == Domain::kBool ? kBool : domain == Domain::kInteger ? kInt32 : kFloat32;
  bool gives_bool = result_of(example).is_bool();
  std::optional<DType> result = gives_bool ? std::optional(kBool) : std::nullopt;
  return has_shapes ? tensor_type(broadcast_operands(op), result) : tensor_type_of_rank(rank, result);
}

// Makes the row of an operator whose result element is `scalar` of the (broadcast) argument elements. The arguments
// share one dtype, except for the conditions, which are the first `bools` arguments.
OpRow elementwise(std::string name, std::string onnx, std::string doc, std::vector<OpInput> inputs, Domain domain,
                  ScalarFn scalar, size_t bools = 0) {
  auto result_dtype = [scalar](const OpCall& op) {
    std::vector<Expr> probes;
    for (size_t i = 0; i < op.size(); ++i) probes.push_back(make_var("x", prim_type(operand_dtype(op, i))));
    return dtype_of(scalar(probes));
  };
  return {.name = "relax." + name,
          .doc = std::move(doc),
          .onnx = std::move(onnx),
          .inputs = inputs,
          .pattern = inputs.size() == 1 ? OpPattern::kElementwise : OpPattern::kBroadcast,
          .infer = [=](const OpCall& op) -> Type {
            bool scalars = true;
            for (size_t i = 0; i < op.size(); ++i) {
              DType dtype = operand_dtype(op, i);
              scalars = scalars && is_scalar(op, i);
              if (i < bools) {
                if (!dtype.is_bool()) op.fail("expected bool for argument {}, got {}", i, to_string(dtype));
              } else {
                if (!accepts(domain, dtype)) op.fail("expected {}, got {}", describe_domain(domain), to_string(dtype));
                if (dtype != operand_dtype(op, bools))
                  op.fail("arguments have different dtypes: {} and {}", to_string(operand_dtype(op, bools)),
                          to_string(dtype));
              }
            }
            if (scalars) return prim_type(result_dtype(op));
            return tensor_type(broadcast_operands(op), result_dtype(op));
          },
          .infer_partial = [=](const OpCall& op) { return infer_partly(op, domain, scalar, bools); },
          .legalize =
              [=](const OpCall& op) {
                ComputeBuilder b;
                std::vector<Buffer> buffers = b.inputs_of(op);
                if (buffers.empty()) op.unsupported("all operands are scalars");
                Buffer out = b.compute(
                    "T_" + name.substr(name.rfind('.') + 1), result_dtype(op), broadcast_operands(op), [&](Axes axes) {
                      std::vector<Expr> values;
                      size_t next = 0;
                      for (size_t i = 0; i < op.size(); ++i)
                        values.push_back(is_scalar(op, i) ? op.arg(i) : load_broadcast(buffers[next++], axes));
                      return scalar(values);
                    });
                return b.finish({out});
              }};
}

OpRow unary(std::string name, std::string onnx, std::string doc, Domain domain, std::function<Expr(const Expr&)> fn) {
  const OpInput input{name.starts_with("nn.") ? "data" : "x", "the tensor"};
  return elementwise(std::move(name), std::move(onnx), std::move(doc), {input}, domain,
                     [fn](const std::vector<Expr>& x) { return fn(x[0]); });
}
OpRow binary_op(std::string name, std::string onnx, std::string doc, Domain domain,
                std::function<Expr(const Expr&, const Expr&)> fn) {
  return elementwise(std::move(name), std::move(onnx), std::move(doc),
                     {{"x1", "left operand"}, {"x2", "right operand"}}, domain,
                     [fn](const std::vector<Expr>& x) { return fn(x[0], x[1]); });
}
OpRow math(const char* intrinsic_name, std::string onnx, std::string doc, Domain domain = Domain::kFloat) {
  std::string full = std::string("tir.") + intrinsic_name;
  return unary(intrinsic_name, std::move(onnx), std::move(doc), domain,
               [full](const Expr& x) { return intrinsic(full, {x}, dtype_of(x)); });
}
OpRow predicate(const char* intrinsic_name, std::string onnx, std::string doc) {
  std::string full = std::string("tir.") + intrinsic_name;
  return unary(intrinsic_name, std::move(onnx), std::move(doc), Domain::kNumber, [full](const Expr& x) -> Expr {
    DType dtype = dtype_of(x);
    if (!dtype.is_float()) return scalar_imm(full == "tir.isfinite", kBool.with_lanes(dtype.lanes));
    return intrinsic(full, {x}, kBool.with_lanes(dtype.lanes));
  });
}
OpRow arithmetic(const char* name, std::string onnx, std::string doc, Domain domain, BinaryOp op) {
  return binary_op(name, std::move(onnx), std::move(doc), domain,
                   [op](const Expr& a, const Expr& b) { return binary(op, a, b); });
}

Expr like(double value, const Expr& x) { return scalar_imm(value, dtype_of(x)); }
Expr call1(const char* name, const Expr& x) { return intrinsic(name, {x}, dtype_of(x)); }

// Repeated squaring for an integer power would need a loop, so pow of integers goes through float64, exact up to 2^53.
Expr power(const Expr& a, const Expr& b) {
  DType dtype = dtype_of(a);
  if (dtype.is_float()) return intrinsic("tir.pow", {a, b}, dtype);
  return cast_to(intrinsic("tir.pow", {cast_to(a, kFloat64), cast_to(b, kFloat64)}, kFloat64), dtype);
}

// Integers are rounded already.
OpRow rounding(const char* name, std::string onnx, const char* intrinsic_name, std::string doc) {
  return unary(name, std::move(onnx), std::move(doc), Domain::kNumber,
               [=](const Expr& x) { return dtype_of(x).is_float() ? call1(intrinsic_name, x) : x; });
}

OpRow astype() {
  return {.name = "relax.astype",
          .doc = "the elements converted to another dtype; floats truncate toward zero and saturate",
          .inputs = {{"x", "the tensor"}},
          .attrs = {dtype_attr("dtype", {})},
          .pattern = OpPattern::kElementwise,
          .infer = [](const OpCall& op) { return tensor_type(op.shape(0), op.attrs<CastAttrs>().dtype); },
          .infer_partial =
              [](const OpCall& op) {
                return tensor_type_of_rank(known_rank(op.arg(0).type()), op.attrs<CastAttrs>().dtype);
              },
          .legalize =
              [](const OpCall& op) {
                ComputeBuilder b;
                DType dtype = op.attrs<CastAttrs>().dtype;
                Buffer x = b.inputs_of(op)[0];
                return b.finish(
                    {b.compute("T_cast", dtype, op.shape(0), [&](Axes i) { return cast_to(at(x, i), dtype); })});
              }};
}

// Makes the row of an activation with one float attribute.
template <class A>
OpRow parametric(std::string name, std::string onnx, std::string doc, std::function<Expr(const Expr&, const A&)> fn) {
  return {.name = "relax." + name,
          .doc = std::move(doc),
          .onnx = std::move(onnx),
          .inputs = {{"data", "the tensor"}},
          .attrs = op_attrs<A>(),
          .pattern = OpPattern::kElementwise,
          .infer = [](const OpCall& op) { return tensor_type(op.shape(0), op.dtype(0)); },
          .legalize =
              [=](const OpCall& op) {
                ComputeBuilder b;
                A attrs = op.attrs<A>();
                Buffer x = b.inputs_of(op)[0];
                return b.finish({b.compute("T_" + name.substr(name.rfind('.') + 1), op.dtype(0), op.shape(0),
                                           [&](Axes i) { return fn(at(x, i), attrs); })});
              }};
}

Expr plus(const Expr& a, const Expr& b) { return binary(BinaryOp::kAdd, a, b); }
Expr times(const Expr& a, const Expr& b) { return binary(BinaryOp::kMul, a, b); }
Expr limited(const Expr& x, const Expr& low, const Expr& high) {
  return binary(BinaryOp::kMin, binary(BinaryOp::kMax, x, low), high);
}
// Returns log(1 + exp(x)), computed without overflow.
Expr softplus(const Expr& x) {
  Expr magnitude = call1("tir.exp", times(call1("tir.abs", x), like(-1, x)));
  return plus(binary(BinaryOp::kMax, x, like(0, x)), call1("tir.log1p", magnitude));
}

OpRow clip() {
  return {.name = "relax.clip",
          .doc = "x limited to [min, max]; NaN stays",
          .inputs = {{"x", "the tensor"}, {"min", "scalar"}, {"max", "scalar"}},
          .pattern = OpPattern::kElementwise,
          .infer =
              [](const OpCall& op) {
                require_scalar(op, 1);
                require_scalar(op, 2);
                return infer_like_first(op);
              },
          .legalize =
              [](const OpCall& op) {
                ComputeBuilder b;
                Buffer x = b.inputs_of(op)[0];
                return b.finish({b.compute("T_clip", op.dtype(0), op.shape(0), [&](Axes i) {
                  return limited(at(x, i), cast_to(op.arg(1), op.dtype(0)), cast_to(op.arg(2), op.dtype(0)));
                })});
              }};
}

OpRow prelu() {
  auto has_axis = [](const OpCall& op) { return op.rank(1) == 1 && op.rank(0) > 1; };
  auto result_shape = [=](const OpCall& op) {
    if (!has_axis(op)) return broadcast_shapes(op, op.shape(0), op.shape(1));
    std::vector<Expr> alpha(op.shape(0).size(), int_imm(1));
    alpha[normalize_axis(op, op.attrs<PReluAttrs>().axis, op.rank(0))] = op.shape(1)[0];
    return broadcast_shapes(op, op.shape(0), alpha);
  };
  return {.name = "relax.nn.prelu",
          .doc = "x above 0, alpha * x below",
          .inputs = {{"data", "the tensor"}, {"alpha", "a slope for each element of the axis, or what broadcasts"}},
          .attrs = op_attrs<PReluAttrs>(),
          .pattern = OpPattern::kBroadcast,
          .infer =
              [=](const OpCall& op) {
                require_same_dtype(op, 0, 1);
                if (!accepts(Domain::kNumber, op.dtype(0)))
                  op.fail("expected a number, got {}", to_string(op.dtype(0)));
                return tensor_type(result_shape(op), op.dtype(0));
              },
          .legalize =
              [=](const OpCall& op) {
                ComputeBuilder b;
                std::vector<Buffer> x = b.inputs_of(op);
                return b.finish({b.compute("T_prelu", op.dtype(0), result_shape(op), [&](Axes i) {
                  std::vector<Expr> at_alpha = i;
                  if (has_axis(op)) at_alpha = {i[normalize_axis(op, op.attrs<PReluAttrs>().axis, op.rank(0))]};
                  Expr value = load_broadcast(x[0], i);
                  Expr below = times(value, load_broadcast(x[1], at_alpha));
                  return select(binary(BinaryOp::kGT, value, like(0, value)), value, below);
                })});
              }};
}

}  // namespace

std::vector<OpRow> elementwise_ops() {
  auto select_positive = [](const Expr& x, const Expr& otherwise) {
    return select(binary(BinaryOp::kGT, x, like(0, x)), x, otherwise);
  };
  std::vector<OpRow> rows = {
      math("abs", "Abs", "absolute value", Domain::kNumber),
      math("acos", "Acos", "arc cosine"),
      math("acosh", "Acosh", "inverse hyperbolic cosine"),
      math("asin", "Asin", "arc sine"),
      math("asinh", "Asinh", "inverse hyperbolic sine"),
      math("atan", "Atan", "arc tangent"),
      math("atanh", "Atanh", "inverse hyperbolic tangent"),
      math("bitwise_not", "BitwiseNot", "complement of each bit", Domain::kInteger),
      rounding("ceil", "Ceil", "tir.ceil", "least integer not below"),
      math("cos", "Cos", "cosine"),
      math("cosh", "Cosh", "hyperbolic cosine"),
      math("erf", "Erf", "error function"),
      math("exp", "Exp", "e to the power x"),
      rounding("floor", "Floor", "tir.floor", "greatest integer not above"),
      math("log", "Log", "natural logarithm"),
      math("rsqrt", "", "1 / sqrt(x)"),
      math("sigmoid", "Sigmoid", "1 / (1 + exp(-x))"),
      math("sin", "Sin", "sine"),
      math("sinh", "Sinh", "hyperbolic sine"),
      math("sqrt", "Sqrt", "square root"),
      math("tan", "Tan", "tangent"),
      math("tanh", "Tanh", "hyperbolic tangent"),
      rounding("trunc", "", "tir.trunc", "integer part"),
      rounding("round", "Round", "tir.nearbyint", "nearest integer, ties to even"),
      predicate("isfinite", "", "neither infinite nor NaN"),
      predicate("isinf", "", "infinite"),
      predicate("isnan", "IsNaN", "not a number"),
      unary("negative", "Neg", "-x", Domain::kNumber,
            [](const Expr& x) {
              return dtype_of(x).is_float() ? binary(BinaryOp::kMul, x, like(-1, x))
                                            : binary(BinaryOp::kSub, like(0, x), x);
            }),
      unary("square", "", "x * x", Domain::kNumber, [](const Expr& x) { return binary(BinaryOp::kMul, x, x); }),
      unary("sign", "Sign", "-1, 0 or 1; NaN for NaN", Domain::kNumber,
            [](const Expr& x) {
              Expr below = select(binary(BinaryOp::kLT, x, like(0, x)), like(dtype_of(x).is_uint() ? 0 : -1, x), x);
              return select(binary(BinaryOp::kGT, x, like(0, x)), like(1, x), below);
            }),
      unary("logical_not", "Not", "not x", Domain::kBool, [](const Expr& x) { return not_(x); }),
      unary("nn.relu", "Relu", "max(x, 0)", Domain::kNumber,
            [](const Expr& x) { return binary(BinaryOp::kMax, x, like(0, x)); }),
      unary("nn.silu", "", "x * sigmoid(x)", Domain::kFloat,
            [](const Expr& x) { return binary(BinaryOp::kMul, x, call1("tir.sigmoid", x)); }),
      unary("nn.gelu", "", "x * (1 + erf(x / sqrt(2))) / 2", Domain::kFloat,
            [](const Expr& x) {
              Expr erf = call1("tir.erf", binary(BinaryOp::kMul, x, like(0.70710678118654752440, x)));
              return binary(BinaryOp::kMul, binary(BinaryOp::kMul, x, like(0.5, x)),
                            binary(BinaryOp::kAdd, like(1, x), erf));
            }),
      unary("nn.gelu_tanh", "", "GELU's tanh form: x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))) / 2", Domain::kFloat,
            [](const Expr& x) {
              Expr cube = binary(BinaryOp::kMul, binary(BinaryOp::kMul, x, x), x);
              Expr inner = binary(BinaryOp::kAdd, x, binary(BinaryOp::kMul, cube, like(0.044715, x)));
              Expr tanh = call1("tir.tanh", binary(BinaryOp::kMul, inner, like(0.79788456080286535588, x)));
              return binary(BinaryOp::kMul, binary(BinaryOp::kMul, x, like(0.5, x)),
                            binary(BinaryOp::kAdd, like(1, x), tanh));
            }),
      unary("nn.relu6", "", "x limited to [0, 6]", Domain::kNumber,
            [](const Expr& x) { return limited(x, like(0, x), like(6, x)); }),
      unary("nn.selu", "", "lambda * x above 0, lambda * alpha * (exp(x) - 1) below", Domain::kFloat,
            [=](const Expr& x) {
              Expr below = plus(call1("tir.exp", binary(BinaryOp::kMin, x, like(0, x))), like(-1, x));
              return times(like(1.05070098735548, x), select_positive(x, times(like(1.67326324235438, x), below)));
            }),
      parametric<SoftplusAttrs>("nn.softplus", "Softplus", "log(1 + exp(beta * x)) / beta",
                                [](const Expr& x, const SoftplusAttrs& a) {
                                  if (a.beta == 1) return softplus(x);
                                  return times(softplus(times(x, like(a.beta, x))), like(1 / a.beta, x));
                                }),
      parametric<LeakyReluAttrs>("nn.leakyrelu", "", "x above 0, alpha * x below",
                                 [=](const Expr& x, const LeakyReluAttrs& a) {
                                   return select_positive(x, binary(BinaryOp::kMul, x, like(a.alpha, x)));
                                 }),
      arithmetic("add", "Add", "x1 + x2", Domain::kNumber, BinaryOp::kAdd),
      arithmetic("subtract", "Sub", "x1 - x2", Domain::kNumber, BinaryOp::kSub),
      arithmetic("multiply", "Mul", "x1 * x2", Domain::kNumber, BinaryOp::kMul),
      arithmetic("divide", "Div", "x1 / x2; integers truncate toward zero", Domain::kNumber, BinaryOp::kDiv),
      arithmetic("floor_divide", "", "floor(x1 / x2)", Domain::kNumber, BinaryOp::kFloorDiv),
      arithmetic("floor_mod", "", "remainder with the sign of x2", Domain::kNumber, BinaryOp::kFloorMod),
      arithmetic("mod", "", "remainder with the sign of x1", Domain::kNumber, BinaryOp::kTruncMod),
      arithmetic("maximum", "", "the larger; NaN if either is", Domain::kAny, BinaryOp::kMax),
      arithmetic("minimum", "", "the smaller; NaN if either is", Domain::kAny, BinaryOp::kMin),
      arithmetic("equal", "Equal", "x1 == x2", Domain::kAny, BinaryOp::kEQ),
      arithmetic("not_equal", "", "x1 != x2", Domain::kAny, BinaryOp::kNE),
      arithmetic("less", "Less", "x1 < x2", Domain::kNumber, BinaryOp::kLT),
      arithmetic("less_equal", "LessOrEqual", "x1 <= x2", Domain::kNumber, BinaryOp::kLE),
      arithmetic("greater", "Greater", "x1 > x2", Domain::kNumber, BinaryOp::kGT),
      arithmetic("greater_equal", "GreaterOrEqual", "x1 >= x2", Domain::kNumber, BinaryOp::kGE),
      arithmetic("logical_and", "And", "x1 and x2", Domain::kBool, BinaryOp::kAnd),
      arithmetic("logical_or", "Or", "x1 or x2", Domain::kBool, BinaryOp::kOr),
      arithmetic("logical_xor", "Xor", "x1 != x2", Domain::kBool, BinaryOp::kNE),
      arithmetic("bitwise_and", "BitwiseAnd", "bits set in both", Domain::kInteger, BinaryOp::kBitAnd),
      arithmetic("bitwise_or", "BitwiseOr", "bits set in either", Domain::kInteger, BinaryOp::kBitOr),
      arithmetic("bitwise_xor", "BitwiseXor", "bits set in one", Domain::kInteger, BinaryOp::kBitXor),
      arithmetic("left_shift", "", "x1 << x2", Domain::kInteger, BinaryOp::kShiftLeft),
      arithmetic("right_shift", "", "x1 >> x2", Domain::kInteger, BinaryOp::kShiftRight),
      binary_op("power", "", "x1 to the power x2", Domain::kNumber, power),
      binary_op("atan2", "", "angle of the point (x2, x1)", Domain::kFloat,
                [](const Expr& a, const Expr& b) { return intrinsic("tir.atan2", {a, b}, dtype_of(a)); }),
      binary_op("log_add_exp", "", "log(exp(x1) + exp(x2)), without overflow", Domain::kFloat,
                [](const Expr& a, const Expr& b) {
                  Expr distance = call1("tir.abs", binary(BinaryOp::kSub, a, b));
                  Expr rest = call1("tir.log1p", call1("tir.exp", times(distance, like(-1, a))));
                  return plus(binary(BinaryOp::kMax, a, b), rest);
                }),
      elementwise("ewise_fma", "", "x1 * x2 + x3", {{"x1", "factor"}, {"x2", "factor"}, {"x3", "what is added"}},
                  Domain::kNumber, [](const std::vector<Expr>& x) { return plus(times(x[0], x[1]), x[2]); }),
      prelu(),
      elementwise(
          "where", "", "x1 where the condition holds, else x2",
          {{"condition", "bool tensor"}, {"x1", "taken where true"}, {"x2", "taken where false"}}, Domain::kAny,
          [](const std::vector<Expr>& x) { return select(x[0], x[1], x[2]); }, 1),
      clip(),
      astype(),
      {.name = "relax.wrap_param",
       .doc = "a parameter kept in another dtype, converted where it is used",
       .inputs = {{"data", "the tensor"}},
       .attrs = {dtype_attr("dtype", kFloat32)},
       .infer = [](const OpCall& op) { return tensor_type(op.shape(0), op.attrs<CastAttrs>().dtype); },
       .infer_partial =
           [](const OpCall& op) {
             return tensor_type_of_rank(known_rank(op.arg(0).type()), op.attrs<CastAttrs>().dtype);
           }},
  };
  return rows;
}

}  // namespace relaxc
