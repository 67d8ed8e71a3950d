// Grids of coordinates: images of any number of spatial dims sampled at them, and grids of affine maps.
#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/fold.h"
#include "ops/ops.h"
#include "ops/taps.h"
#include "ops/window.h"

namespace relaxc {

namespace {

using namespace taps;  // NOLINT: of this file

// data is [N, C, spatial...]; grid is [N, k, ...] with k coordinates in [-1, 1], that of the last spatial dim first.
Type infer_grid_sample(const OpCall& op) {
  GridSampleAttrs attrs = op.attrs<GridSampleAttrs>();
  const std::vector<Expr>&data = op.shape(0), &grid = op.shape(1);
  if (data.size() != grid.size()) op.fail("data has rank {} and the grid {}", data.size(), grid.size());
  if (data.size() < 3 || data.size() > 5) op.unsupported("data of rank {}, expected 3 to 5", data.size());
  if (!op.dtype(0).is_float()) op.unsupported("data of {}", to_string(op.dtype(0)));
  int spatial = static_cast<int>(data.size()) - 2;
  op.require_equal(data[0], grid[0], "batch sizes of data and grid");
  op.require_equal(grid[1], int_imm(spatial), "coordinates of the grid");
  for (size_t d = 2; d < data.size(); ++d) {
    Expr results = product({grid.begin() + 2, grid.end()});
    require_elements(op, data[d], results);
  }
  require_one_of(op, "method", attrs.method, {"bilinear", "nearest", "bicubic"});
  require_one_of(op, "padding_mode", attrs.padding_mode, {"zeros", "border", "reflection"});
  // The default layout stands for that of any rank.
  if (attrs.layout != GridSampleAttrs().layout) require_layout(op, attrs.layout, data_layout_of(spatial), "layout");
  return tensor_type(followed_by({data[0], data[1]}, {grid.begin() + 2, grid.end()}), op.dtype(0));
}
// Samples an image along one axis. The grid's coordinates run from -1 to 1 over the axis. Where ONNX's text leaves a
// choice, torch and ONNX Runtime decide where they agree, and else ONNX's test data: the nearest pixel of a coordinate
// halfway between two is the even one in planes, and the one away from 0 in volumes, as torch had it.
class GridAxis {
 public:
  GridAxis(const GridSampleAttrs& attrs, const Expr& dim, int64_t axes) : attrs_(attrs), dim_(dim), axes_(axes) {}

  // Returns the coordinate in the image, in pixels.
  Expr coordinate(const Expr& grid) const {
    Expr shifted = as_real(grid) + real(1), length = as_real(dim_);
    Expr x = attrs_.align_corners ? divided(shifted, real(2)) * (length - real(1))
                                  : divided(shifted * length - real(1), real(2));
    if (attrs_.method == "nearest") x = nearest(x);
    // Cubic taps lie around the coordinate itself: beyond the border each reads the pixel nearest to it.
    if (attrs_.padding_mode == "border" && attrs_.method != "bicubic") return max(min(x, length - real(1)), real(0));
    return attrs_.padding_mode == "reflection" ? reflected(x) : x;
  }
  std::vector<Tap> taps(const Expr& x) const {
    if (attrs_.method == "nearest") return {{cast_to(nearest(x), kInt64), real(1)}};
    return attrs_.method == "bilinear" ? linear_taps(x) : cubic_taps(x, -0.75);
  }
  Expr pixel(const Tap& tap) const {
    if (attrs_.padding_mode != "reflection") return clamp_index(tap.position, dim_);
    return clamp_index(cast_to(rounded(ops::kNearbyint, reflected(as_real(tap.position))), kInt64), dim_);
  }
  // Returns whether the tap counts. Beyond the borders lie zeros, or pixels that padding_mode repeats.
  Expr counts(const Tap& tap) const {
    return attrs_.padding_mode == "zeros" ? is_inside(tap.position, dim_) : bool_imm(true);
  }

