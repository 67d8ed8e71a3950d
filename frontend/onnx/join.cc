#include "frontend/onnx/join.h"

#include <algorithm>

#include "frontend/onnx/axes.h"

namespace relaxc::onnx_import {

namespace {

constexpr size_t kMostParts = 64, kGroup = 32;  // tensors of one kernel; and of one group, when there are more

// Binds the value to a variable, as an int64 scalar of the graph.
Expr bound(Node& n, const Expr& scalar, const char* hint) {
  return bounded(n, scalar, hint, {n.least_value(scalar), INT64_MAX});
}

// Makes the axis's dim a number or a variable, so that the kernels of equal groups are equal.
Expr with_named_dim(Node& n, const Expr& x, int64_t axis) {
  std::vector<Expr> shape = n.shape_of(x);
  Expr& dim = shape[axis];
  if (dim.is<IntImm>() || dim.is<Var>()) return x;
  dim = bound(n, dim, "joined");
  return n.match_cast(x, tensor_type(shape, n.dtype_of_tensor(x)));
}

bool is_long(const Expr& scalar) {
  constexpr int kMostOperands = 64;
  int operands = 0;
  walk(scalar, [&](const Var&) { ++operands; });
  return operands > kMostOperands;
}

}  // namespace

Expr named_if_long(Node& n, const Expr& scalar, const char* hint) {
  if (!is_long(scalar)) return scalar;
  Expr simple = n.simplify(scalar);
  return is_long(simple) ? bound(n, simple, hint) : simple;
}

Expr join(Node& n, const std::vector<Expr>& items, int64_t axis) {
  if (items.size() == 1) return items[0];
  if (items.size() <= kMostParts) return n.op("concat", {tuple(items)}, ConcatAttrs{axis});
  std::vector<Expr> groups;
  for (size_t first = 0; first < items.size(); first += kGroup) {
    auto begin = items.begin() + static_cast<int64_t>(first);
    auto end = items.begin() + static_cast<int64_t>(std::min(first + kGroup, items.size()));
    groups.push_back(with_named_dim(n, join(n, {begin, end}, axis), axis));
  }
  return join(n, groups, axis);
}

std::vector<Expr> cut(Node& n, const Expr& x, int64_t axis, const std::vector<Expr>& offsets) {
  size_t count = offsets.size() - 1;
  size_t parts = 1;  // pieces of one group
  while (count > kMostParts && (count + parts - 1) / parts > kGroup) parts *= kGroup;
  std::vector<Expr> result;
  for (size_t first = 0; first < count; first += parts) {
    size_t last = std::min(first + parts, count);
    Expr group = n.slice(x, axis, offsets[first], offsets[last]);
    if (parts == 1) {
      result.push_back(group);
      continue;
    }
    std::vector<Expr> inner;
    for (size_t i = first; i <= last; ++i) inner.push_back(n.simplify(offsets[i] - offsets[first]));
    std::vector<Expr> pieces = cut(n, group, axis, inner);
    result.insert(result.end(), pieces.begin(), pieces.end());
  }
  return result;
}

}  // namespace relaxc::onnx_import
