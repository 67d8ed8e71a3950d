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
  std::vector<Expr> kernel;
  Ints strides, dilations;
  std::vector<Expr> pads;  // all begins, then all ends
  std::string auto_pad;
  bool is_same() const { return auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER"; }
  Expr reach(size_t d) const { return simplify((kernel[d] - 1) * dilations[d] + 1); }
};
Ints spatial_ints(Node& n, const char* name, size_t count, int64_t otherwise) {
  Ints values = n.attr_ints(name).value_or(Ints(count, otherwise));
  if (values.size() != count) n.fail("{} has {} numbers, expected {}", name, values.size(), count);
  return values;
}
std::vector<Expr> as_exprs(const Ints& values) {
  std::vector<Expr> result;
  for (int64_t value : values) result.push_back(int_imm(value));
  return result;
}
// All of them, where all are constants from `least` on.
std::optional<Ints> as_ints(const std::vector<Expr>& values, int64_t least) {
  Ints result;
  for (const Expr& value : values) {
    auto known = as_int(value);
    if (!known || *known < least) return std::nullopt;
    result.push_back(*known);
  }
  return result;
}
Window read_window(Node& n, std::vector<Expr> kernel) {
  Window w;
  int64_t rank = n.rank(0);
  if (rank < 3) n.fail("input has rank {}, expected at least 3", rank);
  w.spatial = static_cast<size_t>(rank - 2);
  w.kernel = std::move(kernel);
  if (w.kernel.size() != w.spatial) n.fail("kernel_shape has {} numbers, expected {}", w.kernel.size(), w.spatial);
  w.strides = spatial_ints(n, "strides", w.spatial, 1);
  w.dilations = spatial_ints(n, "dilations", w.spatial, 1);
  Ints pads = spatial_ints(n, "pads", 2 * w.spatial, 0);
  w.auto_pad = n.attr_string("auto_pad", "NOTSET");
  auto positive = [&](const char* name, const char* verb, const Ints& values) {
    if (std::any_of(values.begin(), values.end(), [](int64_t v) { return v < 1 || v > (int64_t{1} << 31); }))
      n.fail("{} {} [{}], expected numbers from 1 on", name, verb, fmt::join(values, ", "));
  };
  positive("strides", "are", w.strides);
  positive("dilations", "are", w.dilations);
  for (const Expr& extent : w.kernel) {
    if (auto known = as_int(extent)) positive("kernel_shape", "has", {*known});
  }
  for (int64_t pad : pads) {
    if (std::abs(static_cast<double>(pad)) > 1e9) n.fail("pads are [{}]", fmt::join(pads, ", "));
  }
  if (w.auto_pad == "VALID") pads.assign(2 * w.spatial, 0);
  w.pads = as_exprs(pads);
  return w;
}
Window read_pool_window(Node& n) {
  auto kernel = n.attr_ints("kernel_shape");
  if (!kernel) n.fail("attribute 'kernel_shape' is missing");
  return read_window(n, as_exprs(*kernel));
}
// The outputs of a window with SAME_* pads along spatial dim d.
Expr same_count(Node& n, const Window& w, size_t d) { return n.simplify(ceil_div(n.shape(0)[d + 2], w.strides[d])); }
// SAME_*: as many outputs as ceil(size / stride); the odd element goes to the named side.
void resolve_same_pads(Node& n, Window& w) {
  if (w.auto_pad == "NOTSET" || w.auto_pad == "VALID" || w.auto_pad.empty()) return;
  if (!w.is_same()) n.fail("auto_pad is '{}'", w.auto_pad);
  for (size_t d = 0; d < w.spatial; ++d) {
    Expr reach = w.reach(d), size = n.shape(0)[d + 2];
    Expr total = reach - 1;  // with a stride of 1, and where there is nothing to add
    if (w.strides[d] > 1 && !is_int(reach, 1)) {
      total = (same_count(n, w, d) - 1) * w.strides[d] + reach - size;
      // The last window begins less than a stride before the end.
      auto known = as_int(reach);
      if (as_int(size) || !known || *known < w.strides[d]) total = max(total, int_imm(0));
    }
    total = n.simplify(total);
    Expr small = floor_div(total, 2);
    w.pads[d] = n.simplify(w.auto_pad == "SAME_UPPER" ? small : total - small);
    w.pads[w.spatial + d] = n.simplify(total - w.pads[d]);
  }
}
// The tensor with `before` and `after` elements around its spatial dims; negative counts crop.
Expr pad_spatial(Node& n, const Expr& x, const std::vector<Expr>& pads, const Expr& fill) {
  std::vector<Expr> width(4, int_imm(0));
  size_t spatial = pads.size() / 2;
  for (size_t d = 0; d < spatial; ++d) {
    width.push_back(pads[d]);
    width.push_back(pads[spatial + d]);
  }
  return n.op("dyn.pad", {x, shape_expr(width), fill});
}
// Pads that crop, or that only the run knows, are a step before the operator, which then has none.
Expr padded(Node& n, const Expr& x, Window& w, const Expr& fill) {
  if (as_ints(w.pads, 0)) return x;
  Expr result = pad_spatial(n, x, w.pads, fill);
  w.pads.assign(2 * w.spatial, int_imm(0));
  return result;
}
// The result with SAME_* dims as they are known, whatever the pads' formulas became.
Expr with_same_dims(Node& n, const Expr& result, const Window& w) {
  std::vector<Expr> dims = n.shape_of(result);
  bool differs = false;
  for (size_t d = 0; w.is_same() && d < w.spatial; ++d) {
    Expr count = same_count(n, w, d);
    differs = differs || !n.provably_equal(dims[d + 2], count);
    dims[d + 2] = count;
  }
  return differs ? n.builder().match_cast(result, tensor_type(dims, n.dtype_of_tensor(result)), "same") : result;
}

