// Operators that move elements without computing: transposes, reshapes, joins and repeats. Shapes are ShapeExpr
// arguments (symbolic), and everything else is attributes. Slices and splits are in slice.cc, pads in pad.cc.
#include <algorithm>

#include "ir/builder.h"
#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/layouts.h"
#include "ops/ops.h"
#include "ops/reference.h"
#include "tir/analysis/iter_map.h"
#include "tir/index_map.h"

namespace relaxc {

namespace {

std::vector<int64_t> permutation(const OpCall& op) {
  int64_t rank = op.rank(0);
  AxesAttrs attrs = op.attrs<AxesAttrs>();
  if (attrs.axes && static_cast<int64_t>(attrs.axes->size()) != rank)
    op.fail("{} axes for a tensor of rank {}", attrs.axes->size(), rank);
  if (attrs.axes) return normalize_axes(op, *attrs.axes, rank);
  return attrs.permutation(static_cast<size_t>(rank));
}
Type infer_permute_dims(const OpCall& op) { return tensor_type(items_at(op.shape(0), permutation(op)), op.dtype(0)); }
Expr permute_dims_element(const OpCall& op, Inputs x, Axes i) {
  std::vector<int64_t> axes = permutation(op);
  std::vector<Expr> source = i;
  for (size_t d = 0; d < i.size(); ++d) source[axes[d]] = i[d];
  return load(x[0], source);
}

// One dim may be -1. It is inferred from the element count and the other dims.
Type infer_reshape(const OpCall& op) {
  std::vector<Expr> shape = op.shape(1);
  auto open = std::ranges::find_if(shape, [](const Expr& dim) { return is_int(dim, -1); });
  if (open != shape.end()) {
    *open = int_imm(1);
    Expr rest = product(shape), count = product(op.shape(0));
    auto known = as_int(simplify(rest)), known_count = as_int(simplify(count));
    if (known == 0) op.fail("the dim of -1 is not determined: the others have a product of 0");
    if (known && known_count && *known_count % *known != 0)
      op.fail("element counts before and after: {} and a multiple of {}", *known_count, *known);
    *open = simplify(floor_div(count, rest));
  }
  for (const Expr& dim : shape) op.require_at_most(int_imm(0), dim, "a dim is negative");
  op.require_equal(product(op.shape(0)), product(shape), "element counts before and after");
  return tensor_type(shape, op.dtype(0));
}
Type infer_flatten(const OpCall& op) { return tensor_type({simplify(product(op.shape(0)))}, op.dtype(0)); }
Expr flatten_element(const OpCall& op, Inputs x, Axes i) { return load(x[0], unflatten_index(i[0], op.shape(0))); }

Type infer_batch_flatten(const OpCall& op) {
  const std::vector<Expr>& shape = op.shape(0);
  if (shape.empty()) op.fail("expected at least one axis, got a scalar");
  return tensor_type({shape[0], simplify(product({shape.begin() + 1, shape.end()}))}, op.dtype(0));
}

Expr decompose_batch_flatten(const OpCall& op, Builder& b) {
  return b.op("reshape", {op.arg(0), shape_expr(*known_shape(infer_batch_flatten(op)))});
}

// These convert between the items of a tensor's axes and those of a tensor that also has the axes `added`. The items of
// added axes are dropped, or are `item`.
std::vector<Expr> without_axes(const std::vector<Expr>& list, const std::vector<int64_t>& added) {
  std::vector<int64_t> kept = int_range(0, std::ssize(list));
  std::erase_if(kept, [&](int64_t axis) { return contains(added, axis); });
  return items_at(list, kept);
}
std::vector<Expr> with_axes(std::vector<Expr> list, std::vector<int64_t> added, int64_t item) {
  std::ranges::sort(added);
  for (int64_t axis : added) list.insert(list.begin() + axis, int_imm(item));
  return list;
}
// A named axis of another size than 1 stays, as in torch, whose graphs name such axes.
std::vector<int64_t> squeezed_axes(const OpCall& op) {
  if (auto wanted = op.attrs<AxisListAttrs>().axis) {
    std::vector<int64_t> axes = normalize_axes(op, *wanted, op.rank(0));
    std::erase_if(axes, [&](int64_t axis) { return as_int(op.shape(0)[axis]).value_or(1) != 1; });
    return axes;
  }
  std::vector<int64_t> axes = int_range(0, op.rank(0));
  std::erase_if(axes, [&](int64_t axis) { return !is_int(op.shape(0)[axis], 1); });
  return axes;
}
Type infer_squeeze(const OpCall& op) {
  for (int64_t axis : squeezed_axes(op))
    op.require_equal(op.shape(0)[axis], int_imm(1), fmt::format("size of the squeezed axis {}", axis));
  return tensor_type(without_axes(op.shape(0), squeezed_axes(op)), op.dtype(0));
}
Expr squeeze_element(const OpCall& op, Inputs x, Axes i) { return load(x[0], with_axes(i, squeezed_axes(op), 0)); }

// Returns the axes as positions in the result.
std::vector<int64_t> expanded_axes(const OpCall& op) {
  auto axes = op.attrs<AxisListAttrs>().axis;
  if (!axes) op.fail("argument 'axis' is missing");
  return normalize_axes(op, *axes, op.rank(0) + static_cast<int64_t>(axes->size()));
}
Type infer_expand_dims(const OpCall& op) {
  return tensor_type(with_axes(op.shape(0), expanded_axes(op), 1), op.dtype(0));
}
Expr expand_dims_element(const OpCall& op, Inputs x, Axes i) { return load(x[0], without_axes(i, expanded_axes(op))); }

int64_t concat_axis(const OpCall& op, size_t rank) {
  std::optional<int64_t> axis = op.attrs<ConcatAttrs>().axis;
  if (!axis && rank != 1) op.fail("axis is None, so the tensors must have rank 1, got {}", rank);
  return normalize_axis(op, axis.value_or(0), static_cast<int64_t>(rank));
}
void check_joined(const OpCall& op, const std::vector<Type>& items) {
  size_t rank = known_shape(items[0])->size();
  for (const Type& item : items) {
    if (known_shape(item)->size() != rank) op.fail("tensors of rank {} and {}", rank, known_shape(item)->size());
  }
  common_dtype(op, items);
}
Type infer_concat(const OpCall& op) {
  std::vector<Type> items = tensor_list(op, 0);
  std::vector<Expr> shape = *known_shape(items[0]);
  int64_t axis = concat_axis(op, shape.size());
  check_joined(op, items);
  constexpr ptrdiff_t kMostSummands = 1000;  // trees of expressions are walked by recursion
  auto summands = std::ranges::count_if(items, [&](const Type& item) { return !as_int((*known_shape(item))[axis]); });
  if (summands > kMostSummands) {
    op.unsupported(
        "the joined dim is the sum of {} unknown ones, at most {} are supported; join the tensors in groups, "
        "with an R.match_cast of each group to a new dim",
        summands, kMostSummands);
  }
  for (size_t i = 1; i < items.size(); ++i) {
    const std::vector<Expr>& other = *known_shape(items[i]);
    for (size_t d = 0; d < shape.size(); ++d) {
      if (static_cast<int64_t>(d) == axis) {
        shape[d] = shape[d] + other[d];
        continue;
      }
      op.require_equal(shape[d], other[d], fmt::format("dim {} differs", d));
      if (as_int(other[d])) shape[d] = other[d];
    }
  }
  shape[axis] = simplify(shape[axis]);
  return tensor_type(std::move(shape), *tensor_dtype(items[0]));
}
// Returns element(k) for the first k from `first` to `last` at which before(k + 1) holds. The expression is nested no
// deeper than the logarithm of their number.
Expr choose_by_halves(size_t first, size_t last, const std::function<Expr(size_t)>& element,
                      const std::function<Expr(size_t)>& before) {
  if (first == last) return element(first);
  size_t middle = (first + last) / 2;
  return if_then_else(before(middle + 1), choose_by_halves(first, middle, element, before),
                      choose_by_halves(middle + 1, last, element, before));
}
// One block chooses the part of each element, so that others can be fused with it. Where several parts have sizes that
// the run decides, each part has a block, since every choice would hold the sum of all sizes before it. A schedule of
// very many blocks takes longer than these sums do.
PrimFuncRef lower_concat(const OpCall& op) {
  constexpr ptrdiff_t kMostChosen = 8, kMostBlocks = 40;
  ComputeBuilder b;
  std::vector<Buffer> inputs = inputs_of_tuple(b, op);
  Type type = infer_concat(op);
  const DType dtype = *tensor_dtype(type);
  const std::vector<Expr>& shape = *known_shape(type);
  int64_t axis = concat_axis(op, shape.size());
  auto extent = [&](const Buffer& input) { return buffer_type(input).shape[axis]; };
  std::vector<Expr> offsets = {int_imm(0)};
  for (const Buffer& input : inputs) offsets.push_back(simplify(offsets.back() + extent(input)));
  auto open = std::ranges::count_if(inputs, [&](const Buffer& input) { return !as_int(extent(input)); });
  if (open <= kMostChosen || std::ssize(inputs) > kMostBlocks) {
    return b.finish({b.compute("T_concat", dtype, shape, [&](Axes i) {
      auto element = [&](size_t k) { return load(inputs[k], with_item(i, axis, i[axis] - offsets[k])); };
      return choose_by_halves(0, inputs.size() - 1, element, [&](size_t k) { return i[axis] < offsets[k]; });
    })});
  }
  Buffer out = b.buffer("T_concat", dtype, shape);
  for (size_t k = 0; k < inputs.size(); ++k) {
    b.block(fmt::format("T_part_{}", k), with_item(shape, axis, extent(inputs[k])), {}, [&](Axes i, Axes) {
      Stmt copy = store(out, load(inputs[k], i), with_item(i, axis, i[axis] + offsets[k]));
      return ComputeBuilder::Bodies{std::nullopt, copy};
    });
  }
  return b.finish({out});
}

Type infer_stack(const OpCall& op) {
  std::vector<Type> items = tensor_list(op, 0);
  check_joined(op, items);
  std::vector<Expr> shape = *known_shape(items[0]);
  for (const Type& item : items) require_same_dims(op, shape, *known_shape(item), "differs");
  int64_t axis = normalize_axis(op, op.attrs<AxisAttrs>().axis, std::ssize(shape) + 1);
  return tensor_type(with_new_item(shape, axis, int_imm(std::ssize(items))), *tensor_dtype(items[0]));
}
PrimFuncRef lower_stack(const OpCall& op) {
  ComputeBuilder b;
  std::vector<Buffer> inputs = inputs_of_tuple(b, op);
  Type type = infer_stack(op);
  int64_t axis = normalize_axis(op, op.attrs<AxisAttrs>().axis, known_rank(type));
  return b.finish({b.compute("T_stack", *tensor_dtype(type), *known_shape(type), [&](Axes i) {
    auto element = [&](size_t k) { return load(inputs[k], without_item(i, axis)); };
    return choose_by_halves(0, inputs.size() - 1, element,
                            [&](size_t k) { return i[axis] < int_imm(static_cast<int64_t>(k)); });
  })});
}

// The result has the shape of argument 1, from which the data may have been broadcast.
Type infer_collapsed(const OpCall& op) {
  const std::vector<Expr>&from = op.shape(0), &shape = op.shape(1);
  if (shape.size() > from.size()) op.fail("a tensor of rank {} to a shape of rank {}", from.size(), shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!is_int(shape[d], 1))
      op.require_equal(from[from.size() - shape.size() + d], shape[d], "shapes do not broadcast");
  }
  return tensor_type(shape, op.dtype(0));
}

// Sums over the dims that a broadcast added, and over those that it stretched.
Expr decompose_collapsed(const OpCall& op, Builder& b) {
  const std::vector<Expr>&from = op.shape(0), &to = op.shape(1);
  size_t added = from.size() - to.size();
  ReduceAttrs attrs{.axis = std::vector<int64_t>(), .keepdims = true};
  for (size_t d = 0; d < from.size(); ++d) {
    bool is_summed = d < added || (is_int(to[d - added], 1) && !is_int(from[d], 1));
    if (is_summed) attrs.axis->push_back(static_cast<int64_t>(d));
  }
  Expr sum = attrs.axis->empty() ? op.arg(0) : b.op("sum", {op.arg(0)}, attrs);
  return b.op("reshape", {sum, shape_expr(to)});
}

// Each tensor has rank 1 or 0; "xy" swaps the first two axes of the results.
Type infer_meshgrid(const OpCall& op) {
  std::vector<Type> items = tensor_list(op, 0);
  std::vector<Expr> shape;
  for (const Type& item : items) {
    const std::vector<Expr>& dims = *known_shape(item);
    if (dims.size() > 1) op.fail("a tensor has rank {}, expected 1", dims.size());
    shape.push_back(dims.empty() ? int_imm(1) : dims[0]);
  }
  std::string indexing = op.attrs<MeshgridAttrs>().indexing;
  if (indexing == "xy" && shape.size() > 1) std::swap(shape[0], shape[1]);
  return tuple_type(std::vector<Type>(items.size(), tensor_type(shape, common_dtype(op, items))));
}

PrimFuncRef lower_meshgrid(const OpCall& op) {
  ComputeBuilder b;
  std::vector<Buffer> inputs = inputs_of_tuple(b, op), grids;
  Type type = infer_meshgrid(op).as<TupleType>()->items[0];
  bool is_swapped = op.attrs<MeshgridAttrs>().indexing == "xy" && inputs.size() > 1;
  for (size_t k = 0; k < inputs.size(); ++k) {
    size_t axis = is_swapped && k < 2 ? 1 - k : k;
    bool is_scalar = buffer_type(inputs[k]).shape.empty();
    auto element = [&](Axes i) { return load(inputs[k], is_scalar ? std::vector<Expr>() : std::vector{i[axis]}); };
    grids.push_back(b.compute(fmt::format("T_meshgrid_{}", k), *tensor_dtype(type), *known_shape(type), element));
  }
  return b.finish(grids);
}

// A dim of size 1 (known, or found at run time) is repeated; the others stay.
Type infer_broadcast_to(const OpCall& op) {
  const std::vector<Expr>&from = op.shape(0), &to = op.shape(1);
  if (from.size() > to.size()) op.fail("a tensor of rank {} to a shape of rank {}", from.size(), to.size());
  for (size_t d = 0; d < from.size(); ++d) {
    const Expr& target = to[to.size() - from.size() + d];
    if (as_int(from[d]) && !is_int(from[d], 1)) op.require_equal(from[d], target, "shapes do not broadcast");
    if (!as_int(from[d]))
      op.require_equal(select(equal(from[d], int_imm(1)), target, from[d]), target, "shapes do not broadcast");
  }
  return tensor_type(to, op.dtype(0));
}
Expr broadcast_to_element(const OpCall& op, Inputs x, Axes i) {
  const std::vector<Expr>&from = op.shape(0), &to = op.shape(1);
  Analyzer analyzer;
  std::vector<Expr> source(i.end() - op.rank(0), i.end());
  for (size_t d = 0; d < from.size(); ++d) {
    if (analyzer.can_prove(from[d] <= int_imm(1))) {
      source[d] = int_imm(0);
    } else if (!as_int(from[d]) && !analyzer.can_prove_equal(from[d], to[to.size() - from.size() + d])) {
      source[d] = select(equal(from[d], int_imm(1)), int_imm(0), source[d]);
    }
  }
  return load(x[0], source);
}

// tile has the counts as an attribute, dyn.tile as a shape. Leading 1s extend the shorter one of shape and counts.
std::vector<Expr> tile_repeats(const OpCall& op) {
  std::vector<Expr> repeats = op.size() > 1 ? op.shape(1) : int_imms(op.attrs<TileAttrs>().repeats);
  size_t missing = op.shape(0).size() - std::min(op.shape(0).size(), repeats.size());
  repeats.insert(repeats.begin(), missing, int_imm(1));
  return repeats;
}
Type infer_tile(const OpCall& op) {
  std::vector<Expr> result = tile_repeats(op);
  size_t added = result.size() - op.shape(0).size();
  for (size_t d = 0; d < result.size(); ++d) {
    op.require_at_most(int_imm(0), result[d], fmt::format("repeats of axis {} are negative", d));
    if (d >= added) result[d] = size_product(op, op.shape(0)[d - added], result[d]);
  }
  return tensor_type(std::move(result), op.dtype(0));
}
Expr tile_element(const OpCall& op, Inputs x, Axes i) {
  std::vector<Expr> repeats = tile_repeats(op);
  size_t added = repeats.size() - op.shape(0).size();
  std::vector<Expr> source;
  for (size_t d = added; d < i.size(); ++d)
    source.push_back(is_int(repeats[d], 1) ? i[d] : floor_mod(i[d], op.shape(0)[d - added]));
  return load(x[0], source);
}

// Repeats along axes of their own where a remainder by a symbolic dim would find each element. A remainder by a
// constant goes away in loops.
Expr decompose_tile(const OpCall& op, Builder& b) {
  const std::vector<Expr> repeats = tile_repeats(op), &dims = op.shape(0);
  const size_t added = repeats.size() - dims.size();
  std::vector<Expr> apart, repeated;
  bool is_symbolic = false;
  for (size_t d = 0; d < repeats.size(); ++d) {
    const Expr dim = d < added ? int_imm(1) : dims[d - added];
    const bool is_repeated = !is_int(repeats[d], 1);
    is_symbolic = is_symbolic || (is_repeated && !as_int(dim));
    if (is_repeated) apart.push_back(int_imm(1)), repeated.push_back(repeats[d]);
    apart.push_back(dim);
    repeated.push_back(dim);
  }
  if (!is_symbolic && op.size() > 1) return b.op("dyn.tile", {op.arg(0), op.arg(1)});
  if (!is_symbolic) return b.op("tile", {op.arg(0)}, op.attrs<TileAttrs>());
  Expr all = b.op("broadcast_to", {b.op("reshape", {op.arg(0), shape_expr(apart)}), shape_expr(repeated)});
  return b.op("reshape", {all, shape_expr(*known_shape(infer_tile(op)))});
}

Type infer_repeat(const OpCall& op) {
  RepeatAttrs attrs = op.attrs<RepeatAttrs>();
  if (attrs.repeats < 1) op.fail("repeats is {}, expected at least 1", attrs.repeats);
  if (!attrs.axis)
    return tensor_type({size_product(op, simplify(product(op.shape(0))), int_imm(attrs.repeats))}, op.dtype(0));
  std::vector<Expr> shape = op.shape(0);
  int64_t axis = normalize_axis(op, *attrs.axis, op.rank(0));
  shape[axis] = size_product(op, shape[axis], int_imm(attrs.repeats));
  return tensor_type(std::move(shape), op.dtype(0));
}
Expr repeat_element(const OpCall& op, Inputs x, Axes i) {
  RepeatAttrs attrs = op.attrs<RepeatAttrs>();
  int64_t axis = attrs.axis ? normalize_axis(op, *attrs.axis, op.rank(0)) : 0;
  if (!attrs.axis) return load(x[0], unflatten_index(floor_div(i[0], attrs.repeats), op.shape(0)));
  return load(x[0], with_item(i, axis, floor_div(i[axis], attrs.repeats)));
}

Type infer_flip(const OpCall& op) {
  normalize_axis(op, op.attrs<AxisAttrs>().axis, op.rank(0));
  return infer_like_first(op);
}
Expr flip_element(const OpCall& op, Inputs x, Axes i) {
  int64_t axis = normalize_axis(op, op.attrs<AxisAttrs>().axis, op.rank(0));
  return load(x[0], with_item(i, axis, op.shape(0)[axis] - 1 - i[axis]));
}

// ---- layout_transform

Ref<Lambda> index_map_of(const OpCall& op) {
  auto map = read_index_map(op.attrs<LayoutTransformAttrs>().index_map, op.span);
  if (!map) op.fail("argument 'index_map' is missing; write it as T.index_map(lambda i, j: (...))");
  if (std::ssize((*map)->params) != op.rank(0))
    op.fail("the index map takes {} positions, the tensor has rank {}", (*map)->params.size(), op.rank(0));
  return *map;
}
constexpr const char* kUnknownRange = "gives positions of which the range is not known";
Type infer_layout_transform(const OpCall& op) {
  Ref<Lambda> map = index_map_of(op);
  auto shape = mapped_shape(*map, op.shape(0));
  if (!shape) op.unsupported("the index map {}", kUnknownRange);
  return tensor_type(*shape, op.dtype(0));
}
Expr pad_of(const OpCall& op) {
  AttrValue value = op.attrs<LayoutTransformAttrs>().pad_value;
  if (const Expr* number = value.as<Expr>()) return cast_to(*number, op.dtype(0));
  double pad = 0;
  if (!value.is_none() && !from_attr(value, pad)) op.fail("pad_value is {}, expected a number", to_string(value));
  return scalar_imm(pad, op.dtype(0));
}
// Each element goes to its place. Places that no element goes to hold the pad value, so that the tensor is filled with
// it before, unless there are as many places as elements.
PrimFuncRef lower_layout_transform(const OpCall& op) {
  Ref<Lambda> map = index_map_of(op);
  const std::vector<Expr> shape = *known_shape(infer_layout_transform(op));
  auto [b, inputs] = OpProgram(op);
  const Buffer x = inputs[0];
  if (std::string problem = problem_of_index_map(*map, op.arg(0).type()); !problem.empty())
    op.unsupported("the index map {}", problem);
  Analyzer facts;
  facts.assume_dims(op.arg(0).type());
  bool is_full = facts.can_prove_equal(product(shape), product(op.shape(0)));
  Buffer out = is_full ? b.buffer("T_layout_transform", op.dtype(0), shape)
                       : b.compute("T_layout_transform", op.dtype(0), shape, [&](Axes) { return pad_of(op); });
  b.block("T_layout_transform_place", op.shape(0), {},
          [&](Axes i, Axes) { return ComputeBuilder::Bodies{std::nullopt, store(out, at(x, i), mapped(*map, i))}; });
  return b.finish({out});
}

// The result has the dims of argument 1, which is a shape, and the dtype of the first argument.
Type infer_partial_to_shape(const OpCall& op) {
  const std::vector<Expr>* dims = known_shape(op.arg(1).type());
  bool is_open = dims && std::ranges::any_of(*dims, [](const Expr& dim) { return is_int(dim, -1); });
  return dims && !is_open ? tensor_type(*dims, op.first_dtype()) : infer_same_rank(op, 1, op.first_dtype());
}

// ---- References

using reference::Tensors, reference::moved, reference::with_position;
using Index = reference::Index;

Tensors flattened(const ReferenceCall& c) { return {c.x[0].reshaped(Index{c.x[0].size()})}; }
Tensors flipped(const ReferenceCall& c) {
  int64_t axis = c.attrs<AxisAttrs>().axis;
  const Index& shape = c.x[0].shape();
  return {moved(c.x[0], shape, [&](const Index& i) { return with_position(i, axis, shape[axis] - 1 - i[axis]); })};
}
Tensors tiled(const ReferenceCall& c) {
  Index from = c.x[0].shape(), shape = c.attrs<TileAttrs>().repeats;
  if (shape.size() < from.size()) shape.insert(shape.begin(), from.size() - shape.size(), 1);
  size_t added = shape.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d) shape[added + d] *= from[d];
  return {moved(c.x[0], shape, [&](Index i) {
    i.erase(i.begin(), i.begin() + static_cast<int64_t>(added));
    for (size_t d = 0; d < from.size(); ++d) i[d] %= from[d];
    return i;
  })};
}
Tensors repeated(const ReferenceCall& c) {
  auto [repeats, axis] = c.attrs<RepeatAttrs>();
  Tensor x = axis ? c.x[0] : c.x[0].reshaped(Index{c.x[0].size()});
  Index shape = x.shape();
  int64_t along = axis.value_or(0);
  shape[along] *= repeats;
  return {moved(x, shape, [&](const Index& i) { return with_position(i, along, i[along] / repeats); })};
}
Tensors stacked(const ReferenceCall& c) {
  int64_t axis = c.attrs<AxisAttrs>().axis;
  Index shape = c.x[0].shape();
  shape.insert(shape.begin() + axis, std::ssize(c.x));
  return {reference::tensor_of(shape, c.x[0].dtype(), [&](Index i) {
    const Tensor& x = c.x[static_cast<size_t>(i[axis])];
    i.erase(i.begin() + axis);
    return reference::element(x, i);
  })};
}

}  // namespace

