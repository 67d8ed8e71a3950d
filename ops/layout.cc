// Operators that move elements without computing: transposes, reshapes, joins and repeats. Shapes are ShapeExpr
// arguments (symbolic), everything else is attributes. Slices, splits and pads are in slice.cc.
#include <algorithm>
#include <numeric>

#include "ops/common.h"
#include "ops/ops.h"

namespace relaxc {

namespace {

struct AxesAttrs {
  std::optional<std::vector<int64_t>> axes;
  static constexpr auto fields() { return std::tuple(field("axes", &AxesAttrs::axes)); }
};
struct AxisListAttrs {
  std::optional<std::vector<int64_t>> axis;
  static constexpr auto fields() { return std::tuple(field("axis", &AxisListAttrs::axis)); }
};
struct AxisAttrs {
  int64_t axis = 0;
  static constexpr auto fields() { return std::tuple(field("axis", &AxisAttrs::axis)); }
};
struct RepeatAttrs {
  int64_t repeats = 1;
  int64_t axis = 0;
  static constexpr auto fields() {
    return std::tuple(field("repeats", &RepeatAttrs::repeats), field("axis", &RepeatAttrs::axis));
  }
};

// A program of one output: out[i] = x[source(i)].
PrimFuncRef gather_elements_of(const OpCall& op, const char* name, const std::vector<Expr>& shape,
                               const std::function<std::vector<Expr>(Axes)>& source) {
  ComputeBuilder b;
  Buffer x = b.inputs_of(op)[0];
  return b.finish({b.compute(name, op.dtype(0), shape, [&](Axes i) { return load(x, source(i)); })});
}

const std::vector<Expr>& output_shape(const Type& type) { return *known_shape(type); }

std::vector<int64_t> permutation(const OpCall& op) {
  int64_t rank = op.rank(0);
  auto axes = op.attrs<AxesAttrs>().axes;
  if (!axes) {
    axes.emplace(rank);
    for (int64_t d = 0; d < rank; ++d) (*axes)[d] = rank - 1 - d;
  }
  if (static_cast<int64_t>(axes->size()) != rank) op.fail("{} axes for a tensor of rank {}", axes->size(), rank);
  return normalize_axes(op, *axes, rank);
}
Type infer_permute_dims(const OpCall& op) {
  std::vector<Expr> shape;
  for (int64_t axis : permutation(op)) shape.push_back(op.shape(0)[axis]);
  return tensor_type(std::move(shape), op.dtype(0));
}

// The same elements in row-major order under another shape.
PrimFuncRef reshaped(const OpCall& op, const char* name, const std::vector<Expr>& shape) {
  return gather_elements_of(op, name, shape,
                            [&](Axes i) { return unflatten_index(flatten_index(i, shape), op.shape(0)); });
}
Type infer_reshape(const OpCall& op) {
  const std::vector<Expr>& shape = op.shape(1);
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

// The axes are positions in the result.
std::vector<int64_t> expanded_axes(const OpCall& op) {
  auto axes = op.attrs<AxisListAttrs>().axis;
  if (!axes) op.fail("attribute 'axis' is missing");
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

std::vector<Type> tuple_items(const OpCall& op) {
  const TupleType* type = op.arg(0).type().as<TupleType>();
  if (!type || type->items.empty()) op.fail("expected a tuple of tensors");
  for (size_t i = 0; i < type->items.size(); ++i) {
    if (!known_shape(type->items[i]) || !tensor_dtype(type->items[i]))
      op.fail("the shape or dtype of tensor {} is not known; give it with match_cast", i);
  }
  return type->items;
}
Type infer_concat(const OpCall& op) {
  std::vector<Type> items = tuple_items(op);
  std::vector<Expr> shape = *known_shape(items[0]);
  int64_t axis = normalize_axis(op, op.attrs<AxisAttrs>().axis, static_cast<int64_t>(shape.size()));
  for (size_t i = 1; i < items.size(); ++i) {
    const std::vector<Expr>& other = *known_shape(items[i]);
    if (other.size() != shape.size()) op.fail("tensors of rank {} and {}", shape.size(), other.size());
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
PrimFuncRef lower_concat(const OpCall& op) {
  ComputeBuilder b;
  std::vector<Buffer> inputs;
  if (op.arg(0).is<Tuple>()) {
    inputs = b.inputs_of(op);
  } else {
    for (const Type& item : tuple_items(op))
      inputs.push_back(b.input(fmt::format("input{}", inputs.size()), *tensor_dtype(item), *known_shape(item)));
  }
  std::vector<Expr> shape = output_shape(infer_concat(op));
  int64_t axis = normalize_axis(op, op.attrs<AxisAttrs>().axis, static_cast<int64_t>(shape.size()));
  std::vector<Expr> offsets = {int_imm(0)};
  for (const Buffer& input : inputs) offsets.push_back(simplify(offsets.back() + buffer_type(input).shape[axis]));
  Buffer out = b.compute("T_concat", buffer_type(inputs[0]).dtype, shape, [&](Axes i) {
    auto element = [&](size_t k) {
      std::vector<Expr> source = i;
      source[axis] = i[axis] - offsets[k];
      return load(inputs[k], source);
    };
    Expr value = element(inputs.size() - 1);
    for (size_t k = inputs.size() - 1; k-- > 0;) value = if_then_else(i[axis] < offsets[k + 1], element(k), value);
    return value;
  });
  return b.finish({out});
}

// A size of 1 (known, or found at run time) is repeated; the others stay.
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

Type infer_tile(const OpCall& op) {
  const std::vector<Expr>&shape = op.shape(0), &repeats = op.shape(1);
  if (shape.size() != repeats.size()) op.fail("{} repeats for a tensor of rank {}", repeats.size(), shape.size());
  std::vector<Expr> result;
  for (size_t d = 0; d < shape.size(); ++d) {
    op.require_at_most(int_imm(0), repeats[d], fmt::format("repeats[{}] is negative", d));
    result.push_back(simplify(shape[d] * repeats[d]));
  }
  return tensor_type(std::move(result), op.dtype(0));
}
PrimFuncRef lower_tile(const OpCall& op) {
  return gather_elements_of(op, "T_tile", output_shape(infer_tile(op)), [&](Axes i) {
    std::vector<Expr> source;
    for (size_t d = 0; d < i.size(); ++d) {
      source.push_back(is_int(op.shape(1)[d], 1) ? i[d] : floor_mod(i[d], op.shape(0)[d]));
    }
    return source;
  });
}

Type infer_repeat(const OpCall& op) {
  RepeatAttrs attrs = op.attrs<RepeatAttrs>();
  std::vector<Expr> shape = op.shape(0);
  int64_t axis = normalize_axis(op, attrs.axis, op.rank(0));
  if (attrs.repeats < 1) op.fail("repeats is {}, expected at least 1", attrs.repeats);
  shape[axis] = shape[axis] * attrs.repeats;
  return tensor_type(std::move(shape), op.dtype(0));
}
PrimFuncRef lower_repeat(const OpCall& op) {
  RepeatAttrs attrs = op.attrs<RepeatAttrs>();
  int64_t axis = normalize_axis(op, attrs.axis, op.rank(0));
  return gather_elements_of(op, "T_repeat", output_shape(infer_repeat(op)), [&](Axes i) {
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

}  // namespace

std::vector<OpRow> slice_ops();

std::vector<OpRow> layout_ops() {
  const std::vector<OpInput> x = {{"x", "the tensor"}};
  const auto injective = OpPattern::kInjective;
  std::vector<OpRow> rows = {
      {"relax.permute_dims", "axes in another order; reversed when no axes are given", x, op_attrs<AxesAttrs>(),
       injective, true, infer_permute_dims, lower_permute_dims},
      {"relax.reshape",
       "the elements in row-major order under another shape of the same size",
       {{"x", "the tensor"}, {"shape", "the new dims, none of them -1"}},
       {},
       injective,
       true,
       infer_reshape,
       nullptr},  // the runtime makes a view
      {"relax.flatten",
       "all elements as one axis",
       x,
       {},
       injective,
       true,
       infer_flatten,
       [](const OpCall& op) { return reshaped(op, "T_flatten", output_shape(infer_flatten(op))); }},
      {"relax.squeeze", "without the given axes of size 1; without all of them by default", x,
       op_attrs<AxisListAttrs>(), injective, true, infer_squeeze, lower_squeeze},
      {"relax.expand_dims", "with axes of size 1 at these positions of the result", x, op_attrs<AxisListAttrs>(),
       injective, true, infer_expand_dims, lower_expand_dims},
      {"relax.concat",
       "tensors joined along an axis",
       {{"tensors", "tuple of tensors"}},
       op_attrs<AxisAttrs>(),
       injective,
       true,
       infer_concat,
       lower_concat},
      {"relax.broadcast_to",
       "sizes of 1 repeated to a shape",
       {{"x", "the tensor"}, {"shape", "the result's dims"}},
       {},
       OpPattern::kBroadcast,
       true,
       infer_broadcast_to,
       lower_broadcast_to},
      {"relax.tile",
       "the whole tensor repeated along each axis",
       {{"x", "the tensor"}, {"repeats", "a count per axis"}},
       {},
       injective,
       true,
       infer_tile,
       lower_tile},
      {"relax.repeat", "each element repeated along an axis", x, op_attrs<RepeatAttrs>(), injective, true, infer_repeat,
       lower_repeat},
      {"relax.flip", "an axis reversed", x, op_attrs<AxisAttrs>(), injective, true, infer_flip, lower_flip},
  };
  for (OpRow& row : slice_ops()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace relaxc
