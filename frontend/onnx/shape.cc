// Tensors from shapes and scalars, and resampling to shapes.
#include <algorithm>
#include <cmath>

#include "frontend/onnx/graph_importer.h"
#include "ops/attributes.h"

namespace relaxc::onnx_import {

namespace {

void check_scale(Node& n, double scale) {
  if (!(scale > 0 && scale <= 1e6)) n.fail("scale {} is not above 0 and at most 1e6", scale);
}

Outputs shape(Node& n) {
  std::vector<Expr> dims = n.shape(0);
  int64_t rank = n.rank(0);
  auto position = [&](const char* name, int64_t otherwise) {
    int64_t at = n.attr_int(name, otherwise);
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  int64_t start = position("start", 0), end = std::max(start, position("end", rank));
  return {n.of(KnownTensor{kInt64, {end - start}, {dims.begin() + start, dims.begin() + end}})};
}
Outputs size(Node& n) { return {n.of(KnownTensor{kInt64, {}, {product(n.shape(0))}})}; }

Tensor tensor_of(const std::vector<double>& values, std::vector<int64_t> shape) {
  return Tensor::of<float>(std::move(shape), kFloat32, {values.begin(), values.end()});
}
Tensor list_of(const std::vector<double>& values) { return tensor_of(values, {static_cast<int64_t>(values.size())}); }
Outputs constant_node(Node& n) {
  std::optional<Tensor> data = n.attr_tensor("value");
  if (!data && n.has_attr("value_int")) data = Tensor::of<int64_t>({}, kInt64, {n.attr_int("value_int", 0)});
  if (!data && n.has_attr("value_float")) data = tensor_of({n.attr_float("value_float", 0)}, {});
  if (!data && n.has_attr("value_floats")) data = list_of(n.attr_floats("value_floats"));
  if (!data && n.has_attr("value_ints")) {
    std::vector<int64_t> values = n.required_ints("value_ints");
    data = Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, kInt64, values);
  }
  if (!data) n.unsupported("a constant that is neither a tensor nor numbers");
  Value value = n.of(constant(*data, n.span()));
  value->contents = contents_of(*data);
  return {value};
}

Expr constant_of_shape(Node& n) {
  Expr fill = n.scalar(0, kFloat32);
  if (auto value = n.attr_tensor("value")) {
    if (value->size() != 1) n.fail("value has {} elements, expected 1", value->size());
    fill = constant(value->reshaped(std::vector<int64_t>{}), n.span());
  }
  std::vector<Expr> dims = n.ints(0);
  for (size_t d = 0; d < dims.size(); ++d) {
    if (auto known = as_int(dims[d]); known && *known < 0) n.fail("shape[{}] is {}", d, *known);
  }
  return n.op("full", {shape_expr(dims), fill});
}

// Returns 0, 1, ... count - 1.
Expr positions_up_to(Node& n, const Expr& count) {
  return n.op("arange", {int_imm(0), count, int_imm(1)}, DTypeAttrs{kInt64});
}
Expr range(Node& n) {
  DType dtype = n.dtype(0);
  if (dtype != n.dtype(1) || dtype != n.dtype(2))
    n.fail("inputs have dtypes {}, {} and {}", to_string(dtype), to_string(n.dtype(1)), to_string(n.dtype(2)));
  if (dtype.is_integral()) {
    Expr start = n.scalar_int(0), end = n.scalar_int(1), step = n.scalar_int(2);
    n.require_equal(select(equal(step, int_imm(0)), int_imm(1), step), step, "a delta of 0");
    return n.op("arange", {start, end, step}, DTypeAttrs{dtype});
  }
  for (size_t i = 0; i < 3; ++i) {
    for (const Expr& dim : n.shape(i)) n.require_equal(dim, int_imm(1), "elements of an input of Range and 1");
  }
  // The count of floats is ceil((end - start) / step), and never below 0.
  Expr start = n.tensor(0), step = n.tensor(2);
  auto a = n.constant(0), b = n.constant(1), s = n.constant(2);
  Expr count = int_imm(0);
  if (a && b && s) {
    double exact = std::ceil((b->as_double(0) - a->as_double(0)) / s->as_double(0));
    if (!(std::abs(exact) < 1e12))
      n.fail("start is {}, limit {} and delta {}: {} elements", a->as_double(0), b->as_double(0), s->as_double(0),
             exact);
    count = int_imm(std::max<int64_t>(0, static_cast<int64_t>(exact)));
  } else {
    Expr steps = n.op("ceil", {n.div(n.sub(n.tensor(1), start), step)});
    count = n.ints_of(n.of(n.cast(n.binary("maximum", steps, n.scalar_like(0, steps)), kInt64))).at(0);
  }
  return n.add(start, n.mul(n.cast(positions_up_to(n, count), dtype), step));
}

Expr eye_like(Node& n) {
  FillAttrs attrs{n.attr_dtype("dtype", n.dtype(0))};
  return n.op("eye", {n.dim(0, 0), n.dim(0, 1), int_imm(n.attr_int("k", 0))}, attrs);
}

// The window is a0 - a1 cos(2 pi i / N) + a2 cos(4 pi i / N), where N is size, or size - 1 for a symmetric window.
Expr window(Node& n) {
  DType dtype = n.attr_dtype("output_datatype", kFloat32);
  bool periodic = n.attr_int("periodic", 1) != 0;
  Expr size = n.scalar_int(0), i = n.cast(positions_up_to(n, size), kFloat32);
  Expr length = n.op("scalar_to_tensor", {n.simplify(periodic ? size : max(size - 1, int_imm(1)))});
  Expr angle = n.div(n.mul(i, n.scalar(2 * 3.14159265358979323846, kFloat32)), n.cast(length, kFloat32));
  bool is_hamming = n.op_type() == "HammingWindow", is_blackman = n.op_type() == "BlackmanWindow";
  double a0 = is_hamming ? 25.0 / 46 : is_blackman ? 0.42 : 0.5, a1 = is_hamming ? 1 - a0 : 0.5;
  Expr result = n.sub(n.scalar(a0, kFloat32), n.mul(n.op("cos", {angle}), n.scalar(a1, kFloat32)));
  if (is_blackman) {
    Expr twice = n.op("cos", {n.mul(angle, n.scalar(2, kFloat32))});
    result = n.add(result, n.mul(twice, n.scalar(0.08, kFloat32)));
  }
  return n.cast(result, dtype);
}

// ---- Resize ---------------------------------------------------------------------------------------------------------

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

// Turns scales in the order of `axes` into one scale per axis of the tensor.
Expr spread_scales(Node& n, const Expr& scales, const std::vector<size_t>& axes, size_t rank) {
  std::vector<Expr> parts(rank, n.reshape(n.scalar(1, kFloat32), {int_imm(1)}));
  for (size_t k = 0; k < axes.size(); ++k) {
    int64_t at = static_cast<int64_t>(k);
    parts[axes[k]] = n.slice(scales, 0, int_imm(at), int_imm(at + 1));
  }
  return n.op("concat", {tuple(parts)}, ConcatAttrs{0});
}

// Computes output sizes floor(size * scale). The run computes them where scale or size are known at run time only.
ResizePlan sizes_from_scales(Node& n, Expr scales, const std::vector<size_t>& axes) {
  std::vector<Expr> dims = n.shape(0), lengths;
  ResizePlan plan{dims, {}, {}};
  auto count = as_int(n.length_of(n.shape_of(scales)));
  if (!count) n.unsupported("a number of scales that is only known at run time");
  if (*count != static_cast<int64_t>(axes.size())) n.fail("{} scales for {} axes", *count, axes.size());
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
  if (!known) plan.scale_tensor = axes.size() == dims.size() ? scales : spread_scales(n, scales, axes, dims.size());
  return plan;
}

// Takes the sizes that the node states for these axes. The policies other than "stretch" scale all axes by one factor.
ResizePlan sizes_as_stated(Node& n, std::vector<Expr> sizes, const std::vector<size_t>& axes) {
  std::vector<Expr> dims = n.shape(0);
  ResizePlan plan{dims, {}, {}};
  std::string policy = n.attr_string("keep_aspect_ratio_policy", "stretch");
  if (sizes.size() != axes.size()) n.fail("{} sizes for {} axes", sizes.size(), axes.size());
  double ratio = 0;
  for (size_t k = 0; k < axes.size() && policy != "stretch"; ++k) {
    auto from = as_int(dims[axes[k]]), to = as_int(sizes[k]);
    if (!from || !to || *from == 0) n.unsupported("attribute 'keep_aspect_ratio_policy' with sizes not known");
    double scale = static_cast<double>(*to) / static_cast<double>(*from);
    ratio = k == 0 ? scale : policy == "not_larger" ? std::min(ratio, scale) : std::max(ratio, scale);
  }
  if (policy != "stretch") plan.scales.emplace(dims.size(), 1.0);
  for (size_t k = 0; k < axes.size(); ++k) {
    plan.sizes[axes[k]] = sizes[k];
    if (!plan.scales) continue;
    check_scale(n, ratio);
    (*plan.scales)[axes[k]] = ratio;
    double size = std::floor(static_cast<double>(*as_int(dims[axes[k]])) * ratio + 0.5);
    plan.sizes[axes[k]] = int_imm(static_cast<int64_t>(size));
  }
  return plan;
}
// Upsample has the scales as attributes before opset 9.
Expr scales_from_attributes(Node& n) {
  size_t rank = n.shape(0).size();
  std::vector<double> given = n.attr_floats("scales");
  if (given.empty() && rank == 4) given = {1, 1, n.attr_float("height_scale", 1), n.attr_float("width_scale", 1)};
  if (given.size() != rank) n.fail("{} scales for rank {}", given.size(), rank);
  return constant(list_of(given));
}
std::vector<size_t> resized_axes(Node& n) {
  std::vector<size_t> axes;
  for (int64_t axis : n.attr_ints("axes").value_or(n.all_axes()))
    axes.push_back(static_cast<size_t>(n.axis(axis, n.rank(0), "axes")));
  return axes;
}
ResizePlan plan_resize(Node& n, bool upsample, const std::vector<size_t>& axes) {
  auto present = [&](size_t i) {
    if (!n.has(i)) return false;
    Type type = n.type(i);
    const std::vector<Expr>* length = known_shape(type);
    return !length || length->empty() || !is_int((*length)[0], 0);
  };
  size_t scales_at = upsample ? 1 : 2;
  if (n.op_type() == "Upsample" && n.opset() < 9) return sizes_from_scales(n, scales_from_attributes(n), axes);
  if (!upsample && present(3)) return sizes_as_stated(n, n.ints(3), axes);
  if (!present(scales_at)) n.fail("neither scales nor sizes are given");
  return sizes_from_scales(n, n.tensor(scales_at), axes);
}
// Gives the operator the region of tf_crop_and_resize: in attrs.roi where it is a constant for all axes, else as two
// more operands, the scales and the region, which are returned.
std::vector<Expr> region_operands(Node& n, const ResizePlan& plan, bool all_axes, ResizeAttrs& attrs) {
  if (!n.has(1)) n.fail("tf_crop_and_resize needs a roi");
  if (auto roi = n.constant(1); roi && all_axes) {
    for (int64_t i = 0; i < roi->size(); ++i) attrs.roi.push_back(roi->as_double(i));
    return {};
  }
  if (!all_axes) n.unsupported("a roi together with axes");
  Expr ones = constant(list_of(std::vector<double>(n.shape(0).size(), 1)));
  return {plan.scale_tensor.value_or(ones), n.tensor(1)};
}

Expr resize(Node& n, const Expr& x) {
  std::vector<Expr> dims = n.shape(0);
  bool upsample = n.op_type() == "Upsample" || n.opset() < 11;
  if (n.attr_int("antialias", 0)) n.unsupported("attribute 'antialias'");
  std::vector<size_t> axes = resized_axes(n);
  ResizePlan plan = plan_resize(n, upsample, axes);
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
  };
  bool crops = attrs.coordinate_transformation_mode == "tf_crop_and_resize";
  for (size_t d = 0; d < dims.size(); ++d) {
    bool unit = plan.scales ? (*plan.scales)[d] == 1 : n.provably_equal(plan.sizes[d], dims[d]);
    if (!unit || crops) attrs.axes.push_back(static_cast<int64_t>(d));
  }
  std::vector<Expr> args = {x, shape_expr(plan.sizes)}, more;
  if (crops) more = region_operands(n, plan, axes.size() == dims.size(), attrs);
  if (more.empty() && plan.scale_tensor) more = {*plan.scale_tensor};
  args.insert(args.end(), more.begin(), more.end());
  return n.op("image.resize", args, attrs);
}

Expr grid_sample(Node& n) {
  std::string mode = n.attr_string("mode", n.opset() < 20 ? "bilinear" : "linear");
  GridSampleAttrs attrs{.method = mode == "linear"  ? "bilinear"
                                  : mode == "cubic" ? "bicubic"
                                                    : mode,
                        .padding_mode = n.attr_string("padding_mode", "zeros"),
                        .align_corners = n.attr_int("align_corners", 0) != 0};
  if (n.rank(0) != 4) n.unsupported("input of rank {}; only rank 4 is supported", n.rank(0));
  return n.op("image.grid_sample", {n.tensor(0), n.transpose(n.tensor(1), {0, 3, 1, 2})}, attrs);
}

}  // namespace

