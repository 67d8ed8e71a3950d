// Detection: decoding of boxes, pooling of regions of interest. Suppression of boxes is in suppression.cc.
#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/fold.h"
#include "ops/ops.h"
#include "ops/window.h"

namespace relaxc {

namespace {

Type infer_multibox(const OpCall& op) {
  require_ranks(op, {3, 2, 3});
  require_same_dtype(op, 0, 1);
  require_same_dtype(op, 0, 2);
  const std::vector<Expr>& scores = op.shape(0);
  op.require_equal(scores[0], op.shape(1)[0], "batch sizes of cls_pred and loc_pred");
  op.require_equal(simplify(scores[2] * 4), op.shape(1)[1], "four encodings per anchor");
  op.require_equal(op.shape(2)[1], scores[2], "numbers of anchors and scores");
  op.require_equal(op.shape(2)[2], int_imm(4), "coordinates of an anchor");
  return tuple_type({tensor_type({scores[0], scores[2], int_imm(4)}, op.dtype(0)), tensor_type(scores, op.dtype(0))});
}

// Decodes boxes as TFLite's detection does: their centers and sizes are relative to an anchor's. The scores are a
// softmax over the classes, without those below the threshold; class 0 is the background.
PrimFuncRef lower_multibox(const OpCall& op) {
  MultiboxAttrs attrs = op.attrs<MultiboxAttrs>();
  if (attrs.variances.size() != 4) op.fail("variances has {} values, expected 4", attrs.variances.size());
  auto [b, x] = OpProgram(op);
  const std::vector<Expr>& shape = op.shape(0);
  DType dtype = accumulation_dtype(op.dtype(0));
  auto number = [&](double value) { return scalar_imm(value, dtype); };
  // Returns a border of the box along an axis: 0 is x, 1 is y; `side` is -1 or 1.
  auto border = [&](Axes i, int64_t axis, double side) {
    auto anchor = [&](int64_t k) { return cast_to(load(x[2], {int_imm(0), i[1], int_imm(k)}), dtype); };
    auto code = [&](int64_t k) {
      Expr value = cast_to(load(x[1], {i[0], i[1] * 4 + k}), dtype);
      return value * number(attrs.variances[static_cast<size_t>(k)]);
    };
    Expr size = anchor(axis + 2) - anchor(axis), center = (anchor(axis) + anchor(axis + 2)) * number(0.5);
    Expr half = intrinsic("tir.exp", {code(axis + 2)}, dtype) * size * number(0.5 * side);
    Expr place = code(axis) * size + center + half;
    return attrs.clip ? max(min(place, number(1)), number(0)) : place;
  };
  Buffer boxes = b.compute("T_boxes", op.dtype(0), {shape[0], shape[2], int_imm(4)}, [&](Axes i) {
    auto is = [&](int64_t k) { return equal(i[2], int_imm(k)); };
    Expr last = select(is(2), border(i, 1, 1), border(i, 0, 1));
    return cast_to(select(is(0), border(i, 1, -1), select(is(1), border(i, 0, -1), last)), op.dtype(0));
  });
  AxisFold classes = over_axes(shape, {1});
  auto score = [&](Axes i) { return cast_to(at(x[0], i), dtype); };
  Buffer most =
      fold(b, "T_largest", dtype, classes, lowest(dtype), combine_max, [&](Axes, Axes i) { return score(i); });
  auto power = [&](Axes i) { return intrinsic("tir.exp", {score(i) - load(most, {i[0], i[2]})}, dtype); };
  Buffer sum = fold(b, "T_sum", dtype, classes, zero(dtype), combine_sum, [&](Axes, Axes i) { return power(i); });
  Buffer scores = b.compute("T_scores", op.dtype(0), shape, [&](Axes i) {
    Expr value = attrs.apply_softmax ? binary(BinaryOp::kDiv, power(i), load(sum, {i[0], i[2]})) : score(i);
    Expr counts = value >= number(attrs.threshold);
    if (!attrs.keep_background) counts = counts && i[1] > int_imm(0);
    return cast_to(select(counts, value, number(0)), op.dtype(0));
  });
  return b.finish({boxes, scores});
}

// rois are [k, 5]: the image, then four coordinates.
template <class A>
Type infer_roi(const OpCall& op) {
  A attrs = op.attrs<A>();
  Layout layout = read_layout(op, attrs.layout, A().layout, "layout");
  require_ranks(op, {layout.rank(), 2});
  require_same_dtype(op, 0, 1);
  op.require_equal(op.shape(1)[1], int_imm(5), "columns of rois");
  if (!attrs.pooled_size) op.fail("argument 'pooled_size' is missing");
  std::vector<int64_t> size = per_dim(op, *attrs.pooled_size, 2, "pooled_size", 1);
  std::vector<Expr> shape = layout.to_plain(op.shape(0));
  return tensor_type(dims_in(op, layout, {op.shape(1)[0], shape[1], int_imm(size[0]), int_imm(size[1])}), op.dtype(0));
}

// What both poolings know of a region: the images, its row, and where its corners are in the images.
struct Region {
  const OpCall& op;
  Layout layout;
  Buffer data, rois;
  std::vector<Expr> shape;    // of the images, in the plain order
  std::vector<int64_t> size;  // of the result
  double scale;
  DType dtype;  // in which coordinates and sums are

