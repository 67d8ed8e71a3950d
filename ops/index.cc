// Operators that read or write at positions held by other tensors. Negative indices count from the end. Gathers clamp
// what is out of range, so that no index reads outside of the tensor; scatters refuse it with an error.
#include "ops/common.h"
#include "ops/ops.h"

namespace relaxc {

std::vector<OpRow> sort_ops();

namespace {

struct TakeAttrs {
  std::optional<int64_t> axis;
  std::string mode = "clip";
  static constexpr auto fields() {
    return std::tuple(field("axis", &TakeAttrs::axis), field("mode", &TakeAttrs::mode));
  }
};
struct AxisAttrs {
  int64_t axis = 0;
  static constexpr auto fields() { return std::tuple(field("axis", &AxisAttrs::axis)); }
};
struct GatherNdAttrs {
  int64_t batch_dims = 0;
  static constexpr auto fields() { return std::tuple(field("batch_dims", &GatherNdAttrs::batch_dims)); }
};
struct ScatterElementsAttrs {
  int64_t axis = 0;
  std::string reduction = "update";
  static constexpr auto fields() {
    return std::tuple(field("axis", &ScatterElementsAttrs::axis), field("reduction", &ScatterElementsAttrs::reduction));
  }
};
struct ScatterNdAttrs {
  std::string reduction = "update";
  static constexpr auto fields() { return std::tuple(field("reduction", &ScatterNdAttrs::reduction)); }
};
struct OneHotAttrs {
  int64_t axis = -1;
  static constexpr auto fields() { return std::tuple(field("axis", &OneHotAttrs::axis)); }
};
struct ReverseSequenceAttrs {
  int64_t time_axis = 0, batch_axis = 1;
  static constexpr auto fields() {
    return std::tuple(field("time_axis", &ReverseSequenceAttrs::time_axis),
                      field("batch_axis", &ReverseSequenceAttrs::batch_axis));
  }
};

void check_index_dtype(const OpCall& op, size_t i) {
  if (!op.dtype(i).is_integral()) op.fail("expected integers for argument {}, got {}", i, to_string(op.dtype(i)));
}
// A negative index counted from the end.
Expr from_end(const Expr& index, const Expr& dim) {
  Expr position = cast_to(index, kInt64);
  return select(position < int_imm(0), position + dim, position);
}
Expr clamped(const Expr& index, const Expr& dim) { return max(min(from_end(index, dim), dim - 1), int_imm(0)); }

// The element, or 0 when an axis that is indexed is empty: there is no index to clamp to.
Expr load_clamped(const Buffer& data, const std::vector<Expr>& position, const std::vector<Expr>& dims) {
  Expr element = load(data, position), any = bool_imm(true);
  for (const Expr& dim : dims) {
    if (auto known = as_int(dim); !known || *known == 0) any = any && (int_imm(0) < dim);
  }
  return is_int(any, 1) ? element : if_then_else(any, element, zero(dtype_of(element)));
}

Type infer_take(const OpCall& op) {
  check_index_dtype(op, 1);
  TakeAttrs attrs = op.attrs<TakeAttrs>();
  const std::vector<Expr>& indices = op.shape(1);
  if (!attrs.axis) return tensor_type(indices, op.dtype(0));
  std::vector<Expr> shape = op.shape(0);
  int64_t axis = normalize_axis(op, *attrs.axis, op.rank(0));
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, indices.begin(), indices.end());
  return tensor_type(std::move(shape), op.dtype(0));
}
PrimFuncRef lower_take(const OpCall& op) {
  TakeAttrs attrs = op.attrs<TakeAttrs>();
  Type type = infer_take(op);
  int64_t axis = attrs.axis ? normalize_axis(op, *attrs.axis, op.rank(0)) : 0;
  int64_t index_rank = op.rank(1);
  ComputeBuilder b;
  std::vector<Buffer> inputs = b.inputs_of(op);
  return b.finish({b.compute("T_take", op.dtype(0), *known_shape(type), [&](Axes i) {
    std::vector<Expr> at_index(i.begin() + axis, i.begin() + axis + index_rank);
    Expr index = load(inputs[1], at_index);
    const std::vector<Expr>& shape = op.shape(0);
    if (!attrs.axis) return load_clamped(inputs[0], unflatten_index(clamped(index, product(shape)), shape), shape);
    std::vector<Expr> source(i.begin(), i.begin() + axis);
    source.push_back(clamped(index, shape[axis]));
    source.insert(source.end(), i.begin() + axis + index_rank, i.end());
    return load_clamped(inputs[0], source, {shape[axis]});
  })});
}

Type infer_gather_elements(const OpCall& op) {
  check_index_dtype(op, 1);
  if (op.rank(0) != op.rank(1)) op.fail("data of rank {} and indices of rank {}", op.rank(0), op.rank(1));
  int64_t axis = normalize_axis(op, op.attrs<AxisAttrs>().axis, op.rank(0));
  for (int64_t d = 0; d < op.rank(0); ++d) {
    if (d != axis)
      op.require_at_most(op.shape(1)[d], op.shape(0)[d], fmt::format("indices exceed the data's axis {}", d));
  }
  return tensor_type(op.shape(1), op.dtype(0));
}
PrimFuncRef lower_gather_elements(const OpCall& op) {
  int64_t axis = normalize_axis(op, op.attrs<AxisAttrs>().axis, op.rank(0));
  ComputeBuilder b;
  std::vector<Buffer> inputs = b.inputs_of(op);
  return b.finish({b.compute("T_gather_elements", op.dtype(0), op.shape(1), [&](Axes i) {
    std::vector<Expr> source = i;
    source[axis] = clamped(load(inputs[1], i), op.shape(0)[axis]);
    return load_clamped(inputs[0], source, {op.shape(0)[axis]});
  })});
}

// The length of the index tuples: the last dim of `indices`, which must be a constant.
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
  int64_t length = tuple_length(op, batch);
  std::vector<Expr> shape(op.shape(1).begin(), op.shape(1).end() - 1);
  shape.insert(shape.end(), op.shape(0).begin() + batch + length, op.shape(0).end());
  return tensor_type(std::move(shape), op.dtype(0));
}
PrimFuncRef lower_gather_nd(const OpCall& op) {
  int64_t batch = op.attrs<GatherNdAttrs>().batch_dims;
  int64_t length = tuple_length(op, batch), index_rank = op.rank(1);
  Type type = infer_gather_nd(op);
  ComputeBuilder b;
  std::vector<Buffer> inputs = b.inputs_of(op);
  return b.finish({b.compute("T_gather_nd", op.dtype(0), *known_shape(type), [&](Axes i) {
    std::vector<Expr> source(i.begin(), i.begin() + batch);
    for (int64_t k = 0; k < length; ++k) {
      std::vector<Expr> at_index(i.begin(), i.begin() + index_rank - 1);
      at_index.push_back(int_imm(k));
      source.push_back(clamped(load(inputs[1], at_index), op.shape(0)[batch + k]));
    }
    source.insert(source.end(), i.begin() + index_rank - 1, i.end());
    std::vector<Expr> indexed(op.shape(0).begin() + batch, op.shape(0).begin() + batch + length);
    return load_clamped(inputs[0], source, indexed);
  })});
}