 private:
  Expr nearest(const Expr& x) const {
    if (axes_ != 3) return rounded(ops::kNearbyint, x);
    Expr size = rounded(ops::kScalarFloor, max(x, real(0) - x) + real(0.5));
    return select(x < real(0), real(0) - size, size);
  }
  // Reflects x at the borders of the pixels (at their centers with align_corners).
  Expr reflected(const Expr& x) const {
    Expr low = real(attrs_.align_corners ? 0 : -0.5);
    Expr range = attrs_.align_corners ? as_real(dim_) - real(1) : as_real(dim_);
    Expr period = real(2) * range, offset = x - low;
    Expr phase = offset - rounded(ops::kScalarFloor, divided(offset, period)) * period;
    Expr inside = low + select(phase <= range, phase, period - phase);
    return attrs_.align_corners ? select(range > real(0), inside, low) : inside;
  }
  const GridSampleAttrs& attrs_;
  Expr dim_;
  int64_t axes_;
};
// The program that samples an image. Where the taps lie and what they count is computed once for all channels.
class GridSample {
 public:
  explicit GridSample(const OpCall& op)
      : op_(op), attrs_(op.attrs<GridSampleAttrs>()), result_(*known_shape(infer_grid_sample(op))) {}

  PrimFuncRef lower() {
    auto [b, x] = OpProgram(op_);
    for (int64_t d = 0; d < op_.rank(0) - 2; ++d) axes_.push_back(taps_of(b, x[1], d));
    if (!has_channel_lanes()) {
      return b.finish({b.compute("T_grid_sample", op_.dtype(0), result_, [&](Axes i) {
        return sampled(without_item(i, 1), [&](std::vector<Expr> pixel) {
          pixel.insert(pixel.begin(), i.begin(), i.begin() + 2);
          return load(x[0], pixel);
        });
      })});
    }
    Buffer pixels = stored(b, "T_pixels", op_.dtype(0), channels_last(op_.shape(0)),
                           [&](Axes i) { return load(x[0], channels_second(i)); });
    Buffer samples = stored(b, "T_samples", op_.dtype(0), channels_last(result_), [&](Axes i) {
      return sampled({i.begin(), i.end() - 1}, [&](std::vector<Expr> pixel) {
        pixel.insert(pixel.begin(), i[0]);
        pixel.push_back(i.back());
        return load(pixels, pixel);
      });
    });
    return b.finish(
        {b.compute("T_grid_sample", op_.dtype(0), result_, [&](Axes i) { return load(samples, channels_last(i)); })});
  }

 private:
  // Returns whether vectors run along the channels, which takes copies with the channels last: the pixels of one
  // channel would have to be gathered.
  bool has_channel_lanes() const {
    constexpr int64_t kFewestChannels = 8;
    return as_int(op_.shape(0)[1]).value_or(0) >= kFewestChannels;
  }
  static std::vector<Expr> channels_last(const std::vector<Expr>& i) { return followed_by(without_item(i, 1), {i[1]}); }
  static std::vector<Expr> channels_second(const std::vector<Expr>& i) {
    return with_new_item({i.begin(), i.end() - 1}, 1, i.back());
  }

  // Adds the tables of the taps along a spatial dim. A tap that does not count has no position: -1.
  std::vector<TapTable> taps_of(ComputeBuilder& b, const Buffer& grid, int64_t d) const {
    const int64_t spatial = op_.rank(0) - 2;
    const Expr& dim = op_.shape(0)[static_cast<size_t>(d) + 2];
    const GridAxis axis(attrs_, dim, spatial);
    const DType narrow = position_dtype(dim), dtype = accumulation_dtype(op_.dtype(0));
    const std::vector<Expr> places = without_item(result_, 1);
    Buffer coordinates = stored(b, "T_coordinate", kFloat64, places, [&](Axes i) {
      return axis.coordinate(load(grid, with_new_item(i, 1, int_imm(spatial - 1 - d))));
    });
    std::vector<TapTable> result;
    const size_t count = axis.taps(real(0)).size();
    for (size_t k = 0; k < count; ++k) {
      auto tap = [&](Axes i) { return axis.taps(at(coordinates, i))[k]; };
      Buffer positions = stored(b, "T_position", narrow, places, [&](Axes i) {
        return cast_to(select(axis.counts(tap(i)), axis.pixel(tap(i)), int_imm(-1)), narrow);
      });
      Buffer weights = stored(b, "T_weight", dtype, places, [&](Axes i) { return cast_to(tap(i).weight, dtype); });
      result.push_back({positions, weights});
    }
    return result;
  }