  template <class A>
  Region(const OpCall& call, Inputs x, const A& attrs)
      : op(call),
        layout(read_layout(call, attrs.layout, A().layout, "layout")),
        data(x[0]),
        rois(x[1]),
        shape(layout.to_plain(call.shape(0))),
        size(per_dim(call, *attrs.pooled_size, 2, "pooled_size", 1)),
        scale(attrs.spatial_scale),
        dtype(accumulation_dtype(call.dtype(0))) {}
  Expr number(double value) const { return scalar_imm(value, dtype); }
  Expr image(const Expr& region) const { return cast_to(load(rois, {region, int_imm(0)}), kInt64); }
  Stmt check(const Expr& region) const {
    Expr index = image(region);
    return make(Assert{int_imm(0) <= index && index < shape[0], {op.name() + ": a region's image is out of range"}});
  }
  // Returns where the region begins or ends along axis 0, y, or 1, x.
  Expr corner(const Expr& region, size_t axis, bool is_end) const {
    auto column = static_cast<int64_t>((axis == 0 ? 2 : 1) + (is_end ? 2 : 0));
    return cast_to(load(rois, {region, int_imm(column)}), dtype) * number(scale);
  }
  Expr pixel(Axes i, const Expr& y, const Expr& x) const {
    std::vector<Expr> plain = {image(i[0]), i[1], y, x};
    return cast_to(load(data, layout.from_plain_index(plain, Analyzer())), dtype);
  }
  Expr whole(OpName how, const Expr& x) const { return cast_to(intrinsic(how, {x}, dtype), kInt64); }
  // Makes the program of one block, whose body computes the result's element for its plain indices.
  PrimFuncRef program(ComputeBuilder& b, const char* name, const Type& result,
                      const std::function<Stmt(Axes i, const std::function<Stmt(const Expr&)>& give)>& body) const {
    Buffer out = b.buffer(name, op.dtype(0), *known_shape(result));
    b.block(name, *known_shape(result), {}, [&](Axes axes, Axes) {
      std::vector<Expr> i = layout.to_plain_index(axes);
      auto give = [&](const Expr& value) { return store(out, cast_to(value, op.dtype(0)), axes); };
      return ComputeBuilder::Bodies{std::nullopt, seq({check(i[0]), body(i, give)})};
    });
    return b.finish({out});
  }
};

// Pooling of regions by few samples in each bin (lower_roi_align), whose number is known, for images of many channels:
// vectors run along the channels of a copy that has them last, and where samples lie is computed once for all of them.
class RoiAlignByChannel {
 public:
  static bool fits(const OpCall& op, const RoiAlignAttrs& attrs) {
    constexpr int64_t kMostSamples = 2, kFewestChannels = 8;
    bool is_plain = attrs.layout == RoiAlignAttrs().layout && op.rank(0) == 4;
    return is_plain && attrs.sample_ratio >= 1 && attrs.sample_ratio <= kMostSamples &&
           as_int(op.shape(0)[1]).value_or(0) >= kFewestChannels;
  }
  RoiAlignByChannel(const OpCall& op, const RoiAlignAttrs& attrs)
      : op_(op), attrs_(attrs), program_(op), region_(op, program_.inputs, attrs) {}

