// Layout: reshapes, joins, slices, pads, tiles.
#include <algorithm>

#include "frontend/onnx/node.h"
#include "support/joined.h"

namespace relaxc::onnx_import {

namespace {

Outputs identity(Node& n) { return {n.value(0)}; }

Expr transpose(Node& n) {
  const std::vector<int64_t> axes = n.all_axes();
  auto perm = n.attr_ints("perm").value_or(std::vector<int64_t>(axes.rbegin(), axes.rend()));
  if (!std::ranges::is_permutation(perm, axes))
    n.fail("perm is [{}], expected a permutation of 0 to {}", joined(perm), n.rank(0) - 1);
  return n.transpose(n.tensor(0), perm);
}

// This is an error as in ONNX Runtime, because the -1 could have any size.
constexpr const char* kZeroBesideInferred = "a dim of 0 beside an inferred one";
// The dims that a Reshape's shape operand asks for, before the dim of -1 is inferred.
struct WantedDims {
  std::vector<Expr> dims;
  std::optional<size_t> open;  // the dim that is -1; 1 stands for it in `dims`
  bool at_run_time = false;    // any element of the operand may be -1
};
// A 0 copies a dim of the input, unless allowzero is set.
WantedDims read_wanted_dims(Node& n, const std::vector<Expr>& from, const std::vector<Expr>& wanted, bool zero_copies) {
  WantedDims result;
  for (size_t d = 0; d < wanted.size(); ++d) {
    Expr dim = n.simplify(wanted[d]);
    auto known = as_int(dim);
    if (known && *known < -1) n.fail("shape[{}] is {}", d, *known);
    if (known == 0 && zero_copies) {
      if (d >= from.size()) n.fail("shape[{}] is 0, but the input has rank {}", d, from.size());
      dim = from[d];
    }
    if (known == -1) {
      if (result.open) n.fail("shape has two -1, at {} and {}", *result.open, d);
      result.open = d;
      dim = int_imm(1);
    }
    if (!known && n.least_value(dim) < 0) {
      result.at_run_time = true;
      n.require_at_most(int_imm(-1), dim, "dims of the shape below -1");
      if (zero_copies && d < from.size()) dim = bounded(n, select(equal(dim, int_imm(0)), from[d], dim), "dim", {-1});
      if (zero_copies && d >= from.size())
        n.require_equal(select(equal(dim, int_imm(0)), int_imm(1), dim), dim, "a 0 behind the last dim of the input");
    }
    result.dims.push_back(dim);
  }
  return result;
}
// Resolves a shape that is read at run time. Any element may be the -1, and the product of the others is that of the
// elements other than -1.
std::vector<Expr> resolve_at_run_time(Node& n, const Expr& total, WantedDims wanted) {
  Expr others = int_imm(1), opens = bool_imm(wanted.open.has_value());
  for (const Expr& dim : wanted.dims) {
    others = others * (as_int(dim) ? dim : select(equal(dim, int_imm(-1)), int_imm(1), dim));
    opens = opens || equal(dim, int_imm(-1));
  }
  others = bounded(n, others, "others", {0});
  n.require_at_most(select(opens, int_imm(1), int_imm(0)), others, kZeroBesideInferred);
  Expr rest = floor_div(total, max(others, int_imm(1)));
  for (Expr& dim : wanted.dims) {
    if (!as_int(dim) && n.least_value(dim) < 0)
      dim = bounded(n, select(equal(dim, int_imm(-1)), rest, dim), "dim", {0});
  }
  if (wanted.open) wanted.dims[*wanted.open] = rest;
  for (Expr& dim : wanted.dims) dim = n.simplify(dim);
  return wanted.dims;
}
std::vector<Expr> resolve_reshape(Node& n, const std::vector<Expr>& from, const std::vector<Expr>& shape,
                                  bool zero_copies) {
  WantedDims wanted = read_wanted_dims(n, from, shape, zero_copies);
  if (wanted.at_run_time) return resolve_at_run_time(n, product(from), wanted);
  if (!wanted.open) return wanted.dims;
  std::vector<Expr> left = from, others = wanted.dims;
  others.erase(others.begin() + static_cast<int64_t>(*wanted.open));
  for (const Expr& dim : others) n.require_at_most(int_imm(1), dim, kZeroBesideInferred);
  // Dims that occur on both sides cancel.
  std::erase_if(others, [&](const Expr& dim) {
    auto match = std::ranges::find_if(left, [&](const Expr& x) { return !as_int(x) && n.provably_equal(x, dim); });
    bool cancels = match != left.end();
    if (cancels) left.erase(match);
    return cancels;
  });
  Expr dividend = n.simplify(product(left)), divisor = n.simplify(product(others));
  auto a = as_int(dividend), b = as_int(divisor);
  if (a && b && *a % *b != 0) n.fail("{} elements do not divide by the shape's other dims, {}", *a, *b);
  wanted.dims[*wanted.open] = n.simplify(floor_div(dividend, divisor));
  return wanted.dims;
}
Expr reshape(Node& n, const Expr& x) {
  std::vector<Expr> wanted = n.opset() < 5 ? int_imms(n.required_ints("shape")) : n.ints(1);
  bool zero_copies = n.attr_int("allowzero", 0) == 0;
  return n.reshape(x, resolve_reshape(n, n.shape_of(x), wanted, zero_copies));
}
Expr flatten(Node& n) {
  std::vector<Expr> shape = n.shape(0);
  int64_t rank = static_cast<int64_t>(shape.size()), axis = n.attr_int("axis", 1);
  if (axis < -rank || axis > rank) n.fail("axis is {}, expected {} to {}", axis, -rank, rank);
  auto middle = shape.begin() + (axis < 0 ? axis + rank : axis);
  Expr rows = n.simplify(product({shape.begin(), middle})), columns = n.simplify(product({middle, shape.end()}));
  return n.reshape(n.tensor(0), {rows, columns});
}

// Returns constant axes, or nullopt when they are known at run time only.
std::optional<std::vector<int64_t>> axes_of(Node& n) {
  return n.opset() < 13 ? n.attr_ints("axes") : n.constant_ints(1);
}
// Each axis that is named must have size 1.
Expr squeeze_at_run_time(Node& n, const Expr& x) {
  const std::vector<Expr> shape = n.shape_of(x);
  std::vector<Expr> axes = read_axes(n, 1, n.rank(0));
  if (axes.size() > shape.size()) n.fail("{} axes for rank {}", axes.size(), shape.size());
  std::vector<Expr> named = named_axes(n, axes, n.rank(0));
  require_distinct(n, named, axes.size());
  for (size_t d = 0; d < shape.size(); ++d)
    n.require_equal(select(equal(named[d], int_imm(1)), shape[d], int_imm(1)), int_imm(1), "size of a squeezed axis");
  return n.reshape(x, dims_not_named(n, shape, named, shape.size() - axes.size()));
}
Expr squeeze(Node& n, const Expr& x) {
  std::vector<Expr> shape = n.shape_of(x), result;
  int64_t rank = n.rank(0);
  bool has_axes = n.opset() < 13 ? n.has_attr("axes") : n.has(1);
  auto axes = has_axes ? axes_of(n) : std::nullopt;
  if (has_axes && !axes) return squeeze_at_run_time(n, x);
  std::vector<bool> gone(shape.size());
  // An empty list of axes means the same as an absent one, as in ONNX Runtime.
  if (axes && !axes->empty()) {
    for (int64_t axis : *axes) gone[n.axis(axis, rank, "axes")] = true;
  } else {
    for (size_t d = 0; d < shape.size(); ++d) {
      gone[d] = is_int(shape[d], 1);
      // The axis stays, which is right for every size but 1. With --dim it has a constant size and is squeezed.
      if (!as_int(shape[d]) && n.least_value(shape[d]) < 2)
        n.require_equal(select(equal(shape[d], int_imm(1)), int_imm(0), shape[d]), shape[d],
                        "symbolic axis that squeeze without axes keeps");
    }
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!gone[d]) result.push_back(shape[d]);
    if (gone[d]) n.require_equal(shape[d], int_imm(1), "size of a squeezed axis");
  }
  return n.reshape(x, result);
}
Expr unsqueeze(Node& n, const Expr& x) {
  std::vector<Expr> shape = n.shape_of(x);
  auto axes = axes_of(n);
  if (!axes) {
    if (n.opset() < 13) n.fail("attribute 'axes' is missing");
    // The rank of the result, in which the axes count, follows from their number.
    auto count = as_int(n.length_of(n.shape(1)));
    if (!count) n.unsupported("a number of axes that is only known at run time");
    int64_t rank = n.rank(0) + *count;
    return n.reshape(x, dims_between_ones(n, shape, named_axes(n, distinct_axes(n, 1, rank), rank)));
  }
  int64_t rank = n.rank(0) + static_cast<int64_t>(axes->size());
  std::vector<int64_t> added = distinct_axes(n, *axes, rank);
  std::ranges::sort(added);
  for (int64_t axis : added) shape.insert(shape.begin() + axis, int_imm(1));
  return n.reshape(x, shape);
}

Expr concat(Node& n) {
  int64_t axis = n.opset() < 4 ? n.attr_int("axis", 1) : n.required_int("axis");
  axis = n.axis(axis, n.rank(0));
  std::vector<Expr> items;
  for (size_t i = 0; i < n.inputs(); ++i) {
    Expr item = n.tensor(i);
    if (n.dtype(i) != n.dtype(0)) n.fail("inputs have dtypes {} and {}", to_string(n.dtype(0)), to_string(n.dtype(i)));
    if (n.rank(i) != n.rank(0)) n.fail("inputs have ranks {} and {}", n.rank(0), n.rank(i));
    for (int64_t d = 0; d < n.rank(0); ++d) {
      if (d != axis) n.require_equal(n.shape(0)[d], n.shape_of(item)[d], "sizes of a dim that is not joined");
    }
    items.push_back(item);
  }
  return join(n, items, axis);
}

Outputs split(Node& n) {
  int64_t axis = n.axis(n.attr_int("axis", 0), n.rank(0));
  Expr x = n.tensor(0), dim = n.shape(0)[axis];
  std::vector<Expr> lengths;
  bool as_input = n.opset() == 1 || n.opset() >= 13;
  if (as_input && n.has(1)) {
    lengths = n.ints(1);
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
    offsets.push_back(begin);
    begin = named_if_long(n, n.simplify(begin + length), "offset");
  }
  offsets.push_back(begin);
  n.require_equal(begin, dim, "sum of the split lengths and size of the axis");
  Outputs outputs;
  for (const Expr& piece : cut(n, x, axis, offsets)) outputs.push_back(n.of(piece));
  return outputs;
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
  // A select computes both sides, and the largest int64 plus a dim would overflow.
  return select(bound < int_imm(0), min(bound, int_imm(0)) + dim, bound);
}
struct SlicedAxis {
  Expr begin, end, stride;
};
// Follows ONNX Runtime where the text of the standard is silent. With a negative step a start before the first element
// is the first element (numpy leaves nothing). The largest int32 or int64 as the end means an open end, because
// exporters write it in both directions.
SlicedAxis slice_axis(Node& n, const Expr& dim, const Expr& start, const Expr& end, const Expr& step) {
  n.require_equal(select(equal(step, int_imm(0)), int_imm(1), step), step, "a step of 0");
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
SliceBounds read_slice_bounds(Node& n) {
  SliceBounds bounds;
  if (n.opset() < 10) {
    auto from = n.attr_ints("starts"), to = n.attr_ints("ends");
    bounds.axes = n.attr_ints("axes");
    if (!from || !to || from->size() != to->size()) n.fail("attributes 'starts' and 'ends' must have equal lengths");
    bounds.starts = int_imms(*from);
    bounds.ends = int_imms(*to);
  } else {
    bounds.starts = n.ints(1);
    bounds.ends = n.ints(2);
    if (n.has(3)) bounds.axes = n.constant_ints(3);
    if (n.has(3) && !bounds.axes) bounds.runtime_axes = distinct_axes(n, 3, n.rank(0));
    if (n.has(4)) bounds.steps = n.ints(4);
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

Expr pad(Node& n) {
  int64_t rank = n.rank(0);
  std::vector<Expr> args = {n.tensor(0)}, pads, axes = int_imms(n.all_axes());
  std::optional<Expr> fill;
  PadAttrs attrs{.pad_mode = n.attr_string("mode", "constant")};
  if (n.opset() < 11) {
    auto given = n.attr_ints(n.opset() < 2 ? "paddings" : "pads");
    if (!given) n.fail("attribute 'pads' is missing");
    pads = int_imms(*given);
    attrs.pad_value = n.attr_float("value", 0);
  } else {
    pads = n.ints(1);
    if (n.has(2)) fill = n.reshape(n.tensor(2), {});
    if (n.has(3)) axes = distinct_axes(n, 3, rank);
  }
  if (pads.size() != 2 * axes.size()) n.fail("{} pads for {} axes", pads.size(), axes.size());
  std::vector<Expr> width(2 * n.shape(0).size(), int_imm(0));
  for (size_t i = 0; i < width.size(); ++i) {
    for (size_t k = 0; k < axes.size(); ++k) {
      Expr named = equal(axes[k], int_imm(static_cast<int64_t>(i / 2)));
      width[i] = n.simplify(select(named, pads[k + (i % 2) * axes.size()], width[i]));
    }
  }
  args.push_back(shape_expr(width));
  if (fill) args.push_back(*fill);
  return n.op("dyn.pad", args, attrs);
}

Expr tile(Node& n) {
  int64_t rank = n.rank(0);
  std::vector<Expr> repeats;
  if (n.opset() < 6) {
    auto known = n.constant_ints(2);
    if (as_int(n.length_of(n.shape(2))) != 1) n.fail("the axis is not one number");
    Expr axis = known ? int_imm(n.axis(known->at(0), rank)) : read_axes(n, 2, rank).at(0);
    for (int64_t d = 0; d < rank; ++d)
      repeats.push_back(n.simplify(select(equal(axis, int_imm(d)), n.scalar_int(1), int_imm(1))));
  } else {
    repeats = n.ints(1);
  }
  if (static_cast<int64_t>(repeats.size()) != rank) n.fail("{} repeats for a tensor of rank {}", repeats.size(), rank);
  return n.op("dyn.tile", {n.tensor(0), shape_expr(repeats)});
}

Expr expand(Node& n, const Expr& x) {
  std::vector<Expr> from = n.shape(0), wanted = n.ints(1), shape;
  size_t rank = std::max(from.size(), wanted.size());
  for (size_t d = 0; d < rank; ++d) {
    bool in_x = d + from.size() >= rank, in_shape = d + wanted.size() >= rank;
    Expr a = in_x ? from[d + from.size() - rank] : int_imm(1);
    Expr b = in_shape ? n.simplify(wanted[d + wanted.size() - rank]) : int_imm(1);
    if (auto known = as_int(b); known && *known < 0) n.fail("shape[{}] is {}", d, *known);
    if (is_int(a, 1) || n.provably_equal(a, b)) {
      shape.push_back(b);
    } else if (is_int(b, 1)) {
      shape.push_back(a);
    } else {
      // One of them is 1 when the model runs, or they are equal.
      Expr stretched = n.simplify(select(equal(a, int_imm(1)), b, a));
      n.require_equal(n.simplify(select(equal(b, int_imm(1)), a, b)), stretched, "shapes do not broadcast");
      shape.push_back(as_int(a) ? a : stretched);
    }
  }
  return n.broadcast_to(x, shape);
}

// Returns the size of the blocks of an image whose dims are `s`.
int64_t block_size(Node& n, const std::vector<Expr>& s) {
  int64_t block = n.required_int("blocksize");
  if (s.size() != 4) n.fail("input has rank {}, expected 4", s.size());
  if (block < 1) n.fail("blocksize is {}", block);
  return block;
}
Expr depth_to_space(Node& n, const Expr& x) {
  std::vector<Expr> s = n.shape(0);
  int64_t block = block_size(n, s);
  std::string mode = n.attr_string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") n.fail("mode is '{}', expected DCR or CRD", mode);
  Expr b = int_imm(block), c = n.simplify(floor_div(s[1], block * block));
  n.require_equal(c * (block * block), s[1], "channels and blocks");
  Expr moved = mode == "DCR" ? n.transpose(n.reshape(x, {s[0], b, b, c, s[2], s[3]}), {0, 3, 4, 1, 5, 2})
                             : n.transpose(n.reshape(x, {s[0], c, b, b, s[2], s[3]}), {0, 1, 4, 2, 5, 3});
  return n.reshape(moved, {s[0], c, n.simplify(s[2] * block), n.simplify(s[3] * block)});
}
Expr space_to_depth(Node& n) {
  std::vector<Expr> s = n.shape(0);
  int64_t block = block_size(n, s);
  Expr b = int_imm(block), h = n.simplify(floor_div(s[2], block)), w = n.simplify(floor_div(s[3], block));
  Expr moved = n.transpose(n.reshape(n.tensor(0), {s[0], s[1], h, b, w, b}), {0, 3, 5, 1, 2, 4});
  return n.reshape(moved, {s[0], n.simplify(s[1] * (block * block)), h, w});
}

Expr trilu(Node& n) {
  Expr k = n.has(1) ? n.scalar_int(1) : int_imm(0);
  return n.op(n.attr_int("upper", 1) ? "triu" : "tril", {n.tensor(0), k});
}

Expr crop(Node& n) {
  auto border = n.attr_ints("border"), scale = n.attr_ints("scale");
  if (!border || border->size() != 4 || n.rank(0) != 4) n.fail("border must have 4 numbers and the input rank 4");
  std::vector<Expr> s = n.shape(0);
  Expr top = int_imm((*border)[1]), left = int_imm((*border)[0]);
  Expr bottom = scale ? top + scale->at(0) : s[2] - (*border)[3];
  Expr right = scale ? left + scale->at(1) : s[3] - (*border)[2];
  return n.slice(n.slice(n.tensor(0), 2, top, n.simplify(bottom)), 3, left, n.simplify(right));
}
Expr image_scaler(Node& n, const Expr& x) {
  std::vector<double> bias = n.attr_floats("bias");
  Tensor offsets = Tensor::empty({static_cast<int64_t>(bias.size()), 1, 1}, n.dtype(0));
  for (size_t i = 0; i < bias.size(); ++i) offsets.set_double(static_cast<int64_t>(i), bias[i]);
  return n.add(n.mul(x, n.scalar_like(n.attr_float("scale", 1), x)), constant(offsets));
}

}  // namespace

std::vector<ConverterRow> tensor_converters() {
  return {
      {"Identity", 1, 1, 1, identity},
      {"Transpose", 1, 1, 1, transpose, "perm"},
      {"Reshape", 1, 1, 1, reshape, "consumed_inputs shape"},
      {"Reshape", 5, 2, 2, reshape, "allowzero"},
      {"Flatten", 1, 1, 1, flatten, "axis"},
      {"Squeeze", 1, 1, 1, squeeze, "axes"},
      {"Squeeze", 13, 1, 2, squeeze},
      {"Unsqueeze", 1, 1, 1, unsqueeze, "axes"},
      {"Unsqueeze", 13, 2, 2, unsqueeze},
      {"Concat", 1, 1, kAny, concat, "axis"},
      {"Split", 1, 1, 2, split, "axis num_outputs split"},
      {"Slice", 1, 1, 1, slice, "axes ends starts"},
      {"Slice", 10, 3, 5, slice},
      {"Pad", 1, 1, 1, pad, "mode paddings pads value"},
      {"Pad", 11, 2, 4, pad, "mode"},
      {"Tile", 1, 3, 3, tile},
      {"Tile", 6, 2, 2, tile},
      {"Expand", 8, 2, 2, expand},
      {"DepthToSpace", 1, 1, 1, depth_to_space, "blocksize mode"},
      {"SpaceToDepth", 1, 1, 1, space_to_depth, "blocksize"},
      {"Trilu", 14, 1, 2, trilu, "upper"},
      {"Crop", 1, 1, 1, crop, "border scale"},
      {"ImageScaler", 1, 1, 1, image_scaler, "bias scale"},
  };
}

}  // namespace relaxc::onnx_import
