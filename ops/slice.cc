// Parts of tensors: strided slices and splits.
#include <algorithm>

#include "ir/builder.h"
#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/reference.h"

namespace relaxc {

namespace {

// The slice of one axis: begin, begin + stride, ... before end, all of them in range.
struct AxisSlice {
  int64_t axis;
  Expr begin, end, stride;
};

Expr extent_of_slice(const Analyzer& analyzer, const Expr& begin, const Expr& end, const Expr& stride) {
  auto step = as_int(stride);
  Expr sign = step ? int_imm(*step > 0 ? 1 : -1) : select(stride > int_imm(0), int_imm(1), int_imm(-1));
  const Binary* lower = is_int(stride, 1) ? begin.as<Binary>() : nullptr;
  if (lower && lower->op == BinaryOp::kMax)  // end - max(a, b)
    return analyzer.simplify(max(min(end - lower->a, end - lower->b), int_imm(0)));
  Expr count = analyzer.simplify(floor_div(end - begin + stride - sign, stride));
  return analyzer.simplify(max(count, int_imm(0)));
}
bool provably_at_most(const Analyzer& analyzer, const Expr& a, const Expr& b) {
  if (analyzer.can_prove(a <= b)) return true;
  const Binary* part = a.as<Binary>();  // x // 2 <= b where 0 <= x <= b
  if (!part || part->op != BinaryOp::kFloorDiv || as_int(part->b).value_or(0) < 1) return false;
  return analyzer.can_prove(int_imm(0) <= part->a) && provably_at_most(analyzer, part->a, b);
}
// Normalizes a bound as numpy does: a negative one counts from the end, and it is clamped to the range that the
// stride's sign allows.
Expr clamped_bound(const Analyzer& analyzer, const Expr& bound, const Expr& dim, const Expr& stride) {
  auto step = as_int(stride);
  if (step && *step > 0) {
    bool least = analyzer.can_prove(int_imm(0) <= bound), most = provably_at_most(analyzer, bound, dim);
    if (least && most) return analyzer.simplify(bound);
    // dim - 1 is negative only for a dim of 0.
    if (analyzer.can_prove_equal(bound + 1, dim) && analyzer.can_prove(int_imm(0) <= dim))
      return analyzer.simplify(max(bound, int_imm(0)));
  }
  // A select computes both sides, and the largest int64 plus a dim would overflow.
  Expr position = select(bound < int_imm(0), min(bound, int_imm(0)) + dim, bound);
  if (auto known = as_int(bound)) position = *known < 0 ? bound + dim : bound;
  Expr low = step ? int_imm(*step > 0 ? 0 : -1) : select(stride > int_imm(0), int_imm(0), int_imm(-1));
  // Exporters write the largest int64 for "to the end".
  if (is_int(bound, INT64_MAX) && step && *step > 0) return dim;
  Expr high = step ? (*step > 0 ? dim : dim - 1) : select(stride > int_imm(0), dim, dim - 1);
  return analyzer.simplify(max(min(position, high), low));
}
std::vector<AxisSlice> plan_slice(const OpCall& op, const Analyzer& analyzer) {
  auto given = as_ints(scalar_list(op, 1));
  if (!given) op.fail("an axis is not a constant");
  std::vector<int64_t> axes = normalize_axes(op, *given, op.rank(0));
  std::vector<std::vector<Expr>> bounds;
  for (size_t i = 2; i < op.size(); ++i) bounds.push_back(scalar_list(op, i));
  if (bounds.size() < 3) bounds.push_back(std::vector<Expr>(axes.size(), int_imm(1)));
  for (const std::vector<Expr>& list : bounds) {
    if (list.size() != axes.size()) op.fail("{} axes and {} bounds or strides", axes.size(), list.size());
  }
  bool in_range = op.attrs<SliceAttrs>().assume_inbound;
  std::vector<AxisSlice> slices;
  for (size_t i = 0; i < axes.size(); ++i) {
    AxisSlice slice{axes[i], bounds[0][i], bounds[1][i], bounds[2][i]};
    if (is_int(slice.stride, 0)) op.fail("stride of axis {} is 0", axes[i]);
    const Expr& dim = op.shape(0)[axes[i]];
    if (!in_range) {
      for (Expr* bound : {&slice.begin, &slice.end}) *bound = clamped_bound(analyzer, *bound, dim, slice.stride);
    } else {
      // With a positive stride the first element is at least 0 and the end at most the dim. With a negative one the
      // first element is below the dim and the end at least -1.
      Expr up = slice.stride > int_imm(0);
      Expr lowest = select(up, slice.begin, slice.end + 1), highest = select(up, slice.end, slice.begin + 1);
      std::string what = fmt::format("the slice of axis {} is out of range", axes[i]);
      op.require_at_most(int_imm(0), simplify(lowest), what);
      op.require_at_most(simplify(highest), dim, what);
    }
    slices.push_back(std::move(slice));
  }
  return slices;
}
Type infer_strided_slice(const OpCall& op) {
  std::vector<Expr> shape = op.shape(0);
  Analyzer analyzer;
  analyzer.assume_dims(op.arg(0).type());
  for (const AxisSlice& slice : plan_slice(op, analyzer))
    shape[slice.axis] = extent_of_slice(analyzer, slice.begin, slice.end, slice.stride);
  return tensor_type(std::move(shape), op.dtype(0));
}
Expr strided_slice_element(const OpCall& op, Inputs x, Axes i) {
  Analyzer analyzer;
  analyzer.assume_dims(op.arg(0).type());
  std::vector<AxisSlice> slices = plan_slice(op, analyzer);
  std::vector<Expr> source = i;
  for (const AxisSlice& slice : slices) source[slice.axis] = slice.begin + i[slice.axis] * slice.stride;
  return load(x[0], source);
}

struct SplitPlan {
  int64_t axis;
  std::vector<Expr> offsets;  // one more than there are parts
  std::vector<Expr> sizes;
};
SplitPlan plan_split(const OpCall& op) {
  SplitAttrs attrs = op.attrs<SplitAttrs>();
  SplitPlan plan{normalize_axis(op, attrs.axis, op.rank(0)), {int_imm(0)}, {}};
  const Expr& dim = op.shape(0)[plan.axis];
  if (attrs.indices_or_sections.is_none()) op.fail("argument 'indices_or_sections' is missing");
  Analyzer analyzer;
  analyzer.assume_dims(op.arg(0).type());
  if (const int64_t* sections = attrs.indices_or_sections.as<int64_t>()) {
    if (*sections < 1) op.fail("{} sections, expected at least 1", *sections);
    // The parts have the rounded up size, except for the last ones, which are smaller.
    Expr part = analyzer.simplify(floor_div(dim + (*sections - 1), *sections));
    for (int64_t i = 1; i < *sections; ++i) plan.offsets.push_back(analyzer.simplify(min(part * i, dim)));
  } else {
    std::vector<int64_t> indices;
    if (!from_attr(attrs.indices_or_sections, indices))
      op.fail("argument 'indices_or_sections': expected an int or a list of ints, got {}",
              to_string(attrs.indices_or_sections));
    auto late = std::is_sorted_until(indices.begin(), indices.end());
    if (!indices.empty() && indices[0] < 0) late = indices.begin();
    if (late != indices.end()) op.fail("split index {} is out of order", *late);
    for (int64_t index : indices) plan.offsets.push_back(analyzer.simplify(min(int_imm(index), dim)));
  }
  plan.offsets.push_back(dim);
  for (size_t i = 0; i + 1 < plan.offsets.size(); ++i)
    plan.sizes.push_back(analyzer.simplify(plan.offsets[i + 1] - plan.offsets[i]));
  return plan;
}
Type infer_split(const OpCall& op) {
  SplitPlan plan = plan_split(op);
  std::vector<Type> parts;
  for (const Expr& size : plan.sizes)
    parts.push_back(tensor_type(with_item(op.shape(0), plan.axis, size), op.dtype(0)));
  return tuple_type(std::move(parts));
}
PrimFuncRef lower_split(const OpCall& op) {
  SplitPlan plan = plan_split(op);
  auto [b, x] = OpProgram(op);
  std::vector<Buffer> parts;
  for (size_t k = 0; k < plan.sizes.size(); ++k) {
    auto element = [&](Axes i) { return load(x[0], with_item(i, plan.axis, plan.offsets[k] + i[plan.axis])); };
    parts.push_back(b.compute(fmt::format("T_split_{}", k), op.dtype(0),
                              with_item(op.shape(0), plan.axis, plan.sizes[k]), element));
  }
  return b.finish(parts);
}

// Begin, end and strides are tensors of one integer per axis, whose values are known at run time only.
Type infer_dynamic_slice(const OpCall& op) {
  for (size_t i = 1; i < 4; ++i) {
    require_rank(op, i, 1);
    if (!op.dtype(i).is_integral()) op.fail("argument {} has {}, expected integers", i, to_string(op.dtype(i)));
    op.require_equal(op.shape(i)[0], int_imm(op.rank(0)), fmt::format("size of argument {} and the data's rank", i));
  }
  return tensor_type_of_rank(op.rank(0), op.dtype(0));
}

// The slice of one axis that src replaces. Its bounds are normalized as those of strided_slice.
AxisSlice scattered_slice(const OpCall& op) {
  Analyzer analyzer;
  analyzer.assume_dims(op.arg(0).type());
  int64_t axis = normalize_axis(op, op.attrs<AxisAttrs>().axis, op.rank(0));
  const Expr &dim = op.shape(0)[axis], step = cast_to(op.arg(4), kInt64);
  auto bound = [&](size_t i) { return clamped_bound(analyzer, cast_to(op.arg(i), kInt64), dim, step); };
  return {axis, bound(2), bound(3), step};
}
Type infer_slice_scatter(const OpCall& op) {
  require_same_dtype(op, 0, 1);
  require_rank(op, 1, op.rank(0));
  int64_t axis = normalize_axis(op, op.attrs<AxisAttrs>().axis, op.rank(0));
  for (size_t i = 2; i < 5; ++i) require_scalar(op, i);
  if (auto step = as_int(op.arg(4)); step && *step < 1) op.fail("step is {}, expected at least 1", *step);
  op.require_at_most(int_imm(1), cast_to(op.arg(4), kInt64), "step is not positive");
  AxisSlice slice = scattered_slice(op);
  Analyzer analyzer;
  analyzer.assume_dims(op.arg(0).type());
  Expr extent = extent_of_slice(analyzer, slice.begin, slice.end, slice.stride);
  require_same_dims(op, with_item(op.shape(0), axis, extent), op.shape(1), "of the slice and src");
  return infer_like_first(op);
}
Expr slice_scatter_element(const OpCall& op, Inputs x, Axes i) {
  AxisSlice slice = scattered_slice(op);
  Expr distance = i[slice.axis] - slice.begin, extent = op.shape(1)[slice.axis];
  Expr position = floor_div(distance, slice.stride);
  Expr is_replaced = int_imm(0) <= distance && position < extent;
  if (!is_int(slice.stride, 1)) is_replaced = is_replaced && equal(floor_mod(distance, slice.stride), int_imm(0));
  return if_then_else(is_replaced, load(x[1], with_item(i, slice.axis, position)), at(x[0], i));
}

// Reads the bounds, and slices with them. Those of an axis whose bounds are constants are constants.
Expr decompose_dynamic_slice(const OpCall& op, Builder& b) {
  std::vector<Expr> axes = int_imms(int_range(0, op.rank(0))), args = {op.arg(0), tuple(axes)};
  for (size_t i = 1; i < 4; ++i) {
    std::vector<Expr> bounds;
    for (int64_t axis = 0; axis < op.rank(0); ++axis) {
      const Constant* known = op.arg(i).as<Constant>();
      bounds.push_back(known ? int_imm(known->data.as_int(axis))
                             : b.op("inspect.tensor_item", {op.arg(i)}, TensorItemAttrs{axis}));
    }
    args.push_back(tuple(std::move(bounds)));
  }
  return b.op("strided_slice", std::move(args));
}

// The number of parts is known, whatever the operand is.
Type infer_partial_split(const OpCall& op) {
  const AttrValue parts = op.attrs<SplitAttrs>().indices_or_sections;
  const AttrList* positions = parts.as<AttrList>();
  const int64_t* sections = parts.as<int64_t>();
  if (!positions && (!sections || *sections < 1 || *sections > 1024)) return infer_unknown(op);
  const size_t count = positions ? positions->size() + 1 : static_cast<size_t>(*sections);
  return tuple_type(std::vector<Type>(count, infer_same_rank(op, 0, op.first_dtype())));
}

// The parts of a number of sections have one size, but for the last ones.
reference::Tensors split_parts(const ReferenceCall& c) {
  auto [indices_or_sections, axis] = c.attrs<SplitAttrs>();
  const Tensor& x = c.x[0];
  reference::Index shape = x.shape(), bounds = {0};
  int64_t dim = shape[axis];
  if (const int64_t* sections = indices_or_sections.as<int64_t>()) {
    for (int64_t k = 1; k < *sections; ++k) bounds.push_back(std::min(dim, k * ((dim + *sections - 1) / *sections)));
  } else {
    for (const AttrValue& index : *indices_or_sections.as<AttrList>())
      bounds.push_back(std::min(dim, *index.as<int64_t>()));
  }
  bounds.push_back(dim);
  reference::Tensors parts;
  for (size_t k = 0; k + 1 < bounds.size(); ++k) {
    shape[axis] = bounds[k + 1] - bounds[k];
    parts.push_back(reference::moved(
        x, shape, [&](const reference::Index& i) { return reference::with_position(i, axis, i[axis] + bounds[k]); }));
  }
  return parts;
}

// src replaces elements start, start + step, ..., whose bounds lie in the axis.
reference::Tensors scattered(const ReferenceCall& c) {
  int64_t axis = c.attrs<AxisAttrs>().axis, start = c.number(2), step = c.number(4), extent = c.x[1].shape()[axis];
  return {reference::tensor_of(c.x[0].shape(), c.x[0].dtype(), [&](const reference::Index& i) {
    int64_t distance = i[axis] - start;
    bool is_replaced = distance >= 0 && distance % step == 0 && distance / step < extent;
    return is_replaced ? reference::element(c.x[1], reference::with_position(i, axis, distance / step))
                       : reference::element(c.x[0], i);
  })};
}

}  // namespace

std::vector<OpRow> slice_ops() {
  const auto scalars = OpInput::Form::kScalars;
  return {
      by_element({.name = "relax.strided_slice",
                  .doc = "elements begin, begin + stride, ... before end of the given axes. With assume_inbound, begin "
                         "and end are "
                         "clamped already: 0 <= begin, end <= dim for a positive stride, -1 <= begin, end < dim for a "
                         "negative one",
                  .inputs = {{"x", "the tensor"},
                             {"axes", "tuple of constants", OpInput::Arity::kOne, scalars},
                             {"begin", "tuple of scalars", OpInput::Arity::kOne, scalars},
                             {"end", "tuple of scalars", OpInput::Arity::kOne, scalars},
                             {"strides", "tuple of scalars; 1 otherwise", OpInput::Arity::kOptional, scalars}},
                  .attrs = op_attrs<SliceAttrs>(),
                  .moves = true,
                  .infer = infer_strided_slice},
                 strided_slice_element),
      {.name = "relax.dynamic_strided_slice",
       .doc = "elements begin, begin + stride, ... before end of each axis",
       .inputs = {{"x", "the tensor"},
                  {"begin", "integer per axis"},
                  {"end", "integer per axis"},
                  {"strides", "integer per axis"}},
       .moves = true,
       .infer = infer_dynamic_slice,
       .decompose = decompose_dynamic_slice},
      {.name = "relax.split",
       .doc = "parts along an axis: a count of parts, equal but for the last ones, or the positions where parts begin",
       .inputs = {{"x", "the tensor"}},
       .attrs = op_attrs<SplitAttrs>(),
       .moves = true,
       .infer = infer_split,
       .infer_partial = infer_partial_split,
       .legalize = lower_split,
       .reference = split_parts},
      by_element({.name = "relax.slice_scatter",
                  .doc = "input with src in place of a slice of an axis",
                  .inputs = {{"input_tensor", "the tensor"},
                             {"src", "the slice"},
                             {"start", "scalar"},
                             {"end", "scalar"},
                             {"step", "scalar"}},
                  .attrs = op_attrs<AxisAttrs>(),
                  .moves = true,
                  .infer = infer_slice_scatter,
                  .reference = scattered},
                 slice_scatter_element),
  };
}

}  // namespace relaxc
