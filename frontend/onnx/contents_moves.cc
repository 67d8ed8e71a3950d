// Import-time evaluation of operators that only move elements of a small tensor, of any rank: PyTorch computes the pads
// of every F.pad by Reshape, Slice and Transpose of a table with two columns.
#include <algorithm>
#include <numeric>

#include "frontend/onnx/graph_importer.h"

namespace relaxc::onnx_import {

namespace {

using Dims = std::vector<int64_t>;
using Folded = std::optional<Contents>;

int64_t size_of(const Dims& dims) { return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>()); }

// The elements under other dims.
Contents with_dims(const Contents& x, const Dims& dims, std::vector<Expr> elements) {
  return {x.dtype, dims.empty(), std::move(elements), dims.size() > 1 ? dims : Dims()};
}

// Sorted axes in [0, rank); nullopt when one of them is out of range or named twice.
std::optional<Dims> normalized(Dims axes, size_t rank) {
  int64_t n = static_cast<int64_t>(rank);
  for (int64_t& axis : axes) {
    if (axis < -n || axis >= n) return std::nullopt;
    if (axis < 0) axis += n;
  }
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) return std::nullopt;
  return axes;
}

Folded fold_reshape(Node& node, const Contents& x) {
  auto shape = node.has(1) ? node.constant_ints(1) : std::nullopt;
  if (!shape) return std::nullopt;
  Dims from = x.dims();
  bool zero_copies = node.attr_int("allowzero", 0) == 0;
  int64_t size = static_cast<int64_t>(x.elements.size()), rest = 1;
  for (size_t d = 0; d < shape->size(); ++d) {
    int64_t& dim = (*shape)[d];
    if (dim == 0 && zero_copies && d < from.size()) dim = from[d];
    if (dim < -1 || dim > size) return std::nullopt;
    if (dim != -1) rest = std::min(rest * dim, size + 1);
  }
  auto open = std::find(shape->begin(), shape->end(), -1);
  if (open != shape->end() && rest == 0) return std::nullopt;  // the converter says why
  if (open != shape->end()) *open = size / rest;
  if (std::count(shape->begin(), shape->end(), -1) > 0 || size_of(*shape) != size) return std::nullopt;
  return with_dims(x, *shape, x.elements);
}

Folded fold_squeeze(Node& node, const Contents& x) {
  bool grows = node.op_type() == "Unsqueeze";
  std::optional<Dims> axes = node.opset() < 13 ? node.attr_ints("axes")
                             : node.has(1)     ? node.constant_ints(1)
                                               : std::nullopt;
  Dims dims = x.dims();
  // Axes that name nothing are taken like none, as in the converter (tensor.cc).
  bool all = !grows && (axes ? axes->empty() : node.opset() < 13 || !node.has(1));
  if (!axes && !all) return std::nullopt;
  if (all) {
    std::erase(dims, 1);
    return with_dims(x, dims, x.elements);
  }
  axes = normalized(*axes, grows ? dims.size() + axes->size() : dims.size());
  if (!axes) return std::nullopt;
  if (grows) {
    for (int64_t axis : *axes) dims.insert(dims.begin() + axis, 1);
    return with_dims(x, dims, x.elements);
  }
  for (auto axis = axes->rbegin(); axis != axes->rend(); ++axis) {
    if (dims[static_cast<size_t>(*axis)] != 1) return std::nullopt;
    dims.erase(dims.begin() + *axis);
  }
  return with_dims(x, dims, x.elements);
}

// Gathers: element [i, j, ...] of the result is the element of x at rows[0][i] * strides[0] + rows[1][j] * ...
Contents pick(const Contents& x, const std::vector<Dims>& rows, const Dims& strides) {
  std::vector<int64_t> at = {0};
  Dims dims;
  for (size_t d = 0; d < rows.size(); ++d) {
    dims.push_back(static_cast<int64_t>(rows[d].size()));
    std::vector<int64_t> next;
    for (int64_t base : at) {
      for (int64_t row : rows[d]) next.push_back(base + row * strides[d]);
    }
    at = std::move(next);
  }
  std::vector<Expr> elements;
  for (int64_t i : at) elements.push_back(x.elements[static_cast<size_t>(i)]);
  return with_dims(x, dims, std::move(elements));
}

