// Detection: boxes whose score is too low are dropped, and boxes that one of a higher score covers (non-maximum
// suppression).
#include "ir/builder.h"
#include "ir/constants.h"
#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace relaxc {

namespace {

// The overlap of two boxes, as a part of what both cover; each is given by its coordinate 0 to 3, two opposite corners.
using Coordinate = std::function<Expr(int64_t)>;
Expr overlap_of(const Coordinate& a, const Coordinate& b) {
  DType dtype = dtype_of(a(0));
  auto low = [](const Coordinate& box, int64_t axis) { return min(box(axis), box(axis + 2)); };
  auto high = [](const Coordinate& box, int64_t axis) { return max(box(axis), box(axis + 2)); };
  auto common = [&](int64_t axis) {
    return max(min(high(a, axis), high(b, axis)) - max(low(a, axis), low(b, axis)), zero(dtype));
  };
  auto area = [&](const Coordinate& box) { return (high(box, 0) - low(box, 0)) * (high(box, 1) - low(box, 1)); };
  Expr shared = common(0) * common(1), covered = area(a) + area(b) - shared;
  return select(covered <= zero(dtype), zero(dtype), binary(BinaryOp::kDiv, shared, covered));
}

// ---- Each data row holds four coordinates, a score and perhaps a class.

// Checks that a row has the columns that the attributes name. A column of -1 is not there.
void require_columns(const OpCall& op, int64_t last, int64_t score, int64_t id) {
  if (score < 0 || id < -1) op.fail("score_index is {} and id_index {}, expected at least 0 and -1", score, id);
  op.require_at_most(int_imm(std::max({last, score, id}) + 1), op.shape(0)[2], "a column that the attributes name");
}
Type infer_valid_counts(const OpCall& op) {
  require_rank(op, 0, 3);
  ValidCountsAttrs attrs = op.attrs<ValidCountsAttrs>();
  require_columns(op, 0, attrs.score_index, attrs.id_index);
  const std::vector<Expr>& shape = op.shape(0);
  return tuple_type(
      {tensor_type({shape[0]}, kInt32), tensor_type(shape, op.dtype(0)), tensor_type({shape[0], shape[1]}, kInt32)});
}
PrimFuncRef lower_valid_counts(const OpCall& op) {
  ValidCountsAttrs attrs = op.attrs<ValidCountsAttrs>();
  auto [b, inputs] = OpProgram(op);
  const Buffer x = inputs[0];
  DType dtype = op.dtype(0);
  const std::vector<Expr>& shape = op.shape(0);
  Buffer count = b.buffer("T_count", kInt32, {shape[0]}), rows = b.buffer("T_rows", dtype, shape);
  Buffer positions = b.buffer("T_positions", kInt32, {shape[0], shape[1]});
  b.block("T_valid_counts", {shape[0]}, {}, [&](Axes i, Axes) {
    LocalScalar next("next", kInt64);
    VarRef j = make_dim("j"), k = make_dim("k"), rest = make_dim("rest"), column = make_dim("column");
    auto cell = [&](int64_t c) { return load(x, {i[0], j, int_imm(c)}); };
    Expr is_valid = cell(attrs.score_index) > scalar_imm(attrs.score_threshold, dtype);
    if (attrs.id_index >= 0) is_valid = is_valid && cell(attrs.id_index) >= zero(dtype);
    Stmt take = seq({loop(k, shape[2], store(rows, load(x, {i[0], j, k}), {i[0], next.get(), k})),
                     store(positions, cast_to(j, kInt32), {i[0], next.get()}), next.set(next.get() + 1)});
    Stmt drop = seq({loop(column, shape[2], store(rows, scalar_imm(-1, dtype), {i[0], next.get() + rest, column})),
                     store(positions, int_imm(-1, kInt32), {i[0], next.get() + rest})});
    Stmt body = seq({next.declared(), next.set(int_imm(0)), loop(j, shape[1], when(is_valid, take)),
                     loop(rest, shape[1] - next.get(), drop), store(count, cast_to(next.get(), kInt32), i)});
    return ComputeBuilder::Bodies{std::nullopt, body};
  });
  return b.finish({count, rows, positions});
}

Type infer_nms(const OpCall& op) {
  require_ranks(op, {3, 1, 2});
  for (size_t i : {1, 2}) {
    if (op.dtype(i) != kInt32) op.fail("argument {} has {}, expected int32", i, to_string(op.dtype(i)));
  }
  const std::vector<Expr>& shape = op.shape(0);
  op.require_equal(shape[0], op.shape(1)[0], "batch sizes of data and valid_count");
  op.require_equal(shape[0], op.shape(2)[0], "batch sizes of data and indices");
  op.require_equal(shape[1], op.shape(2)[1], "numbers of boxes and indices");
  Type data = tensor_type(shape, op.dtype(0));
  NmsAttrs attrs = op.attrs<NmsAttrs>();
  if (attrs.coord_start < 0) op.fail("coord_start is {}, expected at least 0", attrs.coord_start);
  require_columns(op, attrs.coord_start + 3, attrs.score_index, attrs.id_index);
  if (!attrs.return_indices) return data;
  std::vector<Type> results = {tensor_type({shape[0], shape[1]}, kInt32), tensor_type({shape[0], int_imm(1)}, kInt32)};
  if (attrs.soft_nms_sigma > 0) results.insert(results.begin(), data);
  return tuple_type(std::move(results));
}
// Sorts the valid boxes by score, and suppresses in that order.
Expr decompose_nms(const OpCall& op, Builder& b) {
  NmsAttrs attrs = op.attrs<NmsAttrs>();
  const std::vector<Expr>& shape = op.shape(0);
  std::vector<Expr> column = {int_imm(attrs.score_index)}, end = {int_imm(attrs.score_index + 1)};
  Expr scores = b.op("strided_slice", {op.arg(0), tuple({int_imm(2)}), tuple(column), tuple(end)});
  scores = b.op("reshape", {scores, shape_expr({shape[0], shape[1]})});
  Expr position = b.op("arange", {int_imm(0), shape[1], int_imm(1)}, DTypeAttrs{kInt32});
  Expr is_valid = b.op("less", {position, b.op("expand_dims", {op.arg(1)}, AxisListAttrs{{{1}}})});
  const Expr least = scalar_constant(-std::numeric_limits<double>::infinity(), op.dtype(0));
  scores = b.op("where", {is_valid, scores, least});
  Expr order = b.op("argsort", {scores}, ArgsortAttrs{.axis = 1, .descending = true, .dtype = kInt64});
  return b.op("dyn.non_max_suppression", {op.arg(0), op.arg(1), op.arg(2), order}, attrs);
}

// The suppression of the boxes of one image, whose rows are copied to `rows` in the order of their scores. `kept` has
// the position in the data of each row, or -1 for a row that is suppressed.
class Suppression {
 public:
  Suppression(const OpCall& op, Inputs x, Buffer rows, Buffer kept, Buffer number, Expr image)
      : attrs_(op.attrs<NmsAttrs>()),
        x_(x),
        rows_(std::move(rows)),
        kept_(std::move(kept)),
        number_(std::move(number)),
        image_(std::move(image)),
        boxes_(op.shape(0)[1]),
        columns_(op.shape(0)[2]),
        dtype_(op.dtype(0)),
        threshold_(scalar_imm(is_soft() ? attrs_.score_threshold : 0, dtype_)) {}

