// Matrix products, Einstein summation and the determinant.
#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

namespace {

Expr matmul_of(Node& n, const Expr& a, const Expr& b) {
  std::vector<Expr> x = n.shape_of(a), y = n.shape_of(b);
  if (x.empty() || y.empty()) n.fail("operands have ranks {} and {}, expected at least 1", x.size(), y.size());
  if (n.dtype_of_tensor(a) != n.dtype_of_tensor(b))
    n.fail("inputs have dtypes {} and {}", to_string(n.dtype_of_tensor(a)), to_string(n.dtype_of_tensor(b)));
  n.require_equal(x.back(), y.size() == 1 ? y[0] : y[y.size() - 2], "inner dims of a product");
  if (x.size() < 3 || y.size() < 3) return n.op("matmul", {a, b});
  std::vector<Expr> batch = n.broadcast({x.begin(), x.end() - 2}, {y.begin(), y.end() - 2});
  auto stretched = [&](const Expr& operand, const std::vector<Expr>& dims) {
    std::vector<Expr> shape = batch;
    shape.insert(shape.end(), dims.end() - 2, dims.end());
    return n.stretched(operand, shape);
  };
  return n.op("matmul", {stretched(a, x), stretched(b, y)});
}
Expr matmul(Node& n) { return matmul_of(n, n.tensor(0), n.tensor(1)); }

Expr gemm(Node& n) {
  Expr a = n.tensor(0), b = n.tensor(1);
  if (n.rank(0) != 2 || n.rank(1) != 2) n.fail("operands have ranks {} and {}, expected 2", n.rank(0), n.rank(1));
  if (n.attr_int("transA", 0)) a = n.transpose(a, {1, 0});
  if (n.attr_int("transB", 0)) b = n.transpose(b, {1, 0});
  double alpha = n.attr_float("alpha", 1), beta = n.attr_float("beta", 1);
  Expr product = n.scaled(matmul_of(n, a, b), alpha);
  return n.has(2) && beta != 0 ? n.add(product, n.scaled(n.tensor(2), beta)) : product;
}
Expr einsum(Node& n) {
  std::string equation = n.attr_string("equation", "");
  std::erase(equation, ' ');
  return n.op("einsum", {tuple(n.tensors())}, EinsumAttrs{equation});
}

// Returns operand - zero point as int32. A vector of zero points has one per row of operand 0, per column of operand 1.
Expr centered_operand(Node& n, size_t operand) {
  Expr wide = n.cast(n.tensor(operand), kInt32);
  if (!n.has(operand + 2)) return wide;
  Expr zero = n.cast(n.tensor(operand + 2), kInt32);
  std::vector<Expr> shape = n.shape_of(zero);
  if (operand == 0 && shape.size() == 1 && n.rank(0) > 1) zero = n.reshape(zero, {shape[0], int_imm(1)});
  return n.sub(wide, zero);
}
Expr matmul_integer(Node& n) { return matmul_of(n, centered_operand(n, 0), centered_operand(n, 1)); }

}  // namespace

std::vector<ConverterRow> linear_algebra_converters() {
  return {
      {"MatMul", 1, 2, 2, matmul},
      {"Gemm", 1, 3, 3, gemm, "alpha beta broadcast transA transB"},
      {"Gemm", 11, 2, 3, gemm, "alpha beta broadcast transA transB"},
      {"Einsum", 12, 1, kAny, einsum, "equation"},
      {"Det", 11, 1, 1, {convert_directly, "linalg.det"}},
      {"MatMulInteger", 10, 2, 4, matmul_integer},
  };
}

}  // namespace relaxc::onnx_import