  PrimFuncRef lower() {
    ComputeBuilder& b = program_.builder;
    const Expr &regions = op_.shape(1)[0], &channels = region_.shape[1];
    images_ = b.buffer("T_image", kInt64, {regions});
    b.block("T_image", {regions}, {}, [&](Axes i, Axes) {
      Stmt body = seq({region_.check(i[0]), store(*images_, region_.image(i[0]), i)});
      return ComputeBuilder::Bodies{std::nullopt, body};
    });
    for (size_t d : {0, 1}) {
      for (int64_t k = 0; k < attrs_.sample_ratio; ++k) samples_[d].push_back(sample(b, d, k));
    }
    pixels_ = stored(b, "T_pixels", op_.dtype(0), {region_.shape[0], region_.shape[2], region_.shape[3], channels},
                     [&](Axes i) { return load(region_.data, {i[0], i[3], i[1], i[2]}); });
    std::vector<Expr> result = *known_shape(infer_roi<RoiAlignAttrs>(op_));
    Buffer bins = stored(b, "T_bins", op_.dtype(0), {result[0], result[2], result[3], result[1]},
                         [&](Axes i) { return cast_to(bin(i), op_.dtype(0)); });
    return b.finish(
        {b.compute("T_roi_align", op_.dtype(0), result, [&](Axes i) { return load(bins, {i[0], i[2], i[3], i[1]}); })});
  }

 private:
  // Where a sample of each bin lies along an axis: its lower pixel, -1 outside of the image, and how far behind it.
  struct Sample {
    Buffer low, fraction;
  };
  Sample sample(ComputeBuilder& b, size_t d, int64_t k) const {
    const Expr& dim = region_.shape[d + 2];
    const std::vector<Expr> places = {op_.shape(1)[0], int_imm(region_.size[d])};
    auto place = [&](Axes i) {
      Expr begin = region_.corner(i[0], d, false), length = region_.corner(i[0], d, true) - begin;
      if (!attrs_.aligned) length = max(length, region_.number(1));
      Expr size = binary(BinaryOp::kDiv, length, region_.number(static_cast<double>(region_.size[d])));
      Expr inner = region_.number(static_cast<double>(k) + 0.5) * size;
      Expr samples = region_.number(static_cast<double>(attrs_.sample_ratio));
      return begin + cast_to(i[1], region_.dtype) * size + binary(BinaryOp::kDiv, inner, samples);
    };
    auto inside = [&](const Expr& at) { return min(max(at, region_.number(0)), cast_to(dim - 1, region_.dtype)); };
    Buffer low = stored(b, "T_low", kInt64, places, [&](Axes i) {
      Expr at = place(i);
      Expr is_outside = at < region_.number(-1) || at > cast_to(dim, region_.dtype);
      return select(is_outside, int_imm(-1), max(region_.whole(ops::kScalarFloor, inside(at)), int_imm(0)));
    });
    Buffer fraction = stored(b, "T_fraction", region_.dtype, places, [&](Axes i) {
      return inside(place(i)) - cast_to(max(at(low, i), int_imm(0)), region_.dtype);
    });
    return {low, fraction};
  }
  // Returns the value of a bin, given by region, row, column and channel.
  Expr bin(Axes i) const {
    const bool is_max = attrs_.mode != "avg";
    std::optional<Expr> all;
    for (const Sample& y : samples_[0]) {
      for (const Sample& x : samples_[1]) {
        Expr value = sampled(i, y, x);
        all = !all ? value : is_max ? max(*all, value) : *all + value;
      }
    }
    if (is_max) return *all;
    const double count = static_cast<double>(attrs_.sample_ratio * attrs_.sample_ratio);
    return binary(BinaryOp::kDiv, *all, region_.number(count));
  }
  Expr sampled(Axes i, const Sample& y, const Sample& x) const {
    std::vector<Expr> place[] = {{i[0], i[1]}, {i[0], i[2]}};
    Expr low[] = {at(y.low, place[0]), at(x.low, place[1])};
    Expr down = at(y.fraction, place[0]), right = at(x.fraction, place[1]), whole = region_.number(1);
    auto weighted = [&](bool is_lower, bool is_right) {
      auto pixel = [&](size_t d, bool is_next) {
        Expr first = max(low[d], int_imm(0));
        return is_next ? min(first + 1, region_.shape[d + 2] - 1) : first;
      };
      Expr element = load(*pixels_, {load(*images_, {i[0]}), pixel(0, is_lower), pixel(1, is_right), i[3]});
      return cast_to(element, region_.dtype) * (is_right ? right : whole - right);
    };
    Expr up = whole - down, value = region_.number(0);
    if (attrs_.mode == "corner_max") {
      value = max(max(weighted(false, false) * up, weighted(false, true) * up),
                  max(weighted(true, false) * down, weighted(true, true) * down));
    } else {
      value =
          (weighted(false, false) + weighted(false, true)) * up + (weighted(true, false) + weighted(true, true)) * down;
    }
    Expr is_empty = min(low[0], low[1]) < int_imm(0) || !has_elements({region_.shape[2], region_.shape[3]});
    return if_then_else(is_empty, region_.number(0), value);
  }

