// Convolutions, pools, normalizations and products.
#include <algorithm>
#include <cmath>

#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

namespace {

using Ints = std::vector<int64_t>;

std::string per_rank(const char* prefix, size_t spatial, const char* suffix = "") {
  return fmt::format("{}{}d{}", prefix, spatial, suffix);
}

// What convolutions and pools share. `kernel` is the window, dims of the weight or kernel_shape.
struct Window {
  size_t spatial = 0;
  Ints kernel, strides, dilations, pads;  // pads: all begins, then all ends
  std::string auto_pad;
};
Ints spatial_ints(Node& n, const char* name, size_t count, int64_t otherwise) {
  Ints values = n.attr_ints(name).value_or(Ints(count, otherwise));
  if (values.size() != count) n.fail("{} has {} numbers, expected {}", name, values.size(), count);
  return values;
}
Window read_window(Node& n, const std::optional<Ints>& weight_kernel) {
  Window w;
  int64_t rank = n.rank(0);
  if (rank < 3) n.fail("input has rank {}, expected at least 3", rank);
  w.spatial = static_cast<size_t>(rank - 2);
  auto kernel = n.attr_ints("kernel_shape");
  if (!kernel && !weight_kernel) n.fail("attribute 'kernel_shape' is missing");
  w.kernel = weight_kernel ? *weight_kernel : *kernel;
  if (kernel && *kernel != w.kernel)
    n.fail("kernel_shape is [{}], but the weight has [{}]", fmt::join(*kernel, ", "), fmt::join(w.kernel, ", "));
  if (w.kernel.size() != w.spatial) n.fail("kernel_shape has {} numbers, expected {}", w.kernel.size(), w.spatial);
  w.strides = spatial_ints(n, "strides", w.spatial, 1);
  w.dilations = spatial_ints(n, "dilations", w.spatial, 1);
  w.pads = spatial_ints(n, "pads", 2 * w.spatial, 0);
  w.auto_pad = n.attr_string("auto_pad", "NOTSET");
  auto positive = [&](const char* name, const char* verb, const Ints& values) {
    if (std::any_of(values.begin(), values.end(), [](int64_t v) { return v < 1 || v > (int64_t{1} << 31); }))
      n.fail("{} {} [{}], expected numbers from 1 on", name, verb, fmt::join(values, ", "));
  };
  positive("kernel_shape", "is", w.kernel);
  positive("strides", "are", w.strides);
  positive("dilations", "are", w.dilations);
  for (int64_t pad : w.pads) {
    if (std::abs(static_cast<double>(pad)) > 1e9) n.fail("pads are [{}]", fmt::join(w.pads, ", "));
  }
  if (w.auto_pad == "VALID") w.pads.assign(2 * w.spatial, 0);
  return w;
}
// SAME_*: as many outputs as ceil(size / stride); the odd element goes to the named side.
void resolve_same_pads(Node& n, Window& w) {
  if (w.auto_pad == "NOTSET" || w.auto_pad == "VALID" || w.auto_pad.empty()) return;
  if (w.auto_pad != "SAME_UPPER" && w.auto_pad != "SAME_LOWER") n.fail("auto_pad is '{}'", w.auto_pad);
  for (size_t d = 0; d < w.spatial; ++d) {
    int64_t reach = (w.kernel[d] - 1) * w.dilations[d] + 1, total = 0;
    auto size = as_int(n.shape(0)[d + 2]);
    if (size) {
      int64_t count = (*size + w.strides[d] - 1) / w.strides[d];
      total = std::max<int64_t>(0, (count - 1) * w.strides[d] + reach - *size);
    } else if (w.strides[d] == 1) {
      total = reach - 1;
    } else {
      n.unsupported("auto_pad {} with strides on a symbolic dim; make it constant with --dim", w.auto_pad);
    }
    int64_t small = total / 2;
    w.pads[d] = w.auto_pad == "SAME_UPPER" ? small : total - small;
    w.pads[w.spatial + d] = total - w.pads[d];
  }
}
// Negative pads crop the data first.
Expr cropped(Node& n, Expr x, Window& w) {
  for (size_t d = 0; d < w.spatial; ++d) {
    int64_t &before = w.pads[d], &after = w.pads[w.spatial + d];
    if (before >= 0 && after >= 0) continue;
    Expr begin = int_imm(std::max<int64_t>(0, -before));
    Expr end = n.shape_of(x)[d + 2] - std::max<int64_t>(0, -after);
    x = n.slice(x, static_cast<int64_t>(d + 2), begin, n.simplify(end));
    before = std::max<int64_t>(before, 0);
    after = std::max<int64_t>(after, 0);
  }
  return x;
}

Expr with_bias(Node& n, const Expr& x, const Expr& bias) {
  std::vector<Expr> shape = {n.shape_of(bias).at(0)};
  if (n.shape_of(bias).size() != 1) n.fail("bias has rank {}, expected 1", n.shape_of(bias).size());
  for (size_t d = 2; d < n.shape_of(x).size(); ++d) shape.push_back(int_imm(1));
  return n.add(x, n.reshape(bias, shape));
}

Ints weight_kernel(Node& n, const std::vector<Expr>& weight) {
  if (static_cast<int64_t>(weight.size()) != n.rank(0))
    n.fail("weight has rank {}, expected {}", weight.size(), n.rank(0));
  Ints kernel;
  for (size_t d = 2; d < weight.size(); ++d) {
    auto known = as_int(weight[d]);
    if (!known) n.unsupported("a weight with symbolic dims");
    kernel.push_back(*known);
  }
  return kernel;
}

Attrs conv_attrs(const Window& w, int64_t groups) {
  Attrs attrs;
  attrs.set("strides", w.strides);
  attrs.set("padding", w.pads);
  attrs.set("dilation", w.dilations);
  attrs.set("groups", groups);
  return attrs;
}

Expr convolve(Node& n, Expr x, const Expr& weight, std::optional<DType> out_dtype) {
  std::vector<Expr> dims = n.shape_of(weight);
  Window w = read_window(n, weight_kernel(n, dims));
  resolve_same_pads(n, w);
  int64_t groups = n.attr_int("group", 1);
  if (groups < 1) n.fail("group is {}, expected at least 1", groups);
  if (w.spatial > 3) n.unsupported("{} spatial dims; there are 1 to 3", w.spatial);
  x = cropped(n, x, w);
  Attrs attrs = conv_attrs(w, groups);
  if (out_dtype) attrs.set("out_dtype", *out_dtype);
  return n.op(per_rank("nn.conv", w.spatial).c_str(), {x, weight}, attrs);
}
Outputs conv(Node& n) {
  Expr result = convolve(n, n.tensor(0), n.tensor(1), std::nullopt);
  if (n.has(2)) result = with_bias(n, result, n.tensor(2));
  return {n.of(result)};
}

Outputs conv_transpose(Node& n) {
  Expr x = n.tensor(0), weight = n.tensor(1);
  Window w = read_window(n, weight_kernel(n, n.shape(1)));
  int64_t groups = n.attr_int("group", 1);
  if (groups < 1) n.fail("group is {}, expected at least 1", groups);
  if (w.spatial > 3) n.unsupported("{} spatial dims; there are 1 to 3", w.spatial);
  Ints extra = spatial_ints(n, "output_padding", w.spatial, 0);
  auto output_shape = n.attr_ints("output_shape");
  bool same = w.auto_pad == "SAME_UPPER" || w.auto_pad == "SAME_LOWER";
  if (output_shape || same) {
    if (output_shape && output_shape->size() == w.spatial + 2)
      output_shape->erase(output_shape->begin(), output_shape->begin() + 2);
    if (output_shape && output_shape->size() != w.spatial) n.fail("output_shape has {} numbers", output_shape->size());
    for (size_t d = 0; d < w.spatial; ++d) {
      int64_t reach = (w.kernel[d] - 1) * w.dilations[d] + 1, total = 0;
      if (output_shape) {
        auto size = as_int(n.shape(0)[d + 2]);
        if (!size) n.unsupported("output_shape with a symbolic dim");
        total = w.strides[d] * (*size - 1) + extra[d] + reach - (*output_shape)[d];
      } else {
        total = reach + extra[d] - w.strides[d];
      }
      if (total < 0) {  // more output than the windows cover
        extra[d] -= total;
        total = 0;
      }
      // ConvTranspose gives SAME_UPPER the larger half at the end.
      int64_t begin = w.auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.pads[d] = begin;
      w.pads[w.spatial + d] = total - begin;
    }
  }
  Attrs attrs = conv_attrs(w, groups);
  attrs.set("output_padding", extra);
  Expr result = n.op(per_rank("nn.conv", w.spatial, "_transpose").c_str(), {x, weight}, attrs);
  if (n.has(2)) result = with_bias(n, result, n.tensor(2));
  return {n.of(result)};
}

// ---- Pools ----------------------------------------------------------------------------------------------------------

Attrs pool_attrs(Node& n, const Window& w) {
  Attrs attrs;
  attrs.set("pool_size", w.kernel);
  attrs.set("strides", w.strides);
  attrs.set("padding", w.pads);
  attrs.set("dilation", w.dilations);
  attrs.set("ceil_mode", n.attr_int("ceil_mode", 0) != 0);
  return attrs;
}
Outputs max_pool(Node& n) {
  Window w = read_window(n, std::nullopt);
  resolve_same_pads(n, w);
  int64_t order = n.attr_int("storage_order", 0);
  Expr x = n.tensor(0);
  Attrs attrs = pool_attrs(n, w);
  if (!n.wants(1)) {
    if (w.spatial > 3) n.unsupported("{} spatial dims; there are 1 to 3", w.spatial);
    return {n.of(n.op(per_rank("nn.max_pool", w.spatial).c_str(), {x}, attrs))};
  }
  attrs.set("storage_order", order);
  Expr both = n.op("nn.max_pool_with_indices", {x}, attrs);
  return {n.of(n.builder().emit(tuple_get(both, 0))), n.of(n.builder().emit(tuple_get(both, 1)))};
}
Outputs average_pool(Node& n) {
  Window w = read_window(n, std::nullopt);
  resolve_same_pads(n, w);
  if (w.spatial > 3) n.unsupported("{} spatial dims; there are 1 to 3", w.spatial);
  Attrs attrs = pool_attrs(n, w);
  attrs.set("count_include_pad", n.attr_int("count_include_pad", 0) != 0);
  return {n.of(n.op(per_rank("nn.avg_pool", w.spatial).c_str(), {n.tensor(0)}, attrs))};
}
Outputs lp_pool(Node& n) {
  Window w = read_window(n, std::nullopt);
  resolve_same_pads(n, w);
  Attrs attrs = pool_attrs(n, w);
  attrs.set("p", n.attr_int("p", 2));
  return {n.of(n.op("nn.lp_pool", {n.tensor(0)}, attrs))};
}
Outputs global_pool(Node& n) {
  Expr x = n.tensor(0);
  Ints axes;
  for (int64_t d = 2; d < n.rank(0); ++d) axes.push_back(d);
  return {n.of(n.reduce(n.op_type() == "GlobalMaxPool" ? "max" : "mean", x, axes, true))};
}

// ---- Normalizations -------------------------------------------------------------------------------------------------

Outputs batch_norm(Node& n) {
  n.ignore({"consumed_inputs"});
  Expr x = n.tensor(0);
  Attrs attrs;
  attrs.set("axis", 1);
  attrs.set("epsilon", n.attr_float("epsilon", 1e-5));
  double momentum = n.attr_float("momentum", 0.9);
  bool training = n.attr_int("training_mode", 0) != 0;
  if (n.opset() < 7 && n.attr_int("is_test", 0) == 0) training = n.wants(1) || n.wants(3);
  if (n.attr_int("spatial", 1) == 0) n.unsupported("attribute 'spatial' is 0");
  attrs.set("training", training);
  attrs.set("momentum", 1 - momentum);
  Expr result = n.op("nn.batch_norm", {x, n.tensor(1), n.tensor(2), n.tensor(3), n.tensor(4)}, attrs);
  Outputs outputs;
  for (int64_t i = 0; i < (training ? 3 : 1); ++i) outputs.push_back(n.of(n.builder().emit(tuple_get(result, i))));
  return outputs;
}

// Normalized over the axes from `axis` on; also the mean and 1 / standard deviation when they are asked for.
Outputs layer_norm(Node& n) {
  Expr x = n.tensor(0);
  int64_t rank = n.rank(0), axis = n.axis(n.attr_int("axis", -1), rank);
  double epsilon = n.attr_float("epsilon", 1e-5);
  n.ignore({"stash_type"});
  Ints axes;
  std::vector<Expr> normalized;
  for (int64_t d = axis; d < rank; ++d) {
    axes.push_back(d);
    normalized.push_back(n.shape(0)[static_cast<size_t>(d)]);
  }
  Expr scale = n.broadcast_to(n.tensor(1), normalized);
  Expr bias = n.has(2) ? n.broadcast_to(n.tensor(2), normalized) : n.broadcast_to(n.scalar(0, n.dtype(1)), normalized);
  Attrs attrs;
  attrs.set("axes", axes);
  attrs.set("epsilon", epsilon);
  Outputs outputs = {n.of(n.op("nn.layer_norm", {x, scale, bias}, attrs))};
  if (n.wants(1) || n.wants(2)) {
    Expr wide = n.cast(x, kFloat32), mean = n.reduce("mean", wide, axes, true);
    Expr variance = n.reduce("mean", n.op("square", {n.sub(wide, mean)}), axes, true);
    outputs.push_back(n.of(mean));
    outputs.push_back(n.of(n.op("rsqrt", {n.add(variance, n.like(epsilon, variance))})));
  }
  return outputs;
}
Outputs rms_norm(Node& n) {
  Expr x = n.tensor(0);
  int64_t rank = n.rank(0), axis = n.axis(n.attr_int("axis", -1), rank);
  n.ignore({"stash_type"});
  Ints axes;
  std::vector<Expr> normalized;
  for (int64_t d = axis; d < rank; ++d) {
    axes.push_back(d);
    normalized.push_back(n.shape(0)[static_cast<size_t>(d)]);
  }
  Attrs attrs;
  attrs.set("axes", axes);
  attrs.set("epsilon", n.attr_float("epsilon", 1e-5));
  return {n.of(n.op("nn.rms_norm", {x, n.broadcast_to(n.tensor(1), normalized)}, attrs))};
}
Outputs instance_norm(Node& n) {
  n.ignore({"consumed_inputs"});
  Expr x = n.tensor(0);
  Attrs attrs;
  Ints axes;
  for (int64_t d = 2; d < n.rank(0); ++d) axes.push_back(d);
  attrs.set("channel_axis", 1);
  attrs.set("axes", axes);
  attrs.set("epsilon", n.attr_float("epsilon", 1e-5));
  return {n.of(n.op("nn.instance_norm", {x, n.tensor(1), n.tensor(2)}, attrs))};
}
Outputs group_norm(Node& n) {
  Expr x = n.tensor(0), scale = n.tensor(1), bias = n.tensor(2);
  int64_t groups = n.required_int("num_groups");
  n.ignore({"stash_type"});
  if (groups < 1) n.fail("num_groups is {}", groups);
  const Expr channels = n.shape(0)[1];
  if (n.opset() < 21) {  // a scale per group
    Expr size = n.simplify(floor_div(channels, groups));
    auto widen = [&](const Expr& v) {
      Expr column = n.reshape(v, {int_imm(groups), int_imm(1)});
      return n.reshape(n.broadcast_to(column, {int_imm(groups), size}), {channels});
    };
    scale = widen(scale);
    bias = widen(bias);
  }
  Attrs attrs;
  Ints axes;
  for (int64_t d = 2; d < n.rank(0); ++d) axes.push_back(d);
  attrs.set("num_groups", groups);
  attrs.set("channel_axis", 1);
  attrs.set("axes", axes);
  attrs.set("epsilon", n.attr_float("epsilon", 1e-5));
  return {n.of(n.op("nn.group_norm", {x, scale, bias}, attrs))};
}
Outputs lrn(Node& n) {
  Attrs attrs;
  attrs.set("size", n.required_int("size"));
  attrs.set("axis", 1);
  attrs.set("alpha", n.attr_float("alpha", 1e-4));
  attrs.set("beta", n.attr_float("beta", 0.75));
  attrs.set("bias", n.attr_float("bias", 1));
  return {n.of(n.op("nn.lrn", {n.tensor(0)}, attrs))};
}
Outputs mean_variance_norm(Node& n) {
  Expr x = n.tensor(0);
  Ints axes = n.attr_ints("axes").value_or(Ints{0, 2, 3});
  for (int64_t& axis : axes) axis = n.axis(axis, n.rank(0), "axes");
  Expr centered = n.sub(x, n.reduce("mean", x, axes, true));
  Expr deviation = n.op("sqrt", {n.reduce("mean", n.op("square", {centered}), axes, true)});
  return {n.of(n.div(centered, n.add(deviation, n.like(1e-9, x))))};
}
Outputs lp_norm(Node& n) {
  Expr x = n.tensor(0);
  int64_t axis = n.axis(n.attr_int("axis", -1), n.rank(0)), p = n.attr_int("p", 2);
  if (p != 1 && p != 2) n.fail("p is {}, expected 1 or 2", p);
  Expr norm = p == 1 ? n.reduce("sum", n.op("abs", {x}), {axis}, true)
                     : n.op("sqrt", {n.reduce("sum", n.op("square", {x}), {axis}, true)});
  Expr safe = n.op("where", {n.op("equal", {norm, n.like(0, x)}), n.like(1, x), norm});
  return {n.of(n.div(x, safe))};
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
Outputs matmul(Node& n) { return {n.of(matmul_of(n, n.tensor(0), n.tensor(1)))}; }

Outputs gemm(Node& n) {
  Expr a = n.tensor(0), b = n.tensor(1);
  if (n.rank(0) != 2 || n.rank(1) != 2) n.fail("operands have ranks {} and {}, expected 2", n.rank(0), n.rank(1));
  if (n.attr_int("transA", 0)) a = n.transpose(a, {1, 0});
  if (n.attr_int("transB", 0)) b = n.transpose(b, {1, 0});
  double alpha = n.attr_float("alpha", 1), beta = n.attr_float("beta", 1);
  n.ignore({"broadcast"});
  Expr result = matmul_of(n, a, b);
  if (alpha != 1) result = n.mul(result, n.like(alpha, result));
  if (n.has(2) && beta != 0) {
    Expr c = n.tensor(2);
    if (beta != 1) c = n.mul(c, n.like(beta, c));
    result = n.add(result, c);
  }
  return {n.of(result)};
}
Outputs einsum(Node& n) {
  std::vector<Expr> operands;
  for (size_t i = 0; i < n.inputs(); ++i) operands.push_back(n.tensor(i));
  std::string equation = n.attr_string("equation", "");
  std::erase(equation, ' ');
  Attrs attrs;
  attrs.set("subscripts", equation);
  return {n.of(n.op("einsum", {tuple(operands)}, attrs))};
}
Outputs det(Node& n) { return {n.of(n.op("linalg.det", {n.tensor(0)}))}; }

// ---- Integer products -----------------------------------------------------------------------------------------------

// x - zero point as int32.
Expr centered(Node& n, size_t x, size_t zero_point) {
  Expr wide = n.cast(n.tensor(x), kInt32);
  return n.has(zero_point) ? n.sub(wide, n.cast(n.tensor(zero_point), kInt32)) : wide;
}
Outputs matmul_integer(Node& n) { return {n.of(matmul_of(n, centered(n, 0, 2), centered(n, 1, 3)))}; }
Outputs conv_integer(Node& n) {
  Expr weight = n.cast(n.tensor(1), kInt32);
  if (n.has(3)) {
    Expr zero = n.cast(n.tensor(3), kInt32);
    std::vector<Expr> shape = n.shape_of(zero);
    if (shape.size() == 1 && !is_int(shape[0], 1)) {
      while (shape.size() < n.shape_of(weight).size()) shape.push_back(int_imm(1));
      zero = n.reshape(zero, shape);
    }
    weight = n.sub(weight, zero);
  }
  return {n.of(convolve(n, centered(n, 0, 2), weight, std::nullopt))};
}

Outputs dropout(Node& n) {
  n.ignore({"ratio", "seed", "consumed_inputs"});
  bool training = n.opset() < 7 && n.has_attr("is_test") && n.attr_int("is_test", 0) == 0;
  n.ignore({"is_test"});
  if (n.has(2)) {
    auto known = n.constant(2);
    auto ratio = n.has(1) ? n.constant(1) : std::nullopt;
    bool no_drop = ratio && ratio->size() == 1 && ratio->as_double(0) == 0;
    training = !no_drop && (!known || known->as_int(0) != 0);
  }
  if (training) n.unsupported("training_mode; export the model for inference");
  Expr x = n.tensor(0);
  Outputs outputs = {n.value(0)};
  if (n.wants(1)) {
    DType dtype = n.opset() < 10 ? n.dtype(0) : kBool;
    outputs.push_back(n.of(n.op("full", {shape_expr(n.shape_of(x)), n.scalar(1, dtype)})));
  }
  return outputs;
}

}  // namespace

std::vector<ConverterRow> nn_converters() {
  return {
      {"Conv", 1, 2, 3, conv},
      {"ConvTranspose", 1, 2, 3, conv_transpose},
      {"MaxPool", 1, 1, 1, max_pool},
      {"AveragePool", 1, 1, 1, average_pool},
      {"LpPool", 2, 1, 1, lp_pool},
      {"GlobalAveragePool", 1, 1, 1, global_pool},
      {"GlobalMaxPool", 1, 1, 1, global_pool},
      {"BatchNormalization", 1, 5, 5, batch_norm},
      {"LayerNormalization", 1, 2, 3, layer_norm},  // also written below opset 17 by exporters
      {"RMSNormalization", 23, 2, 2, rms_norm},
      {"SimplifiedLayerNormalization", 1, 2, 2, rms_norm},
      {"InstanceNormalization", 1, 3, 3, instance_norm},
      {"GroupNormalization", 18, 3, 3, group_norm},
      {"LRN", 1, 1, 1, lrn},
      {"MeanVarianceNormalization", 9, 1, 1, mean_variance_norm},
      {"LpNormalization", 1, 1, 1, lp_norm},
      {"MatMul", 1, 2, 2, matmul},
      {"Gemm", 1, 3, 3, gemm},
      {"Gemm", 11, 2, 3, gemm},
      {"Einsum", 12, 1, kAny, einsum},
      {"Det", 11, 1, 1, det},
      {"MatMulInteger", 10, 2, 4, matmul_integer},
      {"ConvInteger", 10, 2, 4, conv_integer},
      {"Dropout", 1, 1, 1, dropout},
      {"Dropout", 12, 1, 3, dropout},
  };
}

}  // namespace relaxc::onnx_import