Expr reduced(const OpCall& op, const std::string& reduction, const Expr& old, const Expr& value) {
  if (reduction == "update" || reduction == "none") return value;
  if (reduction == "add") return combine_sum(old, value);
  if (reduction == "mul") return combine_prod(old, value);
  if (reduction == "max") return combine_max(old, value);
  if (reduction == "min") return combine_min(old, value);
  op.unsupported("reduction '{}'; there are update, add, mul, max and min", reduction);
}

// A copy of data, then one update after the other, because indices may repeat.
// `target` gives the element that update i writes.
PrimFuncRef scatter(const OpCall& op, const std::string& reduction, std::vector<int64_t> indexed_axes,
                    const std::function<std::vector<Expr>(Axes, const Buffer&)>& target) {
  ComputeBuilder b;
  std::vector<Buffer> inputs = b.inputs_of(op);
  Buffer out = b.compute("T_scatter", op.dtype(0), op.shape(0), [&](Axes i) { return at(inputs[0], i); });
  std::vector<VarRef> vars;
  std::vector<Expr> axes;
  for (int64_t d = 0; d < op.rank(2); ++d) {
    vars.push_back(make_dim(fmt::format("i{}", d)));
    axes.push_back(vars.back());
  }
  std::vector<Stmt> body;
  std::vector<Expr> position = target(axes, inputs[1]);
  for (int64_t axis : indexed_axes) {
    VarRef index = make_dim("index");
    body.push_back(make(Bind{index, position[axis]}));
    body.push_back(make(Assert{int_imm(0) <= index && index < op.shape(0)[axis],
                               fmt::format("{}: an index is out of range for axis {}", op.name(), axis)}));
    position[axis] = index;
  }
  body.push_back(store(out, reduced(op, reduction, load(out, position), at(inputs[2], axes)), position));
  Stmt loops = seq(std::move(body));
  for (size_t d = vars.size(); d-- > 0;) loops = loop(vars[d], op.shape(2)[d], loops);
  b.extern_block("update", loops);
  return b.finish({out});
}

