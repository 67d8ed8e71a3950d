// Resampling: image.resize2d's general form for any rank (ONNX Resize).
//
// A result element is a weighted sum of taps around a source coordinate, axis by axis. Coordinates are computed in
// float64, so that rounding does not move a nearest neighbour; weights in the data's accumulation dtype.
#include <algorithm>
#include <map>

#include "ir/builder.h"
#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/fold.h"
#include "ops/layouts.h"
#include "ops/ops.h"
#include "ops/reference.h"
#include "ops/taps.h"
#include "ops/window.h"

namespace relaxc {

namespace {

using namespace taps;  // NOLINT: of this file

Type infer_resize(const OpCall& op) {
  ResizeAttrs attrs = op.attrs<ResizeAttrs>();
  size_t rank = op.shape(0).size();
  if (op.shape(1).size() != rank) op.fail("{} sizes for a tensor of rank {}", op.shape(1).size(), rank);
  if (!attrs.scales.empty() && attrs.scales.size() != rank) op.fail("{} scales for rank {}", attrs.scales.size(), rank);
  if (!attrs.roi.empty() && attrs.roi.size() != 2 * rank) op.fail("roi has {} values", attrs.roi.size());
  for (double scale : attrs.scales) {
    if (!(scale > 0)) op.fail("scale {} is not positive", scale);
  }
  for (size_t i = 2; i < op.size(); ++i) {
    const char* what = i == 2 ? "scales" : "roi";
    if (op.rank(i) != 1) op.fail("{} has rank {}, expected 1", what, op.rank(i));
    op.require_equal(op.shape(i)[0], int_imm(static_cast<int64_t>(i == 2 ? rank : 2 * rank)),
                     fmt::format("length of {} and rank of the data", what));
  }
  require_one_of(op, "method", attrs.method, {"nearest", "linear", "cubic"});
  const std::string& mode = attrs.coordinate_transformation_mode;
  require_one_of(op, "coordinate_transformation_mode", mode,
                 {"half_pixel", "pytorch_half_pixel", "half_pixel_symmetric", "align_corners", "asymmetric",
                  "tf_half_pixel_for_nn", "tf_crop_and_resize"});
  if (mode == "tf_crop_and_resize" && attrs.roi.empty() && op.size() < 4) op.fail("tf_crop_and_resize needs a roi");
  require_one_of(op, "rounding_method", attrs.rounding_method,
                 {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "round", "nearly_floor", "nearly_ceil"});
  std::vector<int64_t> axes = normalize_axes(op, attrs.axes, static_cast<int64_t>(rank));
  for (size_t d = 0; d < rank; ++d) {
    if (!contains(axes, static_cast<int64_t>(d)))
      op.require_equal(op.shape(0)[d], op.shape(1)[d], "an axis that is not resized changes its size");
    require_elements(op, op.shape(0)[d], op.shape(1)[d]);
  }
  return tensor_type(op.shape(1), op.dtype(0));
}

class Resize {
 public:
  explicit Resize(const OpCall& op)
      : op_(op), attrs_(op.attrs<ResizeAttrs>()), axes_(normalize_axes(op, attrs_.axes, op.rank(0))) {}

  PrimFuncRef lower() {
    ComputeBuilder b;
    inputs_ = b.inputs_of(op_);
    DType dtype = op_.dtype(0), sum_dtype = dtype == kFloat64 ? kFloat64 : kFloat32;
    if (attrs_.antialias && attrs_.method != "nearest") return lower_antialiased(b, sum_dtype);
    if (attrs_.method != "nearest") return lower_axis_by_axis(b, sum_dtype);
    std::map<int64_t, Buffer> positions = nearest_positions(b);
    return b.finish(
        {b.compute("T_resize", dtype, op_.shape(1), [&](Axes i) { return extrapolated(i, nearest(i, positions)); })});
  }