  // Returns the sum over all taps of a place; `pixel` gives what lies at a position in each spatial dim.
  Expr sampled(const std::vector<Expr>& place, const std::function<Expr(std::vector<Expr>)>& pixel) const {
    std::vector<Expr> position;
    return cast_to(sum_of_taps(place, pixel, position, std::nullopt), op_.dtype(0));
  }
  Expr sum_of_taps(const std::vector<Expr>& place, const std::function<Expr(std::vector<Expr>)>& pixel,
                   std::vector<Expr>& position, const std::optional<Expr>& least) const {
    const DType dtype = accumulation_dtype(op_.dtype(0));
    if (position.size() == axes_.size()) {
      Expr value = cast_to(pixel(position), dtype);
      return least ? select(*least >= int_imm(0), value, zero(dtype)) : value;
    }
    std::optional<Expr> sum;
    for (const TapTable& tap : axes_[position.size()]) {
      Expr at = tap.position(place);
      std::optional<Expr> lower = least;
      if (attrs_.padding_mode == "zeros") lower = least ? min(*least, at) : at;
      position.push_back(lower ? max(at, int_imm(0)) : at);
      Expr term = tap.weight(place) * sum_of_taps(place, pixel, position, lower);
      position.pop_back();
      sum = sum ? *sum + term : term;
    }
    return *sum;
  }

  const OpCall& op_;
  GridSampleAttrs attrs_;
  std::vector<Expr> result_;
  std::vector<std::vector<TapTable>> axes_;  // of the spatial dims
};

Type infer_affine_grid(const OpCall& op) {
  require_rank(op, 0, 3);
  std::vector<Expr> size = scalar_list(op, 1);
  auto spatial = static_cast<int64_t>(size.size());
  if (spatial != 2 && spatial != 3) op.fail("{} sizes, expected 2 or 3", spatial);
  op.require_equal(op.shape(0)[1], int_imm(spatial), "rows of the map");
  op.require_equal(op.shape(0)[2], int_imm(spatial + 1), "columns of the map");
  return tensor_type(followed_by({op.shape(0)[0], int_imm(spatial)}, size), op.dtype(0));
}
// The grid's coordinates run from -1 to 1 over the centers of the first and last pixel, or over their borders.
Expr affine_grid_element(const OpCall& op, Inputs x, Axes i) {
  DType dtype = accumulation_dtype(op.dtype(0));
  bool at_centers = op.attrs<AffineGridAttrs>().align_corners;
  std::vector<Expr> size = scalar_list(op, 1);
  auto coordinate = [&](size_t d) {
    Expr length = cast_to(size[d], dtype), position = cast_to(i[d + 2], dtype), unit = one(dtype);
    Expr twice = position * scalar_imm(2, dtype);
    if (!at_centers) return divided(twice + unit, length) - unit;
    return select(size[d] > int_imm(1), divided(twice, length - unit) - unit, zero(dtype));
  };
  auto factor = [&](size_t k) { return cast_to(load(x[0], {i[0], i[1], int_imm(static_cast<int64_t>(k))}), dtype); };
  Expr sum = factor(0) * coordinate(size.size() - 1);
  for (size_t k = 1; k < size.size(); ++k) sum = sum + factor(k) * coordinate(size.size() - 1 - k);
  return cast_to(sum + factor(size.size()), op.dtype(0));
}

}  // namespace

std::vector<OpRow> grid_ops() {
  return {
      by_element({.name = "relax.image.affine_grid",
                  .doc = "the sampling grid of an affine map",
                  .inputs = {{"data", "[N, 2, 3], or [N, 3, 4]"}, {"size", "h, w, or d, h, w"}},
                  .attrs = op_attrs<AffineGridAttrs>(),
                  .infer = infer_affine_grid},
                 affine_grid_element),
      {.name = "relax.image.grid_sample",
       .doc = "an image sampled at the coordinates of a grid",
       .inputs = {{"data", "[N, C, H, W], one spatial dim or three"},
                  {"grid", "[N, 2, h, w]: x and y in [-1, 1]; a coordinate per spatial dim, the last first"}},
       .attrs = op_attrs<GridSampleAttrs>(),
       .pattern = OpPattern::kInjective,
       .infer = infer_grid_sample,
       .legalize = [](const OpCall& op) { return GridSample(op).lower(); }},
  };
}

}  // namespace relaxc
