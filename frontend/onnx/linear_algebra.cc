// Matrix products, Einstein summation and the determinant.
#include <map>

#include "frontend/onnx/node.h"
#include "support/joined.h"

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
// Returns the names of the dims of an operand: its letters, and "...0" and so on, counted from the right, for the dims
// of an ellipsis. Empty where the term does not fit the rank, which the operator reports.
std::vector<std::string> names_of_dims(std::string_view term, size_t rank) {
  constexpr std::string_view kEllipsis = "...";
  const size_t dots = term.find(kEllipsis), given = term.size() - (dots == term.npos ? 0 : kEllipsis.size());
  if (given > rank || (dots == term.npos && given != rank)) return {};
  std::vector<std::string> names;
  for (size_t k = 0; k < term.size(); ++k) {
    if (k != dots) {
      names.emplace_back(1, term[k]);
      continue;
    }
    for (size_t d = rank - given; d-- > 0;) names.push_back(fmt::format("{}{}", kEllipsis, d));
    k += kEllipsis.size() - 1;
  }
  return names;
}
// Stretches dims of one name to each other, as an Add does.
std::vector<Expr> with_dims_of_names(Node& n, const std::string& equation) {
  std::vector<Expr> operands = n.tensors();
  std::vector<std::string_view> terms = parts_of(std::string_view(equation).substr(0, equation.find("->")), ',');
  if (terms.size() != operands.size()) return operands;
  std::map<std::string, Expr> sizes;
  auto names_of = [&](size_t i) { return names_of_dims(terms[i], n.shape_of(operands[i]).size()); };
  for (size_t i = 0; i < operands.size(); ++i) {
    const std::vector<std::string> names = names_of(i);
    for (size_t d = 0; d < names.size(); ++d) {
      const Expr& dim = n.shape_of(operands[i])[d];
      auto [size, is_new] = sizes.emplace(names[d], dim);
      if (!is_new) size->second = n.broadcast({size->second}, {dim})[0];
    }
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    const std::vector<std::string> names = names_of(i);
    if (!names.empty())
      operands[i] = n.stretched(operands[i], map_each(names, [&](const std::string& name) { return sizes.at(name); }));
  }
  return operands;
}
Expr einsum(Node& n) {
  std::string equation = n.attr_string("equation", "");
  std::erase(equation, ' ');
  return n.op("einsum", {tuple(with_dims_of_names(n, equation))}, EinsumAttrs{equation});
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
