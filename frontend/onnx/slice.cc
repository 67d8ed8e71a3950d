// Parts of tensors: splits and slices.
#include "frontend/onnx/run_time_axes.h"

namespace relaxc::onnx_import {

namespace {

Outputs split(Node& n) {
  int64_t axis = n.axis(n.attr_int("axis", 0), n.rank(0));
  Expr x = n.tensor(0), dim = n.shape(0)[axis];
  std::vector<Expr> lengths;
  bool as_input = n.opset() >= 13 || (n.opset() == 1 && n.has(1));
  if (as_input && n.has(1)) {
    lengths = n.ints(1, static_cast<int64_t>(n.outputs()));
  } else if (auto given = as_input ? std::nullopt : n.attr_ints("split")) {
    lengths = int_imms(*given);
  } else {
    int64_t count = static_cast<int64_t>(n.outputs());
    if (n.opset() >= 18) count = n.attr_int("num_outputs", count);
    if (count < 1) n.fail("num_outputs is {}", count);
    auto known = as_int(dim);
    if (n.opset() < 18 && known && *known % count != 0)
      n.fail("axis {} of size {} does not divide into {} outputs", axis, *known, count);
    Expr part = n.simplify(ceil_div(dim, count));
    for (int64_t i = 0; i + 1 < count; ++i) lengths.push_back(part);
    lengths.push_back(n.simplify(dim - part * (count - 1)));
  }
  if (lengths.size() != n.outputs()) n.fail("{} lengths for {} outputs", lengths.size(), n.outputs());
  Expr begin = int_imm(0);
  std::vector<Expr> offsets;
  for (const Expr& length : lengths) {
    if (auto known = as_int(length); known && *known < 0) n.fail("a split length is {}", *known);
    if (n.least_value(length) < 0) n.require_at_most(int_imm(0), length, "a split length");
    offsets.push_back(begin);
    begin = named_if_long(n, n.simplify(begin + length), "offset");
  }
  offsets.push_back(begin);
  n.require_equal(begin, dim, "sum of the split lengths and size of the axis");
  return map_each(cut(n, x, axis, offsets), [&](const Expr& piece) { return n.of(piece); });
}

// Bounds and steps beyond this are beyond every dim, and sums with dims do not overflow.
constexpr int64_t kFar = int64_t{1} << 40;

// Returns a bound as a position from the start. A negative bound counts from the end.
Expr position_of(Node& n, const Expr& bound, const Expr& dim) {
  if (auto known = as_int(bound)) {
    // Such a bound is the end, or before the start. It is not compared with a symbolic dim, since nothing could be
    // proven of the comparison.
    if (*known >= kFar) return dim;
    if (*known <= -kFar) return int_imm(-1);
    return *known < 0 ? dim + *known : int_imm(*known);
  }
  if (n.least_value(bound) >= 0) return bound;
  // A select computes both sides, and the ends of int64 plus or minus a dim would overflow.
  return select(bound < int_imm(0), max(min(bound, int_imm(0)), int_imm(-kFar)) + dim, min(bound, int_imm(kFar)));
}
struct SlicedAxis {
  Expr begin, end, stride;
};
// Follows ONNX Runtime where the text of the standard is silent. With a negative step a start before the first element
// is the first element (numpy leaves nothing). The largest int32 or int64 as the end means an open end, because
// exporters write it in both directions.
SlicedAxis slice_axis(Node& n, const Expr& dim, const Expr& start, const Expr& end, const Expr& step) {
  n.require_nonzero(step, "a step of 0");
  Expr first = position_of(n, start, dim), last = position_of(n, end, dim);
  Expr stride = n.simplify(max(min(step, int_imm(kFar)), int_imm(-kFar)));
  Expr is_open = equal(end, int_imm(INT64_MAX)) || equal(end, int_imm(INT32_MAX));
  SlicedAxis up{max(min(first, dim), int_imm(0)), max(min(last, dim), int_imm(0)), stride};
  SlicedAxis down{min(max(first, int_imm(0)), dim - 1),
                  select(is_open, int_imm(-1), max(min(last, dim - 1), int_imm(-1))), stride};
  auto known = as_int(stride);
  auto choose = [&](const Expr& a, const Expr& b) {
    return n.simplify(known ? (*known < 0 ? a : b) : select(stride < int_imm(0), a, b));
  };
  return {choose(down.begin, up.begin), choose(down.end, up.end), stride};
}
// The operands of a Slice, in the order of its axes.
struct SliceBounds {
  std::vector<Expr> starts, ends, steps;
  std::optional<std::vector<int64_t>> axes;  // constants, in [0, rank)
  std::vector<Expr> runtime_axes;            // else these
};
// Returns how many there are, which any of the lists tells.
std::optional<int64_t> number_of_bounds(Node& n) {
  for (size_t i = 1; i < 5; ++i) {
    if (auto length = n.has(i) ? n.known_length(i) : std::nullopt) return length;
  }
  return std::nullopt;
}
// Reads lists of a length that the run tells. Those that are missing up to the rank leave their axis as it is.
SliceBounds read_open_slice_bounds(Node& n) {
  const int64_t rank = n.rank(0);
  SliceBounds bounds;
  bounds.starts = n.ints_up_to(n.value(1), rank, 0);
  bounds.ends = n.ints_up_to(n.value(2), rank, INT64_MAX);
  bounds.steps =
      n.has(4) ? n.ints_up_to(n.value(4), rank, 1) : std::vector<Expr>(static_cast<size_t>(rank), int_imm(1));
  const Expr count = n.dim(1, 0);
  for (size_t i = 2; i < 5; ++i) {
    if (n.has(i)) n.require_equal(n.dim(i, 0), count, "numbers of starts, ends, axes and steps");
  }
  if (!n.has(3)) bounds.axes = int_range(0, rank);
  if (n.has(3)) bounds.runtime_axes = distinct_axes_up_to(n, 3, rank);
  return bounds;
}
SliceBounds read_slice_bounds(Node& n) {
  SliceBounds bounds;
  if (n.opset() < 10) {
    auto from = n.attr_ints("starts"), to = n.attr_ints("ends");
    bounds.axes = n.attr_ints("axes");
    if (!from || !to || from->size() != to->size()) n.fail("attributes 'starts' and 'ends' must have equal lengths");
    bounds.starts = int_imms(*from);
    bounds.ends = int_imms(*to);
  } else {
    const std::optional<int64_t> count = number_of_bounds(n);
    if (!count) return read_open_slice_bounds(n);
    bounds.starts = n.ints(1, count);
    bounds.ends = n.ints(2, count);
    if (n.has(3)) bounds.axes = n.constant_ints(3);
    if (n.has(3) && !bounds.axes) bounds.runtime_axes = distinct_axes(n, 3, n.rank(0), count);
    if (n.has(4)) bounds.steps = n.ints(4, count);
  }
  size_t count = bounds.starts.size();
  if (n.opset() < 10 || !n.has(4)) bounds.steps.assign(count, int_imm(1));
  if (count != bounds.ends.size() || count != bounds.steps.size())
    n.fail("{} starts, {} ends and {} steps", count, bounds.ends.size(), bounds.steps.size());
  if (!bounds.axes && bounds.runtime_axes.empty()) bounds.axes = int_range(0, static_cast<int64_t>(count));
  size_t axes = bounds.axes ? bounds.axes->size() : bounds.runtime_axes.size();
  if (axes != count) n.fail("{} axes and {} starts", axes, count);
  if (bounds.axes) bounds.axes = distinct_axes(n, *bounds.axes, n.rank(0));
  return bounds;
}
// Returns axis d of a slice whose axes are known at run time only: the bounds that name it, else the whole axis.
SlicedAxis slice_named_axis(Node& n, const SliceBounds& bounds, int64_t d, const Expr& dim) {
  Expr first = int_imm(0), last = dim, step = int_imm(1);
  for (size_t k = 0; k < bounds.starts.size(); ++k) {
    Expr named = equal(bounds.runtime_axes[k], int_imm(d));
    first = select(named, bounds.starts[k], first);
    last = select(named, bounds.ends[k], last);
    if (!is_int(bounds.steps[k], 1)) step = select(named, bounds.steps[k], step);
  }
  SlicedAxis axis = slice_axis(n, dim, n.named(first, "first"), n.named(last, "last"), n.named(step, "step"));
  return {n.named(axis.begin, "begin"), n.named(axis.end, "end"), axis.stride};
}
Outputs slice(Node& n) {
  std::vector<Expr> shape = n.shape(0), axes, begin, end, stride;
  SliceBounds bounds = read_slice_bounds(n);
  bool whole = true;
  auto add = [&](int64_t d, const SlicedAxis& axis) {
    axes.push_back(int_imm(d));
    begin.push_back(axis.begin);
    end.push_back(axis.end);
    stride.push_back(axis.stride);
    whole = whole && is_int(axis.begin, 0) && is_int(axis.stride, 1) && n.provably_equal(axis.end, shape[d]);
  };
  for (size_t k = 0; bounds.axes && k < bounds.axes->size(); ++k) {
    int64_t d = (*bounds.axes)[k];
    add(d, slice_axis(n, shape[d], bounds.starts[k], bounds.ends[k], bounds.steps[k]));
  }
  for (int64_t d = 0; !bounds.axes && d < n.rank(0); ++d) add(d, slice_named_axis(n, bounds, d, shape[d]));
  if (whole) return {n.value(0)};
  std::vector<Expr> args = {n.tensor(0), shape_expr(axes), shape_expr(begin), shape_expr(end), shape_expr(stride)};
  return {n.of(n.op("strided_slice", args, SliceAttrs{.assume_inbound = true}))};
}

// The operator that was tried out before opset 10: Slice without steps.
Outputs dynamic_slice(Node& n) {
  return {n.of(n.standard("Slice", {n.tensor(0), n.tensor(1), n.tensor(2), n.optional_tensor(3)}, {}, 10))};
}

}  // namespace

std::vector<ConverterRow> slice_converters() {
  return {
      {"Split", 1, 1, 2, split, "axis num_outputs split"},
      {"Slice", 1, 1, 1, slice, "axes ends starts"},
      {"Slice", 10, 3, 5, slice},
      {"DynamicSlice", 1, 3, 4, dynamic_slice},
  };
}

}  // namespace relaxc::onnx_import