  Stmt run() {
    Expr valid = cast_to(load(x_[1], {image_}), kInt64);
    Expr count = max(min(valid, boxes_), int_imm(0));
    if (attrs_.top_k > 0) count = min(count, int_imm(attrs_.top_k));
    std::vector<Stmt> body = {found_.declared(),          best_.declared(),          best_score_.declared(),
                              found_.set(int_imm(0)),     make(Bind{count_, count}), copy_in_order(),
                              is_soft() ? soft() : hard()};
    if (attrs_.return_indices) body.push_back(collect_indices());
    if (!attrs_.return_indices && attrs_.invalid_to_bottom && !is_soft()) body.push_back(collect_rows());
    return seq(body);
  }

 private:
  bool is_soft() const { return attrs_.soft_nms_sigma > 0; }
  Expr cell(const Expr& row, const Expr& column) const { return load(rows_, {image_, row, column}); }
  Expr score(const Expr& row) const { return cell(row, int_imm(attrs_.score_index)); }
  Stmt set_score(const Expr& row, const Expr& value) const {
    return store(rows_, value, {image_, row, int_imm(attrs_.score_index)});
  }
  Expr kept(const Expr& row) const { return load(kept_, {image_, row}); }
  Stmt set_kept(const Expr& row, const Expr& value) const {
    return store(kept_, cast_to(value, kInt32), {image_, row});
  }
  Stmt fill_row(const Expr& row, const std::function<Expr(const Expr& column)>& value) const {
    VarRef k = make_dim("k");
    return loop(k, columns_, store(rows_, value(k), {image_, row, k}));
  }
  Stmt drop(const Expr& row) const {
    return seq({fill_row(row, [&](const Expr&) { return scalar_imm(-1, dtype_); }), set_kept(row, int_imm(-1))});
  }
  Stmt drop_from(const Expr& first) const {
    VarRef rest = make_dim("rest");
    return loop(rest, boxes_ - first, drop(first + rest));
  }
  Stmt copy_in_order() const {
    VarRef j = make_dim("j");
    Expr source = max(min(load(x_[3], {image_, j}), boxes_ - 1), int_imm(0));  // whatever order is given
    Stmt copy =
        seq({fill_row(j, [&](const Expr& k) { return load(x_[0], {image_, source, k}); }), set_kept(j, source)});
    return seq({loop(j, count_, copy), drop_from(count_)});
  }
  Expr may_find_more() const {
    return attrs_.max_output_size > 0 ? found_.get() < int_imm(attrs_.max_output_size) : bool_imm(true);
  }
  Expr competes(const Expr& a, const Expr& b) const {
    if (attrs_.force_suppress || attrs_.id_index < 0) return bool_imm(true);
    return equal(cell(a, int_imm(attrs_.id_index)), cell(b, int_imm(attrs_.id_index)));
  }
  Expr overlap(const Expr& a, const Expr& b) const {
    auto box = [&](const Expr& row) -> Coordinate {
      return [=, this](int64_t k) { return cell(row, int_imm(attrs_.coord_start + k)); };
    };
    return overlap_of(box(a), box(b));
  }

