// Operators that move elements without computing: transposes, reshapes, joins and repeats. Shapes are ShapeExpr
// arguments (symbolic), and everything else is attributes. Slices, splits and pads are in slice.cc.
#include <algorithm>
#include <functional>
#include <numeric>

#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace relaxc {

namespace {

// Makes a program of one output: out[i] = x[source(i)].
PrimFuncRef gather_elements_of(const OpCall& op, const char* name, const std::vector<Expr>& shape,
                               const std::function<std::vector<Expr>(Axes)>& source) {
  ComputeBuilder b;
  Buffer x = b.inputs_of(op)[0];
  return b.finish({b.compute(name, op.dtype(0), shape, [&](Axes i) { return load(x, source(i)); })});
}

const std::vector<Expr>& output_shape(const Type& type) { return *known_shape(type); }

std::vector<int64_t> permutation(const OpCall& op) {
  int64_t rank = op.rank(0);
  AxesAttrs attrs = op.attrs<AxesAttrs>();
  if (attrs.axes && static_cast<int64_t>(attrs.axes->size()) != rank)
    op.fail("{} axes for a tensor of rank {}", attrs.axes->size(), rank);
  if (attrs.axes) return normalize_axes(op, *attrs.axes, rank);
  return attrs.permutation(static_cast<size_t>(rank));
}
Type infer_permute_dims(const OpCall& op) {
  std::vector<Expr> shape;
  for (int64_t axis : permutation(op)) shape.push_back(op.shape(0)[axis]);
  return tensor_type(std::move(shape), op.dtype(0));
}

// Makes a program that gives the same elements in row-major order another shape.
PrimFuncRef reshaped(const OpCall& op, const char* name, const std::vector<Expr>& shape) {
  return gather_elements_of(op, name, shape,
                            [&](Axes i) { return unflatten_index(flatten_index(i, shape), op.shape(0)); });
}
// One dim may be -1. It gets the elements that the others leave.
Type infer_reshape(const OpCall& op) {
  std::vector<Expr> shape = op.shape(1);
  auto open = std::find_if(shape.begin(), shape.end(), [](const Expr& dim) { return is_int(dim, -1); });
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

Type infer_squeeze(const OpCall& op) {
  const std::vector<Expr>& shape = op.shape(0);
  auto wanted = op.attrs<AxisListAttrs>().axis;
  std::vector<bool> dropped(shape.size());
  if (wanted) {
    for (int64_t axis : normalize_axes(op, *wanted, op.rank(0))) {
      op.require_equal(shape[axis], int_imm(1), fmt::format("size of the squeezed axis {}", axis));
      dropped[axis] = true;
    }
  } else {
    for (size_t d = 0; d < shape.size(); ++d) dropped[d] = is_int(shape[d], 1);
  }
  std::vector<Expr> result;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!dropped[d]) result.push_back(shape[d]);
  }
  return tensor_type(std::move(result), op.dtype(0));
}
PrimFuncRef lower_squeeze(const OpCall& op) {
  const std::vector<Expr>& shape = op.shape(0);
  auto wanted = op.attrs<AxisListAttrs>().axis;
  std::vector<int64_t> axes;
  if (wanted) axes = normalize_axes(op, *wanted, op.rank(0));
  return gather_elements_of(op, "T_squeeze", output_shape(infer_squeeze(op)), [&](Axes i) {
    std::vector<Expr> source;
    size_t next = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      bool gone =
          wanted ? std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end() : is_int(shape[d], 1);
      source.push_back(gone ? int_imm(0) : i[next++]);
    }
    return source;
  });
}

