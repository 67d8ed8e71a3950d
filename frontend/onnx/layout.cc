// Operators that move elements: reshapes, joins, pads, tiles. Slices and splits are in slice.cc.
#include <algorithm>

#include "frontend/onnx/run_time_axes.h"
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
  std::optional<size_t> inferred;  // the dim that is -1; 1 stands for it in `dims`
  bool at_run_time = false;        // any element of the operand may be -1
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
      if (result.inferred) n.fail("shape has two -1, at {} and {}", *result.inferred, d);
      result.inferred = d;
      dim = int_imm(1);
    }
    if (!known && n.least_value(dim) < 0) {
      result.at_run_time = true;
      n.require_at_most(int_imm(-1), dim, "a dim of the shape");
      if (zero_copies && d < from.size()) dim = bounded(n, select(equal(dim, int_imm(0)), from[d], dim), "dim", {-1});
      if (zero_copies && d >= from.size()) n.require_nonzero(dim, "a 0 beyond the last dim of the input");
    }
    result.dims.push_back(dim);
  }
  return result;
}
// Resolves a shape that is read at run time, in which any element may be the -1.
std::vector<Expr> resolve_at_run_time(Node& n, const Expr& total, WantedDims wanted) {
  Expr others = int_imm(1), is_inferred = bool_imm(wanted.inferred.has_value());
  Expr count = int_imm(wanted.inferred ? 1 : 0);  // of those that are -1
  int64_t most = wanted.inferred ? 1 : 0;
  for (const Expr& dim : wanted.dims) {
    others = others * (as_int(dim) ? dim : select(equal(dim, int_imm(-1)), int_imm(1), dim));
    is_inferred = is_inferred || equal(dim, int_imm(-1));
    if (as_int(dim) || n.least_value(dim) >= 0) continue;
    count = count + select(equal(dim, int_imm(-1)), int_imm(1), int_imm(0));
    ++most;
  }
  if (most > 1) n.require_at_most(count, int_imm(1), "dims of the shape that are to be inferred");
  others = bounded(n, others, "others", {0});
  n.require_at_most(select(is_inferred, int_imm(1), int_imm(0)), others, kZeroBesideInferred);
  Expr rest = floor_div(total, max(others, int_imm(1)));
  for (Expr& dim : wanted.dims) {
    if (!as_int(dim) && n.least_value(dim) < 0)
      dim = bounded(n, select(equal(dim, int_imm(-1)), rest, dim), "dim", {0});
  }
  if (wanted.inferred) wanted.dims[*wanted.inferred] = rest;
  for (Expr& dim : wanted.dims) dim = n.simplify(dim);
  return wanted.dims;
}
std::vector<Expr> resolve_reshape(Node& n, const std::vector<Expr>& from, const std::vector<Expr>& shape,
                                  bool zero_copies) {
  WantedDims wanted = read_wanted_dims(n, from, shape, zero_copies);
  if (wanted.at_run_time) return resolve_at_run_time(n, product(from), wanted);
  if (!wanted.inferred) return wanted.dims;
  std::vector<Expr> left = from, others = wanted.dims;
  others.erase(others.begin() + static_cast<int64_t>(*wanted.inferred));
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
  wanted.dims[*wanted.inferred] = n.simplify(floor_div(dividend, divisor));
  return wanted.dims;
}
Expr reshape(Node& n, const Expr& x) {
  std::vector<Expr> wanted = n.opset() < 5 ? int_imms(n.required_ints("shape")) : n.ints(1, n.output_rank(0));
  bool zero_copies = n.opset() < 5 || n.attr_int("allowzero", 0) == 0;
  return n.reshape(x, resolve_reshape(n, n.shape_of(x), wanted, zero_copies));
}
Expr flatten(Node& n) {
  std::vector<Expr> shape = n.shape(0);
  int64_t rank = std::ssize(shape), axis = n.attr_int("axis", 1);
  if (axis < -rank || axis > rank) n.fail("axis is {}, expected {} to {}", axis, -rank, rank);
  auto middle = shape.begin() + (axis < 0 ? axis + rank : axis);
  Expr rows = n.simplify(product({shape.begin(), middle})), columns = n.simplify(product({middle, shape.end()}));
  return n.reshape(n.tensor(0), {rows, columns});
}