Type infer_scatter_elements(const OpCall& op) {
  check_index_dtype(op, 1);
  if (op.rank(0) != op.rank(1) || op.rank(1) != op.rank(2))
    op.fail("data, indices and updates have ranks {}, {} and {}", op.rank(0), op.rank(1), op.rank(2));
  if (op.dtype(0) != op.dtype(2))
    op.fail("data and updates have dtypes {} and {}", to_string(op.dtype(0)), to_string(op.dtype(2)));
  int64_t axis = normalize_axis(op, op.attrs<ScatterElementsAttrs>().axis, op.rank(0));
  for (int64_t d = 0; d < op.rank(0); ++d) {
    op.require_equal(op.shape(1)[d], op.shape(2)[d], "indices and updates differ");
    if (d != axis)
      op.require_at_most(op.shape(1)[d], op.shape(0)[d], fmt::format("indices exceed the data's axis {}", d));
  }
  reduced(op, op.attrs<ScatterElementsAttrs>().reduction, scalar_imm(0, op.dtype(0)), scalar_imm(0, op.dtype(0)));
  return tensor_type(op.shape(0), op.dtype(0));
}
PrimFuncRef lower_scatter_elements(const OpCall& op) {
  ScatterElementsAttrs attrs = op.attrs<ScatterElementsAttrs>();
  int64_t axis = normalize_axis(op, attrs.axis, op.rank(0));
  return scatter(op, attrs.reduction, {axis}, [&](Axes i, const Buffer& indices) {
    std::vector<Expr> target = i;
    target[axis] = from_end(load(indices, i), op.shape(0)[axis]);
    return target;
  });
}

Type infer_scatter_nd(const OpCall& op) {
  check_index_dtype(op, 1);
  if (op.dtype(0) != op.dtype(2))
    op.fail("data and updates have dtypes {} and {}", to_string(op.dtype(0)), to_string(op.dtype(2)));
  int64_t length = tuple_length(op, 0);
  std::vector<Expr> expected(op.shape(1).begin(), op.shape(1).end() - 1);
  expected.insert(expected.end(), op.shape(0).begin() + length, op.shape(0).end());
  if (static_cast<int64_t>(expected.size()) != op.rank(2))
    op.fail("updates have rank {}, expected {}", op.rank(2), expected.size());
  for (size_t d = 0; d < expected.size(); ++d)
    op.require_equal(op.shape(2)[d], expected[d], fmt::format("dim {} of updates", d));
  reduced(op, op.attrs<ScatterNdAttrs>().reduction, scalar_imm(0, op.dtype(0)), scalar_imm(0, op.dtype(0)));
  return tensor_type(op.shape(0), op.dtype(0));
}
PrimFuncRef lower_scatter_nd(const OpCall& op) {
  int64_t length = tuple_length(op, 0), index_rank = op.rank(1);
  std::vector<int64_t> indexed;
  for (int64_t k = 0; k < length; ++k) indexed.push_back(k);
  return scatter(op, op.attrs<ScatterNdAttrs>().reduction, indexed, [&](Axes i, const Buffer& indices) {
    std::vector<Expr> target;
    for (int64_t k = 0; k < length; ++k) {
      std::vector<Expr> at_index(i.begin(), i.begin() + index_rank - 1);
      at_index.push_back(int_imm(k));
      target.push_back(from_end(load(indices, at_index), op.shape(0)[k]));
    }
    target.insert(target.end(), i.begin() + index_rank - 1, i.end());
    return target;
  });
}