// Returns the axes as positions in the result.
std::vector<int64_t> expanded_axes(const OpCall& op) {
  auto axes = op.attrs<AxisListAttrs>().axis;
  if (!axes) op.fail("argument 'axis' is missing");
  return normalize_axes(op, *axes, op.rank(0) + static_cast<int64_t>(axes->size()));
}
Type infer_expand_dims(const OpCall& op) {
  std::vector<int64_t> axes = expanded_axes(op);
  std::vector<Expr> shape(op.shape(0).size() + axes.size(), int_imm(1));
  size_t next = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) == axes.end()) shape[d] = op.shape(0)[next++];
  }
  return tensor_type(std::move(shape), op.dtype(0));
}
PrimFuncRef lower_expand_dims(const OpCall& op) {
  std::vector<int64_t> axes = expanded_axes(op);
  return gather_elements_of(op, "T_expand_dims", output_shape(infer_expand_dims(op)), [&](Axes i) {
    std::vector<Expr> source;
    for (size_t d = 0; d < i.size(); ++d) {
      if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) == axes.end()) source.push_back(i[d]);
    }
    return source;
  });
}

int64_t concat_axis(const OpCall& op, size_t rank) {
  std::optional<int64_t> axis = op.attrs<ConcatAttrs>().axis;
  if (!axis && rank != 1) op.fail("axis is None, so the tensors must have rank 1, got {}", rank);
  return normalize_axis(op, axis.value_or(0), static_cast<int64_t>(rank));
}
Type infer_concat(const OpCall& op) {
  std::vector<Type> items = tensor_list(op, 0);
  std::vector<Expr> shape = *known_shape(items[0]);
  int64_t axis = concat_axis(op, shape.size());
  constexpr size_t kMostSummands = 1000;  // trees of expressions are walked by recursion
  size_t summands = 0;
  for (const Type& item : items) {
    const std::vector<Expr>& other = *known_shape(item);
    if (other.size() != shape.size()) op.fail("tensors of rank {} and {}", shape.size(), other.size());
    summands += as_int(other[static_cast<size_t>(axis)]) ? 0 : 1;
  }
  if (summands > kMostSummands) {
    op.unsupported(
        "the joined dim is the sum of {} unknown ones, at most {} are supported; join the tensors in groups, "
        "with an R.match_cast of each group to a dim of its own",
        summands, kMostSummands);
  }
  for (size_t i = 1; i < items.size(); ++i) {
    const std::vector<Expr>& other = *known_shape(items[i]);
    if (*tensor_dtype(items[i]) != *tensor_dtype(items[0]))
      op.fail("tensors have different dtypes: {} and {}", to_string(*tensor_dtype(items[0])),
              to_string(*tensor_dtype(items[i])));
    for (size_t d = 0; d < shape.size(); ++d) {
      if (static_cast<int64_t>(d) == axis) {
        shape[d] = shape[d] + other[d];
      } else {
        op.require_equal(shape[d], other[d], fmt::format("dim {} differs", d));
        if (as_int(other[d])) shape[d] = other[d];
      }
    }
  }
  shape[axis] = simplify(shape[axis]);
  return tensor_type(std::move(shape), *tensor_dtype(items[0]));
}
// Makes a param for each tensor of a tuple.
std::vector<Buffer> inputs_of_tuple(ComputeBuilder& b, const OpCall& op) {
  if (op.arg(0).is<Tuple>()) return b.inputs_of(op);
  std::vector<Buffer> inputs;
  for (const Type& item : tensor_list(op, 0))
    inputs.push_back(b.input(fmt::format("input{}", inputs.size()), *tensor_dtype(item), *known_shape(item)));
  return inputs;
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
PrimFuncRef lower_concat(const OpCall& op) {
  ComputeBuilder b;
  std::vector<Buffer> inputs = inputs_of_tuple(b, op);
  std::vector<Expr> shape = output_shape(infer_concat(op));
  int64_t axis = concat_axis(op, shape.size());
  std::vector<Expr> offsets = {int_imm(0)};
  for (const Buffer& input : inputs) offsets.push_back(simplify(offsets.back() + buffer_type(input).shape[axis]));
  Buffer out = b.compute("T_concat", buffer_type(inputs[0]).dtype, shape, [&](Axes i) {
    auto element = [&](size_t k) {
      std::vector<Expr> source = i;
      source[axis] = i[axis] - offsets[k];
      return load(inputs[k], source);
    };
    return choose_by_halves(0, inputs.size() - 1, element, [&](size_t k) { return i[axis] < offsets[k]; });
  });
  return b.finish({out});
}

Type infer_stack(const OpCall& op) {
  std::vector<Type> items = tensor_list(op, 0);
  std::vector<Expr> shape = *known_shape(items[0]);
  for (const Type& item : items) {
    const std::vector<Expr>& other = *known_shape(item);
    if (other.size() != shape.size()) op.fail("tensors of rank {} and {}", shape.size(), other.size());
    if (*tensor_dtype(item) != *tensor_dtype(items[0]))
      op.fail("tensors have different dtypes: {} and {}", to_string(*tensor_dtype(items[0])),
              to_string(*tensor_dtype(item)));
    for (size_t d = 0; d < shape.size(); ++d) op.require_equal(shape[d], other[d], fmt::format("dim {} differs", d));
  }
  int64_t axis = normalize_axis(op, op.attrs<AxisAttrs>().axis, static_cast<int64_t>(shape.size()) + 1);
  shape.insert(shape.begin() + axis, int_imm(static_cast<int64_t>(items.size())));
  return tensor_type(std::move(shape), *tensor_dtype(items[0]));
}
PrimFuncRef lower_stack(const OpCall& op) {
  ComputeBuilder b;
  std::vector<Buffer> inputs = inputs_of_tuple(b, op);
  std::vector<Expr> shape = output_shape(infer_stack(op));
  int64_t axis = normalize_axis(op, op.attrs<AxisAttrs>().axis, static_cast<int64_t>(shape.size()));
  return b.finish({b.compute("T_stack", buffer_type(inputs[0]).dtype, shape, [&](Axes i) {
    std::vector<Expr> source = i;
    source.erase(source.begin() + axis);
    return choose_by_halves(
        0, inputs.size() - 1, [&](size_t k) { return load(inputs[k], source); },
        [&](size_t k) { return i[axis] < int_imm(static_cast<int64_t>(k)); });
  })});
}

// The result has the shape `shape`, from which the data may have been broadcast.
Type collapsed(const OpCall& op, const std::vector<Expr>& shape) {
  const std::vector<Expr>& from = op.shape(0);
  if (shape.size() > from.size()) op.fail("a tensor of rank {} to a shape of rank {}", from.size(), shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!is_int(shape[d], 1))
      op.require_equal(from[from.size() - shape.size() + d], shape[d], "shapes do not broadcast");
  }
  return tensor_type(shape, op.dtype(0));
}