 private:
  Expr scale(int64_t axis) const {
    if (!attrs_.scales.empty()) return real(attrs_.scales[axis]);
    if (inputs_.size() > 1) return as_real(load(inputs_[1], {int_imm(axis)}));
    return divided(as_real(op_.shape(1)[axis]), as_real(op_.shape(0)[axis]));
  }
  Expr roi(int64_t index) const {
    if (!attrs_.roi.empty()) return real(attrs_.roi[index]);
    return as_real(load(inputs_.at(2), {int_imm(index)}));
  }

  // Returns the coordinate in the input that position i of the output stands for, as the ONNX specification defines it.
  Expr coordinate(int64_t axis, const Expr& i) const {
    const std::string& mode = attrs_.coordinate_transformation_mode;
    Expr x = as_real(i), from = as_real(op_.shape(0)[axis]), to = as_real(op_.shape(1)[axis]);
    // The reference implementation takes the length before rounding where scales are given.
    Expr length = !attrs_.scales.empty() || inputs_.size() > 1 ? scale(axis) * from : to;
    Expr half_pixel = divided(x + real(0.5), scale(axis)) - real(0.5);
    if (mode == "half_pixel") return half_pixel;
    if (mode == "pytorch_half_pixel") return select(op_.shape(1)[axis] > int_imm(1), half_pixel, real(0));
    if (mode == "half_pixel_symmetric") return divided(from, real(2)) * (real(1) - divided(to, length)) + half_pixel;
    if (mode == "align_corners")
      return select(equal(length, real(1)), real(0), divided(x * (from - real(1)), length - real(1)));
    if (mode == "asymmetric") return divided(x, scale(axis));
    if (mode == "tf_half_pixel_for_nn") return divided(x + real(0.5), scale(axis));
    Expr start = roi(axis), end = roi(axis + op_.rank(0)), last = from - real(1);
    Expr inner = start * last + divided(x * (end - start) * last, to - real(1));
    return select(op_.shape(1)[axis] > int_imm(1), inner, real(0.5) * (start + end) * last);
  }

  Expr extrapolated(Axes i, const Expr& value) const {
    if (attrs_.coordinate_transformation_mode != "tf_crop_and_resize") return value;
    Expr inside = bool_imm(true);
    for (int64_t axis : axes_) {
      Expr x = coordinate(axis, i[axis]), last = as_real(op_.shape(0)[axis]) - real(1);
      inside = inside && (x >= real(0) && x <= last);
    }
    return if_then_else(inside, value, scalar_imm(attrs_.extrapolation_value, op_.dtype(0)));
  }

  // A whole-number scale needs no float arithmetic in the common modes.
  std::optional<Expr> whole_number_nearest(int64_t axis, const Expr& i) const {
    auto from = as_int(op_.shape(0)[axis]), to = as_int(op_.shape(1)[axis]);
    double ratio = !attrs_.scales.empty() ? attrs_.scales[axis] : 0;
    if (attrs_.scales.empty() && inputs_.size() == 1 && from && to && *from > 0)
      ratio = static_cast<double>(*to) / static_cast<double>(*from);
    if (ratio < 1 || ratio > 1 << 20 || ratio != static_cast<double>(static_cast<int64_t>(ratio))) return std::nullopt;
    const std::string &mode = attrs_.coordinate_transformation_mode, &rounding = attrs_.rounding_method;
    if ((mode == "asymmetric" && rounding == "floor") || (mode == "half_pixel" && rounding == "round_prefer_floor"))
      return floor_div(i, static_cast<int64_t>(ratio));
    return std::nullopt;
  }
  // Adds a table of the nearest positions along each axis that has no simpler index.
  std::map<int64_t, Buffer> nearest_positions(ComputeBuilder& b) const {
    std::map<int64_t, Buffer> result;
    for (int64_t axis : axes_) {
      if (stays(axis) || whole_number_nearest(axis, int_imm(0))) continue;
      const Expr& dim = op_.shape(0)[axis];
      const DType dtype = position_dtype(dim);
      result.emplace(axis, stored(b, "T_position", dtype, {op_.shape(1)[axis]}, [&](Axes i) {
                       Expr whole = to_whole(attrs_.rounding_method, coordinate(axis, i[0]));
                       return cast_to(clamp_index(cast_to(whole, kInt64), dim), dtype);
                     }));
    }
    return result;
  }
  Expr nearest(Axes i, const std::map<int64_t, Buffer>& positions) const {
    std::vector<Expr> source = i;
    for (int64_t axis : axes_) {
      auto table = positions.find(axis);
      if (table != positions.end()) {
        source[axis] = cast_to(at(table->second, {i[axis]}), kInt64);
      } else if (!stays(axis)) {
        source[axis] = min(*whole_number_nearest(axis, i[axis]), op_.shape(0)[axis] - 1);
      }
    }
    return load(inputs_[0], source);
  }

