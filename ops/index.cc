// Operators that read or write at positions held by other tensors. Negative indices count from the end. Indices are
// tested before a gather or scatter runs, by check_indices, which passes/check_dims.cc inserts. Independently of that
// test, the programs themselves clamp the out-of-range indices of a gather and assert for a scatter, so that no indices
// make them touch memory outside of the tensor.
#include <cmath>

#include "ir/builder.h"
#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/reference.h"

namespace relaxc {

namespace {

void check_index_dtype(const OpCall& op, size_t i) {
  if (!op.dtype(i).is_integral()) op.fail("expected integers for argument {}, got {}", i, to_string(op.dtype(i)));
}
// Counts a negative index from the end.
Expr from_end(const Expr& index, const Expr& dim) {
  Expr position = cast_to(index, kInt64);
  return select(position < int_imm(0), position + dim, position);
}
Expr clamped(const Expr& index, const Expr& dim) { return max(min(from_end(index, dim), dim - 1), int_imm(0)); }

// Returns the element, or 0 when an indexed axis is empty and the index cannot be clamped.
Expr load_clamped(const Buffer& data, const std::vector<Expr>& position, const std::vector<Expr>& dims) {
  Expr element = load(data, position), any = has_elements(dims);
  return is_int(any, 1) ? element : if_then_else(any, element, zero(dtype_of(element)));
}

// Returns the axis that argument 1 indexes, for a call with the attribute `axis`.
std::optional<IndexOperand> indexed_axis(const OpCall& op, int64_t axis, bool reads) {
  const std::vector<Expr>* shape = known_shape(op.arg(0).type());
  if (!shape) return std::nullopt;
  return IndexOperand{1, {(*shape)[static_cast<size_t>(normalize_axis(op, axis, op.rank(0)))]}, reads};
}
// Returns the axes that the items of the last axis of argument 1 index.
std::optional<IndexOperand> indexed_axes(const OpCall& op, int64_t batch_dims, bool reads) {
  const std::vector<Expr>*shape = known_shape(op.arg(0).type()), *tuples = known_shape(op.arg(1).type());
  auto length = tuples && !tuples->empty() ? as_int(tuples->back()) : std::nullopt;
  if (!shape || !length || *length < 1) return std::nullopt;
  auto first = shape->begin() + batch_dims;
  return IndexOperand{1, {first, first + *length}, reads};
}
std::optional<IndexOperand> indexed_by_take(const OpCall& op) {
  TakeAttrs attrs = op.attrs<TakeAttrs>();
  if (attrs.mode != TakeAttrs().mode) return std::nullopt;
  if (attrs.axis) return indexed_axis(op, *attrs.axis, true);
  const std::vector<Expr>* shape = known_shape(op.arg(0).type());
  return shape ? std::optional(IndexOperand{1, {simplify(product(*shape))}}) : std::nullopt;
}

// Returns whether the index is one scalar instead of a tensor.
bool takes_one(const OpCall& op) { return op.arg(1).type().is<PrimType>(); }
Type infer_take(const OpCall& op) {
  if (!takes_one(op)) check_index_dtype(op, 1);
  TakeAttrs attrs = op.attrs<TakeAttrs>();
  std::vector<Expr> indices = takes_one(op) ? std::vector<Expr>() : op.shape(1);
  if (!attrs.axis && op.rank(0) != 1 && attrs.mode == "nan") op.fail("mode 'nan' needs an axis");
  if (attrs.mode == "nan" && !op.dtype(0).is_float())
    op.fail("mode 'nan' of {}, expected floats", to_string(op.dtype(0)));
  if (!attrs.axis) return tensor_type(indices, op.dtype(0));
  std::vector<Expr> shape = op.shape(0);
  int64_t axis = normalize_axis(op, *attrs.axis, op.rank(0));
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, indices.begin(), indices.end());
  return tensor_type(std::move(shape), op.dtype(0));
}
Expr take_element(const OpCall& op, Inputs x, Axes i) {
  TakeAttrs attrs = op.attrs<TakeAttrs>();
  int64_t axis = attrs.axis ? normalize_axis(op, *attrs.axis, op.rank(0)) : 0;
  int64_t index_rank = takes_one(op) ? 0 : op.rank(1);
  // Where mode is "nan", the place of an index that is out of range has no element.
  Expr is_there = bool_imm(true);
  auto in_range = [&](const Expr& index, const Expr& dim) {
    Expr position = cast_to(index, kInt64);
    if (attrs.mode == "nan") is_there = position >= int_imm(0) && position < dim;
    if (attrs.mode == "wrap") return floor_mod(position, max(dim, int_imm(1)));
    return attrs.mode == "clip" ? max(min(position, dim - 1), int_imm(0)) : clamped(index, dim);
  };
  auto or_nan = [&](const Expr& element) {
    return is_int(is_there, 1) ? element : if_then_else(is_there, element, scalar_imm(NAN, op.dtype(0)));
  };
  const std::vector<Expr>& shape = op.shape(0);
  auto begin = i.begin() + axis, end = begin + index_rank;
  Expr index = takes_one(op) ? op.arg(1) : load(x[1], {begin, end});
  if (!attrs.axis) return or_nan(load_clamped(x[0], unflatten_index(in_range(index, product(shape)), shape), shape));
  std::vector<Expr> source(i.begin(), begin);
  source.push_back(in_range(index, shape[axis]));
  source.insert(source.end(), end, i.end());
  return or_nan(load_clamped(x[0], source, {shape[axis]}));
}

// Checks that the indices exceed the data along no axis but this one.
void check_within(const OpCall& op, int64_t axis) {
  for (int64_t d = 0; d < op.rank(0); ++d) {
    if (d != axis)
      op.require_at_most(op.shape(1)[d], op.shape(0)[d], fmt::format("indices exceed the data's axis {}", d));
  }
}
Type infer_gather_elements(const OpCall& op) {
  check_index_dtype(op, 1);
  if (op.rank(0) != op.rank(1)) op.fail("data of rank {} and indices of rank {}", op.rank(0), op.rank(1));
  check_within(op, normalize_axis(op, op.attrs<AxisAttrs>().axis, op.rank(0)));
  return tensor_type(op.shape(1), op.dtype(0));
}
Expr gather_elements_element(const OpCall& op, Inputs x, Axes i) {
  int64_t axis = normalize_axis(op, op.attrs<AxisAttrs>().axis, op.rank(0));
  const Expr& dim = op.shape(0)[axis];
  return load_clamped(x[0], with_item(i, axis, clamped(load(x[1], i), dim)), {dim});
}

// The result is the indices themselves, so that the operator that reads them cannot run before the check.
Type infer_check_indices(const OpCall& op) {
  check_index_dtype(op, 0);
  const int64_t axes = std::ssize(op.shape(1));
  if (axes == 0) op.fail("no axis is given");
  if (axes > 1) {
    if (op.rank(0) == 0) op.fail("indices are a scalar, expected tuples of {}", axes);
    op.require_equal(op.shape(0).back(), int_imm(axes), "the last dim of indices and the number of axes");
  }
  return infer_like_first(op);
}

// Returns the length of the index tuples, which is the last dim of `indices` and must be a constant.
int64_t tuple_length(const OpCall& op, int64_t batch_dims) {
  if (op.rank(1) < 1) op.fail("indices must have at least one axis");
  auto length = as_int(op.shape(1).back());
  if (!length) op.unsupported("the last dim of indices is not a constant");
  if (*length < 0 || *length + batch_dims > op.rank(0))
    op.fail("index tuples of {} for a tensor of rank {} with {} batch axes", *length, op.rank(0), batch_dims);
  return *length;
}
Type infer_gather_nd(const OpCall& op) {
  check_index_dtype(op, 1);
  int64_t batch = op.attrs<GatherNdAttrs>().batch_dims;
  if (batch < 0 || batch > std::min(op.rank(0), op.rank(1) - 1)) op.fail("batch_dims is {}", batch);
  auto rest = op.shape(0).begin() + batch + tuple_length(op, batch);
  return tensor_type(followed_by({op.shape(1).begin(), op.shape(1).end() - 1}, {rest, op.shape(0).end()}), op.dtype(0));
}
// Returns the position of element `i` of a result or of updates, whose leading axes are those of the index tuples: the
// axes before `batch`, the tuple's items as `use` makes them, and the axes that are left.
std::vector<Expr> at_tuple(const OpCall& op, Axes i, const Buffer& indices, int64_t batch,
                           Expr (*use)(const Expr& index, const Expr& dim)) {
  auto rest = i.begin() + (op.rank(1) - 1);
  std::vector<Expr> position(i.begin(), i.begin() + batch);
  for (int64_t k = 0; k < tuple_length(op, batch); ++k)
    position.push_back(use(load(indices, followed_by({i.begin(), rest}, {int_imm(k)})), op.shape(0)[batch + k]));
  return followed_by(position, {rest, i.end()});
}
Expr gather_nd_element(const OpCall& op, Inputs x, Axes i) {
  int64_t batch = op.attrs<GatherNdAttrs>().batch_dims;
  auto first = op.shape(0).begin() + batch;
  std::vector<Expr> indexed(first, first + tuple_length(op, batch));
  return load_clamped(x[0], at_tuple(op, i, x[1], batch, clamped), indexed);
}

Expr reduced(const OpCall& op, const std::string& reduction, const Expr& old, const Expr& value) {
  if (reduction == "update" || reduction == "none") return value;
  if (reduction == "add") return combine_sum(old, value);
  if (reduction == "mul") return combine_prod(old, value);
  if (reduction == "max") return combine_max(old, value);
  if (reduction == "min") return combine_min(old, value);
  op.unsupported("reduction '{}', expected update, add, mul, max or min", reduction);
}

// Copies data, then applies one update after the other, as indices may repeat. Update i writes the element `target`(i),
// whose indices along `indexed_axes` depend on the first `own` axes of the updates alone: the others are those of
// slices.
PrimFuncRef scatter(const OpCall& op, const std::string& reduction, std::vector<int64_t> indexed_axes, int64_t own,
                    const std::function<std::vector<Expr>(Axes, const Buffer&)>& target) {
  auto [b, x] = OpProgram(op);
  const std::vector<Buffer>& inputs = x;
  Buffer out = b.compute("T_scatter", op.dtype(0), op.shape(0), [&](Axes i) { return at(inputs[0], i); });
  const std::vector<Expr>& shape = op.shape(2);
  const std::vector<Expr> outer(shape.begin(), shape.begin() + own), slice(shape.begin() + own, shape.end());
  Stmt updates = loop_nest(outer, [&](Axes i) {
    std::vector<Stmt> body;
    std::vector<Expr> first = target(followed_by(i, std::vector<Expr>(slice.size(), int_imm(0))), inputs[1]);
    for (int64_t axis : indexed_axes) {
      VarRef index = make_dim("index");
      body.push_back(make(Bind{index, first[axis]}));
      body.push_back(make(Assert{int_imm(0) <= index && index < op.shape(0)[axis],
                                 {fmt::format("{}: an index is out of range for axis {}", op.name(), axis)}}));
      first[axis] = index;
    }
    body.push_back(loop_nest(slice, [&](Axes j) {
      const std::vector<Expr> all = followed_by(i, j);
      std::vector<Expr> position = target(all, inputs[1]);
      for (int64_t axis : indexed_axes) position[axis] = first[axis];
      return store(out, reduced(op, reduction, load(out, position), at(inputs[2], all)), position);
    }));
    return seq(std::move(body));
  });
  b.extern_block("update", updates);
  return b.finish({out});
}

void check_updates(const OpCall& op, const std::string& reduction) {
  if (op.dtype(0) != op.dtype(2))
    op.fail("data and updates have dtypes {} and {}", to_string(op.dtype(0)), to_string(op.dtype(2)));
  const bool computes = reduction != "update" && reduction != "none";
  if (computes && op.dtype(0).is_complex())
    op.unsupported("reduction '{}' of {}; complex numbers are only moved", reduction, to_string(op.dtype(0)));
  reduced(op, reduction, zero(op.dtype(0)), zero(op.dtype(0)));
}
Type infer_scatter_elements(const OpCall& op) {
  check_index_dtype(op, 1);
  if (op.rank(0) != op.rank(1) || op.rank(1) != op.rank(2))
    op.fail("data, indices and updates have ranks {}, {} and {}", op.rank(0), op.rank(1), op.rank(2));
  ScatterElementsAttrs attrs = op.attrs<ScatterElementsAttrs>();
  check_updates(op, attrs.reduction);
  require_same_dims(op, op.shape(1), op.shape(2), "of indices and updates");
  check_within(op, normalize_axis(op, attrs.axis, op.rank(0)));
  return infer_like_first(op);
}
PrimFuncRef lower_scatter_elements(const OpCall& op) {
  ScatterElementsAttrs attrs = op.attrs<ScatterElementsAttrs>();
  int64_t axis = normalize_axis(op, attrs.axis, op.rank(0));
  return scatter(op, attrs.reduction, {axis}, op.rank(2), [&](Axes i, const Buffer& indices) {
    return with_item(i, axis, from_end(load(indices, i), op.shape(0)[axis]));
  });
}

Type infer_scatter_nd(const OpCall& op) {
  check_index_dtype(op, 1);
  check_updates(op, op.attrs<ScatterNdAttrs>().reduction);
  int64_t length = tuple_length(op, 0);
  std::vector<Expr> expected =
      followed_by({op.shape(1).begin(), op.shape(1).end() - 1}, {op.shape(0).begin() + length, op.shape(0).end()});
  if (std::ssize(expected) != op.rank(2)) op.fail("updates have rank {}, expected {}", op.rank(2), expected.size());
  require_same_dims(op, op.shape(2), expected, "of updates");
  return infer_like_first(op);
}
PrimFuncRef lower_scatter_nd(const OpCall& op) {
  return scatter(op, op.attrs<ScatterNdAttrs>().reduction, int_range(0, tuple_length(op, 0)), op.rank(1) - 1,
                 [&](Axes i, const Buffer& indices) { return at_tuple(op, i, indices, 0, from_end); });
}

// one_hot has scalars and the depth as an attribute; dyn.one_hot has tensors of rank 0 and the depth as an argument.
bool is_dynamic_one_hot(const OpCall& op) { return op.size() > 3; }
DType one_hot_dtype(const OpCall& op) {
  bool is_dynamic = is_dynamic_one_hot(op);
  for (size_t i : {1, 2}) {
    if (!is_dynamic) require_scalar(op, i);
  }
  DType on = is_dynamic ? op.dtype(1) : dtype_of(op.arg(1)), off = is_dynamic ? op.dtype(2) : dtype_of(op.arg(2));
  bool has_rank = is_dynamic && (op.rank(1) != 0 || op.rank(2) != 0);
  if (on != off || has_rank) op.fail("on and off values must be scalars of one dtype");
  if (is_dynamic) require_scalar(op, 3);
  return on;
}
Expr one_hot_depth(const OpCall& op) {
  return is_dynamic_one_hot(op) ? op.arg(3) : int_imm(op.attrs<OneHotAttrs>().depth);
}
int64_t one_hot_axis(const OpCall& op) { return normalize_axis(op, op.attrs<LastAxisAttrs>().axis, op.rank(0) + 1); }
Type infer_one_hot(const OpCall& op) {
  check_index_dtype(op, 0);
  DType dtype = one_hot_dtype(op);
  Expr depth = one_hot_depth(op);
  if (auto known = as_int(depth); known && *known < 0) op.fail("depth is {}, expected >= 0", *known);
  return tensor_type(with_new_item(op.shape(0), one_hot_axis(op), depth), dtype);
}
Expr one_hot_element(const OpCall& op, Inputs x, Axes i) {
  int64_t axis = one_hot_axis(op);
  Expr index = from_end(load(x[0], without_item(i, axis)), one_hot_depth(op));
  auto value = [&](size_t k) { return is_dynamic_one_hot(op) ? load(x[k], {}) : op.arg(k); };
  return select(equal(index, i[axis]), value(1), value(2));
}

ReverseSequenceAttrs reverse_sequence_axes(const OpCall& op) {
  ReverseSequenceAttrs attrs = op.attrs<ReverseSequenceAttrs>();
  return {normalize_axis(op, attrs.time_axis, op.rank(0)), normalize_axis(op, attrs.batch_axis, op.rank(0))};
}
Type infer_reverse_sequence(const OpCall& op) {
  check_index_dtype(op, 1);
  auto [time, batch] = reverse_sequence_axes(op);
  if (time == batch) op.fail("time and batch axis are both {}", time);
  if (op.rank(1) != 1) op.fail("lengths have rank {}, expected 1", op.rank(1));
  op.require_equal(op.shape(1)[0], op.shape(0)[batch], "number of lengths and size of the batch axis");
  return infer_like_first(op);
}
Expr reverse_sequence_element(const OpCall& op, Inputs x, Axes i) {
  ReverseSequenceAttrs axes = reverse_sequence_axes(op);
  Expr length = min(cast_to(load(x[1], {i[axes.batch_axis]}), kInt64), op.shape(0)[axes.time_axis]);
  Expr time = i[axes.time_axis];
  return load(x[0], with_item(i, axes.time_axis, select(time < length, length - 1 - time, time)));
}

// Indexes as numpy does with several index tensors: their broadcast shape replaces the axes that they index.
std::vector<Expr> indexed_shape(const OpCall& op) {
  std::vector<Type> indices = tensor_list(op, 1);
  if (std::ssize(indices) > op.rank(0)) op.fail("{} index tensors for a tensor of rank {}", indices.size(), op.rank(0));
  std::vector<Expr> shape;
  for (const Type& index : indices) {
    DType dtype = *tensor_dtype(index);
    if (!dtype.is_integral()) op.fail("expected integers as indices, got {}", to_string(dtype));
    shape = broadcast_shapes(op, shape, *known_shape(index));
  }
  return followed_by(shape, {op.shape(0).begin() + std::ssize(indices), op.shape(0).end()});
}
Type infer_index_tensor(const OpCall& op) { return tensor_type(indexed_shape(op), op.dtype(0)); }
Type infer_index_put(const OpCall& op) {
  require_same_dtype(op, 0, 2);
  broadcast_shapes(op, indexed_shape(op), op.shape(2));
  return infer_like_first(op);
}
// Returns the index tensors as tuples along a last axis, and sets the shape that they broadcast to.
Expr index_tuples(const OpCall& op, Builder& b, std::vector<Expr>& shape) {
  std::vector<Expr> result = indexed_shape(op), indices;
  const std::vector<Expr>& items = op.arg(1).as<Tuple>()->items;
  shape.assign(result.begin(), result.end() - (op.rank(0) - std::ssize(items)));
  for (const Expr& item : items) {
    Expr index = tensor_dtype(item.type()) == kInt64 ? item : b.op("astype", {item}, CastAttrs{kInt64});
    indices.push_back(b.op("broadcast_to", {index, shape_expr(shape)}));
  }
  return b.op("stack", {tuple(std::move(indices))}, AxisAttrs{-1});
}
Expr decompose_index_tensor(const OpCall& op, Builder& b) {
  std::vector<Expr> shape;
  return b.op("gather_nd", {op.arg(0), index_tuples(op, b, shape)});
}
// One index tensor stands for a tuple of it.
void complete_index_put(Call& call) {
  if (call.args.size() > 1 && call.args[1].type().is<TensorType>()) call.args[1] = tuple({call.args[1]});
}
Expr decompose_index_put(const OpCall& op, Builder& b) {
  std::vector<Expr> shape;
  Expr tuples = index_tuples(op, b, shape);
  Expr values = b.op("broadcast_to", {op.arg(2), shape_expr(indexed_shape(op))});
  std::string reduction = op.attrs<IndexPutAttrs>().accumulate ? "add" : "update";
  return b.op("scatter_nd", {op.arg(0), tuples, values}, ScatterNdAttrs{reduction});
}

// The result holds the positions of non-zero elements in row-major order, a column each. A scalar is a vector of one.
Type infer_nonzero(const OpCall& op) {
  return tensor_type({int_imm(std::max<int64_t>(op.rank(0), 1)), op.run_size(0)}, kInt64);
}
PrimFuncRef count_nonzero(const OpCall& op) {
  auto [b, inputs] = OpProgram(op);
  const Buffer x = inputs[0];
  return b.finish({b.reduce("T_count", kInt64, {int_imm(1)}, op.shape(0), int_imm(0), combine_sum,
                            [&](Axes, Axes r) { return cast_to(not_equal(load(x, r), zero(op.dtype(0))), kInt64); })});
}
// No more elements are listed than there is room for, whatever the count.
PrimFuncRef fill_nonzero(const OpCall& op) {
  auto [b, inputs] = OpProgram(op);
  const Buffer x = inputs[0];
  Buffer out = b.buffer("T_nonzero", kInt64, *known_shape(infer_nonzero(op)));
  Buffer count = b.buffer("count", kInt64, {int_imm(1)});
  Expr next = load(count, {int_imm(0)});
  Stmt scan = loop_nest(op.shape(0), [&](Axes i) {
    std::vector<Stmt> found;
    for (size_t d = 0; d < i.size(); ++d) found.push_back(store(out, i[d], {int_imm(static_cast<int64_t>(d)), next}));
    if (i.empty()) found.push_back(store(out, int_imm(0), {int_imm(0), next}));
    found.push_back(store(count, next + 1, {int_imm(0)}));
    Expr is_nonzero = not_equal(at(x, i), zero(op.dtype(0)));
    return make(IfThenElse{next < op.run_size(0) && is_nonzero, seq(std::move(found)), std::nullopt});
  });
  b.extern_block("scan", seq({store(count, int_imm(0), {int_imm(0)}), scan}));
  return b.finish({out});
}

reference::Tensors one_hot_vectors(const ReferenceCall& c) {
  OneHotAttrs attrs = c.attrs<OneHotAttrs>();
  reference::Index shape = c.x[0].shape();
  int64_t axis = attrs.axis < 0 ? attrs.axis + std::ssize(shape) + 1 : attrs.axis;
  shape.insert(shape.begin() + axis, attrs.depth);
  return {reference::tensor_of(shape, kFloat32, [&](reference::Index i) {
    auto position = static_cast<double>(i[axis]), depth = static_cast<double>(attrs.depth);
    i.erase(i.begin() + axis);
    double index = reference::element(c.x[0], i);
    return c.call.args[(index < 0 ? index + depth : index) == position ? 1 : 2].as<FloatImm>()->value;
  })};
}

}  // namespace

