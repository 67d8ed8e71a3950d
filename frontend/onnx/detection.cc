// Detection: suppression of boxes, and pooling of regions of interest.
#include "frontend/onnx/attention.h"
#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

namespace {

// Boxes are two opposite corners, or a center and the sizes (x, y, width, height).
Expr corners(Node& n, const Expr& boxes) {
  int64_t form = n.attr_int("center_point_box", 0);
  if (form != 0 && form != 1) n.fail("center_point_box is {}, expected 0 or 1", form);
  if (form == 0) return boxes;
  Expr center = n.slice(boxes, 2, int_imm(0), int_imm(2));
  Expr half = n.scaled(n.slice(boxes, 2, int_imm(2), int_imm(4)), 0.5);
  return join(n, {n.sub(center, half), n.add(center, half)}, 2);
}
// The overlap of two boxes is a share, so that a threshold is one, too; ONNX Runtime refuses others as well.
void check_overlap(Node& n) {
  const auto known = n.constant(3);
  const double number = known && known->size() == 1 ? known->as_double(0) : 0;
  if (!(number >= 0 && number <= 1)) n.fail("iou_threshold is {}, expected 0 to 1", number);
  if (known) return;
  const Expr threshold = n.tensor(3);
  auto one_if = [&](const char* compares, double limit) {
    return n.cast(n.op(compares, {threshold, n.scalar_like(limit, threshold)}), kInt64);
  };
  const Expr is_share = n.mul(one_if("greater_equal", 0), one_if("less_equal", 1));
  require_each_at_least(n, is_share, 1, "iou_threshold that is not 0 to 1");
}
Expr non_max_suppression(Node& n) {
  for (size_t i : {0, 1}) {
    if (n.rank(i) != 3) n.fail("input {} has rank {}, expected 3", i, n.rank(i));
  }
  n.require_equal(n.dim(0, 2), int_imm(4), "coordinates of a box");
  auto limit = [&](size_t i, const char* name, double otherwise, DType dtype) {
    if (!n.has(i)) return n.scalar(otherwise, dtype);
    n.require_equal(product(n.shape(i)), int_imm(1), fmt::format("elements of {}", name).c_str());
    return n.tensor(i);
  };
  if (n.has(3)) check_overlap(n);
  std::vector<Expr> args = {corners(n, n.tensor(0)), n.tensor(1), limit(2, "max_output_boxes_per_class", 0, kInt64),
                            limit(3, "iou_threshold", 0, kFloat32), limit(4, "score_threshold", -INFINITY, kFloat32)};
  Expr found = n.op("vision.all_class_non_max_suppression", args, AllClassNmsAttrs{.above_threshold = true});
  return n.builder().emit(tuple_get(found, 0));
}

// The sums of 16-bit floats, and the positions of images, need more digits than they have.
DType wide_dtype(Node& n) { return n.dtype(0) == kFloat64 ? kFloat64 : kFloat32; }
Expr roi_align(Node& n) {
  std::string transformation =
      n.attr_string("coordinate_transformation_mode", n.opset() < 16 ? "output_half_pixel" : "half_pixel");
  if (transformation != "half_pixel" && transformation != "output_half_pixel")
    n.fail("coordinate_transformation_mode is '{}', expected half_pixel or output_half_pixel", transformation);
  std::string mode = n.attr_string("mode", "avg");
  if (mode != "avg" && mode != "max") n.fail("mode is '{}', expected avg or max", mode);
  if (n.rank(2) != 1) n.fail("batch_indices have rank {}, expected 1", n.rank(2));
  RoiAlignAttrs attrs{.pooled_size = {{n.attr_int("output_height", 1), n.attr_int("output_width", 1)}},
                      .sample_ratio = n.attr_int("sampling_ratio", 0),
                      .aligned = transformation == "half_pixel",
                      .mode = mode == "max" ? "corner_max" : "avg"};
  DType wide = wide_dtype(n);
  n.require_equal(n.dim(1, 0), n.dim(2, 0), "numbers of regions and of batch_indices");
  Expr places = n.scaled(n.cast(n.tensor(1), wide), n.attr_float("spatial_scale", 1));
  if (attrs.aligned) places = n.sub(places, n.scalar(0.5, wide));
  Expr rows = join(n, {n.with_new_axis(n.cast(n.tensor(2), wide), 1), places}, 1);
  return n.cast(n.op("vision.roi_align", {n.cast(n.tensor(0), wide), rows}, attrs), n.dtype(0));
}
Expr max_roi_pool(Node& n) {
  std::vector<int64_t> size = n.required_ints("pooled_shape");
  if (size.size() != 2) n.fail("pooled_shape has {} numbers, expected 2", size.size());
  DType wide = wide_dtype(n);
  Expr pooled = n.op("vision.roi_pool", {n.cast(n.tensor(0), wide), n.cast(n.tensor(1), wide)},
                     RoiPoolAttrs{.pooled_size = size, .spatial_scale = n.attr_float("spatial_scale", 1)});
  return n.cast(pooled, n.dtype(0));
}

}  // namespace

std::vector<ConverterRow> detection_converters() {
  return {
      {"NonMaxSuppression", 10, 2, 5, non_max_suppression, "center_point_box"},
      {"RoiAlign", 10, 3, 3, roi_align,
       "coordinate_transformation_mode mode output_height output_width sampling_ratio spatial_scale"},
      {"MaxRoiPool", 1, 2, 2, max_roi_pool, "pooled_shape spatial_scale"},
  };
}

}  // namespace relaxc::onnx_import
