// Suppression of boxes class by class: boxes of different classes or images do not suppress each other.
#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/heap.h"
#include "ops/ops.h"
#include "ops/sort_keys.h"

namespace relaxc {

namespace {

// "onnx" returns rows (batch, class, box) of all boxes that are kept, and their number. "tensorflow" returns, for each
// image, rows (class, box), their scores, and how many of them count.
Type infer_all_classes(const OpCall& op) {
  require_ranks(op, {3, 3});
  op.require_equal(op.shape(0)[0], op.shape(1)[0], "batch sizes of boxes and scores");
  op.require_equal(op.shape(0)[1], op.shape(1)[2], "numbers of boxes and scores");
  op.require_equal(op.shape(0)[2], int_imm(4), "coordinates of a box");
  const Expr& batch = op.shape(1)[0];
  if (op.attrs<AllClassNmsAttrs>().output_format == "onnx")
    return tuple_type({tensor_type({op.run_size(0), int_imm(3)}, kInt64), tensor_type({int_imm(1)}, kInt64)});
  Expr candidates = simplify(op.shape(1)[1] * op.shape(1)[2]);
  return tuple_type({tensor_type({batch, candidates, int_imm(2)}, kInt64), tensor_type({batch, candidates}, kFloat32),
                     tensor_type({batch}, kInt64)});
}
std::vector<Type> infer_selected(const OpCall& op) {
  const std::vector<Expr>& shape = op.shape(1);
  return {tensor_type(shape, kInt64), tensor_type({shape[0], shape[1]}, kInt64)};
}
// Returns the only element of an argument that is a scalar tensor.
Expr only_element(const Buffer& x) { return load(x, std::vector<Expr>(buffer_type(x).shape.size(), int_imm(0))); }

// A box, by its extents.
using Extent = std::function<Expr(int64_t)>;
// Adds a stage with the lower and the upper corner of each box, and its area.
constexpr int64_t kArea = 4;
Buffer box_extents(const OpCall& op, ComputeBuilder& b, const Buffer& boxes) {
  const std::vector<Expr>& shape = op.shape(0);
  Buffer extents = b.buffer("T_extents", op.dtype(0), {shape[0], shape[1], int_imm(kArea + 1)});
  b.block("T_extents", {shape[0], shape[1]}, {}, [&](Axes i, Axes) {
    auto given = [&](int64_t c) { return load(boxes, {i[0], i[1], int_imm(c)}); };
    std::vector<Expr> values = {min(given(0), given(2)), min(given(1), given(3)), max(given(0), given(2)),
                                max(given(1), given(3))};
    values.push_back((values[2] - values[0]) * (values[3] - values[1]));
    std::vector<Stmt> stores;
    for (size_t c = 0; c < values.size(); ++c)
      stores.push_back(store(extents, values[c], {i[0], i[1], int_imm(static_cast<int64_t>(c))}));
    return ComputeBuilder::Bodies{std::nullopt, seq(stores)};
  });
  return extents;
}
// Returns the area of the intersection of two boxes, which are given by their extents, and below that of their union.
Expr shared_area(const OpCall& op, const Extent& a, const Extent& b) {
  const Expr none = zero(op.dtype(0));
  auto common = [&](int64_t axis) { return max(min(a(axis + 2), b(axis + 2)) - max(a(axis), b(axis)), none); };
  return common(0) * common(1);
}
Expr joint_area(const Extent& a, const Extent& b, const Expr& shared) { return a(kArea) + b(kArea) - shared; }

// Returns the statement that runs `action` where two boxes, given by their extents, overlap by more than the threshold.
Stmt when_covered(const OpCall& op, const Expr& threshold, const Extent& a, const Extent& b, const Stmt& action) {
  DType dtype = op.dtype(0);
  VarRef shared = make_var("shared", prim_type(dtype)), joint = make_var("joint", prim_type(dtype));
  Expr overlap = cast_to(binary(BinaryOp::kDiv, shared, joint), kFloat32);
  bool is_above = op.attrs<AllClassNmsAttrs>().above_threshold;
  Expr covers = joint > zero(dtype) && (is_above ? overlap > threshold : overlap >= threshold);
  return seq(
      {make(Bind{shared, shared_area(op, a, b)}),
       when(Expr(shared) > zero(dtype), seq({make(Bind{joint, joint_area(a, b, shared)}), when(covers, action)}))});
}

// The extents of the boxes that a class has kept, each extent in a row of its own, so that vectors of boxes are
// compared with one. Behind the last box are boxes without an area, up to a whole group.
class KeptBoxes {
 public:
  static constexpr int64_t kLanes = 16, kGroup = 4 * kLanes;

