#include "frontend/onnx/run_time_axes.h"

#include <algorithm>

#include "frontend/onnx/graph_importer.h"

namespace relaxc::onnx_import {

Expr bounded(Node& n, const Expr& value, const char* hint, Interval bounds) {
  Expr result = n.named(value, hint);
  if (auto var = try_cast<Var>(result)) n.graph().context().analyzer.bind(*var, bounds);
  return result;
}

// Returns the tensor of axes in operand `input`, with its range tested.
static Expr checked_axes(Node& n, size_t input, int64_t rank) {
  return n.op("check_indices", {n.tensor(input), shape_expr({int_imm(rank)})}, CheckIndicesAttrs{"axes"});
}
Expr dim(Node& n, const Expr& value) { return bounded(n, value, "dim", {0, std::numeric_limits<int64_t>::max()}); }

std::vector<Expr> read_axes(Node& n, size_t input, int64_t rank, std::optional<int64_t> count) {
  Expr list = checked_axes(n, input, rank);
  if (count) list = n.with_length(list, *count);
  return map_each(n.ints_of(n.of(list)), [&](const Expr& axis) {
    return bounded(n, select(axis < int_imm(0), axis + rank, axis), "axis", {0, rank - 1});
  });
}

std::vector<int64_t> distinct_axes(const Node& n, const std::vector<int64_t>& axes, int64_t rank) {
  std::vector<int64_t> result;
  for (int64_t axis : axes) {
    int64_t at = n.axis(axis, rank, "axes");
    if (contains(result, at)) n.fail("axes name {} twice", at);
    result.push_back(at);
  }
  return result;
}
std::vector<Expr> distinct_axes(Node& n, size_t input, int64_t rank, std::optional<int64_t> count) {
  if (auto known = n.constant_ints(input)) return int_imms(distinct_axes(n, *known, rank));
  std::vector<Expr> axes = read_axes(n, input, rank, count);
  if (axes.size() > 1) require_distinct(n, named_axes(n, axes, rank), axes.size());
  return axes;
}

std::vector<Expr> distinct_axes_up_to(Node& n, size_t input, int64_t rank) {
  const Value list = n.of(checked_axes(n, input, rank));
  std::vector<Expr> axes = map_each(n.ints_up_to(list, rank, rank), [&](const Expr& axis) {
    return bounded(n, select(axis < int_imm(0), axis + rank, axis), "axis", {0, rank});
  });
  Expr total = int_imm(0);
  for (const Expr& is_named : named_axes(n, axes, rank)) total = total + is_named;
  n.require_equal(total, n.dim(input, 0), "number of different axes");
  return axes;
}

std::vector<Expr> named_axes(Node& n, const std::vector<Expr>& axes, int64_t rank) {
  std::vector<Expr> named;
  for (int64_t d = 0; d < rank; ++d) {
    Expr any = bool_imm(false);
    for (const Expr& axis : axes) any = any || equal(axis, int_imm(d));
    named.push_back(bounded(n, select(any, int_imm(1), int_imm(0)), "named", {0, 1}));
  }
  return named;
}
void require_distinct(Node& n, const std::vector<Expr>& named, size_t count) {
  Expr total = int_imm(0);
  for (const Expr& is_named : named) total = total + is_named;
  n.require_equal(total, int_imm(static_cast<int64_t>(count)), "number of different axes");
}

std::vector<Expr> named_axes_of_any_number(Node& n, size_t input, int64_t rank, bool none_means_all) {
  Expr axes = n.cast(checked_axes(n, input, rank), kInt64), count = n.shape_of(axes).at(0);
  Expr positive = n.op("where", {n.op("less", {axes, n.scalar(0, kInt64)}),
                                 n.add(axes, n.scalar(static_cast<double>(rank), kInt64)), axes});
  Expr all = n.reshape(n.op("arange", {int_imm(0), int_imm(rank), int_imm(1)}, DTypeAttrs{kInt64}),
                       {int_imm(1), int_imm(rank)});
  Expr hits = n.cast(n.op("equal", {n.reshape(positive, {count, int_imm(1)}), all}), kInt64);
  return map_each(n.ints_of(n.of(n.reduce("sum", hits, {0}, false))), [&](const Expr& times) {
    Expr once = min(times, int_imm(1));
    return bounded(n, none_means_all ? select(equal(count, int_imm(0)), int_imm(1), once) : once, "named", {0, 1});
  });
}

std::vector<Expr> dims_not_named(Node& n, const std::vector<Expr>& dims, const std::vector<Expr>& named, size_t count) {
  std::vector<Expr> result(count, int_imm(0));
  Expr position = int_imm(0);  // of axis d among those that are left
  for (size_t d = 0; d < dims.size(); ++d) {
    for (size_t j = 0; j < count && j <= d; ++j) {
      Expr is_here = equal(named[d], int_imm(0)) && equal(position, int_imm(static_cast<int64_t>(j)));
      result[j] = select(is_here, dims[d], result[j]);
    }
    position = n.named(position + 1 - named[d], "position");
  }
  for (Expr& left : result) left = dim(n, left);
  return result;
}

std::vector<Expr> dims_with_ones(Node& n, const std::vector<Expr>& dims, const std::vector<Expr>& named) {
  std::vector<Expr> result = dims;
  for (size_t d = 0; d < dims.size(); ++d) result[d] = dim(n, select(equal(named[d], int_imm(1)), int_imm(1), dims[d]));
  return result;
}

std::vector<Expr> dims_between_ones(Node& n, const std::vector<Expr>& dims, const std::vector<Expr>& named) {
  std::vector<Expr> result;
  Expr next = int_imm(0);  // which of the dims comes next
  for (const Expr& is_one : named) {
    Expr here = int_imm(1);
    for (size_t d = 0; d < dims.size(); ++d)
      here = select(equal(is_one, int_imm(0)) && equal(next, int_imm(static_cast<int64_t>(d))), dims[d], here);
    result.push_back(dim(n, here));
    next = n.named(next + 1 - is_one, "position");
  }
  return result;
}

}  // namespace relaxc::onnx_import
