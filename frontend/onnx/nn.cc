// Normalizations and products.
#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

namespace {

using Ints = std::vector<int64_t>;

// ---- Normalizations -------------------------------------------------------------------------------------------------

Outputs batch_norm(Node& n) {
  bool training = n.attr_int("training_mode", 0) != 0;
  if (n.opset() < 7 && n.attr_int("is_test", 0) == 0) training = n.has_output(1) || n.has_output(3);
  if (n.attr_int("spatial", 1) == 0) n.unsupported("attribute 'spatial' is 0");
  BatchNormAttrs attrs{
      .epsilon = n.attr_float("epsilon", 1e-5), .momentum = 1 - n.attr_float("momentum", 0.9), .training = training};
  std::vector<Expr> args;
  for (size_t i = 0; i < 5; ++i) args.push_back(n.tensor(i));
  return n.items_of(n.op("nn.batch_norm", args, attrs), training ? 3 : 1);
}

// The shapes that the normalizations over the axes from `axis` on share.
struct Normalized {
  Ints axes;
  std::vector<Expr> dims;
};
Normalized read_normalized(Node& n) {
  Normalized result{n.all_axes(n.axis(n.attr_int("axis", -1), n.rank(0))), {}};
  for (int64_t d : result.axes) result.dims.push_back(n.shape(0)[d]);
  return result;
}
// Scale and bias are "unidirectionally broadcastable" to x. Returns input i over the normalized dims, or nullopt when
// it varies along the dims before them.
std::optional<Expr> over_normalized(Node& n, size_t i, const Normalized& over) {
  Expr value = n.tensor(i);
  std::vector<Expr> dims = n.shape(i);
  if (dims.size() > n.shape(0).size())
    n.fail("input {} has rank {}; expected at most {}, the rank of the data", i, dims.size(), n.rank(0));
  if (dims.size() > over.dims.size()) {
    auto begin = dims.end() - static_cast<int64_t>(over.dims.size());
    if (!std::all_of(dims.begin(), begin, [](const Expr& dim) { return is_int(dim, 1); })) return std::nullopt;
    value = n.reshape(value, {begin, dims.end()});
  }
  const std::vector<Expr> given = n.shape_of(value);
  for (size_t d = 0; d < given.size(); ++d) {
    const Expr& dim = over.dims[over.dims.size() - given.size() + d];
    if (!is_int(given[d], 1))
      n.require_equal(given[d], dim, i == 1 ? "dims of the scale and the data" : "dims of the bias and the data");
  }
  return n.broadcast_to(value, over.dims);
}
Expr filled(Node& n, double value, size_t like, const Normalized& over) {
  return n.broadcast_to(n.scalar(value, n.dtype(like)), over.dims);
}
// Returns x * input i, or x + input i, in x's shape.
Expr broadcast_into(Node& n, const char* op, const Expr& x, size_t i) {
  Expr result = n.binary(op, x, n.tensor(i));
  const std::vector<Expr>&to = n.shape_of(result), &from = n.shape_of(x);
  for (size_t d = 0; d < to.size(); ++d) n.require_equal(to[d], from[d], "dims after scale and bias and before");
  return result;
}

// Also returns the mean and 1 / standard deviation when the node asks for them.
Outputs layer_norm(Node& n) {
  Expr x = n.tensor(0);
  Normalized over = read_normalized(n);
  LayerNormAttrs attrs{.axes = over.axes, .epsilon = n.attr_float("epsilon", 1e-5)};
  auto scale = over_normalized(n, 1, over);
  auto bias = n.has(2) ? over_normalized(n, 2, over) : filled(n, 0, 1, over);
  Expr result = scale && bias ? n.op("nn.layer_norm", {x, *scale, *bias}, attrs)
                              : n.op("nn.layer_norm", {x, filled(n, 1, 1, over), filled(n, 0, 1, over)}, attrs);
  if (!scale || !bias) {
    result = broadcast_into(n, "multiply", result, 1);
    if (n.has(2)) result = broadcast_into(n, "add", result, 2);
  }
  Outputs outputs = {n.of(result)};
  if (n.has_output(1) || n.has_output(2)) {
    Expr wide = n.cast(x, kFloat32), mean = n.reduce("mean", wide, over.axes, true);
    Expr variance = n.reduce("mean", n.op("square", {n.sub(wide, mean)}), over.axes, true);
    outputs.push_back(n.of(mean));
    outputs.push_back(n.of(n.op("rsqrt", {n.add(variance, n.scalar_like(attrs.epsilon, variance))})));
  }
  return outputs;
}
Expr rms_norm(Node& n, const Expr& x) {
  Normalized over = read_normalized(n);
  RmsNormAttrs attrs{.axes = over.axes, .epsilon = n.attr_float("epsilon", 1e-5)};
  if (auto scale = over_normalized(n, 1, over)) return n.op("nn.rms_norm", {x, *scale}, attrs);
  Expr plain = n.op("nn.rms_norm", {x, filled(n, 1, 1, over)}, attrs);
  return broadcast_into(n, "multiply", plain, 1);
}
Expr instance_norm(Node& n) {
  InstanceNormAttrs attrs{.axes = n.all_axes(2), .epsilon = n.attr_float("epsilon", 1e-5)};
  return n.op("nn.instance_norm", {n.tensor(0), n.tensor(1), n.tensor(2)}, attrs);
}
Outputs group_norm(Node& n) {
  Expr x = n.tensor(0), scale = n.tensor(1), bias = n.tensor(2);
  int64_t groups = n.required_int("num_groups");
  if (groups < 1) n.fail("num_groups is {}", groups);
  const Expr channels = n.dim(0, 1);
  if (n.opset() < 21) {  // a scale per group
    Expr size = n.simplify(floor_div(channels, groups));
    auto widen = [&](const Expr& v) {
      Expr column = n.reshape(v, {int_imm(groups), int_imm(1)});
      return n.reshape(n.broadcast_to(column, {int_imm(groups), size}), {channels});
    };
    scale = widen(scale);
    bias = widen(bias);
  }
  GroupNormAttrs attrs{.num_groups = groups, .axes = n.all_axes(2), .epsilon = n.attr_float("epsilon", 1e-5)};
  return {n.of(n.op("nn.group_norm", {x, scale, bias}, attrs))};
}
Expr lrn(Node& n) {
  LrnAttrs attrs{.size = n.required_int("size"),
                 .alpha = n.attr_float("alpha", 1e-4),
                 .beta = n.attr_float("beta", 0.75),
                 .bias = n.attr_float("bias", 1)};
  return n.op("nn.lrn", {n.tensor(0)}, attrs);
}
Expr mean_variance_norm(Node& n, const Expr& x) {
  // The default is all axes but the channels, for a rank of 4, as the specification writes them.
  Ints axes = n.attr_ints("axes").value_or(n.all_axes());
  if (!n.has_attr("axes")) std::erase(axes, 1);
  for (int64_t& axis : axes) axis = n.axis(axis, n.rank(0), "axes");
  Expr centered = n.sub(x, n.reduce("mean", x, axes, true));
  Expr deviation = n.op("sqrt", {n.reduce("mean", n.op("square", {centered}), axes, true)});
  return n.div(centered, n.add(deviation, n.scalar_like(1e-9, x)));
}
Expr lp_norm(Node& n, const Expr& x) {
  int64_t axis = n.axis(n.attr_int("axis", -1), n.rank(0)), p = n.attr_int("p", 2);
  if (p != 1 && p != 2) n.fail("p is {}, expected 1 or 2", p);
  Expr norm = p == 1 ? n.reduce("sum", n.op("abs", {x}), {axis}, true)
                     : n.op("sqrt", {n.reduce("sum", n.op("square", {x}), {axis}, true)});
  return n.div(x, n.op("where", {n.op("equal", {norm, n.scalar_like(0, x)}), n.scalar_like(1, x), norm}));
}

// ---- Products -------------------------------------------------------------------------------------------------------

Expr matmul_of(Node& n, const Expr& a, const Expr& b) {
  std::vector<Expr> x = n.shape_of(a), y = n.shape_of(b);
  if (x.empty() || y.empty()) n.fail("operands have ranks {} and {}, expected at least 1", x.size(), y.size());
  if (n.dtype_of_tensor(a) != n.dtype_of_tensor(b))
    n.fail("inputs have dtypes {} and {}", to_string(n.dtype_of_tensor(a)), to_string(n.dtype_of_tensor(b)));
  n.require_equal(x.back(), y.size() == 1 ? y[0] : y[y.size() - 2], "inner dims of a product");
  if (x.size() > 2 && y.size() > 2) n.broadcast({x.begin(), x.end() - 2}, {y.begin(), y.end() - 2});
  return n.op("matmul", {a, b});
}
Expr matmul(Node& n) { return matmul_of(n, n.tensor(0), n.tensor(1)); }

Expr gemm(Node& n) {
  Expr a = n.tensor(0), b = n.tensor(1);
  if (n.rank(0) != 2 || n.rank(1) != 2) n.fail("operands have ranks {} and {}, expected 2", n.rank(0), n.rank(1));
  if (n.attr_int("transA", 0)) a = n.transpose(a, {1, 0});
  if (n.attr_int("transB", 0)) b = n.transpose(b, {1, 0});
  double alpha = n.attr_float("alpha", 1), beta = n.attr_float("beta", 1);
  Expr result = matmul_of(n, a, b);
  if (alpha != 1) result = n.mul(result, n.scalar_like(alpha, result));
  if (n.has(2) && beta != 0) {
    Expr c = n.tensor(2);
    if (beta != 1) c = n.mul(c, n.scalar_like(beta, c));
    result = n.add(result, c);
  }
  return result;
}
Expr einsum(Node& n) {
  std::vector<Expr> operands;
  for (size_t i = 0; i < n.inputs(); ++i) operands.push_back(n.tensor(i));
  std::string equation = n.attr_string("equation", "");
  std::erase(equation, ' ');
  return n.op("einsum", {tuple(operands)}, EinsumAttrs{equation});
}
Expr det(Node& n) { return n.op("linalg.det", {n.tensor(0)}); }

// Returns x - zero point as int32.
Expr centered(Node& n, size_t x, size_t zero_point) {
  Expr wide = n.cast(n.tensor(x), kInt32);
  return n.has(zero_point) ? n.sub(wide, n.cast(n.tensor(zero_point), kInt32)) : wide;
}
Expr matmul_integer(Node& n) { return matmul_of(n, centered(n, 0, 2), centered(n, 1, 3)); }

Outputs dropout(Node& n) {
  bool training = n.opset() < 7 && n.has_attr("is_test") && n.attr_int("is_test", 0) == 0;
  if (n.has(2)) {
    auto known = n.constant(2);
    auto ratio = n.has(1) ? n.constant(1) : std::nullopt;
    bool no_drop = ratio && ratio->size() == 1 && ratio->as_double(0) == 0;
    training = !no_drop && (!known || known->size() != 1 || known->as_int(0) != 0);
  }
  if (training) n.unsupported("training_mode; export the model for inference");
  Expr x = n.tensor(0);
  Outputs outputs = {n.value(0)};
  if (n.has_output(1)) {
    DType dtype = n.opset() < 10 ? n.dtype(0) : kBool;
    outputs.push_back(n.of(n.op("full", {shape_expr(n.shape_of(x)), n.scalar(1, dtype)})));
  }
  return outputs;
}

// ---- Losses, as the functions that ONNX defines them by

// Returns the negative log likelihood of [N, C, d...] log probabilities at the [N, d...] classes.
Expr nll(Node& n, const Expr& log_probabilities, const Expr& target, const std::optional<Expr>& weight) {
  std::string reduction = n.attr_string("reduction", "mean");
  DType dtype = n.dtype_of_tensor(log_probabilities);
  Expr classes = n.cast(target, kInt64);
  std::optional<Expr> ignored;
  if (n.has_attr("ignore_index")) {
    Expr index = n.scalar(static_cast<double>(n.attr_int("ignore_index", 0)), kInt64);
    ignored = n.op("equal", {classes, index});
    classes = n.op("where", {*ignored, n.scalar(0, kInt64), classes});
  }
  const AxisListAttrs axis{std::vector<int64_t>{1}};
  Expr expanded = n.op("expand_dims", {classes}, axis);
  Expr picked = n.op("squeeze", {n.op("gather_elements", {log_probabilities, expanded}, AxisAttrs{1})}, axis);
  Expr loss = n.op("negative", {picked});
  std::optional<Expr> factor;
  if (weight) factor = n.op("take", {*weight, classes}, TakeAttrs{.axis = 0});
  if (ignored) {
    Expr one = factor ? *factor : n.scalar(1, dtype);
    factor = n.op("where", {*ignored, n.scalar(0, dtype), one});
  }
  if (factor) loss = n.mul(loss, *factor);
  if (reduction == "none") return loss;
  std::vector<int64_t> all = int_range(0, static_cast<int64_t>(n.shape_of(loss).size()));
  if (reduction == "sum") return n.reduce("sum", loss, all, false);
  if (reduction != "mean") n.fail("reduction is '{}', expected none, sum or mean", reduction);
  if (!factor) return n.reduce("mean", loss, all, false);
  return n.div(n.reduce("sum", loss, all, false), n.reduce("sum", *factor, all, false));
}

Expr negative_log_likelihood(Node& n) { return nll(n, n.tensor(0), n.tensor(1), n.optional_tensor(2)); }
Outputs softmax_cross_entropy(Node& n) {
  Expr log_probabilities = n.op("nn.log_softmax", {n.tensor(0)}, LastAxisAttrs{1});
  return {n.of(nll(n, log_probabilities, n.tensor(1), n.optional_tensor(2))), n.of(log_probabilities)};
}

}  // namespace