// Returns constant axes, or nullopt when they are known at run time only.
std::optional<std::vector<int64_t>> axes_of(Node& n) {
  return n.opset() < 13 ? n.attr_ints("axes") : n.constant_ints(1);
}
// Returns the number of axes in operand 1. Where the model leaves it open it follows from the ranks: that of the result
// is that of the input, and one more (sign 1) or less (sign -1) for each axis.
int64_t number_of_axes(Node& n, std::optional<int64_t> result, int64_t rank, int64_t sign) {
  if (auto known = n.known_length(1)) return *known;
  if (!result) n.fail_open_rank(n.tensor(1), "the number of axes", "[2]");
  const int64_t count = (*result - rank) * sign;
  if (count < 0) n.fail("the result has rank {}, the input {}", *result, rank);
  return count;
}
// Each axis that is named must have size 1.
Expr squeeze_at_run_time(Node& n, const Expr& x) {
  const std::vector<Expr> shape = n.shape_of(x);
  std::vector<Expr> axes = read_axes(n, 1, n.rank(0), number_of_axes(n, n.output_rank(0), n.rank(0), -1));
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
  std::vector<bool> is_squeezed(shape.size());
  // An empty list of axes means the same as an absent one, as in ONNX Runtime.
  if (axes && !axes->empty()) {
    for (int64_t axis : *axes) is_squeezed[n.axis(axis, rank, "axes")] = true;
  } else {
    std::vector<Expr> open;  // sizes that may be 1
    for (size_t d = 0; d < shape.size(); ++d) {
      is_squeezed[d] = is_int(shape[d], 1);
      if (as_int(shape[d]) || n.least_value(shape[d]) > 1) continue;
      if (auto is_one = n.graph().decided(shape[d])) {
        is_squeezed[d] = *is_one;
      } else {
        open.push_back(shape[d]);
      }
    }
    // The rank of the result depends on the run, and the nodes behind this one are compiled for either.
    if (open.size() == 1 && n.graph().may_split()) {
      Expr flag = n.op("scalar_to_tensor", {n.simplify(select(equal(open[0], int_imm(1)), int_imm(1), int_imm(0)))});
      throw RanksDiffer{&n.proto(), n.cast(flag, kBool), open[0]};
    }
    // The axis stays, which is right for every size but 1. With --dim it has a constant size and is squeezed.
    for (const Expr& dim : open)
      n.require_equal(select(equal(dim, int_imm(1)), int_imm(0), dim), dim,
                      "symbolic axis that squeeze without axes keeps");
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!is_squeezed[d]) result.push_back(shape[d]);
    if (is_squeezed[d]) n.require_equal(shape[d], int_imm(1), "size of a squeezed axis");
  }
  return n.reshape(x, result);
}
Expr unsqueeze(Node& n, const Expr& x) {
  std::vector<Expr> shape = n.shape_of(x);
  auto axes = axes_of(n);
  if (!axes) {
    if (n.opset() < 13) n.fail("attribute 'axes' is missing");
    // The rank of the result, in which the axes count, follows from their number.
    int64_t rank = n.rank(0) + number_of_axes(n, n.output_rank(0), n.rank(0), 1);
    return n.reshape(x, dims_between_ones(n, shape, named_axes(n, distinct_axes(n, 1, rank, rank - n.rank(0)), rank)));
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
      if (d != axis) n.require_equal(n.shape(0)[d], n.dim_of(item, d), "sizes of a dim that is not joined");
    }
    items.push_back(item);
  }
  return join(n, items, axis);
}

// Returns pads of as many axes as the run says, with zeros for those that are missing up to the rank.
std::vector<Expr> pads_up_to_rank(Node& n, int64_t rank) {
  const Expr axes = n.dim(3, 0), width = int_imm(rank);
  n.require_equal(n.dim(1, 0), n.simplify(axes * 2), "number of pads, two for each axis");
  Expr ends = n.reshape(n.cast(n.tensor(1), kInt64), {int_imm(2), axes});
  Expr zeros = n.op("zeros", {shape_expr({int_imm(2), width})}, FillAttrs{kInt64});
  Expr all = n.slice(n.op("concat", {tuple({ends, zeros})}, ConcatAttrs{1}), 1, int_imm(0), width);
  return n.ints_of(n.of(n.reshape(all, {int_imm(2 * rank)})));
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
    if (n.has(2)) fill = n.reshape(n.tensor(2), {});
    const auto length = n.known_length(1);
    const bool is_open = n.has(3) && !length && !n.known_length(3);
    if (is_open) axes = distinct_axes_up_to(n, 3, rank);
    if (n.has(3) && !is_open) axes = distinct_axes(n, 3, rank, length ? std::optional(*length / 2) : std::nullopt);
    pads = is_open ? pads_up_to_rank(n, rank) : n.ints(1, 2 * std::ssize(axes));
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
    repeats = n.ints(1, rank);
  }
  if (std::ssize(repeats) != rank) n.fail("{} repeats for a tensor of rank {}", repeats.size(), rank);
  return n.op("dyn.tile", {n.tensor(0), shape_expr(repeats)});
}

// Returns the operand's dims. Where the model leaves their number open, the rank of the result tells it, or leading
// ones stand for those that are missing.
std::vector<Expr> shape_to_expand_to(Node& n) {
  const std::optional<int64_t> rank = n.output_rank(0);
  bool is_open = !n.graph().known(n.value(1)) && !n.known_length(1);
  if (!is_open || !rank || *rank != n.rank(0)) return n.ints(1, rank);
  Expr list = n.cast(n.tensor(1), kInt64);
  const Expr length = n.dim_of(list, 0);
  n.require_at_most(length, int_imm(*rank), "length of the shape and rank of the result");
  Expr ones = constant(Tensor::of<int64_t>({*rank}, kInt64, std::vector<int64_t>(static_cast<size_t>(*rank), 1)));
  Expr padded = n.op("concat", {tuple({ones, list})}, ConcatAttrs{0});
  return n.ints_of(n.of(n.with_length(n.slice(padded, 0, length, n.simplify(length + *rank)), *rank)));
}
Expr expand(Node& n, const Expr& x) {
  std::vector<Expr> from = n.shape(0), wanted = shape_to_expand_to(n), shape;
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

}  // namespace

std::vector<ConverterRow> layout_converters() {
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
      {"Pad", 1, 1, 1, pad, "mode paddings pads value"},
      {"Pad", 11, 2, 4, pad, "mode"},
      {"Tile", 1, 3, 3, tile},
      {"Tile", 6, 2, 2, tile},
      {"Expand", 8, 2, 2, expand},
  };
}

}  // namespace relaxc::onnx_import
