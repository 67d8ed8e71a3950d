// Detection: non-maximum suppression, box decoding, pooling of regions of interest.
#include "ops/attributes.h"
#include "ops/ops.h"
#include "ops/window.h"

namespace relaxc {

namespace {

// Checks the ranks of the first arguments.
void require_ranks(const OpCall& op, const std::vector<int64_t>& ranks) {
  for (size_t i = 0; i < ranks.size(); ++i) require_rank(op, i, ranks[i]);
}

// Boxes of different classes or images do not suppress each other. "onnx" returns rows (batch, class, box) of all boxes
// that are kept, and their number. "tensorflow" returns, for each image, rows (class, box), their scores, and how many
// of them count.
Type infer_all_class_nms(const OpCall& op) {
  require_ranks(op, {3, 3});
  op.require_equal(op.shape(0)[0], op.shape(1)[0], "batch sizes of boxes and scores");
  op.require_equal(op.shape(0)[1], op.shape(1)[2], "numbers of boxes and scores");
  op.require_equal(op.shape(0)[2], int_imm(4), "coordinates of a box");
  const Expr& batch = op.shape(1)[0];
  Expr candidates = simplify(op.shape(1)[1] * op.shape(1)[2]);
  std::string format = op.attrs<AllClassNmsAttrs>().output_format;
  if (format == "onnx") return tuple_type({tensor_type_of_rank(2, kInt64), tensor_type({int_imm(1)}, kInt64)});
  return tuple_type({tensor_type({batch, candidates, int_imm(2)}, kInt64), tensor_type({batch, candidates}, kFloat32),
                     tensor_type({batch}, kInt64)});
}

// Each data row holds a class, a score and four coordinates.
Type infer_valid_counts(const OpCall& op) {
  require_rank(op, 0, 3);
  const std::vector<Expr>& shape = op.shape(0);
  return tuple_type(
      {tensor_type({shape[0]}, kInt32), tensor_type(shape, op.dtype(0)), tensor_type({shape[0], shape[1]}, kInt32)});
}
Type infer_nms(const OpCall& op) {
  require_ranks(op, {3, 1, 2});
  const std::vector<Expr>& shape = op.shape(0);
  op.require_equal(shape[0], op.shape(1)[0], "batch sizes of data and valid_count");
  op.require_equal(shape[0], op.shape(2)[0], "batch sizes of data and indices");
  op.require_equal(shape[1], op.shape(2)[1], "numbers of boxes and indices");
  Type data = tensor_type(shape, op.dtype(0));
  NmsAttrs attrs = op.attrs<NmsAttrs>();
  if (!attrs.return_indices) return data;
  std::vector<Type> results = {tensor_type({shape[0], shape[1]}, kInt32), tensor_type({shape[0], int_imm(1)}, kInt32)};
  if (attrs.soft_nms_sigma > 0) results.insert(results.begin(), data);
  return tuple_type(std::move(results));
}

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

// rois are [k, 5]: the image, then four coordinates.
template <class A>
Type infer_roi(const OpCall& op) {
  A attrs = op.attrs<A>();
  Layout layout(op, attrs.layout, A().layout, "layout");
  require_ranks(op, {layout.rank(), 2});
  require_same_dtype(op, 0, 1);
  op.require_equal(op.shape(1)[1], int_imm(5), "columns of rois");
  if (!attrs.pooled_size) op.fail("argument 'pooled_size' is missing");
  std::vector<int64_t> size = per_dim(op, *attrs.pooled_size, 2, "pooled_size", 1);
  std::vector<Expr> shape = layout.to_plain(op.shape(0));
  return tensor_type(layout.from_plain(op, {op.shape(1)[0], shape[1], int_imm(size[0]), int_imm(size[1])}),
                     op.dtype(0));
}

}  // namespace

std::vector<OpRow> vision_ops() {
  std::vector<OpAttr> align = with_choices(op_attrs<RoiAlignAttrs>(), "mode", {"avg", "max"}),
                      pool = op_attrs<RoiPoolAttrs>();
  for (auto* attrs : {&align, &pool}) attr_of(*attrs, "pooled_size").items = 2;
  const std::vector<OpInput> regions = {{"data", "images"}, {"rois", "[k, 5]: image and corners of each region"}};
  return {
      {.name = "relax.vision.all_class_non_max_suppression",
       .doc = "the boxes that no box of a higher score covers, class by class",
       .inputs = {{"boxes", "[batch, boxes, 4]"},
                  {"scores", "[batch, classes, boxes]"},
                  {"max_output_boxes_per_class", "scalar tensor"},
                  {"iou_threshold", "scalar tensor"},
                  {"score_threshold", "scalar tensor"}},
       .attrs = with_choices(op_attrs<AllClassNmsAttrs>(), "output_format", {"onnx", "tensorflow"}),
       .infer = infer_all_class_nms,
       .infer_partial = infer_unknown},
      {.name = "relax.vision.get_valid_counts",
       .doc = "boxes whose score is above a threshold, moved to the front",
       .inputs = {{"data", "[batch, boxes, 6]"}},
       .attrs = op_attrs<ValidCountsAttrs>(),
       .infer = infer_valid_counts,
       .infer_partial = infer_unknown},
      {.name = "relax.vision.non_max_suppression",
       .doc = "the boxes that no box of a higher score covers",
       .inputs = {{"data", "[batch, boxes, 6]"}, {"valid_count", "[batch]"}, {"indices", "[batch, boxes]"}},
       .attrs = op_attrs<NmsAttrs>(),
       .infer = infer_nms,
       .infer_partial = infer_unknown},
      {.name = "relax.vision.multibox_transform_loc",
       .doc = "boxes from their encodings relative to anchors, and class scores",
       .inputs = {{"cls_pred", "[batch, classes, anchors]"},
                  {"loc_pred", "[batch, 4 * anchors]"},
                  {"anchor", "[1, anchors, 4]"}},
       .attrs = op_attrs<MultiboxAttrs>(),
       .infer = infer_multibox,
       .infer_partial = infer_unknown},
      {.name = "relax.vision.roi_align",
       .doc = "regions sampled to a fixed size by bilinear interpolation",
       .inputs = regions,
       .attrs = align,
       .infer = infer_roi<RoiAlignAttrs>},
      {.name = "relax.vision.roi_pool",
       .doc = "regions reduced to a fixed size by their maxima",
       .inputs = regions,
       .attrs = pool,
       .infer = infer_roi<RoiPoolAttrs>},
  };
}

}  // namespace relaxc