// Each tensor has rank 1 or 0; "xy" swaps the first two axes of the results.
Type infer_meshgrid(const OpCall& op) {
  std::vector<Type> items = tensor_list(op, 0);
  std::vector<Expr> shape;
  for (const Type& item : items) {
    const std::vector<Expr>& dims = *known_shape(item);
    if (dims.size() > 1) op.fail("a tensor has rank {}, expected 1", dims.size());
    if (*tensor_dtype(item) != *tensor_dtype(items[0])) op.fail("tensors have different dtypes");
    shape.push_back(dims.empty() ? int_imm(1) : dims[0]);
  }
  std::string indexing = op.attrs<MeshgridAttrs>().indexing;
  if (indexing == "xy" && shape.size() > 1) std::swap(shape[0], shape[1]);
  return tuple_type(std::vector<Type>(items.size(), tensor_type(shape, *tensor_dtype(items[0]))));
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
PrimFuncRef lower_broadcast_to(const OpCall& op) {
  const std::vector<Expr>&from = op.shape(0), &to = op.shape(1);
  Analyzer analyzer;
  return gather_elements_of(op, "T_broadcast_to", to, [&](Axes i) {
    std::vector<Expr> source;
    for (size_t d = 0; d < from.size(); ++d) {
      size_t target = to.size() - from.size() + d;
      if (is_int(from[d], 1)) {
        source.push_back(int_imm(0));
      } else if (as_int(from[d]) || analyzer.can_prove_equal(from[d], to[target])) {
        source.push_back(i[target]);
      } else {
        source.push_back(select(equal(from[d], int_imm(1)), int_imm(0), i[target]));
      }
    }
    return source;
  });
}

// tile has the counts as an attribute, dyn.tile as a shape. The shorter one of shape and counts is extended by leading
// 1s.
std::vector<Expr> tile_repeats(const OpCall& op) {
  std::vector<Expr> repeats;
  if (op.size() > 1) {
    repeats = op.shape(1);
  } else {
    for (int64_t count : op.attrs<TileAttrs>().repeats) repeats.push_back(int_imm(count));
  }
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
PrimFuncRef lower_tile(const OpCall& op) {
  std::vector<Expr> repeats = tile_repeats(op);
  size_t added = repeats.size() - op.shape(0).size();
  return gather_elements_of(op, "T_tile", output_shape(infer_tile(op)), [&](Axes i) {
    std::vector<Expr> source;
    for (size_t d = added; d < i.size(); ++d)
      source.push_back(is_int(repeats[d], 1) ? i[d] : floor_mod(i[d], op.shape(0)[d - added]));
    return source;
  });
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
PrimFuncRef lower_repeat(const OpCall& op) {
  RepeatAttrs attrs = op.attrs<RepeatAttrs>();
  int64_t axis = attrs.axis ? normalize_axis(op, *attrs.axis, op.rank(0)) : 0;
  return gather_elements_of(op, "T_repeat", output_shape(infer_repeat(op)), [&](Axes i) {
    if (!attrs.axis) return unflatten_index(floor_div(i[0], attrs.repeats), op.shape(0));
    std::vector<Expr> source = i;
    source[axis] = floor_div(i[axis], attrs.repeats);
    return source;
  });
}

Type infer_flip(const OpCall& op) {
  normalize_axis(op, op.attrs<AxisAttrs>().axis, op.rank(0));
  return tensor_type(op.shape(0), op.dtype(0));
}
PrimFuncRef lower_flip(const OpCall& op) {
  int64_t axis = normalize_axis(op, op.attrs<AxisAttrs>().axis, op.rank(0));
  return gather_elements_of(op, "T_flip", op.shape(0), [&](Axes i) {
    std::vector<Expr> source = i;
    source[axis] = op.shape(0)[axis] - 1 - i[axis];
    return source;
  });
}

PrimFuncRef lower_permute_dims(const OpCall& op) {
  std::vector<int64_t> axes = permutation(op);
  return gather_elements_of(op, "T_transpose", output_shape(infer_permute_dims(op)), [&](Axes i) {
    std::vector<Expr> source(i.size(), int_imm(0));
    for (size_t d = 0; d < i.size(); ++d) source[axes[d]] = i[d];
    return source;
  });
}

// The result has the dims of a shape argument, and the dtype of the first argument.
Type infer_partial_to_shape(const OpCall& op, size_t shape) {
  const std::vector<Expr>* dims = known_shape(op.arg(shape).type());
  bool is_open = dims && std::any_of(dims->begin(), dims->end(), [](const Expr& dim) { return is_int(dim, -1); });
  if (dims && !is_open) return tensor_type(*dims, op.first_dtype());
  return tensor_type_of_rank(known_rank(op.arg(shape).type()), op.first_dtype());
}

}  // namespace

std::vector<OpRow> slice_ops();

std::vector<OpRow> layout_ops() {
  const std::vector<OpInput> x = {{"x", "the tensor"}}, data = {{"data", "the tensor"}};
  const auto injective = OpPattern::kInjective;
  std::vector<OpRow> rows = {
      {.name = "relax.permute_dims",
       .doc = "axes in another order; reversed when no axes are given",
       .inputs = x,
       .attrs = op_attrs<AxesAttrs>(),
       .pattern = injective,
       .infer = infer_permute_dims,
       .legalize = lower_permute_dims},
      {.name = "relax.reshape",
       .doc = "the elements in row-major order under another shape of the same size",
       .inputs = {{"x", "the tensor"},
                  {"shape", "the new dims; one may be -1", OpInput::Arity::kOne, OpInput::Form::kShape}},
       .pattern = injective,
       .view = true,
       .infer = infer_reshape,
       .infer_partial = [](const OpCall& op) { return infer_partial_to_shape(op, 1); }},
      {.name = "relax.flatten",
       .doc = "all elements as one axis",
       .inputs = x,
       .pattern = injective,
       .infer = infer_flatten,
       .legalize = [](const OpCall& op) { return reshaped(op, "T_flatten", output_shape(infer_flatten(op))); }},
      {.name = "relax.squeeze",
       .doc = "without the given axes of size 1; without all of them by default",
       .inputs = x,
       .attrs = op_attrs<AxisListAttrs>(),
       .pattern = injective,
       .infer = infer_squeeze,
       .legalize = lower_squeeze},
      {.name = "relax.expand_dims",
       .doc = "with axes of size 1 at these positions of the result",
       .inputs = x,
       .attrs = op_attrs<AxisListAttrs>(),
       .pattern = injective,
       .infer = infer_expand_dims,
       .legalize = lower_expand_dims},
      {.name = "relax.concat",
       .doc = "tensors joined along an axis",
       .inputs = {{"tensors", "tuple of tensors"}},
       .attrs = op_attrs<ConcatAttrs>(),
       .pattern = injective,
       .infer = infer_concat,
       .legalize = lower_concat},
      {.name = "relax.stack",
       .doc = "tensors of one shape joined along a new axis",
       .inputs = {{"tensors", "tuple of tensors"}},
       .attrs = op_attrs<AxisAttrs>(),
       .pattern = injective,
       .infer = infer_stack,
       .legalize = lower_stack},
      {.name = "relax.meshgrid",
       .doc = "the coordinates of a grid, one tensor for each of its axes",
       .inputs = {{"tensors", "tuple of tensors of rank 1"}},
       .attrs = with_choices(op_attrs<MeshgridAttrs>(), "indexing", {"ij", "xy"}),
       .infer = infer_meshgrid,
       .infer_partial = infer_unknown},
      {.name = "relax.collapse_sum_to",
       .doc = "sums that undo a broadcast from the shape",
       .inputs = {{"data", "the tensor"}, {"shape", "the result's dims"}},
       .infer = [](const OpCall& op) { return collapsed(op, op.shape(1)); }},
      {.name = "relax.collapse_sum_like",
       .doc = "sums that undo a broadcast from the target's shape",
       .inputs = {{"data", "the tensor"}, {"collapse_target", "tensor of the result's shape"}},
       .infer = [](const OpCall& op) { return collapsed(op, op.shape(1)); }},
      {.name = "relax.layout_transform",
       .doc = "the elements at the positions that an index map gives",
       .inputs = x,
       .attrs = {{"index_map", {}},
                 {"pad_value", {}},
                 ints_attr("axis_separators", {}),
                 ints_attr("input_axis_separators", {})},
       .infer = [](const OpCall& op) { return tensor_type_of_rank(-1, op.dtype(0)); }},
      {.name = "relax.broadcast_to",
       .doc = "sizes of 1 repeated to a shape",
       .inputs = {{"x", "the tensor"}, {"shape", "the result's dims"}},
       .pattern = OpPattern::kBroadcast,
       .infer = infer_broadcast_to,
       .infer_partial = [](const OpCall& op) { return infer_partial_to_shape(op, 1); },
       .legalize = lower_broadcast_to},
      {.name = "relax.tile",
       .doc = "the whole tensor repeated along each axis",
       .inputs = {{"data", "the tensor"}},
       .attrs = op_attrs<TileAttrs>(),
       .pattern = injective,
       .infer = infer_tile,
       .legalize = lower_tile},
      {.name = "relax.dyn.tile",
       .doc = "tile by counts that may be symbolic",
       .inputs = {{"data", "the tensor"}, {"repeats", "shape: a count per axis"}},
       .pattern = injective,
       .infer = infer_tile,
       .legalize = lower_tile},
      {.name = "relax.repeat",
       .doc = "each element repeated along an axis",
       .inputs = data,
       .attrs = op_attrs<RepeatAttrs>(),
       .pattern = injective,
       .infer = infer_repeat,
       .legalize = lower_repeat},
      {.name = "relax.flip",
       .doc = "an axis reversed",
       .inputs = data,
       .attrs = op_attrs<AxisAttrs>(),
       .pattern = injective,
       .infer = infer_flip,
       .legalize = lower_flip},
  };
  for (OpRow& row : slice_ops()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace relaxc