  KeptBoxes(const OpCall& op, ComputeBuilder& b)
      : op_(op),
        extents_(b.buffer("T_kept_extents", op.dtype(0),
                          {op.shape(1)[0], op.shape(1)[1], int_imm(kArea + 1),
                           simplify(floor_div(op.shape(1)[2] + (kGroup - 1), kGroup) * kGroup)})) {}

  // Adds a box behind `count` others. The place is of an image and a class.
  Stmt add(Axes place, const Expr& count, const Extent& box) const {
    VarRef slot = make_dim("slot");
    std::vector<Stmt> clear, stores;
    for (int64_t c = 0; c <= kArea; ++c) {
      clear.push_back(set(place, c, count + slot, zero(op_.dtype(0))));
      stores.push_back(set(place, c, count, box(c)));
    }
    stores.insert(stores.begin(),
                  when(equal(floor_mod(count, kGroup), int_imm(0)), loop(slot, int_imm(kGroup), seq(clear))));
    return seq(stores);
  }
  // Returns the statement that runs `when_one_covers` for each box of the group from `first` on that covers the box.
  // Vectors look for boxes that may, by a threshold that is lower than rounding can make it. Few do, and only then are
  // quotients formed.
  Stmt compare(Axes place, const Expr& first, const Expr& count, const Expr& threshold, const Extent& box,
               const Stmt& when_one_covers) const {
    const Buffer hits = make_buffer("hits", kInt32, {int_imm(kLanes)}, "local");
    LocalScalar any("any", kInt32);
    VarRef vector = make_dim("vector"), lane = make_dim("lane"), none = make_dim("none"), each = make_dim("each");
    VarRef at = make_dim("at"), least = make_var("least", prim_type(kFloat32));
    auto extents = [&](const Expr& slot) -> Extent {
      return [=, this](int64_t c) { return load(extents_, {place[0], place[1], int_imm(c), slot}); };
    };
    const Extent some = extents(first + vector * kLanes + lane);
    const Expr shared = shared_area(op_, some, box);
    const Expr joint = cast_to(joint_area(some, box, shared), kFloat32);
    const Expr may_cover = shared > zero(op_.dtype(0)) && !(cast_to(shared, kFloat32) < Expr(least) * joint);
    const Stmt look = store(hits, select(may_cover, int_imm(1, kInt32), load(hits, {lane})), {lane});
    const Stmt clear = store(hits, int_imm(0, kInt32), {none});
    const Expr margin = float_imm(op_.dtype(0).bits == 16 ? 0x1p-6 : 0x1p-20);  // more than the quotient's rounding
    const Expr scale = max(max(threshold, zero(kFloat32) - threshold), one(kFloat32));
    return seq({make(AllocBuffer{hits, {}}), any.declared(), make(Bind{least, threshold - scale * margin}),
                loop(none, int_imm(kLanes), clear, ForKind::kVectorized),
                loop(vector, int_imm(kGroup / kLanes), loop(lane, int_imm(kLanes), look, ForKind::kVectorized)),
                any.set(int_imm(0, kInt32)), loop(each, int_imm(kLanes), any.set(any.get() + load(hits, {each}))),
                when(any.get() > int_imm(0, kInt32),
                     loop(at, min(count - first, int_imm(kGroup)),
                          when_covered(op_, threshold, extents(first + at), box, when_one_covers)))});
  }

 private:
  Stmt set(Axes place, int64_t c, const Expr& slot, const Expr& value) const {
    return store(extents_, value, {place[0], place[1], int_imm(c), slot});
  }