  Stmt hard() const {
    VarRef j = make_dim("j"), distance = make_dim("distance"), part = make_var("part", prim_type(dtype_));
    Expr other = j + 1 + distance;
    Stmt suppress = when(part >= scalar_imm(attrs_.iou_threshold, dtype_),
                         seq({set_score(other, scalar_imm(-1, dtype_)), set_kept(other, int_imm(-1))}));
    Stmt compare =
        when(score(other) > threshold_ && competes(j, other), seq({make(Bind{part, overlap(j, other)}), suppress}));
    Stmt keep = seq({found_.set(found_.get() + 1), loop(distance, count_ - j - 1, compare)});
    return loop(j, count_, make(IfThenElse{score(j) > threshold_ && may_find_more(), keep, drop(j)}));
  }
  // The box of the highest score moves to the front of those that are left, and lowers the scores of those that it
  // overlaps. (Soft-NMS, Bodla et al., 2017)
  Stmt soft() const {
    VarRef round = make_dim("round"), j = make_dim("j"), distance = make_dim("distance"), k = make_dim("k");
    VarRef cellv = make_var("cell", prim_type(dtype_)), mine = make_var("mine", prim_type(kInt32));
    VarRef part = make_var("part", prim_type(dtype_));
    Expr front = found_.get(), other = front + 1 + distance, candidate = front + j;
    Stmt choose = when(kept(candidate) >= int_imm(0, kInt32) && score(candidate) > best_score_.get(),
                       seq({best_.set(candidate), best_score_.set(score(candidate))}));
    Stmt swap =
        seq({make(Bind{mine, kept(front)}), set_kept(front, kept(best_.get())), set_kept(best_.get(), mine),
             loop(k, columns_,
                  seq({make(Bind{cellv, cell(front, k)}), store(rows_, cell(best_.get(), k), {image_, front, k}),
                       store(rows_, cellv, {image_, best_.get(), k})}))});
    Expr decay = intrinsic("tir.exp", {part * part * scalar_imm(-0.5 / attrs_.soft_nms_sigma, dtype_)}, dtype_);
    Stmt lower =
        seq({set_score(other, score(other) * decay), when(score(other) <= threshold_, set_kept(other, int_imm(-1)))});
    Stmt suppress =
        make(IfThenElse{part >= scalar_imm(attrs_.iou_threshold, dtype_), set_kept(other, int_imm(-1)), lower});
    Expr is_left = kept(other) >= int_imm(0, kInt32) && score(other) > threshold_;
    Stmt compare = when(is_left && competes(front, other), seq({make(Bind{part, overlap(front, other)}), suppress}));
    Stmt keep = seq({swap, loop(distance, count_ - front - 1, compare), found_.set(front + 1)});
    Stmt step = seq({best_.set(int_imm(-1)), best_score_.set(threshold_), loop(j, count_ - front, choose),
                     when(best_.get() >= int_imm(0), keep)});
    return seq({loop(round, count_, when(may_find_more(), step)), drop_from(found_.get())});
  }
  // The rows that are kept, in terms of `indices`, move to the front.
  Stmt collect_indices() const {
    VarRef j = make_dim("j"), rest = make_dim("rest");
    Expr index = load(x_[2], {image_, cast_to(kept(j), kInt64)});
    Stmt take = seq({set_kept(best_.get(), index), best_.set(best_.get() + 1)});
    return seq({best_.set(int_imm(0)), loop(j, boxes_, when(kept(j) >= int_imm(0, kInt32), take)),
                store(number_, cast_to(best_.get(), kInt32), {image_, int_imm(0)}),
                loop(rest, boxes_ - best_.get(), set_kept(best_.get() + rest, int_imm(-1)))});
  }
  Stmt collect_rows() const {
    VarRef j = make_dim("j");
    Stmt take = seq({fill_row(best_.get(), [&](const Expr& k) { return cell(j, k); }), best_.set(best_.get() + 1)});
    return seq({best_.set(int_imm(0)), loop(j, boxes_, when(score(j) >= zero(dtype_), take)), drop_from(best_.get())});
  }