Expr with_bias(Node& n, const Expr& x, const Expr& bias) {
  if (n.shape_of(bias).size() != 1) n.fail("bias has rank {}, expected 1", n.shape_of(bias).size());
  std::vector<Expr> shape = {n.shape_of(bias)[0]};
  n.require_equal(shape[0], n.shape_of(x)[1], "length of the bias and output channels");
  for (size_t d = 2; d < n.shape_of(x).size(); ++d) shape.push_back(int_imm(1));
  return n.add(x, n.reshape(bias, shape));
}

// The weight, with kernel_shape in place of dims that it leaves open.
Expr weight_tensor(Node& n, const Expr& weight) {
  std::vector<Expr> dims = n.shape_of(weight);
  if (static_cast<int64_t>(dims.size()) != n.rank(0)) n.fail("weight has rank {}, expected {}", dims.size(), n.rank(0));
  auto kernel = n.attr_ints("kernel_shape");
  if (!kernel) return weight;
  bool learns = false;
  std::vector<Expr> given(dims.begin() + std::min<int64_t>(2, n.rank(0)), dims.end());
  auto known = as_ints(given, INT64_MIN);
  if (kernel->size() != given.size() || (known && *known != *kernel))
    n.fail("kernel_shape is [{}], but the weight has [{}]", fmt::join(*kernel, ", "),
           known ? fmt::format("{}", fmt::join(*known, ", ")) : fmt::format("{} spatial dims", given.size()));
  for (size_t d = 2; d < dims.size(); ++d) {
    learns = learns || !as_int(dims[d]);
    n.require_equal(dims[d], int_imm((*kernel)[d - 2]), "kernel_shape and the weight");
    dims[d] = int_imm((*kernel)[d - 2]);
  }
  return learns ? n.builder().match_cast(weight, tensor_type(dims, n.dtype_of_tensor(weight)), "weight") : weight;
}
std::vector<Expr> kernel_of(Node& n, const Expr& weight) {
  const std::vector<Expr>& dims = n.shape_of(weight);
  return {dims.begin() + std::min<int64_t>(2, static_cast<int64_t>(dims.size())), dims.end()};
}