std::vector<OpRow> layout_ops() {
  const std::vector<OpInput> x = {{"x", "the tensor"}}, data = {{"data", "the tensor"}};
  const auto injective = OpPattern::kInjective;
  std::vector<OpRow> rows = {
      by_element({.name = "relax.permute_dims",
                  .doc = "axes in another order; reversed when no axes are given",
                  .inputs = x,
                  .attrs = op_attrs<AxesAttrs>(),
                  .infer = infer_permute_dims},
                 permute_dims_element, OpPattern::kInjective, "T_transpose"),
      {.name = "relax.reshape",
       .doc = "the elements in row-major order under another shape of the same size",
       .inputs = {{"x", "the tensor"},
                  {"shape", "the new dims; one may be -1", OpInput::Arity::kOne, OpInput::Form::kShape}},
       .pattern = injective,
       .view = true,
       .infer = infer_reshape,
       .infer_partial = infer_partial_to_shape},
      by_element({.name = "relax.flatten",
                  .doc = "all elements as one axis",
                  .inputs = x,
                  .infer = infer_flatten,
                  .reference = flattened},
                 flatten_element),
      {.name = "relax.nn.batch_flatten",
       .doc = "all axes but the first as one",
       .inputs = data,
       .infer = infer_batch_flatten,
       .decompose = decompose_batch_flatten},
      by_element({.name = "relax.squeeze",
                  .doc = "the tensor without the given axes of size 1; without all of them by default",
                  .inputs = x,
                  .attrs = op_attrs<AxisListAttrs>(),
                  .infer = infer_squeeze,
                  .needs_dims = [](const OpCall& op) { return !op.attrs<AxisListAttrs>().axis; }},
                 squeeze_element),
      by_element({.name = "relax.expand_dims",
                  .doc = "the tensor with axes of size 1 at these positions of the result",
                  .inputs = x,
                  .attrs = op_attrs<AxisListAttrs>(),
                  .infer = infer_expand_dims},
                 expand_dims_element),
      {.name = "relax.concat",
       .doc = "tensors joined along an axis",
       .inputs = {{"tensors", "tuple of tensors"}},
       .attrs = op_attrs<ConcatAttrs>(),
       .pattern = injective,
       .infer = infer_concat,
       .legalize = lower_concat,
       .layouts = layout_of_concat},
      {.name = "relax.stack",
       .doc = "tensors of one shape joined along a new axis",
       .inputs = {{"tensors", "tuple of tensors"}},
       .attrs = op_attrs<AxisAttrs>(),
       .pattern = injective,
       .infer = infer_stack,
       .legalize = lower_stack,
       .reference = stacked},
      {.name = "relax.meshgrid",
       .doc = "the coordinates of a grid, one tensor for each of its axes",
       .inputs = {{"tensors", "tuple of tensors of rank 1"}},
       .attrs = with_choices(op_attrs<MeshgridAttrs>(), "indexing", {"ij", "xy"}),
       .pattern = injective,
       .infer = infer_meshgrid,
       .infer_partial = infer_unknown,
       .legalize = lower_meshgrid},
      {.name = "relax.collapse_sum_to",
       .doc = "sums that undo a broadcast from the shape",
       .inputs = {{"data", "the tensor"}, {"shape", "the result's dims"}},
       .infer = infer_collapsed,
       .infer_partial = infer_partial_to_shape,
       .decompose = decompose_collapsed},
      {.name = "relax.collapse_sum_like",
       .doc = "sums that undo a broadcast from the target's shape",
       .inputs = {{"data", "the tensor"}, {"collapse_target", "tensor of the result's shape"}},
       .infer = infer_collapsed,
       .infer_partial = infer_partial_to_shape,
       .decompose = decompose_collapsed},
      {.name = "relax.layout_transform",
       .doc = "the elements at the positions that an index map gives; axis separators have no meaning in flat memory",
       .inputs = x,
       .attrs = op_attrs<LayoutTransformAttrs>(),
       .infer = infer_layout_transform,
       .infer_partial = [](const OpCall& op) { return infer_unranked(op.first_dtype()); },
       .legalize = lower_layout_transform},
      by_element({.name = "relax.broadcast_to",
                  .doc = "sizes of 1 repeated to a shape",
                  .inputs = {{"x", "the tensor"}, {"shape", "the result's dims"}},
                  .infer = infer_broadcast_to,
                  .infer_partial = infer_partial_to_shape},
                 broadcast_to_element, OpPattern::kBroadcast),
      by_element({.name = "relax.tile",
                  .doc = "the whole tensor repeated along each axis",
                  .inputs = {{"data", "the tensor"}},
                  .attrs = op_attrs<TileAttrs>(),
                  .infer = infer_tile,
                  .decompose = decompose_tile,
                  .reference = tiled},
                 tile_element),
      by_element({.name = "relax.dyn.tile",
                  .doc = "tile by counts that may be symbolic",
                  .inputs = {{"data", "the tensor"}, {"repeats", "shape: a count per axis"}},
                  .infer = infer_tile,
                  .decompose = decompose_tile},
                 tile_element),
      by_element({.name = "relax.repeat",
                  .doc = "each element repeated along an axis",
                  .inputs = data,
                  .attrs = op_attrs<RepeatAttrs>(),
                  .infer = infer_repeat,
                  .reference = repeated},
                 repeat_element),
      by_element({.name = "relax.flip",
                  .doc = "an axis reversed",
                  .inputs = data,
                  .attrs = op_attrs<AxisAttrs>(),
                  .infer = infer_flip,
                  .reference = flipped},
                 flip_element),
  };
  for (OpRow& row : rows) row.moves = !row.name.starts_with("relax.collapse_sum");
  return rows;
}

std::string problem_of_index_map(const Lambda& map, const Type& tensor) {
  const std::vector<Expr>& dims = *known_shape(tensor);
  if (map.params.size() != dims.size())
    return fmt::format("takes {} positions, and the tensor has rank {}", map.params.size(), dims.size());
  std::optional<std::vector<Expr>> shape = mapped_shape(map, dims);
  if (!shape) return kUnknownRange;
  double places = 1;
  for (const Expr& dim : *shape) places *= static_cast<double>(as_int(dim).value_or(1));
  if (places > 1e12) return fmt::format("spreads the elements over {} places", places);
  std::vector<LoopRange> positions;
  std::vector<Expr> vars;
  for (const Expr& dim : dims) {
    positions.push_back({make_dim("i"), {int_imm(0), dim}});
    vars.push_back(positions.back().var);
  }
  std::string why;
  Analyzer facts;
  facts.assume_dims(tensor);
  bool is_injective = find_injective_map(mapped(map, vars), positions, {}, facts, &why).has_value();
  return is_injective ? "" : "is not known to be one to one: " + why;
}

}  // namespace relaxc