  // Resamples one axis after the other: each element has few taps, and all axes but one are read in their order. The
  // last axis, along which neighbours lie side by side, comes first where it grows, so that it is done for few
  // elements.
  PrimFuncRef lower_axis_by_axis(ComputeBuilder& b, DType dtype) const {
    std::vector<int64_t> axes = axes_;
    std::erase_if(axes, [&](int64_t axis) { return stays(axis); });
    if (!axes.empty() && grows(axes.back())) std::ranges::reverse(axes);
    Buffer x = inputs_[0];
    std::vector<Expr> shape = op_.shape(0);
    for (size_t k = 0; k + 1 < axes.size(); ++k) {
      shape[axes[k]] = op_.shape(1)[axes[k]];
      const std::vector<TapTable> taps = taps_of(b, axes[k], dtype);
      x = b.compute("T_resized", dtype, shape, [&](Axes i) { return weighted(i, x, axes[k], taps); });
    }
    std::vector<TapTable> taps;
    if (!axes.empty()) taps = taps_of(b, axes.back(), dtype);
    return b.finish({b.compute("T_resize", op_.dtype(0), op_.shape(1), [&](Axes i) {
      Expr value = axes.empty() ? load(x, i) : weighted(i, x, axes.back(), taps);
      return extrapolated(i, cast_to(value, op_.dtype(0)));
    })});
  }
  // Returns whether the elements of an axis are known to stay where they are.
  bool stays(int64_t axis) const {
    const std::string& mode = attrs_.coordinate_transformation_mode;
    const bool is_moved = mode == "tf_half_pixel_for_nn" || mode == "tf_crop_and_resize" || inputs_.size() > 1;
    const bool has_scale = !attrs_.scales.empty() && attrs_.scales[axis] != 1;
    return !is_moved && !has_scale && structural_equal(op_.shape(0)[axis], op_.shape(1)[axis]);
  }
  // Returns whether an axis becomes longer, as far as is known.
  bool grows(int64_t axis) const {
    if (!attrs_.scales.empty()) return attrs_.scales[axis] > 1;
    auto from = as_int(op_.shape(0)[axis]), to = as_int(op_.shape(1)[axis]);
    return !from || !to || *to > *from;
  }