// Arguments: indices, on, off (scalars), depth.
Type infer_one_hot(const OpCall& op) {
  if (op.dtype(1) != op.dtype(2) || op.rank(1) != 0 || op.rank(2) != 0)
    op.fail("on and off values must be scalars of one dtype");
  std::vector<Expr> shape = op.shape(0);
  int64_t axis = normalize_axis(op, op.attrs<OneHotAttrs>().axis, op.rank(0) + 1);
  if (auto depth = as_int(op.arg(3)); depth && *depth < 0) op.fail("depth is {}, expected >= 0", *depth);
  shape.insert(shape.begin() + axis, op.arg(3));
  return tensor_type(std::move(shape), op.dtype(1));
}
PrimFuncRef lower_one_hot(const OpCall& op) {
  int64_t axis = normalize_axis(op, op.attrs<OneHotAttrs>().axis, op.rank(0) + 1);
  Type type = infer_one_hot(op);
  ComputeBuilder b;
  std::vector<Buffer> inputs = b.inputs_of(op);
  return b.finish({b.compute("T_one_hot", op.dtype(1), *known_shape(type), [&](Axes i) {
    std::vector<Expr> at_index = i;
    at_index.erase(at_index.begin() + axis);
    Expr index = from_end(load(inputs[0], at_index), op.arg(3));
    return select(equal(index, i[axis]), load(inputs[1], {}), load(inputs[2], {}));
  })});
}

Type infer_reverse_sequence(const OpCall& op) {
  ReverseSequenceAttrs attrs = op.attrs<ReverseSequenceAttrs>();
  check_index_dtype(op, 1);
  int64_t time = normalize_axis(op, attrs.time_axis, op.rank(0));
  int64_t batch = normalize_axis(op, attrs.batch_axis, op.rank(0));
  if (time == batch) op.fail("time and batch axis are both {}", time);
  if (op.rank(1) != 1) op.fail("lengths have rank {}, expected 1", op.rank(1));
  op.require_equal(op.shape(1)[0], op.shape(0)[batch], "number of lengths and size of the batch axis");
  return tensor_type(op.shape(0), op.dtype(0));
}
PrimFuncRef lower_reverse_sequence(const OpCall& op) {
  ReverseSequenceAttrs attrs = op.attrs<ReverseSequenceAttrs>();
  int64_t time = normalize_axis(op, attrs.time_axis, op.rank(0));
  int64_t batch = normalize_axis(op, attrs.batch_axis, op.rank(0));
  ComputeBuilder b;
  std::vector<Buffer> inputs = b.inputs_of(op);
  return b.finish({b.compute("T_reverse_sequence", op.dtype(0), op.shape(0), [&](Axes i) {
    Expr length = min(cast_to(load(inputs[1], {i[batch]}), kInt64), op.shape(0)[time]);
    std::vector<Expr> source = i;
    source[time] = select(i[time] < length, length - 1 - i[time], i[time]);
    return load(inputs[0], source);
  })});
}