Dims strides_of(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  return strides;
}
Dims all_rows(int64_t count) {
  Dims rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

Folded fold_transpose(Node& node, const Contents& x) {
  Dims dims = x.dims(), strides = strides_of(dims), reversed = all_rows(static_cast<int64_t>(dims.size()));
  std::reverse(reversed.begin(), reversed.end());
  Dims permutation = node.attr_ints("perm").value_or(reversed);
  auto sorted = normalized(permutation, dims.size());
  if (permutation.size() != dims.size() || !sorted) return std::nullopt;
  std::vector<Dims> rows;
  Dims moved;
  for (int64_t axis : permutation) {
    size_t from = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(dims.size()) : axis);
    rows.push_back(all_rows(dims[from]));
    moved.push_back(strides[from]);
  }
  return pick(x, rows, moved);
}

// The rows that start:stop:step takes of n.
Dims sliced_rows(int64_t start, int64_t stop, int64_t step, int64_t n) {
  auto clamp = [&](int64_t v, int64_t low, int64_t high) {
    if (v < 0) v = v < -n ? low : v + n;
    return std::clamp(v, low, high);
  };
  Dims rows;
  if (n == 0) return rows;
  if (step > 0) {
    for (int64_t i = clamp(start, 0, n), end = clamp(stop, 0, n); i < end; i += std::min(step, n + 1))
      rows.push_back(i);
  } else {
    bool is_open = stop == INT64_MAX || stop == INT32_MAX;  // as in the converter (tensor.cc)
    int64_t end = is_open ? -1 : clamp(stop, -1, n - 1);
    for (int64_t i = clamp(start, 0, n - 1); i > end; i += std::max(step, -n - 1)) rows.push_back(i);
  }
  return rows;
}

Folded fold_slice(Node& node, const Contents& x) {
  Dims dims = x.dims();
  auto ints = [&](size_t i, const char* name, const Dims& otherwise) -> std::optional<Dims> {
    if (node.opset() < 10) return i > 3 ? otherwise : node.attr_ints(name).value_or(otherwise);
    return node.has(i) ? node.constant_ints(i) : otherwise;
  };
  auto starts = ints(1, "starts", {}), stops = ints(2, "ends", {});
  if (!starts || !stops) return std::nullopt;
  size_t count = starts->size();
  auto axes = ints(3, "axes", all_rows(static_cast<int64_t>(count))), steps = ints(4, "", Dims(count, 1));
  if (!axes || !steps || stops->size() != count || axes->size() != count || steps->size() != count ||
      !normalized(*axes, dims.size()))
    return std::nullopt;
  std::vector<Dims> rows;
  for (int64_t dim : dims) rows.push_back(all_rows(dim));
  for (size_t k = 0; k < count; ++k) {
    if ((*steps)[k] == 0) return std::nullopt;
    size_t axis = static_cast<size_t>((*axes)[k] < 0 ? (*axes)[k] + static_cast<int64_t>(dims.size()) : (*axes)[k]);
    rows[axis] = sliced_rows((*starts)[k], (*stops)[k], (*steps)[k], dims[axis]);
  }
  return pick(x, rows, strides_of(dims));
}

}  // namespace

Folded move_contents(Node& node, const Contents& x) {
  const std::string& op = node.op_type();
  if (op == "Identity") return x;
  if (op == "Reshape") return fold_reshape(node, x);
  if (op == "Squeeze" || op == "Unsqueeze") return fold_squeeze(node, x);
  if (op == "Transpose") return fold_transpose(node, x);
  if (op == "Slice") return fold_slice(node, x);
  return std::nullopt;
}

}  // namespace relaxc::onnx_import