Attrs conv_attrs(const Window& w, int64_t groups) {
  Attrs attrs;
  attrs.set("strides", w.strides);
  attrs.set("padding", as_ints(w.pads, 0).value());
  attrs.set("dilation", w.dilations);
  attrs.set("groups", groups);
  return attrs;
}
int64_t read_groups(Node& n, const Window& w) {
  int64_t groups = n.attr_int("group", 1);
  if (groups < 1) n.fail("group is {}, expected at least 1", groups);
  if (w.spatial > 3) n.unsupported("{} spatial dims; there are 1 to 3", w.spatial);
  return groups;
}

Expr convolve(Node& n, const Expr& x, const Expr& given_weight, std::optional<DType> out_dtype) {
  Expr weight = weight_tensor(n, given_weight);
  Window w = read_window(n, kernel_of(n, weight));
  int64_t groups = read_groups(n, w);
  resolve_same_pads(n, w);
  Expr source = padded(n, x, w, n.like(0, x));
  Attrs attrs = conv_attrs(w, groups);
  if (out_dtype) attrs.set("out_dtype", *out_dtype);
  return with_same_dims(n, n.op(per_rank("nn.conv", w.spatial).c_str(), {source, weight}, attrs), w);
}
Outputs conv(Node& n) {
  Expr result = convolve(n, n.tensor(0), n.tensor(1), std::nullopt);
  if (n.has(2)) result = with_bias(n, result, n.tensor(2));
  return {n.of(result)};
}

// The pads that give a transposed convolution the size asked for; negative ones are more than the windows cover.
void resolve_output_pads(Node& n, Window& w, const Ints& extra, std::optional<Ints> output_shape) {
  if (output_shape && output_shape->size() == w.spatial + 2)
    output_shape->erase(output_shape->begin(), output_shape->begin() + 2);
  if (output_shape && output_shape->size() != w.spatial) n.fail("output_shape has {} numbers", output_shape->size());
  for (size_t d = 0; d < w.spatial; ++d) {
    Expr total = output_shape ? (n.shape(0)[d + 2] - 1) * w.strides[d] + w.reach(d) + (extra[d] - (*output_shape)[d])
                              : w.reach(d) + (extra[d] - w.strides[d]);
    // ConvTranspose gives SAME_UPPER the larger half at the end.
    Expr cut = n.simplify(max(total, int_imm(0))), small = floor_div(cut, 2);
    w.pads[d] = n.simplify(w.auto_pad == "SAME_UPPER" ? small : cut - small);
    w.pads[w.spatial + d] = n.simplify(total - w.pads[d]);
  }
}
Outputs conv_transpose(Node& n) {
  Expr x = n.tensor(0), weight = weight_tensor(n, n.tensor(1));
  Window w = read_window(n, kernel_of(n, weight));
  int64_t groups = read_groups(n, w);
  Ints extra = spatial_ints(n, "output_padding", w.spatial, 0);
  auto output_shape = n.attr_ints("output_shape");
  if (output_shape || w.is_same()) resolve_output_pads(n, w, extra, output_shape);
  // The pads cut the result: negative ones add to it, which output_padding does at the end.
  std::vector<Expr> cuts(2 * w.spatial, int_imm(0));
  for (size_t d = 0; d < w.spatial; ++d) {
    Expr &begin = w.pads[d], &end = w.pads[w.spatial + d];
    if (auto known = as_int(end); known && *known < 0 && as_ints({begin}, 0)) {
      extra[d] -= *known;
      end = int_imm(0);
    }
    if (as_ints({begin, end}, 0)) continue;
    cuts[d] = n.simplify(int_imm(0) - begin);
    cuts[w.spatial + d] = n.simplify(int_imm(0) - end);
    begin = end = int_imm(0);
  }
  Attrs attrs = conv_attrs(w, groups);
  attrs.set("output_padding", extra);
  Expr result = n.op(per_rank("nn.conv", w.spatial, "_transpose").c_str(), {x, weight}, attrs);
  bool is_cut = std::any_of(cuts.begin(), cuts.end(), [](const Expr& cut) { return !is_int(cut, 0); });
  if (is_cut) result = pad_spatial(n, result, cuts, n.like(0, result));
  if (n.has(2)) result = with_bias(n, result, n.tensor(2));
  return {n.of(result)};
}

