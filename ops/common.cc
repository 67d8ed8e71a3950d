#include "ops/common.h"

namespace relaxc {

std::vector<Expr> broadcast_shapes(const OpCall& op, const std::vector<Expr>& a, const std::vector<Expr>& b) {
  size_t rank = std::max(a.size(), b.size());
  std::vector<Expr> result;
  for (size_t d = 0; d < rank; ++d) {
    bool in_a = d + a.size() >= rank, in_b = d + b.size() >= rank;
    const Expr& x = in_a ? a[d + a.size() - rank] : b[d + b.size() - rank];
    const Expr& y = in_b ? b[d + b.size() - rank] : x;
    if (is_int(x, 1)) {
      result.push_back(y);
    } else if (is_int(y, 1)) {
      result.push_back(x);
    } else {
      op.require_equal(x, y, "shapes do not broadcast");
      result.push_back(as_int(y) ? y : x);
    }
  }
  return result;
}

Expr load_broadcast(const Buffer& buffer, Axes axes) {
  const std::vector<Expr>& shape = buffer_type(buffer).shape;
  std::vector<Expr> indices;
  for (size_t d = 0; d < shape.size(); ++d) {
    const Expr& axis = axes[axes.size() - shape.size() + d];
    indices.push_back(is_int(shape[d], 1) ? int_imm(0, dtype_of(axis)) : axis);
  }
  return load(buffer, indices);
}

int64_t normalize_axis(const OpCall& op, int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) op.fail("axis {} is out of range for a tensor of rank {}", axis, rank);
  return axis < 0 ? axis + rank : axis;
}
std::vector<int64_t> normalize_axes(const OpCall& op, const std::vector<int64_t>& axes, int64_t rank) {
  std::vector<int64_t> result;
  for (int64_t axis : axes) {
    int64_t normalized = normalize_axis(op, axis, rank);
    if (std::find(result.begin(), result.end(), normalized) != result.end()) op.fail("axis {} is given twice", axis);
    result.push_back(normalized);
  }
  return result;
}

Expr product(const std::vector<Expr>& dims) {
  Expr result = int_imm(1);
  for (const Expr& dim : dims) result = result * dim;
  return result;
}

Expr flatten_index(const std::vector<Expr>& indices, const std::vector<Expr>& shape) {
  Expr flat = int_imm(0);
  for (size_t d = 0; d < indices.size(); ++d) flat = flat * shape[d] + indices[d];
  return flat;
}

std::vector<Expr> unflatten_index(Expr flat, const std::vector<Expr>& shape) {
  std::vector<Expr> indices(shape.size(), int_imm(0));
  for (size_t d = shape.size(); d-- > 0;) {
    indices[d] = d == 0 ? flat : floor_mod(flat, shape[d]);
    flat = floor_div(flat, shape[d]);
  }
  return indices;
}

}  // namespace relaxc
