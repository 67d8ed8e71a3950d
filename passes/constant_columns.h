// A constant matrix [depth, width] that a product multiplies, perhaps transposed in memory, or its parameters.
#pragma once
#include "ops/common.h"

namespace relaxc {

// An element for each row and column, or each block of rows and column, or each column alone.
struct ConstantColumns {
  Expr tensor;  // a constant
  bool is_transposed;

  std::vector<int64_t> shape() const { return tensor.as<Constant>()->data.shape(); }
  int64_t size() const { return tensor.as<Constant>()->data.size(); }
  int64_t rows() const { return shape().size() < 2 ? 1 : shape()[is_transposed ? 1 : 0]; }
  Expr at(const Buffer& buffer, const Expr& row, const Expr& column) const {
    if (shape().size() == 1) return load(buffer, {column});
    return is_transposed ? load(buffer, {column, row}) : load(buffer, {row, column});
  }
  // Returns the number that all elements are, if they are equal.
  std::optional<int64_t> only_number() const {
    const Tensor& data = tensor.as<Constant>()->data;
    const int64_t first = data.as_int(0);
    for (int64_t i = 1; i < data.size(); ++i) {
      if (data.as_int(i) != first) return std::nullopt;
    }
    return first;
  }
};

// Returns the codes of a constant of floats of few bits as integers without a sign.
inline Expr codes_of(const Expr& floats) {
  const Tensor& data = floats.as<Constant>()->data;
  return constant(Tensor::view(data.shape(), DType::uint(data.dtype().bits), data.raw(), data.owner()), floats.span());
}

}  // namespace relaxc