  // Takes averages along one axis after the other.
  PrimFuncRef lower_antialiased(ComputeBuilder& b, DType dtype) const {
    Buffer x = inputs_[0];
    std::vector<Expr> shape = op_.shape(0);
    for (int64_t axis : axes_) {
      shape[axis] = op_.shape(1)[axis];
      x = averaged(b, x, axis, shape, dtype);
    }
    return b.finish({b.compute("T_resize", op_.dtype(0), shape,
                               [&](Axes i) { return extrapolated(i, cast_to(at(x, i), op_.dtype(0))); })});
  }
  // The filter's reach, 1 or 2 elements, grows by the factor by which the axis shrinks. As in ONNX's reference the
  // taps are those around the left neighbour, which a coordinate on an element has too.
  Buffer averaged(ComputeBuilder& b, const Buffer& x, int64_t axis, const std::vector<Expr>& shape, DType dtype) const {
    Buffer out = b.buffer("T_averaged", dtype, shape);
    bool is_linear = attrs_.method == "linear";
    const Expr& dim = op_.shape(0)[axis];
    b.block("T_averaged", shape, {}, [&](Axes i, Axes) {
      LocalScalar sum("sum", dtype), total("total", kFloat64);
      auto number = [](const char* name) { return make_var(name, prim_type(kFloat64)); };
      VarRef factor = number("factor"), place = number("place"), left = number("left"), weight = number("weight");
      VarRef first = make_dim("first"), k = make_dim("k"), position = make_dim("position");
      Expr reach = rounded(ops::kScalarFloor, divided(real(is_linear ? -1 : -2), factor));
      Expr distance = (as_real(first + k) - (place - left)) * factor;
      Expr value = is_linear ? linear_weight(distance) : cubic_weight(distance, attrs_.cubic_alpha);
      if (attrs_.exclude_outside) value = select(is_inside(position, dim), value, real(0));
      Expr element = load(x, with_item(i, axis, clamp_index(position, dim)));
      Stmt tap =
          seq({make(Bind{position, cast_to(left, kInt64) + first + k}), make(Bind{weight, value}),
               sum.set(sum.get() + cast_to(weight, dtype) * cast_to(element, dtype)), total.set(total.get() + weight)});
      Stmt body = seq(
          {sum.declared(), total.declared(), make(Bind{factor, min(scale(axis), real(1))}),
           make(Bind{place, coordinate(axis, i[axis])}), make(Bind{left, rounded(ops::kScalarCeil, place) - real(1)}),
           make(Bind{first, cast_to(reach, kInt64) + 1}), sum.set(zero(dtype)), total.set(real(0)),
           loop(k, int_imm(2) - first * 2, tap), store(out, divided(sum.get(), cast_to(total.get(), dtype)), i)});
      return ComputeBuilder::Bodies{std::nullopt, body};
    });
    return out;
  }

  // The modes of ONNX, and those of Relax: "round" has ties away from zero, and "nearly_floor" and "nearly_ceil" take a
  // coordinate that rounding put just beside a whole number for that number.
  static Expr to_whole(const std::string& how, const Expr& x) {
    constexpr double kNear = 1e-5;
    if (how == "round_prefer_floor") return rounded(ops::kScalarCeil, x - real(0.5));
    if (how == "round_prefer_ceil") return rounded(ops::kScalarFloor, x + real(0.5));
    if (how == "round") return rounded(ops::kScalarRound, x);
    if (how == "nearly_floor") return rounded(ops::kScalarFloor, x + real(kNear));
    if (how == "nearly_ceil") return rounded(ops::kScalarCeil, x - real(kNear));
    return rounded(how == "floor" ? ops::kScalarFloor : ops::kScalarCeil, x);
  }
  // Adds the tables of an axis, one for each tap.
  std::vector<TapTable> taps_of(ComputeBuilder& b, int64_t axis, DType dtype) const {
    const Expr &dim = op_.shape(0)[axis], &size = op_.shape(1)[axis];
    const DType narrow = position_dtype(dim);
    auto tap = [&](Axes i, size_t k) {
      Expr place = coordinate(axis, i[0]);
      std::vector<Tap> taps = attrs_.method == "linear" ? linear_taps(place) : cubic_taps(place, attrs_.cubic_alpha);
      if (attrs_.exclude_outside) normalize(taps, dim);
      return taps[k];
    };
    std::vector<TapTable> result;
    for (size_t k = 0; k < (attrs_.method == "linear" ? 2 : 4); ++k) {
      Buffer position = stored(b, "T_position", narrow, {size},
                               [&](Axes i) { return cast_to(clamp_index(tap(i, k).position, dim), narrow); });
      Buffer weight = stored(b, "T_weight", dtype, {size}, [&](Axes i) { return cast_to(tap(i, k).weight, dtype); });
      result.push_back({position, weight});
    }
    return result;
  }
  // Returns the sum over the taps of one axis.
  static Expr weighted(Axes i, const Buffer& x, int64_t axis, const std::vector<TapTable>& taps) {
    std::optional<Expr> sum;
    for (const TapTable& tap : taps) {
      Expr weight = tap.weight({i[axis]});
      Expr term = weight * cast_to(load(x, with_item(i, axis, tap.position({i[axis]}))), dtype_of(weight));
      sum = sum ? *sum + term : term;
    }
    return *sum;
  }
  // Taps outside of the tensor have no weight, and the weights of the others sum to one.
  static void normalize(std::vector<Tap>& taps, const Expr& dim) {
    Expr total = real(0);
    for (Tap& tap : taps) {
      tap.weight = select(is_inside(tap.position, dim), tap.weight, real(0));
      total = total + tap.weight;
    }
    for (Tap& tap : taps) tap.weight = divided(tap.weight, total);
  }