  const OpCall& op_;
  RoiAlignAttrs attrs_;
  OpProgram program_;
  Region region_;
  std::vector<Sample> samples_[2];         // of a bin along y and x
  std::optional<Buffer> images_, pixels_;  // the image of each region, and the copy
};

// Averages (or takes the largest of) samples on a grid in each bin. A sample is interpolated between the four pixels
// around it; one farther than a pixel outside of the image is 0. (Mask R-CNN, He et al., 2017) The mode "corner_max" is
// ONNX's maximum: over the four pixels of all samples, each times its weight.
PrimFuncRef lower_roi_align(const OpCall& op) {
  RoiAlignAttrs attrs = op.attrs<RoiAlignAttrs>();
  if (RoiAlignByChannel::fits(op, attrs)) return RoiAlignByChannel(op, attrs).lower();
  auto [b, x] = OpProgram(op);
  Region region(op, x, attrs);
  bool is_max = attrs.mode != "avg", of_corners = attrs.mode == "corner_max";
  return region.program(b, "T_roi_align", infer_roi<RoiAlignAttrs>(op), [&](Axes i, const auto& give) {
    LocalScalar sum("sum", region.dtype);
    VarRef steps[] = {make_dim("steps_y"), make_dim("steps_x")}, k[] = {make_dim("y"), make_dim("x")};
    std::vector<Stmt> body;
    Expr is_outside = bool_imm(false);
    std::vector<Expr> low, high, fraction;
    for (size_t d : {0, 1}) {
      Expr begin = region.corner(i[0], d, false), length = region.corner(i[0], d, true) - begin;
      if (!attrs.aligned) length = max(length, region.number(1));
      Expr bin = binary(BinaryOp::kDiv, length, region.number(static_cast<double>(region.size[d])));
      Expr count = attrs.sample_ratio > 0 ? int_imm(attrs.sample_ratio) : region.whole(ops::kScalarCeil, bin);
      body.push_back(make(Bind{steps[d], max(count, int_imm(0))}));
      Expr inner = (cast_to(k[d], region.dtype) + region.number(0.5)) * bin;
      Expr place = begin + cast_to(i[d + 2], region.dtype) * bin +
                   binary(BinaryOp::kDiv, inner, cast_to(steps[d], region.dtype));
      const Expr& dim = region.shape[d + 2];
      is_outside = is_outside || place < region.number(-1) || place > cast_to(dim, region.dtype);
      Expr inside = min(max(place, region.number(0)), cast_to(dim - 1, region.dtype));
      low.push_back(max(region.whole(ops::kScalarFloor, inside), int_imm(0)));
      high.push_back(min(low[d] + 1, dim - 1));
      fraction.push_back(inside - cast_to(low[d], region.dtype));
    }
    auto row = [&](const Expr& y) {
      Expr left = region.pixel(i, y, low[1]), right = region.pixel(i, y, high[1]);
      return std::pair{left * (region.number(1) - fraction[1]), right * fraction[1]};
    };
    auto [upper_left, upper_right] = row(low[0]);
    auto [lower_left, lower_right] = row(high[0]);
    Expr up = region.number(1) - fraction[0], down = fraction[0];
    Expr value = of_corners ? max(max(upper_left * up, upper_right * up), max(lower_left * down, lower_right * down))
                            : (upper_left + upper_right) * up + (lower_left + lower_right) * down;
    Expr is_empty = is_outside || !has_elements({region.shape[2], region.shape[3]});
    Expr sample = if_then_else(is_empty, region.number(0), value);
    Stmt step = sum.set(is_max ? max(sum.get(), sample) : sum.get() + sample);
    Expr count = cast_to(steps[0] * steps[1], region.dtype);
    for (const Stmt& stmt : std::vector<Stmt>{
             sum.declared(), sum.set(is_max ? lowest(region.dtype) : region.number(0)),
             loop(k[0], steps[0], loop(k[1], steps[1], step)),
             give(if_then_else(count > region.number(0), is_max ? sum.get() : binary(BinaryOp::kDiv, sum.get(), count),
                               region.number(0)))})
      body.push_back(stmt);
    return seq(body);
  });
}
// Takes the largest pixel of each bin, whose borders are rounded outward; 0 for a bin outside of the image. (Fast
// R-CNN, Girshick, 2015)
PrimFuncRef lower_roi_pool(const OpCall& op) {
  auto [b, x] = OpProgram(op);
  Region region(op, x, op.attrs<RoiPoolAttrs>());
  return region.program(b, "T_roi_pool", infer_roi<RoiPoolAttrs>(op), [&](Axes i, const auto& give) {
    LocalScalar best("best", region.dtype);
    VarRef from[] = {make_dim("y_begin"), make_dim("x_begin")}, to[] = {make_dim("y_end"), make_dim("x_end")};
    VarRef k[] = {make_dim("y"), make_dim("x")};
    std::vector<Stmt> body;
    for (size_t d : {0, 1}) {
      auto rounded_corner = [&](bool is_end) {
        return region.whole(ops::kScalarFloor, region.corner(i[0], d, is_end) + region.number(0.5));
      };
      Expr begin = rounded_corner(false), length = max(rounded_corner(true) - begin + 1, int_imm(1));
      Expr bin =
          binary(BinaryOp::kDiv, cast_to(length, region.dtype), region.number(static_cast<double>(region.size[d])));
      auto inside = [&](OpName how, const Expr& at) {
        Expr place = region.whole(how, cast_to(at, region.dtype) * bin) + begin;
        return min(max(place, int_imm(0)), region.shape[d + 2]);
      };
      body.push_back(make(Bind{from[d], inside(ops::kScalarFloor, i[d + 2])}));
      body.push_back(make(Bind{to[d], inside(ops::kScalarCeil, i[d + 2] + 1)}));
    }
    Stmt step = best.set(max(best.get(), region.pixel(i, from[0] + k[0], from[1] + k[1])));
    Expr is_empty = to[0] <= from[0] || to[1] <= from[1];
    for (const Stmt& stmt : std::vector<Stmt>{
             best.declared(), best.set(lowest(region.dtype)),
             loop(k[0], max(to[0] - from[0], int_imm(0)), loop(k[1], max(to[1] - from[1], int_imm(0)), step)),
             give(if_then_else(is_empty, region.number(0), best.get()))})
      body.push_back(stmt);
    return seq(body);
  });
}

}  // namespace

std::vector<OpRow> vision_ops() {
  std::vector<OpAttr> align = with_choices(op_attrs<RoiAlignAttrs>(), "mode", {"avg", "max", "corner_max"}),
                      pool = op_attrs<RoiPoolAttrs>();
  for (auto* attrs : {&align, &pool}) attr_of(*attrs, "pooled_size").items = 2;
  const std::vector<OpInput> regions = {{"data", "images"}, {"rois", "[k, 5]: image and corners of each region"}};
  return {
      {.name = "relax.vision.multibox_transform_loc",
       .doc = "boxes from their encodings relative to anchors, and class scores",
       .inputs = {{"cls_pred", "[batch, classes, anchors]"},
                  {"loc_pred", "[batch, 4 * anchors]"},
                  {"anchor", "[1, anchors, 4]"}},
       .attrs = op_attrs<MultiboxAttrs>(),
       .infer = infer_multibox,
       .infer_partial = infer_unknown,
       .legalize = lower_multibox},
      {.name = "relax.vision.roi_align",
       .doc = "regions sampled to a fixed size by bilinear interpolation",
       .inputs = regions,
       .attrs = align,
       .infer = infer_roi<RoiAlignAttrs>,
       .legalize = lower_roi_align},
      {.name = "relax.vision.roi_pool",
       .doc = "regions reduced to a fixed size by their maxima",
       .inputs = regions,
       .attrs = pool,
       .infer = infer_roi<RoiPoolAttrs>,
       .legalize = lower_roi_pool},
  };
}

}  // namespace relaxc