std::vector<OpRow> index_ops() {
  const OpInput data{"data", "the tensor"}, indices{"indices", "integers"}, updates{"updates", "the new elements"};
  const std::vector<std::string_view> reductions = {"update", "none", "add", "mul", "max", "min", "mean"};
  return {
      by_element({.name = "relax.take",
                  .doc = "slices of an axis (of the flattened tensor without one) at the indices",
                  .inputs = {{"x", "the tensor"}, indices},
                  .attrs = with_choices(op_attrs<TakeAttrs>(), "mode", {"fast", "clip", "wrap", "nan"}),
                  .moves = true,
                  .infer = infer_take,
                  .indexed = indexed_by_take},
                 take_element),
      by_element({.name = "relax.gather_elements",
                  .doc = "out[i, j] = data[indices[i, j], j], for axis 0",
                  .inputs = {data, indices},
                  .attrs = op_attrs<AxisAttrs>(),
                  .moves = true,
                  .infer = infer_gather_elements,
                  .indexed = [](const OpCall& op) { return indexed_axis(op, op.attrs<AxisAttrs>().axis, true); }},
                 gather_elements_element),
      by_element(
          {.name = "relax.gather_nd",
           .doc = "slices at the index tuples along the last axis of indices",
           .inputs = {data, indices},
           .attrs = op_attrs<GatherNdAttrs>(),
           .moves = true,
           .infer = infer_gather_nd,
           .indexed = [](const OpCall& op) { return indexed_axes(op, op.attrs<GatherNdAttrs>().batch_dims, true); }},
          gather_nd_element),
      {.name = "relax.check_indices",
       .doc = "the indices, after a test that each lies in [-dim, dim); with several dims the last axis of the "
              "indices has one per dim",
       .inputs = {indices, {"dims", "shape: sizes of the axes that are indexed"}},
       .attrs = op_attrs<CheckIndicesAttrs>(),
       .view = true,
       .infer = infer_check_indices},
      {.name = "relax.scatter_elements",
       .doc = "data with data[indices[i, j], j] = updates[i, j], for axis 0",
       .inputs = {data, indices, updates},
       .attrs = with_choices(op_attrs<ScatterElementsAttrs>(), "reduction", reductions),
       .moves = true,
       .infer = infer_scatter_elements,
       .legalize = lower_scatter_elements,
       .indexed = [](const OpCall& op) { return indexed_axis(op, op.attrs<ScatterElementsAttrs>().axis, false); }},
      {.name = "relax.scatter_nd",
       .doc = "data with slices replaced at the index tuples along the last axis of indices",
       .inputs = {data, indices, updates},
       .attrs = with_choices(op_attrs<ScatterNdAttrs>(), "reduction", reductions),
       .moves = true,
       .infer = infer_scatter_nd,
       .legalize = lower_scatter_nd,
       .indexed = [](const OpCall& op) { return indexed_axes(op, 0, false); }},
      by_element({.name = "relax.one_hot",
                  .doc = "on_value where the position along a new axis of size depth is the index, off_value elsewhere",
                  .inputs = {{"indices", "integers; negative ones count from depth"},
                             {"on_value", "scalar"},
                             {"off_value", "scalar"}},
                  .attrs = op_attrs<OneHotAttrs>(),
                  .infer = infer_one_hot,
                  .infer_partial = [](const OpCall& op) { return infer_unranked(dtype_of(op.arg(1))); },
                  .reference = one_hot_vectors},
                 one_hot_element),
      by_element({.name = "relax.dyn.one_hot",
                  .doc = "one_hot of a depth that may be symbolic and values that are tensors",
                  .inputs = {{"indices", "integers; negative ones count from depth"},
                             {"on_value", "tensor of rank 0"},
                             {"off_value", "tensor of rank 0"},
                             {"depth", "int64 scalar"}},
                  .attrs = op_attrs<LastAxisAttrs>(),
                  .moves = true,
                  .infer = infer_one_hot,
                  .infer_partial = [](const OpCall& op) { return infer_unranked(tensor_dtype(op.arg(1).type())); }},
                 one_hot_element),
      by_element({.name = "relax.reverse_sequence",
                  .doc = "the first length elements of the time axis reversed, for each batch element",
                  .inputs = {data, {"lengths", "an integer per batch element"}},
                  .attrs = op_attrs<ReverseSequenceAttrs>(),
                  .moves = true,
                  .infer = infer_reverse_sequence},
                 reverse_sequence_element),
      {.name = "relax.index_tensor",
       .doc = "elements at the broadcast positions that the index tensors give",
       .inputs = {data, {"indices", "tuple of integer tensors"}},
       .moves = true,
       .infer = infer_index_tensor,
       .decompose = decompose_index_tensor},
      {.name = "relax.index_put",
       .doc = "data with values at the broadcast positions that the index tensors give",
       .inputs = {data, {"indices", "tuple of integer tensors"}, {"values", "broadcast to the positions"}},
       .attrs = op_attrs<IndexPutAttrs>(),
       .moves = true,
       .infer = infer_index_put,
       .decompose = decompose_index_put,
       .complete = complete_index_put},
      {.name = "relax.nonzero",
       .doc = "positions of the elements that are not zero, one column each",
       .inputs = {{"x", "the tensor"}},
       .infer = infer_nonzero,
       .infer_partial = [](const OpCall&) { return tensor_type_of_rank(2, kInt64); },
       .legalize = fill_nonzero,
       .sizes = RunSizes{.names = {"found"}, .count = count_nonzero}},
  };
}

}  // namespace relaxc