std::vector<ConverterRow> nn_converters() {
  return {
      {"BatchNormalization", 1, 5, 5, batch_norm, "consumed_inputs epsilon is_test momentum spatial training_mode"},
      {"LayerNormalization", 1, 2, 3, layer_norm,
       "axis epsilon stash_type"},  // also written below opset 17 by exporters
      {"RMSNormalization", 23, 2, 2, rms_norm, "axis epsilon stash_type"},
      {"SimplifiedLayerNormalization", 1, 2, 2, rms_norm, "axis epsilon stash_type"},
      {"InstanceNormalization", 1, 3, 3, instance_norm, "consumed_inputs epsilon"},
      {"GroupNormalization", 18, 3, 3, group_norm, "epsilon num_groups stash_type"},
      {"LRN", 1, 1, 1, lrn, "alpha beta bias size"},
      {"MeanVarianceNormalization", 9, 1, 1, mean_variance_norm, "axes"},
      {"LpNormalization", 1, 1, 1, lp_norm, "axis p"},
      {"MatMul", 1, 2, 2, matmul},
      {"Gemm", 1, 3, 3, gemm, "alpha beta broadcast transA transB"},
      {"Gemm", 11, 2, 3, gemm, "alpha beta broadcast transA transB"},
      {"Einsum", 12, 1, kAny, einsum, "equation"},
      {"Det", 11, 1, 1, det},
      {"MatMulInteger", 10, 2, 4, matmul_integer},
      {"Dropout", 1, 1, 1, dropout, "consumed_inputs is_test ratio seed"},
      {"Dropout", 12, 1, 3, dropout, "seed"},
      {"NegativeLogLikelihoodLoss", 12, 2, 3, negative_log_likelihood, "ignore_index reduction"},
      {"SoftmaxCrossEntropyLoss", 12, 2, 3, softmax_cross_entropy, "ignore_index reduction"},
  };
}

}  // namespace relaxc::onnx_import