// ---- Pools ----------------------------------------------------------------------------------------------------------

Attrs pool_attrs(Node& n, const Window& w) {
  Attrs attrs;
  attrs.set("pool_size", as_ints(w.kernel, 1).value());
  attrs.set("strides", w.strides);
  attrs.set("padding", as_ints(w.pads, 0).value());
  attrs.set("dilation", w.dilations);
  attrs.set("ceil_mode", n.attr_int("ceil_mode", 0) != 0);
  return attrs;
}
Expr least_of(DType dtype) {
  Tensor tensor = Tensor::empty({}, dtype);
  if (dtype.is_float()) tensor.set_double(0, -INFINITY);
  if (dtype.is_int()) tensor.set_int(0, INT64_MIN >> (64 - dtype.bits));
  if (dtype.is_uint()) tensor.set_int(0, 0);
  return constant(tensor);
}
// Positions in a tensor that pad_spatial made as positions in the one of `dims` that it was made from. One in the
// padding is the first of a window without a larger element, so the nearest element of the tensor is the first of that
// window.
Expr without_pads(Node& n, const Expr& positions, const std::vector<Expr>& dims, const std::vector<Expr>& padded_dims,
                  const std::vector<Expr>& pads, bool column_major) {
  auto scalar = [&](const Expr& value) { return n.op("scalar_to_tensor", {n.simplify(value)}); };
  size_t spatial = dims.size() - 2;
  Expr rest = positions, result = n.scalar(0, kInt64), stride = int_imm(1);
  for (size_t k = 0; k < spatial; ++k) {
    size_t d = column_major ? k : spatial - 1 - k;
    Expr extent = scalar(padded_dims[d + 2]);
    Expr at = n.op("maximum", {n.sub(n.op("floor_mod", {rest, extent}), scalar(pads[d])), n.scalar(0, kInt64)});
    result = n.add(n.mul(at, scalar(stride)), result);
    rest = n.op("floor_divide", {rest, extent});
    stride = stride * dims[d + 2];
  }
  return n.add(n.mul(rest, scalar(stride)), result);
}
Outputs max_pool(Node& n) {
  Window w = read_pool_window(n);
  resolve_same_pads(n, w);
  int64_t order = n.attr_int("storage_order", 0);
  std::vector<Expr> pads = w.pads;
  bool known_pads = as_ints(pads, 0).has_value();
  Expr x = padded(n, n.tensor(0), w, least_of(n.dtype(0)));
  Attrs attrs = pool_attrs(n, w);
  if (!n.wants(1)) {
    if (w.spatial > 3) n.unsupported("{} spatial dims; there are 1 to 3", w.spatial);
    return {n.of(with_same_dims(n, n.op(per_rank("nn.max_pool", w.spatial).c_str(), {x}, attrs), w))};
  }
  attrs.set("storage_order", order);
  Expr both = n.op("nn.max_pool_with_indices", {x}, attrs);
  Expr values = n.builder().emit(tuple_get(both, 0)), positions = n.builder().emit(tuple_get(both, 1));
  if (!known_pads) positions = without_pads(n, positions, n.shape(0), n.shape_of(x), pads, order == 1);
  return {n.of(with_same_dims(n, values, w)), n.of(with_same_dims(n, positions, w))};
}
Outputs average_pool(Node& n) {
  Window w = read_pool_window(n);
  resolve_same_pads(n, w);
  if (w.spatial > 3) n.unsupported("{} spatial dims; there are 1 to 3", w.spatial);
  bool counts_pads = n.attr_int("count_include_pad", 0) != 0, known_pads = as_ints(w.pads, 0).has_value();
  Expr x = n.tensor(0);
  DType dtype = n.dtype(0);
  std::vector<Expr> image = {int_imm(1), int_imm(1)};
  for (size_t d = 0; d < w.spatial; ++d) image.push_back(n.shape(0)[d + 2]);
  Window unpadded = w;
  Expr source = padded(n, x, w, n.like(0, x));
  Attrs attrs = pool_attrs(n, w);
  attrs.set("count_include_pad", counts_pads || !known_pads);
  auto average = [&](const Expr& data) {
    return with_same_dims(n, n.op(per_rank("nn.avg_pool", w.spatial).c_str(), {data}, attrs), w);
  };
  if (known_pads || counts_pads) return {n.of(average(source))};
  // What part of each window lies inside of the image.
  Expr ones = n.op("full", {shape_expr(image), n.scalar(1, dtype)});
  return {n.of(n.div(average(source), average(padded(n, ones, unpadded, n.scalar(0, dtype)))))};
}
Outputs lp_pool(Node& n) {
  Window w = read_pool_window(n);
  resolve_same_pads(n, w);
  Expr x = padded(n, n.tensor(0), w, n.like(0, n.tensor(0)));
  Attrs attrs = pool_attrs(n, w);
  attrs.set("p", n.attr_int("p", 2));
  return {n.of(with_same_dims(n, n.op("nn.lp_pool", {x}, attrs), w))};
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

// What the normalizations over the axes from `axis` on share.
struct Normalized {
  Ints axes;
  std::vector<Expr> dims;
};
Normalized read_normalized(Node& n) {
  int64_t rank = n.rank(0);
  n.ignore({"stash_type"});
  Normalized result;
  for (int64_t d = n.axis(n.attr_int("axis", -1), rank); d < rank; ++d) {
    result.axes.push_back(d);
    result.dims.push_back(n.shape(0)[static_cast<size_t>(d)]);
  }
  return result;
}
// Scale and bias are "unidirectionally broadcastable" to x: input i over the normalized dims, or nothing when it varies
// along the dims before them.
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
  return n.broadcast_to(value, over.dims);
}
Expr filled(Node& n, double value, size_t like, const Normalized& over) {
  return n.broadcast_to(n.scalar(value, n.dtype(like)), over.dims);
}
// x * input i, or x + input i, of x's shape.
Expr broadcast_into(Node& n, const char* op, const Expr& x, size_t i) {
  Expr result = n.binary(op, x, n.tensor(i));
  const std::vector<Expr>&to = n.shape_of(result), &from = n.shape_of(x);
  for (size_t d = 0; d < to.size(); ++d) n.require_equal(to[d], from[d], "dims after scale and bias and before");
  return result;
}