// The positions of non-zero elements, in row-major order. How many there are is an argument: the caller counts them.
Type infer_nonzero(const OpCall& op) { return tensor_type({int_imm(op.rank(0)), op.arg(1)}, kInt64); }
PrimFuncRef lower_nonzero(const OpCall& op) {
  ComputeBuilder b;
  Buffer x = b.inputs_of(op)[0];
  Buffer out = b.buffer("T_nonzero", kInt64, {int_imm(op.rank(0)), op.arg(1)});
  Buffer count = b.buffer("count", kInt64, {int_imm(1)});
  Expr next = load(count, {int_imm(0)});
  std::vector<VarRef> vars;
  std::vector<Expr> axes;
  for (int64_t d = 0; d < op.rank(0); ++d) {
    vars.push_back(make_dim(fmt::format("i{}", d)));
    axes.push_back(vars.back());
  }
  std::vector<Stmt> found;
  for (int64_t d = 0; d < op.rank(0); ++d) found.push_back(store(out, axes[d], {int_imm(d), next}));
  found.push_back(store(count, next + 1, {int_imm(0)}));
  Expr nonzero = binary(BinaryOp::kNE, at(x, axes), scalar_imm(0, op.dtype(0)));
  Stmt body = make(IfThenElse{next < op.arg(1) && nonzero, seq(std::move(found)), std::nullopt});
  for (size_t d = vars.size(); d-- > 0;) body = loop(vars[d], op.shape(0)[d], body);
  b.extern_block("scan", seq({store(count, int_imm(0), {int_imm(0)}), body}));
  return b.finish({out});
}

}  // namespace

std::vector<OpRow> index_ops() {
  const auto injective = OpPattern::kInjective, opaque = OpPattern::kOpaque;
  const OpInput data{"data", "the tensor"}, indices{"indices", "integers"}, updates{"updates", "the new elements"};
  std::vector<OpRow> rows = {
      {"relax.take",
       "slices of an axis (of the flattened tensor without one) at the indices",
       {data, indices},
       op_attrs<TakeAttrs>(),
       injective,
       true,
       infer_take,
       lower_take},
      {"relax.gather_elements",
       "out[i, j] = data[indices[i, j], j], for axis 0",
       {data, indices},
       op_attrs<AxisAttrs>(),
       injective,
       true,
       infer_gather_elements,
       lower_gather_elements},
      {"relax.gather_nd",
       "slices at the index tuples along the last axis of indices",
       {data, indices},
       op_attrs<GatherNdAttrs>(),
       injective,
       true,
       infer_gather_nd,
       lower_gather_nd},
      {"relax.scatter_elements",
       "data with data[indices[i, j], j] = updates[i, j], for axis 0",
       {data, indices, updates},
       op_attrs<ScatterElementsAttrs>(),
       opaque,
       true,
       infer_scatter_elements,
       lower_scatter_elements},
      {"relax.scatter_nd",
       "data with slices replaced at the index tuples along the last axis of indices",
       {data, indices, updates},
       op_attrs<ScatterNdAttrs>(),
       opaque,
       true,
       infer_scatter_nd,
       lower_scatter_nd},
      {"relax.one_hot",
       "on_value where the position along a new axis of size depth is the index, off_value elsewhere",
       {{"indices", "integers; negative ones count from depth"},
        {"on_value", "scalar"},
        {"off_value", "scalar"},
        {"depth", "int64 scalar"}},
       op_attrs<OneHotAttrs>(),
       injective,
       true,
       infer_one_hot,
       lower_one_hot},
      {"relax.reverse_sequence",
       "the first length elements of the time axis reversed, for each batch element",
       {data, {"lengths", "an integer per batch element"}},
       op_attrs<ReverseSequenceAttrs>(),
       injective,
       true,
       infer_reverse_sequence,
       lower_reverse_sequence},
      {"relax.nonzero",
       "positions of the first count elements that are not zero, one column each",
       {data, {"count", "int64 scalar: how many there are"}},
       {},
       opaque,
       true,
       infer_nonzero,
       lower_nonzero},
  };
  for (OpRow& row : sort_ops()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace relaxc