  const OpCall& op_;
  ResizeAttrs attrs_;
  std::vector<int64_t> axes_;
  std::vector<Buffer> inputs_;
};

// `size` has only the spatial dims. The data may have any layout.
template <int N>
Type infer_resize_images(const OpCall& op) {
  auto attrs = op.attrs<ResizeImageAttrs<N>>();
  Layout layout = read_layout(op, attrs.layout, data_layout_of(N), "layout");
  require_rank(op, 0, layout.rank());
  std::vector<Expr> size = scalar_list(op, 1), shape = layout.to_plain(op.shape(0));
  if (size.size() == 1) size.assign(N, size[0]);
  if (size.size() != N) op.fail("{} sizes for {} spatial dims", size.size(), N);
  std::copy(size.begin(), size.end(), shape.begin() + 2);
  return tensor_type(dims_in(op, layout, shape), attrs.out_dtype.value_or(op.dtype(0)));
}
// The general form of resizing, on images in the plain layout.
template <int N>
Expr decompose_resize_images(const OpCall& op, Builder& b) {
  auto attrs = op.attrs<ResizeImageAttrs<N>>();
  const Layout layout = read_layout(op, attrs.layout, data_layout_of(N), "layout");
  const std::string& mode = attrs.coordinate_transformation_mode;
  std::string rounding = attrs.rounding_method;
  if (rounding.empty()) rounding = mode == "align_corners" ? "round" : "floor";
  if (rounding == "floor" || rounding == "ceil") rounding = "nearly_" + rounding;
  ResizeAttrs general{.axes = int_range(2, N + 2),
                      .method = attrs.method == "nearest_neighbor" ? "nearest" : attrs.method,
                      .coordinate_transformation_mode = mode,
                      .rounding_method = rounding,
                      .cubic_alpha = attrs.cubic_alpha,
                      .exclude_outside = attrs.cubic_exclude != 0,
                      .extrapolation_value = attrs.extrapolation_value};
  if (attrs.roi.size() != 2 * N) op.fail("roi has {} values, expected {}", attrs.roi.size(), 2 * N);
  general.roi = {0, 0};
  general.roi.insert(general.roi.end(), attrs.roi.begin(), attrs.roi.begin() + N);
  general.roi.insert(general.roi.end(), {1, 1});
  general.roi.insert(general.roi.end(), attrs.roi.begin() + N, attrs.roi.end());
  DType dtype = attrs.out_dtype.value_or(op.dtype(0));
  // Interpolated integers are rounded once, to the result's dtype.
  bool is_early = dtype != op.dtype(0) && general.method != "nearest" && dtype.is_float() && !op.dtype(0).is_float();
  Expr x = is_early ? b.op("astype", {op.arg(0)}, DTypeAttrs{dtype}) : op.arg(0);
  std::vector<Expr> shape = layout.to_plain(*known_shape(infer_resize_images<N>(op)));
  Expr result =
      b.op("image.resize", {to_plain_order(x, layout, layout.to_plain(op.shape(0)), b), shape_expr(std::move(shape))},
           general);
  result = to_layout(result, layout, b);
  return tensor_dtype(result.type()) == dtype ? result : b.op("astype", {result}, DTypeAttrs{dtype});
}
template <int N>
OpRow resize_images() {
  auto attrs = with_choices(op_attrs<ResizeImageAttrs<N>>(), "method", {"nearest_neighbor", "linear", "cubic"});
  attrs = with_choices(std::move(attrs), "coordinate_transformation_mode",
                       {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn",
                        "tf_crop_and_resize"});
  attrs = with_choices(std::move(attrs), "rounding_method",
                       {"round", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil", ""});
  const OpInput size{.name = "size",
                     .doc = "the new spatial dims",
                     .arity = OpInput::Arity::kOne,
                     .form = OpInput::Form::kShape,
                     .items = N};
  return {.name = fmt::format("relax.image.resize{}d", N),
          .doc = "images resampled to a size",
          .inputs = {{"data", "the images"}, size},
          .attrs = std::move(attrs),
          .infer = infer_resize_images<N>,
          .infer_partial = infer_unknown,
          .decompose = decompose_resize_images<N>};
}

Type infer_pixel_shuffle(const OpCall& op) {
  std::vector<Expr> shape = op.shape(0);
  int64_t factor = op.attrs<PixelShuffleAttrs>().upscale_factor;
  if (shape.size() < 3) op.fail("data has rank {}, expected at least 3", shape.size());
  if (factor < 1 || factor > 1 << 15) op.fail("upscale_factor is {}, expected at least 1", factor);
  size_t channel = shape.size() - 3;
  op.require_multiple(shape[channel], factor * factor, "upscale_factor^2 does not divide the channels");
  shape[channel] = simplify(floor_div(shape[channel], factor * factor));
  for (size_t d = channel + 1; d < shape.size(); ++d) shape[d] = simplify(shape[d] * factor);
  return tensor_type(std::move(shape), op.dtype(0));
}

Expr pixel_shuffle_element(const OpCall& op, Inputs x, Axes i) {
  int64_t factor = op.attrs<PixelShuffleAttrs>().upscale_factor;
  size_t channel = i.size() - 3;
  std::vector<Expr> source = i;
  for (size_t d = channel + 1; d < i.size(); ++d) {
    source[channel] = source[channel] * factor + floor_mod(i[d], factor);
    source[d] = floor_div(i[d], factor);
  }
  return load(x[0], source);
}
reference::Tensors shuffled(const ReferenceCall& c) {
  int64_t factor = c.attrs<PixelShuffleAttrs>().upscale_factor;
  reference::Index shape = c.x[0].shape();
  size_t channel = shape.size() - 3;
  shape[channel] /= factor * factor;
  for (size_t d : {channel + 1, channel + 2}) shape[d] *= factor;
  return {reference::moved(c.x[0], shape, [&](reference::Index i) {
    int64_t row = i[channel + 1] % factor, column = i[channel + 2] % factor;
    i[channel] = i[channel] * factor * factor + row * factor + column;
    for (size_t d : {channel + 1, channel + 2}) i[d] /= factor;
    return i;
  })};
}

}  // namespace

std::vector<OpRow> image_ops() {
  return {
      {.name = "relax.image.resize",
       .doc = "the tensor resampled to a shape; any rank, ONNX's coordinate and rounding modes",
       .inputs = {{"data", "the tensor"},
                  {"shape", "the new dims"},
                  {"scale_tensor", "a float per axis, when the attribute scales is empty", OpInput::Arity::kOptional},
                  {"roi_tensor", "starts and ends for tf_crop_and_resize, when the attribute roi is empty",
                   OpInput::Arity::kOptional}},
       .attrs = op_attrs<ResizeAttrs>(),
       .pattern = OpPattern::kInjective,
       .infer = infer_resize,
       .legalize = [](const OpCall& op) { return Resize(op).lower(); },
       .layouts = layout_of_resize},
      resize_images<2>(),
      resize_images<3>(),
      by_element({.name = "relax.nn.pixel_shuffle",
                  .doc = "channels moved into the pixels: [C * r^2, h, w] to [C, h * r, w * r]",
                  .inputs = {{"data", "the tensor"}},
                  .attrs = op_attrs<PixelShuffleAttrs>(),
                  .infer = infer_pixel_shuffle,
                  .reference = shuffled},
                 pixel_shuffle_element),
  };
}

}  // namespace relaxc
