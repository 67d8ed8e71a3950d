// Functions of topi on arrays that are made of operators of the graph: what topi.strided_slice(...) is in terms of R.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <ranges>

#include "ir/arith.h"
#include "ir/text/topi_call.h"

namespace relaxc::text {

namespace {

std::vector<Expr> dims_of(const std::vector<int64_t>& numbers) {
  return map_each(numbers, [](int64_t number) { return int_imm(number, kInt64); });
}
std::vector<int64_t> counted(int64_t first, int64_t end) {
  std::vector<int64_t> result(static_cast<size_t>(std::max<int64_t>(end - first, 0)));
  std::iota(result.begin(), result.end(), first);
  return result;
}

Expr elemwise_sum(TopiCall& c) {
  std::vector<Expr> terms = c.tensors("xs");
  Expr sum = terms.at(0);
  for (const Expr& term : terms | std::views::drop(1)) sum = c.op("add", {sum, term});
  return sum;
}

// topi.max of flags.
Expr of_flags(TopiCall& c, const char* reduction) {
  Expr numbers = c.op(reduction, {c.astype(c.tensor("data"), parse_dtype("int8").value())}, c.attrs("axis keepdims"));
  return c.astype(numbers, kBool);
}
Expr all(TopiCall& c) { return of_flags(c, "min"); }
Expr any(TopiCall& c) { return of_flags(c, "max"); }

// topi's positions are int32.
Expr argmax(TopiCall& c) {
  return c.astype(c.op("argmax", {c.tensor("data")}, c.attrs("axis keepdims select_last_index")), kInt32);
}
Expr argmin(TopiCall& c) {
  return c.astype(c.op("argmin", {c.tensor("data")}, c.attrs("axis keepdims select_last_index")), kInt32);
}

Expr argsort(TopiCall& c) {
  if (c.has("valid_count")) c.fail("argument 'valid_count' is not known here");
  Attrs attrs = c.attrs("axis");
  attrs.set("descending", !c.flag("is_ascend", true));
  return c.astype(c.op("argsort", {c.tensor("data")}, attrs), c.dtype("dtype", kFloat32));
}
Expr sort(TopiCall& c) {
  Attrs attrs = c.attrs("axis");
  attrs.set("descending", !c.flag("is_ascend", true));
  return c.op("sort", {c.tensor("data")}, attrs);
}
Expr topk(TopiCall& c) {
  Attrs attrs = c.attrs("k axis ret_type");
  attrs.set("largest", !c.flag("is_ascend", false));
  attrs.set("dtype", c.dtype("dtype", kInt64));
  return c.op("topk", {c.tensor("data")}, attrs);
}

Expr strided_slice(TopiCall& c) {
  Expr data = c.tensor("a");
  std::vector<int64_t> begin = c.wholes("begin"), end = c.wholes("end"), strides = c.wholes("strides");
  std::vector<int64_t> axes = c.wholes("axes", counted(0, static_cast<int64_t>(begin.size())));
  bool by_size = c.text("slice_mode", "end") == "size";
  if (begin.size() != axes.size() || end.size() > axes.size() || begin.size() > static_cast<size_t>(c.rank(data)))
    c.fail(fmt::format("{} begins and {} ends for {} axes", begin.size(), end.size(), axes.size()));
  for (size_t i = end.size(); i < axes.size(); ++i) end.push_back(c.dim(data, axes[i]));
  for (size_t i = 0; i < axes.size() && by_size; ++i) end[i] = end[i] < 0 ? c.dim(data, axes[i]) : begin[i] + end[i];
  if (strides.size() == 1) strides.resize(axes.size(), strides[0]);
  strides.resize(axes.size(), 1);
  auto numbers = [](const std::vector<int64_t>& values) { return tuple(dims_of(values)); };
  return c.op("strided_slice", {data, numbers(axes), numbers(begin), numbers(end), numbers(strides)});
}

Expr expand_dims(TopiCall& c) {
  Expr data = c.tensor("a");
  int64_t first = c.whole("axis", 0), count = c.whole("num_newaxis", 1);
  if (first < 0) first += c.rank(data) + 1;
  return c.expand(data, counted(first, first + count));
}

Expr take(TopiCall& c) {
  if (c.whole("batch_dims", 0) != 0) c.fail("batch_dims of topi.take is not known here");
  Attrs attrs = c.attrs("axis");
  attrs.set("mode", c.text("mode", "clip"));
  return c.op("take", {c.tensor("a"), c.tensor("indices")}, attrs);
}

// topi's indices have the axes of the data first, R's last.
Expr index_tuples(TopiCall& c) {
  Expr indices = c.tensor("indices");
  std::vector<int64_t> axes = counted(1, c.rank(indices));
  axes.push_back(0);
  return c.permute(indices, axes);
}
Expr gather_nd(TopiCall& c) { return c.op("gather_nd", {c.tensor("a"), index_tuples(c)}); }
Expr scatter_nd(TopiCall& c) {
  return c.op("scatter_nd", {c.tensor("data"), index_tuples(c), c.tensor("updates")}, c.attrs("mode>reduction"));
}

Expr where(TopiCall& c) {
  return c.op("where", {c.astype(c.tensor("condition"), kBool), c.tensor("x"), c.tensor("y")});
}

Expr one_hot(TopiCall& c) {
  DType dtype = c.dtype("dtype", kFloat32);
  auto scalar = [&](std::string_view name, double otherwise) -> Expr {
    double value = c.real(name, otherwise);
    return dtype.is_float() ? float_imm(value, dtype) : int_imm(static_cast<int64_t>(value), dtype);
  };
  return c.op("one_hot", {c.tensor("indices"), scalar("on_value", 1), scalar("off_value", 0)}, c.attrs("depth axis"));
}

Expr full_like(TopiCall& c) {
  Expr like = c.tensor("x");
  return c.op("full", {shape_expr(c.shape(like)), c.number(c.real("fill_value", 0), c.dtype_of(like))},
              {{"dtype", c.dtype_of(like)}});
}

Expr arange(TopiCall& c) {
  DType dtype = c.dtype("dtype", kFloat32);
  bool from_zero = !c.has("stop");
  auto scalar = [&](double value) -> Expr {
    bool is_whole = value == static_cast<double>(static_cast<int64_t>(value));
    return is_whole ? int_imm(static_cast<int64_t>(value), kInt64) : float_imm(value, kFloat64);
  };
  double start = from_zero ? 0 : c.real("start", 0), stop = from_zero ? c.real("start", 0) : c.real("stop", 0);
  return c.op("arange", {scalar(start), scalar(stop), scalar(c.real("step", 1))}, {{"dtype", dtype}});
}

// The matrix with its last two axes swapped where the flag says so.
Expr transposed(TopiCall& c, const Expr& matrix, bool swap) {
  if (!swap) return matrix;
  std::vector<int64_t> axes = counted(0, c.rank(matrix));
  if (axes.size() < 2) c.fail("a vector cannot be transposed");
  std::swap(axes.back(), axes[axes.size() - 2]);
  return c.permute(matrix, axes);
}
Expr product(TopiCall& c, bool swap_a, bool swap_b) {
  Expr a = transposed(c, c.tensor("a"), swap_a), b = transposed(c, c.tensor("b"), swap_b);
  Expr result = c.op("matmul", {a, b}, c.attrs("out_dtype"));
  if (!c.has("bias")) return result;
  return c.op("add", {result, c.tensor("bias")});
}
Expr matmul(TopiCall& c) { return product(c, c.flag("transpose_a", false), c.flag("transpose_b", false)); }
Expr batch_matmul(TopiCall& c) { return product(c, c.flag("transpose_a", false), c.flag("transpose_b", true)); }

Expr tensordot(TopiCall& c) {
  Expr a = c.tensor("a"), b = c.tensor("b");
  std::vector<int64_t> of_a, of_b;
  AttrValue given = c.value("axes");
  if (const AttrList* pair = given.as<AttrList>()) {
    for (size_t side = 0; side < 2 && pair->size() == 2; ++side) {
      std::vector<int64_t>& axes = side == 0 ? of_a : of_b;
      const AttrList* several = (*pair)[side].as<AttrList>();
      for (const AttrValue& item : several ? *several : AttrList{(*pair)[side]}) {
        int64_t axis = 0, count = c.rank(side == 0 ? a : b);
        if (!from_attr(item, axis)) c.fail("argument 'axes' is not made of integers");
        axes.push_back(axis < 0 ? axis + count : axis);
      }
    }
  } else {
    int64_t count = c.whole("axes", 2);
    of_a = counted(c.rank(a) - count, c.rank(a));
    of_b = counted(0, count);
  }
  if (of_a.size() != of_b.size() || of_a.empty()) c.fail("argument 'axes' does not name as many axes of each tensor");
  std::vector<Expr> result, sizes;
  Expr inner = int_imm(1, kInt64);
  for (int64_t axis : of_a) inner = inner * c.shape(a).at(static_cast<size_t>(axis));
  auto matrix = [&](const Expr& tensor, const std::vector<int64_t>& axes, bool is_left) {
    std::vector<int64_t> free = counted(0, c.rank(tensor));
    std::erase_if(free, [&](int64_t axis) { return std::ranges::find(axes, axis) != axes.end(); });
    Expr outer = int_imm(1, kInt64);
    for (int64_t axis : free) {
      result.push_back(c.shape(tensor)[static_cast<size_t>(axis)]);
      outer = outer * result.back();
    }
    std::vector<int64_t> order = is_left ? free : axes;
    order.insert(order.end(), (is_left ? axes : free).begin(), (is_left ? axes : free).end());
    return c.reshape(c.permute(tensor, order), is_left ? std::vector{simplify(outer), simplify(inner)}
                                                       : std::vector{simplify(inner), simplify(outer)});
  };
  Expr left = matrix(a, of_a, true), right = matrix(b, of_b, false);
  return c.reshape(c.op("matmul", {left, right}), result);
}

Expr einsum(TopiCall& c) {
  return c.op("einsum", {tuple(c.tensors("operand"))}, {{"subscripts", c.text("subscripts", "")}});
}

Expr searchsorted(TopiCall& c) {
  Attrs attrs = c.attrs("right");
  Expr sorted = c.tensor("sorted_sequence");
  if (c.rank(sorted) != 1) c.fail("topi.searchsorted is known here for one sorted sequence");
  DType dtype = c.dtype("out_dtype", kInt64);
  attrs.set("out_int32", dtype == kInt32);
  return c.astype(c.op("bucketize", {c.tensor("values"), sorted}, attrs), dtype);
}

Expr reverse_sequence(TopiCall& c) {
  return c.op("reverse_sequence", {c.tensor("a"), c.tensor("seq_lengths")},
              {{"time_axis", c.whole("seq_axis", 1)}, {"batch_axis", c.whole("batch_axis", 0)}});
}

Expr sequence_mask(TopiCall& c) {
  Expr data = c.tensor("data"), lengths = c.tensor("valid_length");
  int64_t axis = c.axis("axis", 0, data), rank = c.rank(data);
  if (axis > 1) c.fail("the axis of topi.sequence_mask is 0 or 1");
  Expr steps = c.op("arange", {int_imm(0, kInt64), c.shape(data)[static_cast<size_t>(axis)], int_imm(1, kInt64)},
                    {{"dtype", c.dtype_of(lengths)}});
  Expr is_valid = c.op("less", {c.along(steps, axis, rank), c.along(lengths, 1 - axis, rank)});
  return c.op("where", {is_valid, data, c.number(c.real("mask_value", 0), c.dtype_of(data))});
}

Expr trilu(TopiCall& c) {
  return c.op(c.flag("upper", true) ? "triu" : "tril", {c.tensor("data"), int_imm(c.whole("k", 0), kInt64)});
}

// A layout as TVM writes it: "NCHW16c". The parts of a letter are an outer one and perhaps an inner one of a size.
struct LayoutPart {
  char letter;
  int64_t size = 0;  // of an inner part
};
std::vector<LayoutPart> layout_of(TopiCall& c, std::string_view name) {
  std::vector<LayoutPart> result;
  int64_t number = 0;
  for (char each : c.text(name, "")) {
    if (each >= '0' && each <= '9') {
      number = number * 10 + (each - '0');
      continue;
    }
    bool is_inner = each >= 'a' && each <= 'z';
    if (is_inner != (number > 0) || number > 1 << 20) c.fail(fmt::format("argument '{}' is not a layout", name));
    result.push_back({is_inner ? static_cast<char>(each - 'a' + 'A') : each, is_inner ? number : 0});
    number = 0;
  }
  return result;
}

// Joins the parts of each letter, behind its outer one; the layout has no inner parts then.
Expr joined_parts(TopiCall& c, Expr data, std::vector<LayoutPart>& layout) {
  std::vector<int64_t> order;
  std::vector<Expr> dims;
  std::vector<LayoutPart> outer;
  for (size_t i = 0; i < layout.size(); ++i) {
    if (layout[i].size) continue;
    order.push_back(static_cast<int64_t>(i));
    outer.push_back(layout[i]);
    Expr size = c.shape(data).at(i);
    for (size_t j = 0; j < layout.size(); ++j) {
      if (layout[j].letter != layout[i].letter || !layout[j].size) continue;
      order.push_back(static_cast<int64_t>(j));
      size = size * layout[j].size;
    }
    dims.push_back(simplify(size));
  }
  if (order.size() != layout.size()) c.fail("each inner part of a layout has an outer one");
  if (outer.size() == layout.size()) return data;
  layout = outer;
  return c.reshape(c.permute(data, order), dims);
}

Expr layout_transform(TopiCall& c) {
  Expr data = c.tensor("array");
  std::vector<LayoutPart> from = layout_of(c, "src_layout"), to = layout_of(c, "dst_layout");
  if (static_cast<int64_t>(from.size()) != c.rank(data))
    c.fail(fmt::format("a layout of {} parts for a tensor of rank {}", from.size(), c.rank(data)));
  data = joined_parts(c, data, from);
  std::vector<Expr> dims;
  std::vector<LayoutPart> split;
  for (size_t i = 0; i < from.size(); ++i) {
    int64_t inner = 1;
    for (const LayoutPart& part : to) inner *= part.letter == from[i].letter && part.size ? part.size : 1;
    if (inner > 1 && c.dim(data, static_cast<int64_t>(i)) % inner != 0)
      c.fail(fmt::format("dim {} does not divide by the {} of the layout", from[i].letter, inner));
    dims.push_back(simplify(floor_div(c.shape(data)[i], int_imm(inner, kInt64))));
    split.push_back(from[i]);
    for (const LayoutPart& part : to) {
      if (part.letter != from[i].letter || !part.size) continue;
      dims.push_back(int_imm(part.size, kInt64));
      split.push_back(part);
    }
  }
  if (split.size() != from.size()) data = c.reshape(data, dims);
  std::vector<int64_t> order;
  for (const LayoutPart& part : to) {
    auto same = [&](const LayoutPart& other) { return other.letter == part.letter && other.size == part.size; };
    auto found = std::ranges::find_if(split, same);
    if (found == split.end()) c.fail("the layouts are not of the same axes");
    order.push_back(found - split.begin());
  }
  if (order.size() != split.size()) c.fail("the layouts are not of the same axes");
  return c.permute(data, order);
}

constexpr TopiComposition kArrayFunctions[] = {
    {"all", "data axis keepdims", all},
    {"any", "data axis keepdims", any},
    {"arange", "start stop step dtype", arange},
    {"argmax", "data axis keepdims select_last_index", argmax},
    {"argmin", "data axis keepdims select_last_index", argmin},
    {"argsort", "data valid_count axis is_ascend dtype", argsort},
    {"einsum", "subscripts operand*", einsum},
    {"elemwise_sum", "xs", elemwise_sum},
    {"expand_dims", "a axis num_newaxis", expand_dims},
    {"full_like", "x fill_value", full_like},
    {"gather_nd", "a indices", gather_nd},
    {"layout_transform", "array src_layout dst_layout", layout_transform},
    {"matmul", "a|lhs b|rhs transpose_a|transp_a|transa transpose_b|transp_b|transb", matmul},
    {"nn.batch_matmul",
     "a|tensor_a|x b|tensor_b|y oshape out_dtype transpose_a transpose_b auto_scheduler_rewritten_layout "
     "meta_schedule_original_shape",
     batch_matmul},
    {"nn.matmul",
     "a|tensor_a b|tensor_b bias out_dtype transpose_a transpose_b auto_scheduler_rewritten_layout "
     "meta_schedule_original_shape",
     matmul},
    {"one_hot", "indices on_value off_value depth axis dtype", one_hot},
    {"reverse_sequence", "a seq_lengths seq_axis batch_axis", reverse_sequence},
    {"scatter_nd", "data indices updates mode", scatter_nd},
    {"searchsorted", "sorted_sequence values right out_dtype", searchsorted},
    {"sequence_mask", "data valid_length mask_value axis", sequence_mask},
    {"sort", "data axis is_ascend", sort},
    {"strided_slice", "a|data begin end strides axes slice_mode", strided_slice},
    {"take", "a indices axis batch_dims mode", take},
    {"tensordot", "a b axes", tensordot},
    {"topk", "data k axis ret_type is_ascend dtype", topk},
    {"trilu", "data k upper", trilu},
    {"where", "condition x y", where}};

}  // namespace

std::span<const TopiComposition> topi_array_functions() { return kArrayFunctions; }

}  // namespace relaxc::text
