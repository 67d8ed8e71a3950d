// Elementwise operators. One line each: the scalar expression; infer and legalize follow from it.
#include "ops/common.h"
#include "ops/ops.h"

namespace relaxc {

namespace {

// Which dtypes an operator takes.
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

// The row of an operator whose result element is `scalar` of the (broadcast) argument elements. The arguments share one
// dtype, the conditions named in `bools` (leading arguments) excepted.
OpRow elementwise(std::string name, std::string doc, std::vector<OpInput> inputs, Domain domain, ScalarFn scalar,
                  size_t bools = 0) {
  auto result_dtype = [scalar](const OpCall& op) {
    std::vector<Expr> probes;
    for (size_t i = 0; i < op.size(); ++i) probes.push_back(make_var("x", prim_type(operand_dtype(op, i))));
    return dtype_of(scalar(probes));
  };
  OpRow row;
  row.name = "relax." + name;
  row.doc = std::move(doc);
  row.inputs = std::move(inputs);
  row.pattern = row.inputs.size() == 1 ? OpPattern::kElementwise : OpPattern::kBroadcast;
  row.infer = [=](const OpCall& op) -> Type {
    bool scalars = true;
    for (size_t i = 0; i < op.size(); ++i) {
      DType dtype = operand_dtype(op, i);
      scalars = scalars && is_scalar(op, i);
      if (i < bools) {
        if (!dtype.is_bool()) op.fail("expected bool for argument {}, got {}", i, to_string(dtype));
      } else {
        if (!accepts(domain, dtype)) op.fail("expected {}, got {}", describe_domain(domain), to_string(dtype));
        if (dtype != operand_dtype(op, bools))
          op.fail("arguments have different dtypes: {} and {}", to_string(operand_dtype(op, bools)), to_string(dtype));
      }
    }
    if (scalars) return prim_type(result_dtype(op));
    return tensor_type(broadcast_operands(op), result_dtype(op));
  };
  row.legalize = [=](const OpCall& op) {
    ComputeBuilder b;
    std::vector<Buffer> buffers = b.inputs_of(op);
    if (buffers.empty()) op.unsupported("all operands are scalars");
    Buffer out =
        b.compute("T_" + name.substr(name.rfind('.') + 1), result_dtype(op), broadcast_operands(op), [&](Axes axes) {
          std::vector<Expr> values;
          size_t next = 0;
          for (size_t i = 0; i < op.size(); ++i)
            values.push_back(is_scalar(op, i) ? op.arg(i) : load_broadcast(buffers[next++], axes));
          return scalar(values);
        });
    return b.finish({out});
  };
  return row;
}

OpRow unary(std::string name, std::string doc, Domain domain, std::function<Expr(const Expr&)> fn) {
  const OpInput input{name.starts_with("nn.") ? "data" : "x", "the tensor"};
  return elementwise(std::move(name), std::move(doc), {input}, domain,
                     [fn](const std::vector<Expr>& x) { return fn(x[0]); });
}
OpRow binary_op(std::string name, std::string doc, Domain domain, std::function<Expr(const Expr&, const Expr&)> fn) {
  return elementwise(std::move(name), std::move(doc), {{"x1", "left operand"}, {"x2", "right operand"}}, domain,
                     [fn](const std::vector<Expr>& x) { return fn(x[0], x[1]); });
}
OpRow math(const char* intrinsic_name, std::string doc, Domain domain = Domain::kFloat) {
  std::string full = std::string("tir.") + intrinsic_name;
  return unary(intrinsic_name, std::move(doc), domain,
               [full](const Expr& x) { return intrinsic(full, {x}, dtype_of(x)); });
}
OpRow predicate(const char* intrinsic_name, std::string doc) {
  std::string full = std::string("tir.") + intrinsic_name;
  return unary(intrinsic_name, std::move(doc), Domain::kNumber, [full](const Expr& x) -> Expr {
    DType dtype = dtype_of(x);
    if (!dtype.is_float()) return scalar_imm(full == "tir.isfinite", kBool.with_lanes(dtype.lanes));
    return intrinsic(full, {x}, kBool.with_lanes(dtype.lanes));
  });
}
OpRow arithmetic(const char* name, std::string doc, Domain domain, BinaryOp op) {
  return binary_op(name, std::move(doc), domain, [op](const Expr& a, const Expr& b) { return binary(op, a, b); });
}

Expr like(double value, const Expr& x) { return scalar_imm(value, dtype_of(x)); }
Expr call1(const char* name, const Expr& x) { return intrinsic(name, {x}, dtype_of(x)); }

// Integer power by repeated squaring would need a loop; pow of integers goes through float64, exact up to 2^53.
Expr power(const Expr& a, const Expr& b) {
  DType dtype = dtype_of(a);
  if (dtype.is_float()) return intrinsic("tir.pow", {a, b}, dtype);
  return cast_to(intrinsic("tir.pow", {cast_to(a, kFloat64), cast_to(b, kFloat64)}, kFloat64), dtype);
}

// Integers are rounded already.
OpRow rounding(const char* name, const char* intrinsic_name, std::string doc) {
  return unary(name, std::move(doc), Domain::kNumber,
               [=](const Expr& x) { return dtype_of(x).is_float() ? call1(intrinsic_name, x) : x; });
}

struct CastAttrs {
  DType dtype;
  static constexpr auto fields() { return std::tuple(field("dtype", &CastAttrs::dtype)); }
};
OpRow astype() {
  OpRow row;
  row.name = "relax.astype";
  row.doc = "the elements converted to another dtype; floats truncate toward zero and saturate";
  row.inputs = {{"x", "the tensor"}};
  row.attrs = {dtype_attr("dtype", {})};  // required
  row.pattern = OpPattern::kElementwise;
  row.infer = [](const OpCall& op) { return tensor_type(op.shape(0), op.attrs<CastAttrs>().dtype); };
  row.legalize = [](const OpCall& op) {
    ComputeBuilder b;
    DType dtype = op.attrs<CastAttrs>().dtype;
    Buffer x = b.inputs_of(op)[0];
    return b.finish({b.compute("T_cast", dtype, op.shape(0), [&](Axes i) { return cast_to(at(x, i), dtype); })});
  };
  return row;
}

// An activation with one float attribute.
template <class A>
OpRow parametric(std::string name, std::string doc, std::function<Expr(const Expr&, const A&)> fn) {
  OpRow row;
  row.name = "relax." + name;
  row.doc = std::move(doc);
  row.inputs = {{"data", "the tensor"}};
  row.attrs = op_attrs<A>();
  row.pattern = OpPattern::kElementwise;
  row.infer = [](const OpCall& op) { return tensor_type(op.shape(0), op.dtype(0)); };
  row.legalize = [=](const OpCall& op) {
    ComputeBuilder b;
    A attrs = op.attrs<A>();
    Buffer x = b.inputs_of(op)[0];
    return b.finish({b.compute("T_" + name.substr(name.rfind('.') + 1), op.dtype(0), op.shape(0),
                               [&](Axes i) { return fn(at(x, i), attrs); })});
  };
  return row;
}
struct LeakyReluAttrs {
  double alpha = 0.01;
  static constexpr auto fields() { return std::tuple(field("alpha", &LeakyReluAttrs::alpha)); }
};
struct SoftplusAttrs {
  double beta = 1, threshold = 20;  // Relax takes x itself above the threshold; without overflow nobody needs to
  static constexpr auto fields() {
    return std::tuple(field("beta", &SoftplusAttrs::beta), field("threshold", &SoftplusAttrs::threshold));
  }
};
struct PReluAttrs {
  int64_t axis = 1;  // of an alpha of rank 1
  static constexpr auto fields() { return std::tuple(field("axis", &PReluAttrs::axis)); }
};

Expr plus(const Expr& a, const Expr& b) { return binary(BinaryOp::kAdd, a, b); }
Expr times(const Expr& a, const Expr& b) { return binary(BinaryOp::kMul, a, b); }
Expr limited(const Expr& x, const Expr& low, const Expr& high) {
  return binary(BinaryOp::kMin, binary(BinaryOp::kMax, x, low), high);
}
// log(1 + exp(x)) without overflow.
Expr softplus(const Expr& x) {
  Expr magnitude = call1("tir.exp", times(call1("tir.abs", x), like(-1, x)));
  return plus(binary(BinaryOp::kMax, x, like(0, x)), call1("tir.log1p", magnitude));
}

OpRow clip() {
  OpRow row;
  row.name = "relax.clip";
  row.doc = "x limited to [min, max]; NaN stays";
  row.inputs = {{"x", "the tensor"}, {"min", "scalar"}, {"max", "scalar"}};
  row.pattern = OpPattern::kElementwise;
  row.infer = [](const OpCall& op) {
    require_scalar(op, 1);
    require_scalar(op, 2);
    return infer_like_first(op);
  };
  row.legalize = [](const OpCall& op) {
    ComputeBuilder b;
    Buffer x = b.inputs_of(op)[0];
    return b.finish({b.compute("T_clip", op.dtype(0), op.shape(0), [&](Axes i) {
      return limited(at(x, i), cast_to(op.arg(1), op.dtype(0)), cast_to(op.arg(2), op.dtype(0)));
    })});
  };
  return row;
}

OpRow prelu() {
  auto has_axis = [](const OpCall& op) { return op.rank(1) == 1 && op.rank(0) > 1; };
  auto result_shape = [=](const OpCall& op) {
    if (!has_axis(op)) return broadcast_shapes(op, op.shape(0), op.shape(1));
    std::vector<Expr> alpha(op.shape(0).size(), int_imm(1));
    alpha[normalize_axis(op, op.attrs<PReluAttrs>().axis, op.rank(0))] = op.shape(1)[0];
    return broadcast_shapes(op, op.shape(0), alpha);
  };
  OpRow row;
  row.name = "relax.nn.prelu";
  row.doc = "x above 0, alpha * x below";
  row.inputs = {{"data", "the tensor"}, {"alpha", "a slope for each element of the axis, or what broadcasts"}};
  row.attrs = op_attrs<PReluAttrs>();
  row.pattern = OpPattern::kBroadcast;
  row.infer = [=](const OpCall& op) {
    require_same_dtype(op, 0, 1);
    if (!accepts(Domain::kNumber, op.dtype(0))) op.fail("expected a number, got {}", to_string(op.dtype(0)));
    return tensor_type(result_shape(op), op.dtype(0));
  };
  row.legalize = [=](const OpCall& op) {
    ComputeBuilder b;
    std::vector<Buffer> x = b.inputs_of(op);
    return b.finish({b.compute("T_prelu", op.dtype(0), result_shape(op), [&](Axes i) {
      std::vector<Expr> at_alpha = i;
      if (has_axis(op)) at_alpha = {i[normalize_axis(op, op.attrs<PReluAttrs>().axis, op.rank(0))]};
      Expr value = load_broadcast(x[0], i);
      Expr below = times(value, load_broadcast(x[1], at_alpha));
      return select(binary(BinaryOp::kGT, value, like(0, value)), value, below);
    })});
  };
  return row;
}

}  // namespace

std::vector<OpRow> elementwise_ops() {
  auto select_positive = [](const Expr& x, const Expr& otherwise) {
    return select(binary(BinaryOp::kGT, x, like(0, x)), x, otherwise);
  };
  std::vector<OpRow> rows = {
      math("abs", "absolute value", Domain::kNumber),
      math("acos", "arc cosine"),
      math("acosh", "inverse hyperbolic cosine"),
      math("asin", "arc sine"),
      math("asinh", "inverse hyperbolic sine"),
      math("atan", "arc tangent"),
      math("atanh", "inverse hyperbolic tangent"),
      math("bitwise_not", "complement of each bit", Domain::kInteger),
      rounding("ceil", "tir.ceil", "least integer not below"),
      math("cos", "cosine"),
      math("cosh", "hyperbolic cosine"),
      math("erf", "error function"),
      math("exp", "e to the power x"),
      rounding("floor", "tir.floor", "greatest integer not above"),
      math("log", "natural logarithm"),
      math("rsqrt", "1 / sqrt(x)"),
      math("sigmoid", "1 / (1 + exp(-x))"),
      math("sin", "sine"),
      math("sinh", "hyperbolic sine"),
      math("sqrt", "square root"),
      math("tan", "tangent"),
      math("tanh", "hyperbolic tangent"),
      rounding("trunc", "tir.trunc", "integer part"),
      rounding("round", "tir.nearbyint", "nearest integer, ties to even"),
      predicate("isfinite", "neither infinite nor NaN"),
      predicate("isinf", "infinite"),
      predicate("isnan", "not a number"),
      unary("negative", "-x", Domain::kNumber,
            [](const Expr& x) {
              return dtype_of(x).is_float() ? binary(BinaryOp::kMul, x, like(-1, x))
                                            : binary(BinaryOp::kSub, like(0, x), x);
            }),
      unary("square", "x * x", Domain::kNumber, [](const Expr& x) { return binary(BinaryOp::kMul, x, x); }),
      unary("sign", "-1, 0 or 1; NaN for NaN", Domain::kNumber,
            [](const Expr& x) {
              Expr below = select(binary(BinaryOp::kLT, x, like(0, x)), like(dtype_of(x).is_uint() ? 0 : -1, x), x);
              return select(binary(BinaryOp::kGT, x, like(0, x)), like(1, x), below);
            }),
      unary("logical_not", "not x", Domain::kBool, [](const Expr& x) { return not_(x); }),
      unary("nn.relu", "max(x, 0)", Domain::kNumber,
            [](const Expr& x) { return binary(BinaryOp::kMax, x, like(0, x)); }),
      unary("nn.silu", "x * sigmoid(x)", Domain::kFloat,
            [](const Expr& x) { return binary(BinaryOp::kMul, x, call1("tir.sigmoid", x)); }),
      unary("nn.gelu", "x * (1 + erf(x / sqrt(2))) / 2", Domain::kFloat,
            [](const Expr& x) {
              Expr erf = call1("tir.erf", binary(BinaryOp::kMul, x, like(0.70710678118654752440, x)));
              return binary(BinaryOp::kMul, binary(BinaryOp::kMul, x, like(0.5, x)),
                            binary(BinaryOp::kAdd, like(1, x), erf));
            }),
      unary("nn.gelu_tanh", "GELU's tanh form: x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))) / 2", Domain::kFloat,
            [](const Expr& x) {
              Expr cube = binary(BinaryOp::kMul, binary(BinaryOp::kMul, x, x), x);
              Expr inner = binary(BinaryOp::kAdd, x, binary(BinaryOp::kMul, cube, like(0.044715, x)));
              Expr tanh = call1("tir.tanh", binary(BinaryOp::kMul, inner, like(0.79788456080286535588, x)));
              return binary(BinaryOp::kMul, binary(BinaryOp::kMul, x, like(0.5, x)),
                            binary(BinaryOp::kAdd, like(1, x), tanh));
            }),
      unary("nn.relu6", "x limited to [0, 6]", Domain::kNumber,
            [](const Expr& x) { return limited(x, like(0, x), like(6, x)); }),
      unary("nn.selu", "lambda * x above 0, lambda * alpha * (exp(x) - 1) below", Domain::kFloat,
            [=](const Expr& x) {
              Expr below = plus(call1("tir.exp", binary(BinaryOp::kMin, x, like(0, x))), like(-1, x));
              return times(like(1.05070098735548, x), select_positive(x, times(like(1.67326324235438, x), below)));
            }),
      parametric<SoftplusAttrs>("nn.softplus", "log(1 + exp(beta * x)) / beta",
                                [](const Expr& x, const SoftplusAttrs& a) {
                                  if (a.beta == 1) return softplus(x);
                                  return times(softplus(times(x, like(a.beta, x))), like(1 / a.beta, x));
                                }),
      parametric<LeakyReluAttrs>("nn.leakyrelu", "x above 0, alpha * x below",
                                 [=](const Expr& x, const LeakyReluAttrs& a) {
                                   return select_positive(x, binary(BinaryOp::kMul, x, like(a.alpha, x)));
                                 }),
      arithmetic("add", "x1 + x2", Domain::kNumber, BinaryOp::kAdd),
      arithmetic("subtract", "x1 - x2", Domain::kNumber, BinaryOp::kSub),
      arithmetic("multiply", "x1 * x2", Domain::kNumber, BinaryOp::kMul),
      arithmetic("divide", "x1 / x2; integers truncate toward zero", Domain::kNumber, BinaryOp::kDiv),
      arithmetic("floor_divide", "floor(x1 / x2)", Domain::kNumber, BinaryOp::kFloorDiv),
      arithmetic("floor_mod", "remainder with the sign of x2", Domain::kNumber, BinaryOp::kFloorMod),
      arithmetic("mod", "remainder with the sign of x1", Domain::kNumber, BinaryOp::kTruncMod),
      arithmetic("maximum", "the larger; NaN if either is", Domain::kAny, BinaryOp::kMax),
      arithmetic("minimum", "the smaller; NaN if either is", Domain::kAny, BinaryOp::kMin),
      arithmetic("equal", "x1 == x2", Domain::kAny, BinaryOp::kEQ),
      arithmetic("not_equal", "x1 != x2", Domain::kAny, BinaryOp::kNE),
      arithmetic("less", "x1 < x2", Domain::kNumber, BinaryOp::kLT),
      arithmetic("less_equal", "x1 <= x2", Domain::kNumber, BinaryOp::kLE),
      arithmetic("greater", "x1 > x2", Domain::kNumber, BinaryOp::kGT),
      arithmetic("greater_equal", "x1 >= x2", Domain::kNumber, BinaryOp::kGE),
      arithmetic("logical_and", "x1 and x2", Domain::kBool, BinaryOp::kAnd),
      arithmetic("logical_or", "x1 or x2", Domain::kBool, BinaryOp::kOr),
      arithmetic("logical_xor", "x1 != x2", Domain::kBool, BinaryOp::kNE),
      arithmetic("bitwise_and", "bits set in both", Domain::kInteger, BinaryOp::kBitAnd),
      arithmetic("bitwise_or", "bits set in either", Domain::kInteger, BinaryOp::kBitOr),
      arithmetic("bitwise_xor", "bits set in one", Domain::kInteger, BinaryOp::kBitXor),
      arithmetic("left_shift", "x1 << x2", Domain::kInteger, BinaryOp::kShiftLeft),
      arithmetic("right_shift", "x1 >> x2", Domain::kInteger, BinaryOp::kShiftRight),
      binary_op("power", "x1 to the power x2", Domain::kNumber, power),
      binary_op("atan2", "angle of the point (x2, x1)", Domain::kFloat,
                [](const Expr& a, const Expr& b) { return intrinsic("tir.atan2", {a, b}, dtype_of(a)); }),
      binary_op("log_add_exp", "log(exp(x1) + exp(x2)), without overflow", Domain::kFloat,
                [](const Expr& a, const Expr& b) {
                  Expr distance = call1("tir.abs", binary(BinaryOp::kSub, a, b));
                  Expr rest = call1("tir.log1p", call1("tir.exp", times(distance, like(-1, a))));
                  return plus(binary(BinaryOp::kMax, a, b), rest);
                }),
      elementwise("ewise_fma", "x1 * x2 + x3", {{"x1", "factor"}, {"x2", "factor"}, {"x3", "what is added"}},
                  Domain::kNumber, [](const std::vector<Expr>& x) { return plus(times(x[0], x[1]), x[2]); }),
      prelu(),
      elementwise(
          "where", "x1 where the condition holds, else x2",
          {{"condition", "bool tensor"}, {"x1", "taken where true"}, {"x2", "taken where false"}}, Domain::kAny,
          [](const std::vector<Expr>& x) { return select(x[0], x[1], x[2]); }, 1),
      clip(),
      astype(),
      not_lowered("wrap_param", "a parameter kept in another dtype, converted where it is used",
                  {{"data", "the tensor"}}, {dtype_attr("dtype", kFloat32)},
                  [](const OpCall& op) { return tensor_type(op.shape(0), op.attrs<CastAttrs>().dtype); }),
  };
  return rows;
}

}  // namespace relaxc