// Also the mean and 1 / standard deviation when they are asked for.
Outputs layer_norm(Node& n) {
  Expr x = n.tensor(0);
  Normalized over = read_normalized(n);
  const Ints& axes = over.axes;
  double epsilon = n.attr_float("epsilon", 1e-5);
  Attrs attrs;
  attrs.set("axes", axes);
  attrs.set("epsilon", epsilon);
  auto scale = over_normalized(n, 1, over);
  auto bias = n.has(2) ? over_normalized(n, 2, over) : filled(n, 0, 1, over);
  Expr result = scale && bias ? n.op("nn.layer_norm", {x, *scale, *bias}, attrs)
                              : n.op("nn.layer_norm", {x, filled(n, 1, 1, over), filled(n, 0, 1, over)}, attrs);
  if (!scale || !bias) {
    result = broadcast_into(n, "multiply", result, 1);
    if (n.has(2)) result = broadcast_into(n, "add", result, 2);
  }
  Outputs outputs = {n.of(result)};
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
  Normalized over = read_normalized(n);
  Attrs attrs;
  attrs.set("axes", over.axes);
  attrs.set("epsilon", n.attr_float("epsilon", 1e-5));
  if (auto scale = over_normalized(n, 1, over)) return {n.of(n.op("nn.rms_norm", {x, *scale}, attrs))};
  Expr plain = n.op("nn.rms_norm", {x, filled(n, 1, 1, over)}, attrs);
  return {n.of(broadcast_into(n, "multiply", plain, 1))};
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
  // All but the channels; by default of a rank of 4, as the specification writes them.
  Ints axes = n.attr_ints("axes").value_or(Ints{});
  if (!n.has_attr("axes")) {
    for (int64_t d = 0; d < n.rank(0); ++d) {
      if (d != 1) axes.push_back(d);
    }
  }
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
    training = !no_drop && (!known || known->size() != 1 || known->as_int(0) != 0);
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
