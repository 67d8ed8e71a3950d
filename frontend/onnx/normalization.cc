// Normalizations.
#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

namespace {

using Ints = std::vector<int64_t>;

// Before opset 9 scale, bias, mean and variance may be those of each element of x[i], with spatial = 0.
Expr batch_norm_of_elements(Node& n, bool training) {
  if (training) n.unsupported("attribute 'spatial' is 0 in training");
  for (size_t i = 1; i < 5; ++i) {
    if (n.rank(i) != n.rank(0) - 1)
      n.fail("input {} has rank {}, expected {}, as attribute 'spatial' is 0", i, n.rank(i), n.rank(0) - 1);
    for (size_t d = 0; d + 1 < n.shape(0).size(); ++d) n.require_equal(n.dim(i, d), n.dim(0, d + 1), "dims of x[i]");
  }
  Expr variance = n.tensor(4);
  Expr deviation = n.op("sqrt", {n.add(variance, n.scalar_like(n.attr_float("epsilon", 1e-5), variance))});
  Expr normalized = n.div(n.sub(n.tensor(0), n.tensor(3)), deviation);
  return n.add(n.mul(normalized, n.tensor(1)), n.tensor(2));
}
Outputs batch_norm(Node& n) {
  bool training = n.attr_int("training_mode", 0) != 0;
  if (n.opset() < 7 && n.attr_int("is_test", 0) == 0) training = n.has_output(1) || n.has_output(3);
  if (n.attr_int("spatial", 1) == 0 && n.rank(0) != 2) return {n.of(batch_norm_of_elements(n, training))};
  BatchNormAttrs attrs{
      .epsilon = n.attr_float("epsilon", 1e-5), .momentum = 1 - n.attr_float("momentum", 0.9), .training = training};
  return n.items_of(n.op("nn.batch_norm", n.tensors(), attrs), training ? 3 : 1);
}

// The axes that a node normalizes, from the attribute `axis` on, and their dims.
struct Normalized {
  Ints axes;
  std::vector<Expr> dims;
};
Normalized read_normalized(Node& n) {
  Ints axes = n.all_axes(n.axis(n.attr_int("axis", -1), n.rank(0)));
  return {axes, items_at(n.shape(0), axes)};
}
// Scale and bias are "unidirectionally broadcastable" to x. Returns input i over the normalized dims, or nullopt when
// it varies along the dims before them.
std::optional<Expr> over_normalized(Node& n, size_t i, const Normalized& normalized) {
  Expr value = n.tensor(i);
  std::vector<Expr> dims = n.shape(i);
  if (dims.size() > n.shape(0).size())
    n.fail("input {} has rank {}; expected at most {}, the rank of the data", i, dims.size(), n.rank(0));
  if (dims.size() > normalized.dims.size()) {
    auto begin = dims.end() - std::ssize(normalized.dims);
    if (!std::all_of(dims.begin(), begin, [](const Expr& dim) { return is_int(dim, 1); })) return std::nullopt;
    value = n.reshape(value, {begin, dims.end()});
  }
  const char* what = i == 1 ? "dims of the scale and the data" : "dims of the bias and the data";
  return n.broadcast_to(n.stretched_into(value, normalized.dims, what), normalized.dims);
}
Expr filled(Node& n, double value, size_t input, const Normalized& normalized) {
  return n.broadcast_to(n.scalar(value, n.dtype(input)), normalized.dims);
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
  Normalized normalized = read_normalized(n);
  LayerNormAttrs attrs{.axes = normalized.axes, .epsilon = n.attr_float("epsilon", 1e-5)};
  auto scale = over_normalized(n, 1, normalized);
  auto bias = n.has(2) ? over_normalized(n, 2, normalized) : filled(n, 0, 1, normalized);
  Expr result = scale && bias
                    ? n.op("nn.layer_norm", {x, *scale, *bias}, attrs)
                    : n.op("nn.layer_norm", {x, filled(n, 1, 1, normalized), filled(n, 0, 1, normalized)}, attrs);
  if (!scale || !bias) {
    result = broadcast_into(n, "multiply", result, 1);
    if (n.has(2)) result = broadcast_into(n, "add", result, 2);
  }
  Outputs outputs = {n.of(result)};
  if (n.has_output(1) || n.has_output(2)) {
    Expr wide = n.cast(x, kFloat32), mean = n.reduce("mean", wide, normalized.axes, true);
    Expr variance = n.reduce("mean", n.op("square", {n.sub(wide, mean)}), normalized.axes, true);
    outputs.push_back(n.of(mean));
    outputs.push_back(n.of(n.op("rsqrt", {n.add(variance, n.scalar_like(attrs.epsilon, variance))})));
  }
  return outputs;
}
bool by_width(DType a, DType b) { return a.bits < b.bits; }
// The result has the scale's dtype. SimplifiedLayerNormalization also has 1 / root of the mean square.
Outputs rms_norm(Node& n) {
  DType dtype = n.dtype(1);
  Expr x = n.dtype(0) == dtype ? n.tensor(0) : n.cast(n.tensor(0), std::max({kFloat32, n.dtype(0), dtype}, by_width));
  Normalized normalized = read_normalized(n);
  RmsNormAttrs attrs{.axes = normalized.axes, .epsilon = n.attr_float("epsilon", 1e-5)};
  auto scale = over_normalized(n, 1, normalized);
  Expr result = n.op("nn.rms_norm", {x, scale ? *scale : filled(n, 1, 1, normalized)}, attrs);
  result = n.cast(result, dtype);
  Outputs outputs = {n.of(scale ? result : broadcast_into(n, "multiply", result, 1))};
  if (n.has_output(1)) {
    Expr square = n.reduce("mean", n.op("square", {n.cast(x, kFloat32)}), normalized.axes, true);
    outputs.push_back(n.of(n.op("rsqrt", {n.add(square, n.scalar_like(attrs.epsilon, square))})));
  }
  return outputs;
}
Expr instance_norm(Node& n) {
  InstanceNormAttrs attrs{.axes = n.all_axes(2), .epsilon = n.attr_float("epsilon", 1e-5)};
  return n.op("nn.instance_norm", n.tensors(), attrs);
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
  Ints axes = n.opset() < 9 ? n.all_axes() : n.attr_ints("axes").value_or(n.all_axes());
  if (n.opset() < 9 ? n.attr_int("across_channels", 0) == 0 : !n.has_attr("axes")) std::erase(axes, 1);
  for (int64_t& axis : axes) axis = n.axis(axis, n.rank(0), "axes");
  Expr centered = n.sub(x, n.reduce("mean", x, axes, true));
  if (n.opset() < 9 && n.attr_int("normalize_variance", 1) == 0) return centered;
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

}  // namespace

std::vector<ConverterRow> normalization_converters() {
  return {
      {"BatchNormalization", 1, 5, 5, batch_norm, "consumed_inputs epsilon is_test momentum spatial training_mode"},
      {"LayerNormalization", 1, 2, 3, layer_norm,
       "axis epsilon stash_type"},  // also written below opset 17 by exporters
      {"RMSNormalization", 23, 2, 2, rms_norm, "axis epsilon stash_type"},
      {"SimplifiedLayerNormalization", 1, 2, 2, rms_norm, "axis epsilon stash_type"},
      {"InstanceNormalization", 1, 3, 3, instance_norm, "consumed_inputs epsilon"},
      {"GroupNormalization", 18, 3, 3, group_norm, "epsilon num_groups stash_type"},
      {"LRN", 1, 1, 1, lrn, "alpha beta bias size"},
      {"MeanVarianceNormalization", 1, 1, 1, mean_variance_norm, "across_channels normalize_variance"},
      {"MeanVarianceNormalization", 9, 1, 1, mean_variance_norm, "axes"},
      {"LpNormalization", 1, 1, 1, lp_norm, "axis p"},
  };
}

}  // namespace relaxc::onnx_import