  NmsAttrs attrs_;
  Inputs x_;
  Buffer rows_, kept_, number_;
  Expr image_, boxes_, columns_;
  DType dtype_;
  Expr threshold_;
  VarRef count_ = make_dim("count");
  LocalScalar found_{"found", kInt64}, best_{"best", kInt64}, best_score_{"best_score", dtype_};
};
PrimFuncRef lower_nms(const OpCall& op) {
  auto [b, x] = OpProgram(op);
  const std::vector<Expr>& shape = op.shape(0);
  NmsAttrs attrs = op.attrs<NmsAttrs>();
  Buffer rows = b.buffer("T_rows", op.dtype(0), shape), kept = b.buffer("T_kept", kInt32, {shape[0], shape[1]});
  Buffer number = b.buffer("T_number", kInt32, {shape[0], int_imm(1)});
  b.block("T_suppress", {shape[0]}, {}, [&, &inputs = x](Axes i, Axes) {
    return ComputeBuilder::Bodies{std::nullopt, Suppression(op, inputs, rows, kept, number, i[0]).run()};
  });
  if (!attrs.return_indices) return b.finish({rows});
  return attrs.soft_nms_sigma > 0 ? b.finish({rows, kept, number}) : b.finish({kept, number});
}

// Completes the row of the part of a suppression that runs behind the sort by score.
OpRow behind_sort(OpRow row, PrimFuncRef (*lower)(const OpCall&)) {
  row.name = "relax.dyn." + row.name.substr(row.name.rfind('.') + 1);
  row.doc += ", of boxes in a given order";
  row.inputs.push_back({"order", "positions by score, the highest first"});
  row.decompose = {};
  row.legalize = lower;
  return row;
}

}  // namespace

std::vector<OpRow> suppression_ops() {
  const OpRow one_list{
      .name = "relax.vision.non_max_suppression",
      .doc = "the boxes that no box of a higher score covers",
      .inputs = {{"data", "[batch, boxes, 6]"}, {"valid_count", "[batch]"}, {"indices", "[batch, boxes]"}},
      .attrs = op_attrs<NmsAttrs>(),
      .infer = infer_nms,
      .infer_partial = infer_unknown,
      .decompose = decompose_nms};
  return {one_list,
          behind_sort(one_list, lower_nms),
          {.name = "relax.vision.get_valid_counts",
           .doc = "boxes whose score is above a threshold, moved to the front",
           .inputs = {{"data", "[batch, boxes, 6]"}},
           .attrs = op_attrs<ValidCountsAttrs>(),
           .infer = infer_valid_counts,
           .infer_partial = infer_unknown,
           .legalize = lower_valid_counts}};
}

}  // namespace relaxc