  const OpCall& op_;
  Buffer extents_;
};

// Makes the blocks of the boxes that each class keeps, in the order of their scores, and of how many these are. The
// candidates leave a heap one by one and are compared with those that were kept, until enough are.
void select_boxes(const OpCall& op, ComputeBuilder& b, Inputs x, const Buffer& selected, const Buffer& counts) {
  const std::vector<Expr>& shape = op.shape(1);
  Buffer extents = box_extents(op, b, x[0]), positions = b.buffer("candidates", kInt64, shape);
  const KeptBoxes kept(op, b);
  b.block("T_select", {shape[0], shape[1]}, {}, [&](Axes i, Axes) {
    LocalScalar found("found", kInt64), left("left", kInt64), k("k", kInt64), is_covered("is_covered", kBool);
    VarRef start = make_dim("start"), box = make_dim("box");
    auto place = [=](const Expr& slot) { return std::vector<Expr>{i[0], i[1], slot}; };
    auto score = [=](const Expr& position) { return load(x[1], place(position)); };
    // The extents of the candidate are read once.
    std::vector<VarRef> candidate;
    std::vector<Stmt> read_candidate;
    for (int64_t c = 0; c <= kArea; ++c) {
      candidate.push_back(make_var(fmt::format("extent_{}", c), prim_type(op.dtype(0))));
      read_candidate.push_back(make(Bind{candidate.back(), load(extents, {i[0], box, int_imm(c)})}));
    }
    const Extent extent = [&](int64_t c) -> Expr { return candidate[static_cast<size_t>(c)]; };
    // The heap has keys of the scores where there are such, and positions otherwise.
    const bool has_keys = has_sort_key(op.dtype(1), shape[2]);
    auto by_score = [=](const Expr& a, const Expr& c) {
      return score(a) > score(c) || (equal(score(a), score(c)) && a < c);
    };
    auto by_key = [](const Expr& a, const Expr& c) { return a < c; };
    PositionHeap heap(positions, place, has_keys ? PositionHeap::Order(by_key) : PositionHeap::Order(by_score));
    Expr item = has_keys ? sort_key(score(start), start, true) : Expr(start), root = heap.get(int_imm(0));
    Expr is_enough = cast_to(score(start), kFloat32) > cast_to(only_element(x[4]), kFloat32);
    Expr threshold = cast_to(only_element(x[3]), kFloat32), limit = cast_to(only_element(x[2]), kInt64);
    Stmt gather = when(is_enough, seq({heap.set(left.get(), item), left.set(left.get() + 1)}));
    Stmt take_best = seq({make(Bind{box, has_keys ? position_of_key(root) : root}), left.set(left.get() - 1),
                          heap.set(int_imm(0), heap.get(left.get())), heap.sift_down(int_imm(0), left.get())});
    Stmt compare = seq({kept.compare(i, k.get(), found.get(), threshold, extent, is_covered.set(bool_imm(true))),
                        k.set(k.get() + KeptBoxes::kGroup)});
    Stmt keep =
        seq({store(selected, box, place(found.get())), kept.add(i, found.get(), extent), found.set(found.get() + 1)});
    Stmt step = seq({take_best, seq(read_candidate), k.set(int_imm(0)), is_covered.set(bool_imm(false)),
                     make(While{k.get() < found.get() && !is_covered.get(), compare}), when(!is_covered.get(), keep)});
    Stmt body = seq({heap.declared(), found.declared(), left.declared(), k.declared(), is_covered.declared(),
                     found.set(int_imm(0)), left.set(int_imm(0)), loop(start, shape[2], gather), heap.build(left.get()),
                     make(While{left.get() > int_imm(0) && found.get() < limit, step}), store(counts, found.get(), i)});
    return ComputeBuilder::Bodies{std::nullopt, body};
  });
}
PrimFuncRef count_selected(const OpCall& op) {
  auto [b, x] = OpProgram(op);
  const std::vector<Expr> shape = op.shape(1);
  Buffer selected = b.buffer("T_selected", kInt64, shape), counts = b.buffer("T_counts", kInt64, {shape[0], shape[1]});
  select_boxes(op, b, x, selected, counts);
  Buffer number = b.reduce("T_number", kInt64, {int_imm(1)}, {shape[0], shape[1]}, int_imm(0), combine_sum,
                           [&](Axes, Axes r) { return load(counts, r); });
  return b.finish({number, selected, counts});
}
// Lists the boxes that were selected. Counts and boxes that were not counted read and write nothing out of range.
PrimFuncRef list_selected(const OpCall& op) {
  auto [b, x] = OpProgram(op);
  const std::vector<Expr> shape = op.shape(1);
  const Buffer scores = x[1], selected = x[5], counts = x[6];
  Type types = infer_all_classes(op);
  std::vector<Buffer> results;
  for (const Type& type : types.as<TupleType>()->items)
    results.push_back(b.buffer(fmt::format("T_nms_{}", results.size()), *tensor_dtype(type), *known_shape(type)));
  bool is_onnx = results.size() == 2;
  VarRef image = make_dim("image"), group = make_dim("class"), j = make_dim("j"), rest = make_dim("rest");
  const Buffer& total = results.back();
  Expr slot = is_onnx ? int_imm(0) : Expr(image), next = load(total, {slot});
  Expr box = max(min(load(selected, {image, group, j}), shape[2] - 1), int_imm(0));
  const Expr capacity = is_onnx ? op.run_size(0) : simplify(shape[1] * shape[2]);
  std::vector<Expr> row = {next}, cells = {group, box};
  if (!is_onnx) row.insert(row.begin(), image);
  if (is_onnx) cells.insert(cells.begin(), image);
  // Returns the statements that write the row of a box, or of none.
  auto write = [&](std::vector<Expr> at, bool is_box) {
    std::vector<Stmt> stores;
    for (size_t c = 0; c < cells.size(); ++c)
      stores.push_back(
          store(results[0], is_box ? cells[c] : int_imm(0), followed_by(at, {int_imm(static_cast<int64_t>(c))})));
    Expr score = cast_to(load(scores, {image, group, box}), kFloat32);
    if (!is_onnx) stores.push_back(store(results[1], is_box ? score : zero(kFloat32), at));
    return stores;
  };
  std::vector<Stmt> take = write(row, true);
  take.push_back(store(total, next + 1, {slot}));
  Stmt boxes = loop(j, min(load(counts, {image, group}), shape[2]), when(next < capacity, seq(take)));
  Stmt classes = loop(group, shape[1], boxes);
  Stmt start = store(total, int_imm(0), {slot});
  std::vector<Expr> behind = row;
  behind.back() = next + rest;
  Stmt fill = loop(rest, capacity - next, seq(write(behind, false)));
  b.extern_block("collect", is_onnx ? seq({start, loop(image, shape[0], classes), fill})
                                    : loop(image, shape[0], seq({start, classes, fill})));
  return b.finish(results);
}

}  // namespace

std::vector<OpRow> class_suppression_ops() {
  return {{.name = "relax.vision.all_class_non_max_suppression",
           .doc = "the boxes that no box of a higher score covers, class by class",
           .inputs = {{"boxes", "[batch, boxes, 4]"},
                      {"scores", "[batch, classes, boxes]"},
                      {"max_output_boxes_per_class", "scalar tensor"},
                      {"iou_threshold", "scalar tensor"},
                      {"score_threshold", "scalar tensor"}},
           .attrs = with_extension(with_choices(op_attrs<AllClassNmsAttrs>(), "output_format", {"onnx", "tensorflow"}),
                                   "above_threshold"),
           .infer = infer_all_classes,
           .infer_partial = infer_unknown,
           .legalize = list_selected,
           .sizes = RunSizes{.names = {"selected"},
                             .count = count_selected,
                             .left = {{"kept", "the boxes that each class keeps, in the order of their scores"},
                                      {"kept_counts", "how many these are"}},
                             .infer_left = infer_selected}}};
}

}  // namespace relaxc
