// Convolutions and pools: windows over the spatial dims of an input.
#include <algorithm>
#include <cmath>

#include "frontend/onnx/node.h"
#include "ops/fold.h"
#include "support/joined.h"

namespace relaxc::onnx_import {

namespace {

using Ints = std::vector<int64_t>;

// Returns fn.operator()<N>() for N spatial dims, which are 1 to 3.
template <class F>
auto per_rank(Node& n, size_t spatial, F fn) {
  if (spatial > 3) n.unsupported("{} spatial dims, expected 1 to 3", spatial);
  return spatial == 1   ? fn.template operator()<1>()
         : spatial == 2 ? fn.template operator()<2>()
                        : fn.template operator()<3>();
}

// The window of a convolution or a pool. `kernel` has its extents, which are dims of the weight, or kernel_shape.
struct Window {
  size_t spatial = 0;
  std::vector<Expr> kernel;
  Ints strides, dilations;
  std::vector<Expr> pads;  // all begins, then all ends
  std::string auto_pad;
  bool is_same() const { return auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER"; }
  Expr reach(size_t d) const { return simplify((kernel[d] - 1) * dilations[d] + 1); }
};
// Returns the pads where all are constants and none crops.
std::optional<Ints> as_pads(const std::vector<Expr>& values) {
  auto pads = as_ints(values);
  bool crops = pads && std::ranges::any_of(*pads, [](int64_t pad) { return pad < 0; });
  return crops ? std::nullopt : pads;
}
size_t spatial_dims(Node& n) {
  int64_t rank = n.rank(0);
  if (rank < 3) n.fail("input has rank {}, expected at least 3", rank);
  return static_cast<size_t>(rank - 2);
}
Window read_window(Node& n, std::vector<Expr> kernel) {
  Window w;
  w.spatial = spatial_dims(n);
  w.kernel = std::move(kernel);
  if (w.kernel.size() != w.spatial) n.fail("kernel_shape has {} numbers, expected {}", w.kernel.size(), w.spatial);
  w.strides = n.attr_ints("strides", w.spatial, 1);
  w.dilations = n.attr_ints("dilations", w.spatial, 1);
  Ints pads = n.attr_ints("pads", 2 * w.spatial, 0);
  w.auto_pad = n.attr_string("auto_pad", "NOTSET");
  auto positive = [&](const char* name, const char* verb, const Ints& values) {
    if (std::ranges::any_of(values, [](int64_t v) { return v < 1 || v > (int64_t{1} << 31); }))
      n.fail("{} {} [{}], expected numbers from 1 on", name, verb, joined(values));
  };
  positive("strides", "are", w.strides);
  positive("dilations", "are", w.dilations);
  for (const Expr& extent : w.kernel) {
    if (auto known = as_int(extent)) positive("kernel_shape", "has", {*known});
  }
  for (int64_t pad : pads) {
    if (std::abs(static_cast<double>(pad)) > 1e9) n.fail("pads are [{}], expected at most 1e9", joined(pads));
  }
  if (w.auto_pad == "VALID") pads.assign(2 * w.spatial, 0);
  w.pads = int_imms(pads);
  return w;
}
// Returns the number of outputs of a window with SAME_* pads along spatial dim d.
Expr same_count(Node& n, const Window& w, size_t d) { return n.simplify(ceil_div(n.shape(0)[d + 2], w.strides[d])); }
// Computes SAME_* pads, which give ceil(size / stride) outputs. The odd element goes to the named side.
void resolve_same_pads(Node& n, Window& w) {
  if (w.auto_pad == "NOTSET" || w.auto_pad == "VALID" || w.auto_pad.empty()) return;
  if (!w.is_same()) n.fail("auto_pad is '{}', expected NOTSET, VALID, SAME_UPPER or SAME_LOWER", w.auto_pad);
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
Window read_pool_window(Node& n) {
  Window w = read_window(n, int_imms(n.required_ints("kernel_shape")));
  resolve_same_pads(n, w);
  return w;
}
// Adds `before` and `after` elements around the tensor's spatial dims. Negative counts crop.
Expr pad_spatial(Node& n, const Expr& x, const std::vector<Expr>& pads, const Expr& fill) {
  std::vector<Expr> width(4, int_imm(0));
  size_t spatial = pads.size() / 2;
  for (size_t d = 0; d < spatial; ++d) {
    width.push_back(pads[d]);
    width.push_back(pads[spatial + d]);
  }
  return n.op("dyn.pad", {x, shape_expr(width), fill});
}
// Pads in a separate step when the pads crop or are known at run time only. The operator after it then has no pads.
Expr padded(Node& n, const Expr& x, Window& w, const Expr& fill) {
  if (as_pads(w.pads)) return x;
  Expr result = pad_spatial(n, x, w.pads, fill);
  w.pads.assign(2 * w.spatial, int_imm(0));
  return result;
}
// Replaces the result's dims by ceil(size / stride), as SAME_* pads define them. The operator inferred longer
// expressions from the formulas of the pads.
Expr with_same_dims(Node& n, const Expr& result, const Window& w) {
  std::vector<Expr> dims = n.shape_of(result);
  bool differs = false;
  for (size_t d = 0; w.is_same() && d < w.spatial; ++d) {
    Expr count = same_count(n, w, d);
    differs = differs || !n.provably_equal(dims[d + 2], count);
    dims[d + 2] = count;
  }
  return differs ? n.match_cast(result, tensor_type(dims, n.dtype_of_tensor(result)), "same") : result;
}

// Returns x plus the bias, if there is one.
Expr with_bias(Node& n, const Expr& x, const std::optional<Expr>& bias) {
  if (!bias) return x;
  if (n.shape_of(*bias).size() != 1) n.fail("bias has rank {}, expected 1", n.shape_of(*bias).size());
  std::vector<Expr> shape = {n.dim_of(*bias, 0)};
  n.require_equal(shape[0], n.dim_of(x, 1), "length of the bias and output channels");
  for (size_t d = 2; d < n.shape_of(x).size(); ++d) shape.push_back(int_imm(1));
  return n.add(x, n.reshape(*bias, shape));
}

// Returns the weight, with kernel_shape in place of dims that it leaves unknown.
Expr weight_tensor(Node& n, const Expr& weight) {
  std::vector<Expr> dims = n.shape_of(weight);
  size_t rank = spatial_dims(n) + 2;
  if (dims.size() != rank) n.fail("weight has rank {}, expected {}", dims.size(), rank);
  auto kernel = n.attr_ints("kernel_shape");
  if (!kernel) return weight;
  bool is_refined = false;
  std::vector<Expr> given(dims.begin() + 2, dims.end());
  auto known = as_ints(given);
  if (kernel->size() != given.size() || (known && *known != *kernel))
    n.fail("kernel_shape is [{}], but the weight has [{}]", joined(*kernel),
           known ? joined(*known) : fmt::format("{} spatial dims", given.size()));
  for (size_t d = 2; d < dims.size(); ++d) {
    is_refined = is_refined || !as_int(dims[d]);
    n.require_equal(dims[d], int_imm((*kernel)[d - 2]), "kernel_shape and the weight");
    dims[d] = int_imm((*kernel)[d - 2]);
  }
  return is_refined ? n.match_cast(weight, tensor_type(dims, n.dtype_of_tensor(weight)), "weight") : weight;
}
// Returns the spatial dims of a weight that weight_tensor() has checked.
std::vector<Expr> kernel_of(Node& n, const Expr& weight) {
  return {n.shape_of(weight).begin() + 2, n.shape_of(weight).end()};
}

template <class A>
A window_attrs(const Window& w) {
  A attrs;
  attrs.strides = w.strides;
  attrs.padding = as_pads(w.pads).value();
  attrs.dilation = w.dilations;
  return attrs;
}
template <class A>
A conv_attrs(Node& n, const Window& w) {
  A attrs = window_attrs<A>(w);
  attrs.groups = n.attr_int("group", 1);
  if (attrs.groups < 1) n.fail("group is {}, expected at least 1", attrs.groups);
  return attrs;
}

}  // namespace

Expr convolve(Node& n, const Expr& x, const Expr& given_weight) {
  Expr weight = weight_tensor(n, given_weight);
  Window w = read_window(n, kernel_of(n, weight));
  resolve_same_pads(n, w);
  Expr source = padded(n, x, w, n.scalar_like(0, x));
  Expr result = per_rank(n, w.spatial, [&]<int N>() {
    return n.op(fmt::format("nn.conv{}d", N), {source, weight}, conv_attrs<ConvAttrs<N>>(n, w));
  });
  return with_same_dims(n, result, w);
}

namespace {

Expr conv(Node& n) { return with_bias(n, convolve(n, n.tensor(0), n.tensor(1)), n.optional_tensor(2)); }

// Samples the windows at places that the offsets move, and multiplies them by the weight as a matrix, group by group.
Expr deform_conv(Node& n) {
  Expr weight = weight_tensor(n, n.tensor(1));
  std::vector<Expr> kernel = kernel_of(n, weight), shape = n.shape(0);
  Window w = read_window(n, kernel);
  DeformColumnsAttrs attrs{.strides = w.strides,
                           .padding = as_pads(w.pads).value_or(Ints()),
                           .dilation = w.dilations,
                           .offset_groups = n.attr_int("offset_group", 1)};
  if (attrs.padding.empty()) n.unsupported("pads that crop");
  int64_t groups = n.attr_int("group", 1), rank = n.rank(0);
  if (groups < 1) n.fail("group is {}, expected at least 1", groups);
  if (n.rank(2) != rank) n.fail("the offsets have rank {}, expected {}", n.rank(2), rank);
  std::vector<Expr> args = {n.tensor(0), n.tensor(2), shape_expr(kernel)}, windows = n.shape(2);
  windows.erase(windows.begin(), windows.begin() + 2);
  if (n.has(4)) args.push_back(n.tensor(4));
  for (size_t d = 0; d < w.spatial; ++d) {
    Expr count = floor_div(shape[d + 2] + w.pads[d] + w.pads[w.spatial + d] - w.reach(d), w.strides[d]) + 1;
    n.require_equal(n.simplify(count), windows[d], "numbers of windows and of offsets");
  }
  Expr columns = n.op("nn.deform_columns", args, attrs), group = int_imm(groups);
  Expr outputs = n.dim_of(weight, 0), rows = n.simplify(floor_div(n.dim_of(columns, 1), groups));
  Expr places = n.simplify(product(windows)), per_group = n.simplify(floor_div(outputs, groups));
  n.require_equal(n.simplify(per_group * groups), outputs, "output channels and groups");
  n.require_equal(n.simplify(rows * groups), n.dim_of(columns, 1), "channels and groups");
  n.require_equal(n.simplify(product(kernel) * n.dim_of(weight, 1)), rows, "channels of the weight and a group");
  Expr data = n.reshape(columns, {shape[0], group, rows, places});
  Expr result = n.op("matmul", {n.reshape(weight, {int_imm(1), group, per_group, rows}), data});
  result = n.reshape(result, followed_by({shape[0], outputs}, windows));
  if (!n.has(3)) return result;
  std::vector<Expr> column(static_cast<size_t>(rank), int_imm(1));
  column[1] = outputs;
  return n.add(result, n.reshape(n.tensor(3), column));
}

// Computes pads that give a transposed convolution the requested size. Negative ones extend it beyond the windows.
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
}  // namespace

Expr convolve_transposed(Node& n, const std::optional<Expr>& bias, const std::optional<std::vector<Expr>>& pads) {
  Expr x = n.tensor(0), weight = weight_tensor(n, n.tensor(1));
  Window w = read_window(n, kernel_of(n, weight));
  if (pads && pads->size() != w.pads.size()) n.fail("{} pads, expected {}", pads->size(), w.pads.size());
  if (pads) w.pads = *pads;
  Ints extra = n.attr_ints("output_padding", w.spatial, 0);
  auto output_shape = n.attr_ints("output_shape");
  if (output_shape || w.is_same()) resolve_output_pads(n, w, extra, output_shape);
  // The pads cut the result: negative ones add to it, which output_padding does at the end.
  std::vector<Expr> cuts(2 * w.spatial, int_imm(0));
  for (size_t d = 0; d < w.spatial; ++d) {
    Expr &begin = w.pads[d], &end = w.pads[w.spatial + d];
    if (auto known = as_int(end); known && *known < 0 && as_pads({begin})) {
      extra[d] -= *known;
      end = int_imm(0);
    }
    if (as_pads({begin, end})) continue;
    cuts[d] = n.simplify(int_imm(0) - begin);
    cuts[w.spatial + d] = n.simplify(int_imm(0) - end);
    begin = end = int_imm(0);
  }
  Expr result = per_rank(n, w.spatial, [&]<int N>() {
    auto attrs = conv_attrs<ConvTransposeAttrs<N>>(n, w);
    attrs.output_padding = extra;
    return n.op(fmt::format("nn.conv{}d_transpose", N), {x, weight}, attrs);
  });
  bool is_cut = std::ranges::any_of(cuts, [](const Expr& cut) { return !is_int(cut, 0); });
  if (is_cut) result = pad_spatial(n, result, cuts, n.scalar_like(0, result));
  return with_bias(n, result, bias);
}

namespace {

Expr conv_transpose(Node& n) { return convolve_transposed(n, n.optional_tensor(2), std::nullopt); }

// ---- Pools ----------------------------------------------------------------------------------------------------------

// Returns the attributes of a pool of x, whose dims may be smaller than a window: they say so only where it matters.
template <class A>
A pool_attrs(Node& n, const Window& w, const Expr& x) {
  A attrs = window_attrs<A>(w);
  attrs.pool_size = as_ints(w.kernel).value();
  attrs.ceil_mode = n.attr_int("ceil_mode", 0) != 0;
  for (size_t d = 0; d < w.spatial && !attrs.ceil_mode; ++d) {
    int64_t whole = as_int(w.reach(d)).value() - attrs.padding[d] - attrs.padding[w.spatial + d];
    auto known = as_int(n.dim_of(x, static_cast<int64_t>(d) + 2));
    attrs.partial_window = attrs.partial_window || (whole > 1 && w.strides[d] > 1 && (!known || *known < whole));
  }
  return attrs;
}
Expr least_of(DType dtype) {
  Tensor tensor = Tensor::empty({}, dtype);
  if (dtype.is_float()) tensor.set_double(0, -INFINITY);
  if (dtype.is_int()) tensor.set_int(0, INT64_MIN >> (64 - dtype.bits));
  if (dtype.is_uint()) tensor.set_int(0, 0);
  return constant(tensor);
}
// Converts positions in a tensor that pad_spatial made to positions in the tensor of `dims` that it was made from. A
// position in the padding is the first of a window without a larger element, so the nearest element of the tensor is
// the first of that window.
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
  std::vector<Expr> pads = w.pads;
  Expr x = padded(n, n.tensor(0), w, least_of(n.dtype(0)));
  if (!n.has_output(1)) {
    Expr result = per_rank(n, w.spatial, [&]<int N>() {
      return n.op(fmt::format("nn.max_pool{}d", N), {x}, pool_attrs<PoolAttrs<N>>(n, w, x));
    });
    return {n.of(with_same_dims(n, result, w))};
  }
  auto attrs = pool_attrs<IndexedPoolAttrs>(n, w, x);
  attrs.storage_order = n.attr_int("storage_order", 0);
  Expr both = n.op("nn.max_pool_with_indices", {x}, attrs);
  Expr values = n.builder().emit(tuple_get(both, 0)), positions = n.builder().emit(tuple_get(both, 1));
  if (!as_pads(pads)) positions = without_pads(n, positions, n.shape(0), n.shape_of(x), pads, attrs.storage_order == 1);
  return {n.of(with_same_dims(n, values, w)), n.of(with_same_dims(n, positions, w))};
}
Expr average_pool(Node& n, const Expr& x) {
  Window w = read_pool_window(n);
  bool counts_pads = n.attr_int("count_include_pad", 0) != 0, known_pads = as_pads(w.pads).has_value();
  std::vector<Expr> image = n.shape(0);
  image[0] = image[1] = int_imm(1);
  Window unpadded = w;
  Expr source = padded(n, x, w, n.scalar_like(0, x));
  auto average = [&](const Expr& data) {
    Expr result = per_rank(n, w.spatial, [&]<int N>() {
      auto attrs = pool_attrs<PoolAttrs<N>>(n, w, data);
      attrs.count_include_pad = counts_pads || !known_pads;
      return n.op(fmt::format("nn.avg_pool{}d", N), {data}, attrs);
    });
    return with_same_dims(n, result, w);
  };
  if (known_pads || counts_pads) return average(source);
  // The average of ones is the share of each window that lies inside of the image.
  Expr ones = n.op("full", {shape_expr(image), n.scalar_like(1, x)});
  return n.div(average(source), average(padded(n, ones, unpadded, n.scalar_like(0, x))));
}
Expr lp_pool(Node& n) {
  Window w = read_pool_window(n);
  Expr x = padded(n, n.tensor(0), w, n.scalar_like(0, n.tensor(0)));
  auto attrs = pool_attrs<LpPoolAttrs>(n, w, x);
  attrs.p = n.attr_int("p", attrs.p);
  return with_same_dims(n, n.op("nn.lp_pool", {x}, attrs), w);
}
// Puts the elements to where MaxPool found them, in a tensor of zeros. The positions count in the tensor whose size
// follows from the window; output_shape may be larger.
Expr max_unpool(Node& n) {
  size_t spatial = spatial_dims(n);
  Ints kernel = n.required_ints("kernel_shape"), strides = n.attr_ints("strides", spatial, 1);
  Ints pads = n.attr_ints("pads", 2 * spatial, 0);
  if (kernel.size() != spatial) n.fail("kernel_shape has {} numbers, expected {}", kernel.size(), spatial);
  auto check = [&](const char* name, const Ints& values, int64_t least) {
    constexpr int64_t kMost = int64_t{1} << 31;
    if (std::ranges::any_of(values, [&](int64_t v) { return v < least || v > kMost; }))
      n.fail("{} has [{}], expected numbers from {} on", name, joined(values), least);
  };
  check("kernel_shape", kernel, 1);
  check("strides", strides, 1);
  check("pads", pads, 0);
  std::vector<Expr> from = n.shape(0), to = from;
  for (size_t d = 0; d < spatial; ++d)
    to[d + 2] = n.simplify((from[d + 2] - 1) * strides[d] + (kernel[d] - pads[d] - pads[spatial + d]));
  for (size_t d = 0; d < from.size(); ++d) n.require_equal(from[d], n.dim(1, d), "dims of the elements and positions");
  Expr count = n.simplify(product(from)), total = n.simplify(product(to));
  Expr zeros = n.op("zeros", {shape_expr({total})}, FillAttrs{n.dtype(0)});
  Expr flat = n.op("scatter_elements", {zeros, n.reshape(n.tensor(1), {count}), n.reshape(n.tensor(0), {count})},
                   ScatterElementsAttrs{.axis = 0});
  Expr result = n.reshape(flat, to);
  if (!n.has(2)) return result;
  std::vector<Expr> wanted = n.ints(2, n.rank(0)), width;
  if (wanted.size() != to.size()) n.fail("output_shape has {} numbers, expected {}", wanted.size(), to.size());
  for (size_t d = 0; d < to.size(); ++d) {
    width.push_back(int_imm(0));
    width.push_back(n.simplify(wanted[d] - to[d]));
  }
  return n.op("dyn.pad", {result, shape_expr(width)}, PadAttrs());
}
// The powers of a float16 may be beyond float16, and their root within it.
Expr global_lp_pool(Node& n, const Expr& input) {
  Expr x = n.cast(input, accumulation_dtype(n.dtype(0)));
  double p = n.opset() < 2 ? n.attr_float("p", 2) : static_cast<double>(n.attr_int("p", 2));
  if (!(p > 0)) n.fail("p is {}, expected a number above 0", p);
  Expr size = n.op("abs", {x});
  if (p != 1) size = p == 2 ? n.op("square", {x}) : n.op("power", {size, n.scalar_like(p, x)});
  Expr sum = n.reduce("sum", size, n.all_axes(2), true);
  if (p != 1) sum = p == 2 ? n.op("sqrt", {sum}) : n.op("power", {sum, n.scalar_like(1 / p, x)});
  return n.cast(sum, n.dtype(0));
}
Expr global_pool(Node& n, const Expr& x, const char* op) { return n.reduce(op, x, n.all_axes(2), true); }

}  // namespace

std::vector<ConverterRow> convolution_converters() {
  return {
      {"Conv", 1, 2, 3, conv, "auto_pad dilations group kernel_shape pads strides"},
      {"ConvTranspose", 1, 2, 3, conv_transpose,
       "auto_pad dilations group kernel_shape output_padding output_shape pads strides"},
      {"MaxPool", 1, 1, 1, max_pool, "auto_pad ceil_mode dilations kernel_shape pads storage_order strides"},
      {"AveragePool", 1, 1, 1, average_pool,
       "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides"},
      {"LpPool", 2, 1, 1, lp_pool, "auto_pad ceil_mode dilations kernel_shape p pads strides"},
      {"GlobalAveragePool", 1, 1, 1, {global_pool, "mean"}},
      {"GlobalMaxPool", 1, 1, 1, {global_pool, "max"}},
      {"GlobalLpPool", 1, 1, 1, global_lp_pool, "p"},
      {"MaxUnpool", 9, 2, 3, max_unpool, "kernel_shape pads strides"},
      {"DeformConv", 19, 3, 5, deform_conv, "auto_pad dilations group kernel_shape offset_group pads strides"},
  };
}

}  // namespace relaxc::onnx_import
