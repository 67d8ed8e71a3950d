// Gradients of elementwise operators. Most are a slope, which the gradient of the result is multiplied by.
#include <cmath>

#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/gradient.h"

namespace relaxc::gradients {

namespace {

using T = const Term&;
using G = const GradientCall&;

Term root(T x) { return x.op("sqrt"); }
Term square(T x) { return x.op("square"); }
Expr float_scalar(T like, double value) { return float_imm(value, like.dtype()); }
Term is_above(T x, double bound) { return x.op("greater", float_scalar(x, bound)); }

Expr negated(G g) { return (-g.dy()).expr; }
// Returns dy where the condition holds. A product with a flag would make NaN of an infinite dy.
Expr where_holds(G g, T condition) { return g.dy().where(condition, g.dy().number(0)).expr; }
Expr where_not(G g, T condition) { return g.dy().number(0).where(condition, g.dy()).expr; }

GradientRow unary(std::string op, Term (*slope)(T x, T y)) {
  return {std::move(op), {{[slope](G g) { return (g.dy() * slope(g.x(), g.y())).expr; }}}};
}
using Slope = Term (*)(T a, T b, T y);
GradientRow binary(std::string op, Slope of_first, Slope of_second) {
  auto argument = [](Slope slope) -> GradientRule::Of {
    return [slope](G g) { return (g.dy() * slope(g.x(0), g.x(1), g.y())).expr; };
  };
  return {std::move(op), {{argument(of_first), argument(of_second)}}};
}
// The result is piecewise constant.
GradientRow steps(std::string op) { return {std::move(op), {}}; }

// Of equal operands each gets half, as torch has it.
GradientRow choice(std::string op, const char* first_wins) {
  auto argument = [first_wins](size_t i) -> GradientRule::Of {
    return [=](G g) {
      Term half = (g.dy() * 0.5).where(g.x(0).op("equal", g.x(1)), g.dy().number(0));
      return g.dy().where(g.x(i).op(first_wins, g.x(1 - i)), half).expr;
    };
  };
  return {std::move(op), {{argument(0), argument(1)}}};
}

// 0 to the power 0 is 1 whatever the base, and 0 to a positive power is 0 whatever the exponent.
Expr power_of_base(G g) {
  Term b = g.x(1), slope = b * g.x(0).op("power", b - 1);
  return (g.dy() * g.dy().number(0).where(b.op("equal", float_scalar(b, 0)), slope)).expr;
}
Expr power_of_exponent(G g) {
  Term a = g.x(0), slope = g.y() * a.op("log");
  return (g.dy() * g.dy().number(0).where(a.op("equal", float_scalar(a, 0)), slope)).expr;
}

Expr silu(const OpCall& op, Builder& b) {
  Term x{op.arg(0), &b};
  return (x * x.op("sigmoid")).expr;
}
Expr gelu(const OpCall& op, Builder& b) {
  Term x{op.arg(0), &b};
  return (x * 0.5 * (1 + (x * M_SQRT1_2).op("erf"))).expr;
}
Expr gelu_tanh(const OpCall& op, Builder& b) {
  Term x{op.arg(0), &b};
  Term inner = x + x * square(x) * 0.044715;
  return (x * 0.5 * (1 + (inner * (M_2_SQRTPI * M_SQRT1_2)).op("tanh"))).expr;
}
Expr prelu(const OpCall& op, Builder& b) {
  Term x{op.arg(0), &b}, slope{op.arg(1), &b};
  if (slope.rank() == 1 && x.rank() > 1) {
    std::vector<Expr> dims(static_cast<size_t>(x.rank()), int_imm(1));
    dims[normalize_axis(op, op.attrs<PReluAttrs>().axis, x.rank())] = slope.dim(0);
    slope = slope.reshaped(dims);
  }
  return (x * slope).where(x.op("less", float_scalar(x, 0)), x).expr;
}
Expr masked_fill(G g) { return where_not(g, g.x(1)); }

Expr relu6(G g) {
  Term x = g.x();
  return where_holds(g, is_above(x, 0).op("logical_and", x.op("less", float_scalar(x, 6))));
}
Expr leaky_relu(G g) { return g.dy().where(is_above(g.x(), 0), g.dy() * g.attrs<LeakyReluAttrs>().alpha).expr; }
Expr selu(G g) {
  const double scale = 1.05070098735548, alpha = 1.67326324235438;
  return (g.dy() * g.dy().number(scale).where(is_above(g.x(), 0), g.y() + scale * alpha)).expr;
}
Expr softplus(G g) { return (g.dy() * (g.x() * g.attrs<SoftplusAttrs>().beta).op("sigmoid")).expr; }
// The bounds are elements in range, which pass dy on.
Expr clip(G g) { return where_holds(g, g.x().op("equal", g.y())); }

std::vector<GradientRow> rows_of_two() {
  return {
      {"add", {{pass, pass}}},
      {"subtract", {{pass, negated}}},
      binary(
          "multiply", [](T, T b, T) { return b; }, [](T a, T, T) { return a; }),
      binary(
          "divide", [](T, T b, T) { return 1 / b; }, [](T, T b, T y) { return -y / b; }),
      {"power", {{power_of_base, power_of_exponent}}},
      {"floor_mod", {{pass, [](G g) { return (-g.dy() * (g.x(0) / g.x(1)).op("floor")).expr; }}}},
      {"mod", {{pass, [](G g) { return (-g.dy() * (g.x(0) / g.x(1)).op("trunc")).expr; }}}},
      binary(
          "atan2", [](T a, T b, T) { return b / (square(a) + square(b)); },
          [](T a, T b, T) { return -a / (square(a) + square(b)); }),
      binary(
          "log_add_exp", [](T a, T, T y) { return (a - y).op("exp"); }, [](T, T b, T y) { return (b - y).op("exp"); }),
      choice("maximum", "greater"),
      choice("minimum", "less"),
      {"ewise_fma", {{[](G g) { return (g.dy() * g.x(1)).expr; }, [](G g) { return (g.dy() * g.x(0)).expr; }, pass}}},
      {"where", {{nullptr, [](G g) { return where_holds(g, g.x(0)); }, [](G g) { return where_not(g, g.x(0)); }}}},
      {"masked_fill", {{masked_fill}}},
      {"nn.prelu", written(prelu)},
  };
}

}  // namespace

std::vector<GradientRow> elementwise_gradients() {
  std::vector<GradientRow> rows = {
      unary("abs", [](T x, T) { return x.op("sign"); }),
      unary("acos", [](T x, T) { return -1 / root(1 - square(x)); }),
      unary("acosh", [](T x, T) { return 1 / root(square(x) - 1); }),
      unary("asin", [](T x, T) { return 1 / root(1 - square(x)); }),
      unary("asinh", [](T x, T) { return 1 / root(square(x) + 1); }),
      unary("atan", [](T x, T) { return 1 / (1 + square(x)); }),
      unary("atanh", [](T x, T) { return 1 / (1 - square(x)); }),
      unary("cos", [](T x, T) { return -x.op("sin"); }),
      unary("cosh", [](T x, T) { return x.op("sinh"); }),
      unary("erf", [](T x, T) { return M_2_SQRTPI * (-square(x)).op("exp"); }),
      unary("exp", [](T, T y) { return y; }),
      unary("log", [](T x, T) { return 1 / x; }),
      unary("rsqrt", [](T x, T y) { return -0.5 * y / x; }),
      unary("sigmoid", [](T, T y) { return y * (1 - y); }),
      unary("sin", [](T x, T) { return x.op("cos"); }),
      unary("sinh", [](T x, T) { return x.op("cosh"); }),
      unary("sqrt", [](T, T y) { return 0.5 / y; }),
      unary("square", [](T x, T) { return 2 * x; }),
      unary("tan", [](T, T y) { return 1 + square(y); }),
      unary("tanh", [](T, T y) { return 1 - square(y); }),
      {"negative", {{negated}}},
      {"astype", {{pass}}},
      {"clip", {{clip}}},
      {"nn.relu", {{[](G g) { return where_holds(g, is_above(g.x(), 0)); }}}},
      {"nn.relu6", {{relu6}}},
      {"nn.leakyrelu", {{leaky_relu}}},
      {"nn.selu", {{selu}}},
      {"nn.softplus", {{softplus}}},
      {"nn.silu", written(silu)},
      {"nn.gelu", written(gelu)},
      {"nn.gelu_tanh", written(gelu_tanh)},
      steps("ceil"),
      steps("floor"),
      steps("round"),
      steps("sign"),
      steps("trunc"),
      steps("floor_divide"),
      steps("grad.no_grad"),
      {"grad.start_checkpoint", {{pass}}},
      {"grad.end_checkpoint", {{pass}}},
  };
  std::ranges::move(rows_of_two(), std::back_inserter(rows));
  return rows;
}

}  // namespace relaxc::gradients