std::vector<ConverterRow> shape_converters() {
  constexpr const char* kResize =
      "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value "
      "keep_aspect_ratio_policy mode nearest_mode";
  return {
      {"Shape", 1, 1, 1, shape, "end start"},
      {"Size", 1, 1, 1, size},
      {"Constant", 1, 0, 0, constant_node, "value value_float value_floats value_int value_ints"},
      {"ConstantOfShape", 9, 1, 1, constant_of_shape, "value"},
      {"Range", 11, 3, 3, range},
      {"EyeLike", 9, 1, 1, eye_like, "dtype k"},
      {"HannWindow", 17, 1, 1, window, "output_datatype periodic"},
      {"HammingWindow", 17, 1, 1, window, "output_datatype periodic"},
      {"BlackmanWindow", 17, 1, 1, window, "output_datatype periodic"},
      {"Upsample", 7, 1, 1, resize,
       "antialias axes cubic_coeff_a exclude_outside extrapolation_value height_scale keep_aspect_ratio_policy mode "
       "nearest_mode scales width_scale"},
      {"Upsample", 9, 2, 2, resize,
       "antialias axes cubic_coeff_a exclude_outside extrapolation_value keep_aspect_ratio_policy mode nearest_mode"},
      {"Resize", 10, 2, 2, resize, kResize},
      {"Resize", 11, 1, 4, resize, kResize},
      {"GridSample", 16, 2, 2, grid_sample, "align_corners mode padding_mode"},
  };
}

}  // namespace relaxc::onnx_import
