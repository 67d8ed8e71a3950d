// Images: resampling, blocks of pixels, crops.
#include <algorithm>
#include <cmath>

#include "frontend/onnx/graph_importer.h"
#include "support/joined.h"

namespace relaxc::onnx_import {

namespace {

void check_scale(Node& n, double scale) {
  if (!(scale > 0 && scale <= 1e6)) n.fail("scale {} is not above 0 and at most 1e6", scale);
}

std::vector<size_t> resized_axes(Node& n) {
  return map_each(n.attr_ints("axes").value_or(n.all_axes()),
                  [&](int64_t axis) { return static_cast<size_t>(n.axis(axis, n.rank(0), "axes")); });
}

struct ResizePlan {
  std::vector<Expr> sizes;                    // per axis of the input
  std::optional<std::vector<double>> scales;  // constants
  std::optional<Expr> scale_tensor;           // read at run time
};

// Returns floor(dim * scale) in float32, as the standard's shape inference and ONNX Runtime compute it: 10 * 0.7 is 7,
// though the float32 next to 0.7 is smaller. Returns nullopt where the size is known at run time only.
std::optional<Expr> scaled_dim(Node& n, const Expr& dim, double scale) {
  if (auto known = as_int(dim))
    return int_imm(static_cast<int64_t>(std::floor(static_cast<float>(*known) * static_cast<float>(scale))));
  // The scale is a fraction of small integers, so the product is exact for dims up to 2^18.
  for (int64_t divisor = 1; divisor <= 64; divisor *= 2) {
    double factor = scale * static_cast<double>(divisor);
    if (factor == std::trunc(factor) && (factor <= 64 || divisor == 1))
      return n.simplify(floor_div(dim * static_cast<int64_t>(factor), divisor));
  }
  return std::nullopt;
}

// Turns numbers in the order of `axes` into one per axis of the tensor, where the others have `otherwise`.
Expr spread(Node& n, const Expr& values, const std::vector<size_t>& axes, size_t rank, double otherwise) {
  std::vector<Expr> parts(rank, n.reshape(n.scalar_like(otherwise, values), {int_imm(1)}));
  for (size_t k = 0; k < axes.size(); ++k) {
    int64_t at = static_cast<int64_t>(k);
    parts[axes[k]] = n.slice(values, 0, int_imm(at), int_imm(at + 1));
  }
  return join(n, parts, 0);
}

// Computes output sizes floor(size * scale). The run computes them where scale or size are known at run time only.
ResizePlan sizes_from_scales(Node& n, Expr scales) {
  const std::vector<size_t> axes = resized_axes(n);
  std::vector<Expr> dims = n.shape(0), lengths;
  ResizePlan plan{dims, {}, {}};
  scales = n.with_length(scales, std::ssize(axes));
  auto count = as_int(n.length_of(n.shape_of(scales)));
  if (*count != std::ssize(axes)) n.fail("{} scales for {} axes", *count, axes.size());
  const Constant* known = scales.as<Constant>();
  if (known) plan.scales.emplace(dims.size(), 1.0);
  std::vector<size_t> open;  // positions in `axes` of the sizes that the run computes
  for (size_t k = 0; k < axes.size(); ++k) {
    lengths.push_back(dims[axes[k]]);
    std::optional<Expr> size;
    if (known) {
      double scale = (*plan.scales)[axes[k]] = known->data.as_double(static_cast<int64_t>(k));
      check_scale(n, scale);
      size = scaled_dim(n, lengths.back(), scale);
    }
    if (size) plan.sizes[axes[k]] = *size;
    if (!size) open.push_back(k);
  }
  if (open.empty()) return plan;
  scales = n.cast(scales, kFloat32);
  Expr exact = n.mul(n.cast(n.op("shape_to_tensor", {shape_expr(lengths)}), kFloat32), scales);
  std::vector<Expr> sizes = n.ints_of(n.of(n.cast(n.op("floor", {exact}), kInt64)));
  for (size_t k : open) plan.sizes[axes[k]] = sizes[k];
  if (!known) plan.scale_tensor = spread(n, scales, axes, dims.size(), 1);
  return plan;
}

// Takes the sizes that the node states for these axes. The policies other than "stretch" scale all axes by one factor,
// and round the sizes to the nearest number, from a half on up.
ResizePlan sizes_as_stated(Node& n, const std::vector<Expr>& sizes) {
  const std::vector<size_t> axes = resized_axes(n);
  std::vector<Expr> dims = n.shape(0), lengths;
  ResizePlan plan{dims, {}, {}};
  std::string policy = n.attr_string("keep_aspect_ratio_policy", "stretch");
  if (sizes.size() != axes.size()) n.fail("{} sizes for {} axes", sizes.size(), axes.size());
  for (size_t k = 0; k < axes.size(); ++k) {
    plan.sizes[axes[k]] = sizes[k];
    lengths.push_back(dims[axes[k]]);
  }
  if (policy == "stretch" || axes.empty()) return plan;
  if (policy != "not_larger" && policy != "not_smaller")
    n.fail("keep_aspect_ratio_policy is '{}', expected stretch, not_larger or not_smaller", policy);
  auto list = [&](const std::vector<Expr>& values) {
    return n.cast(n.op("shape_to_tensor", {shape_expr(values)}), kFloat64);
  };
  bool is_known = as_ints(lengths) && as_ints(sizes);
  if (is_known) {
    std::optional<double> ratio;
    for (size_t k = 0; k < axes.size(); ++k) {
      double scale = static_cast<double>(*as_int(sizes[k])) / static_cast<double>(*as_int(lengths[k]));
      ratio = !ratio ? scale : policy == "not_larger" ? std::min(*ratio, scale) : std::max(*ratio, scale);
    }
    check_scale(n, *ratio);
    plan.scales.emplace(dims.size(), 1.0);
    for (size_t k = 0; k < axes.size(); ++k) {
      (*plan.scales)[axes[k]] = *ratio;
      double size = std::floor(static_cast<double>(*as_int(lengths[k])) * *ratio + 0.5);
      plan.sizes[axes[k]] = int_imm(static_cast<int64_t>(size));
    }
    return plan;
  }
  Expr from = list(lengths), scales = n.div(list(sizes), from);
  Expr ratio = n.reduce(policy == "not_larger" ? "min" : "max", scales, {0}, true);
  Expr rounded = n.op("floor", {n.add(n.mul(from, ratio), n.scalar(0.5, kFloat64))});
  std::vector<Expr> found = n.ints_of(n.of(n.cast(rounded, kInt64)));
  for (size_t k = 0; k < axes.size(); ++k) plan.sizes[axes[k]] = found[k];
  Expr all = n.broadcast_to(ratio, {int_imm(std::ssize(axes))});
  plan.scale_tensor = spread(n, all, axes, dims.size(), 1);
  return plan;
}
// Upsample has the scales as attributes before opset 9.
Expr scales_from_attributes(Node& n) {
  size_t rank = n.shape(0).size();
  std::vector<double> given = n.attr_floats("scales");
  if (given.empty() && rank == 4) given = {1, 1, n.attr_float("height_scale", 1), n.attr_float("width_scale", 1)};
  if (given.size() != rank) n.fail("{} scales for rank {}", given.size(), rank);
  return constant(float_list(given));
}
// Returns whether the input is there and has elements.
bool is_given(Node& n, size_t i) {
  if (!n.has(i)) return false;
  Type type = n.type(i);
  const std::vector<Expr>* length = known_shape(type);
  return !length || length->empty() || !is_int((*length)[0], 0);
}
// Returns whether the input has elements whatever the run is.
bool is_never_empty(Node& n, size_t i) {
  if (!n.has(i)) return false;
  Type type = n.type(i);
  const std::vector<Expr>* length = known_shape(type);
  return length && !length->empty() && as_int((*length)[0]).value_or(0) > 0;
}
ResizePlan sizes_from_input(Node& n, size_t scales_at) {
  if (!is_given(n, scales_at)) n.fail("neither scales nor sizes are given");
  return sizes_from_scales(n, n.tensor(scales_at));
}
// Gives the operator the region of tf_crop_and_resize: in attrs.roi where it is a constant, else as two more operands,
// the scales and the region, which are returned. An axis that is not named is there as a whole.
std::vector<Expr> region_operands(Node& n, const ResizePlan& plan, ResizeAttrs& attrs) {
  if (!n.has(1)) n.fail("tf_crop_and_resize needs a roi");
  const std::vector<size_t> axes = resized_axes(n);
  size_t rank = n.shape(0).size();
  int64_t count = std::ssize(axes);
  n.require_equal(n.length_of(n.shape(1)), int_imm(2 * count), "numbers of the roi, and two for each axis");
  if (auto roi = n.constant(1); roi && !plan.scale_tensor) {
    attrs.roi.assign(2 * rank, 0);
    std::fill(attrs.roi.begin() + static_cast<int64_t>(rank), attrs.roi.end(), 1);
    for (int64_t k = 0; k < 2 * count; ++k)
      attrs.roi[axes[static_cast<size_t>(k % count)] + (k < count ? 0 : rank)] = roi->as_double(k);
    return {};
  }
  Expr roi = n.cast(n.tensor(1), kFloat32), ones = constant(float_list(std::vector<double>(rank, 1)));
  Expr starts = spread(n, n.slice(roi, 0, int_imm(0), int_imm(count)), axes, rank, 0);
  Expr ends = spread(n, n.slice(roi, 0, int_imm(count), int_imm(2 * count)), axes, rank, 1);
  return {plan.scale_tensor.value_or(ones), join(n, {starts, ends}, 0)};
}

Expr resample(Node& n, const ResizePlan& plan, bool upsample) {
  std::vector<Expr> dims = n.shape(0);
  std::string mode = n.attr_string("mode", "nearest");
  ResizeAttrs attrs{
      .axes = {},
      .scales = plan.scales.value_or(std::vector<double>()),
      .roi = {},
      .method = mode == "bilinear" ? "linear" : mode,
      .coordinate_transformation_mode =
          upsample ? "asymmetric" : n.attr_string("coordinate_transformation_mode", "half_pixel"),
      .rounding_method = upsample ? "floor" : n.attr_string("nearest_mode", "round_prefer_floor"),
      .cubic_alpha = n.attr_float("cubic_coeff_a", -0.75),
      .exclude_outside = n.attr_int("exclude_outside", 0) != 0,
      .extrapolation_value = n.attr_float("extrapolation_value", 0),
      .antialias = n.attr_int("antialias", 0) != 0,
  };
  bool crops = attrs.coordinate_transformation_mode == "tf_crop_and_resize";
  for (size_t d = 0; d < dims.size(); ++d) {
    bool unit = plan.scales ? (*plan.scales)[d] == 1 : n.provably_equal(plan.sizes[d], dims[d]);
    if (!unit || crops) attrs.axes.push_back(static_cast<int64_t>(d));
  }
  std::vector<Expr> args = {n.tensor(0), shape_expr(plan.sizes)}, more;
  if (crops) more = region_operands(n, plan, attrs);
  if (more.empty() && plan.scale_tensor) more = {*plan.scale_tensor};
  args.insert(args.end(), more.begin(), more.end());
  return n.op("image.resize", args, attrs);
}
Expr upsample_by_attributes(Node& n) { return resample(n, sizes_from_scales(n, scales_from_attributes(n)), true); }
Expr upsample(Node& n) { return resample(n, sizes_from_input(n, 1), true); }
Expr resize(Node& n) {
  if (is_never_empty(n, 2) && is_never_empty(n, 3)) n.fail("scales and sizes are both given, expected one of them");
  return resample(
      n, is_given(n, 3) ? sizes_as_stated(n, n.ints(3, std::ssize(resized_axes(n)))) : sizes_from_input(n, 2), false);
}

Expr grid_sample(Node& n) {
  std::string mode = n.attr_string("mode", n.opset() < 20 ? "bilinear" : "linear");
  GridSampleAttrs attrs{.method = mode == "linear"  ? "bilinear"
                                  : mode == "cubic" ? "bicubic"
                                                    : mode,
                        .padding_mode = n.attr_string("padding_mode", "zeros"),
                        .align_corners = n.attr_int("align_corners", 0) != 0};
  // The coordinates move in front of the spatial dims.
  std::vector<int64_t> order = int_range(-1, n.rank(1) - 1);
  if (order.size() < 3) n.fail("the grid has rank {}, expected the input's", n.rank(1));
  std::swap(order[0], order[1]);
  order[1] = n.rank(1) - 1;
  const DType dtype = n.dtype(0);
  Expr x = dtype.is_float() ? n.tensor(0) : n.cast(n.tensor(0), kFloat64);  // integers lose their fractions
  return n.cast(n.op("image.grid_sample", {x, n.transpose(n.tensor(1), order)}, attrs), dtype);
}
// The size is [N, C, H, W] or [N, C, D, H, W].
Expr affine_grid(Node& n) {
  // theta is [N, 2, 3] or [N, 3, 4].
  if (n.rank(0) != 3) n.fail("theta has rank {}, expected 3", n.rank(0));
  const auto rows = as_int(n.dim(0, 1)), columns = as_int(n.dim(0, 2));
  const std::optional<int64_t> rank = rows      ? std::optional(*rows + 2)
                                      : columns ? std::optional(*columns + 1)
                                                : n.output_rank(0);
  std::vector<Expr> size = n.ints(1, rank);
  if (size.size() != 4 && size.size() != 5) n.fail("the size has {} numbers, expected 4 or 5", size.size());
  n.require_equal(n.dim(0, 0), size[0], "batch sizes of theta and the size");
  Expr grid = n.op("image.affine_grid", {n.tensor(0), shape_expr({size.begin() + 2, size.end()})},
                   AffineGridAttrs{n.attr_int("align_corners", 0) != 0});
  std::vector<int64_t> order = int_range(1, std::ssize(size));  // the coordinates move behind the spatial dims
  order.push_back(1);
  order[0] = 0;
  return n.transpose(grid, order);
}
// Returns the number of spatial dims, which either list tells, or an attribute, or the rank of the result.
std::optional<int64_t> col2im_dims(Node& n) {
  for (size_t i : {1, 2})
    if (auto length = n.known_length(i)) return length;
  for (const char* name : {"dilations", "strides"})
    if (auto given = n.attr_ints(name)) return std::ssize(*given);
  if (auto pads = n.attr_ints("pads")) return std::ssize(*pads) / 2;
  std::optional<int64_t> rank = n.output_rank(0);
  return rank && *rank > 2 ? std::optional(*rank - 2) : std::nullopt;
}
Expr col2im(Node& n) {
  const std::optional<int64_t> count = col2im_dims(n);
  std::vector<Expr> image = n.ints(1, count), window = n.ints(2, count);
  size_t spatial = image.size();
  Col2ImAttrs attrs{.strides = n.attr_ints("strides", spatial, 1),
                    .padding = n.attr_ints("pads", 2 * spatial, 0),
                    .dilation = n.attr_ints("dilations", spatial, 1)};
  for (const auto& values : {attrs.strides, attrs.padding, attrs.dilation}) {
    if (std::ranges::any_of(values, [](int64_t v) { return v < 0 || v > (int64_t{1} << 31); }))
      n.fail("strides, pads and dilations have [{}], expected numbers from 0 on", joined(values));
  }
  return n.op("nn.col2im", {n.tensor(0), shape_expr(image), shape_expr(window)}, attrs);
}
// Crops and pads on both sides; where the difference is odd, one element more at the end.
Expr center_crop_pad(Node& n) {
  auto named = n.attr_ints("axes").value_or(n.all_axes());
  std::vector<Expr> wanted = n.ints(1, std::ssize(named)), shape = n.shape(0), width(2 * shape.size(), int_imm(0));
  if (wanted.size() != named.size()) n.fail("{} sizes for {} axes", wanted.size(), named.size());
  for (size_t k = 0; k < named.size(); ++k) {
    auto d = static_cast<size_t>(n.axis(named[k], n.rank(0), "axes"));
    Expr more = n.simplify(wanted[k] - shape[d]);
    Expr before = select(more < int_imm(0), int_imm(0) - floor_div(int_imm(0) - more, 2), floor_div(more, 2));
    width[2 * d] = n.simplify(before);
    width[2 * d + 1] = n.simplify(more - width[2 * d]);
  }
  return n.op("dyn.pad", {n.tensor(0), shape_expr(width)}, PadAttrs());
}

Expr image_decoder(Node& n, const Expr& x) {
  DecodeImageAttrs attrs{n.attr_string("pixel_format", "RGB")};
  const std::string& format = attrs.pixel_format;
  if (format != "RGB" && format != "BGR" && format != "Grayscale")
    n.fail("pixel_format is '{}', expected RGB, BGR or Grayscale", format);
  if (n.rank(0) != 1) n.fail("the input has rank {}, expected 1", n.rank(0));
  ModelContext& context = n.graph().context();
  std::vector<Expr> dims = {unknown_dim(context, "height"), unknown_dim(context, "width"),
                            int_imm(format == "Grayscale" ? 1 : 3)};
  return n.match_cast(n.builder().op("image.decode", {x}, attrs), tensor_type(std::move(dims), DType::uint(8)));
}

// Returns the size of the blocks of an image whose dims are `s`.
int64_t block_size(Node& n, const std::vector<Expr>& s) {
  int64_t block = n.required_int("blocksize");
  if (s.size() != 4) n.fail("input has rank {}, expected 4", s.size());
  if (block < 1) n.fail("blocksize is {}", block);
  return block;
}
Expr depth_to_space(Node& n, const Expr& x) {
  std::vector<Expr> s = n.shape(0);
  int64_t block = block_size(n, s);
  std::string mode = n.attr_string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") n.fail("mode is '{}', expected DCR or CRD", mode);
  Expr b = int_imm(block), c = n.simplify(floor_div(s[1], block * block));
  n.require_equal(c * (block * block), s[1], "channels and blocks");
  Expr moved = mode == "DCR" ? n.transpose(n.reshape(x, {s[0], b, b, c, s[2], s[3]}), {0, 3, 4, 1, 5, 2})
                             : n.transpose(n.reshape(x, {s[0], c, b, b, s[2], s[3]}), {0, 1, 4, 2, 5, 3});
  return n.reshape(moved, {s[0], c, n.simplify(s[2] * block), n.simplify(s[3] * block)});
}
Expr space_to_depth(Node& n) {
  std::vector<Expr> s = n.shape(0);
  int64_t block = block_size(n, s);
  Expr b = int_imm(block), h = n.simplify(floor_div(s[2], block)), w = n.simplify(floor_div(s[3], block));
  Expr moved = n.transpose(n.reshape(n.tensor(0), {s[0], s[1], h, b, w, b}), {0, 3, 5, 1, 2, 4});
  return n.reshape(moved, {s[0], n.simplify(s[1] * (block * block)), h, w});
}

Expr crop(Node& n) {
  auto border = n.attr_ints("border"), scale = n.attr_ints("scale");
  if (!border || border->size() != 4 || n.rank(0) != 4) n.fail("border must have 4 numbers and the input rank 4");
  std::vector<Expr> s = n.shape(0);
  Expr top = int_imm((*border)[1]), left = int_imm((*border)[0]);
  Expr bottom = scale ? top + scale->at(0) : s[2] - (*border)[3];
  Expr right = scale ? left + scale->at(1) : s[3] - (*border)[2];
  return n.slice(n.slice(n.tensor(0), 2, top, n.simplify(bottom)), 3, left, n.simplify(right));
}
Expr image_scaler(Node& n, const Expr& x) {
  std::vector<double> bias = n.attr_floats("bias");
  Tensor offsets = Tensor::empty({std::ssize(bias), 1, 1}, n.dtype(0));
  for (size_t i = 0; i < bias.size(); ++i) offsets.set_double(static_cast<int64_t>(i), bias[i]);
  return n.add(n.mul(x, n.scalar_like(n.attr_float("scale", 1), x)), constant(offsets));
}

}  // namespace

std::vector<ConverterRow> image_converters() {
  constexpr const char* kResize =
      "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value "
      "keep_aspect_ratio_policy mode nearest_mode";
  return {
      {"Upsample", 7, 1, 1, upsample_by_attributes,
       "antialias axes cubic_coeff_a exclude_outside extrapolation_value height_scale keep_aspect_ratio_policy mode "
       "nearest_mode scales width_scale"},
      {"Upsample", 9, 2, 2, upsample,
       "antialias axes cubic_coeff_a exclude_outside extrapolation_value keep_aspect_ratio_policy mode nearest_mode",
       "", 0, "", 10},
      {"Resize", 10, 2, 2, upsample, kResize},
      {"Resize", 11, 1, 4, resize, kResize},
      {"GridSample", 16, 2, 2, grid_sample, "align_corners mode padding_mode"},
      {"ImageDecoder", 20, 1, 1, image_decoder, "pixel_format"},
      {"AffineGrid", 20, 2, 2, affine_grid, "align_corners"},
      {"Col2Im", 18, 3, 3, col2im, "dilations pads strides"},
      {"CenterCropPad", 18, 2, 2, center_crop_pad, "axes"},
      {"DepthToSpace", 1, 1, 1, depth_to_space, "blocksize mode"},
      {"SpaceToDepth", 1, 1, 1, space_to_depth, "blocksize"},
      {"Crop", 1, 1, 1, crop, "border scale"},
      {"ImageScaler", 1, 1, 1, image_scaler, "bias scale"},
  };
}

}  // namespace relaxc::onnx_import
