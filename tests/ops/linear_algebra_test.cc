#include <map>

#include "tests/ops/harness.h"

using namespace relaxc;
using namespace relaxc::test;

namespace {

const OpTable& linear_algebra_table() {
  static const OpTable kTable = [] {
    std::vector<OpRow> rows = linear_algebra_ops();
    for (OpRow& row : einsum_ops()) rows.push_back(std::move(row));
    return OpTable(std::move(rows));
  }();
  return kTable;
}

// The element of x at the batch index (aligned right, 1 broadcasts) and the inner indices.
double batched(const Tensor& x, const Shape& batch, const Shape& inner) {
  Shape index;
  size_t own = x.shape().size() - inner.size();
  for (size_t d = 0; d < own; ++d) index.push_back(x.shape()[d] == 1 ? 0 : batch[batch.size() - own + d]);
  index.insert(index.end(), inner.begin(), inner.end());
  return element(x, index);
}
void check_matmul(const Tensor& a, const Tensor& b, const Shape& result, const Attrs& attrs = {},
                  const Symbolic& symbolic = {}, double tolerance = 1e-5) {
  bool row = a.ndim() > 1, column = b.ndim() > 1;
  check_tensor(
      run_op(linear_algebra_table(), "matmul", {a, b}, attrs, symbolic)[0], result,
      [&](const Shape& index) {
        Shape batch(index.begin(), index.end() - row - column);
        double sum = 0;
        for (int64_t k = 0; k < a.shape().back(); ++k) {
          Shape left = {k}, right = {k};
          if (row) left.insert(left.begin(), index[batch.size()]);
          if (column) right.push_back(index.back());
          sum += batched(a, batch, left) * batched(b, batch, right);
        }
        return sum;
      },
      tolerance);
}

Tensor einsum(const std::string& subscripts, const std::vector<Tensor>& inputs, const Symbolic& symbolic = {}) {
  return run_call(linear_algebra_table(), "einsum", {tuple(arguments(inputs, symbolic))}, {{"subscripts", subscripts}},
                  inputs)[0];
}
// Letters only: sums over all assignments of the letters' dims.
double einsum_reference(const std::vector<std::string>& terms, const std::string& out, const std::vector<Tensor>& x,
                        const Shape& index) {
  std::map<char, int64_t> dims, at;
  for (size_t i = 0; i < terms.size(); ++i) {
    for (size_t d = 0; d < terms[i].size(); ++d) dims[terms[i][d]] = std::max(dims[terms[i][d]], x[i].shape()[d]);
  }
  for (size_t d = 0; d < out.size(); ++d) at[out[d]] = index[d];
  std::string summed;
  Shape extents;
  for (auto [letter, dim] : dims) {
    if (at.contains(letter)) continue;
    summed += letter;
    extents.push_back(dim);
  }
  double total = 0;
  for_each_index(extents, [&](const Shape& r) {
    for (size_t d = 0; d < r.size(); ++d) at[summed[d]] = r[d];
    double value = 1;
    for (size_t i = 0; i < terms.size(); ++i) {
      Shape where;
      for (size_t d = 0; d < terms[i].size(); ++d) where.push_back(x[i].shape()[d] == 1 ? 0 : at[terms[i][d]]);
      value *= element(x[i], where);
    }
    total += value;
  });
  return total;
}

}  // namespace

TEST_CASE("matmul follows numpy", "[ops][matmul]") {
  auto x = [](Shape shape) { return values(std::move(shape), kFloat32, 3); };
  auto y = [](Shape shape) { return values(std::move(shape), kFloat32, 4); };
  check_matmul(x({3, 4}), y({4, 5}), {3, 5});
  check_matmul(x({4}), y({4, 5}), {5});
  check_matmul(x({3, 4}), y({4}), {3});
  check_matmul(x({4}), y({4}), {});
  check_matmul(x({2, 3, 4}), y({2, 4, 5}), {2, 3, 5});
  check_matmul(x({2, 1, 3, 4}), y({3, 4, 2}), {2, 3, 3, 2});
  check_matmul(x({4}), y({2, 4, 5}), {2, 5});
  check_matmul(x({2, 3, 4}), y({4}), {2, 3});
  check_matmul(x({1, 3, 4}), y({5, 4, 2}), {5, 3, 2});
  check_matmul(x({3, 0}), y({0, 2}), {3, 2});
  check_matmul(x({0, 3}), y({3, 2}), {0, 2});
}

TEST_CASE("matmul with symbolic dims", "[ops][matmul]") {
  VarRef b = make_dim("b"), n = make_dim("n"), k = make_dim("k"), m = make_dim("m");
  check_matmul(values({2, 3, 4}), values({2, 4, 5}), {2, 3, 5}, {}, {{b, n, k}, {b, k, m}});
  check_matmul(values({2, 3, 4}), values({4, 5}), {2, 3, 5}, {}, {{b, n, k}, {int_imm(4), m}});
  check_matmul(values({2, 3, 4}), values({1, 4, 5}), {2, 3, 5}, {}, {{b, n, k}, {int_imm(1), k, m}});
}

TEST_CASE("matmul dtypes", "[ops][matmul]") {
  DType int8 = DType::int_(8), uint8 = DType::uint(8);
  check_matmul(values({3, 40}, uint8), values({40, 5}, int8, 2), {3, 5}, {{"out_dtype", kInt32}});
  check_matmul(values({3, 40}, kInt64), values({40, 5}, kInt64, 2), {3, 5});
  check_matmul(values({3, 40}, DType::float_(16)), values({40, 5}, DType::float_(16), 2), {3, 5}, {}, {}, 1e-3);
  check_matmul(values({3, 4}, DType::float_(16)), values({4, 5}, DType::float_(16), 2), {3, 5},
               {{"out_dtype", kFloat32}});
  check_matmul(values({3, 4}), values({4, 5}), {3, 5}, {{"out_dtype", "void"}});
  check_matmul(values({3, 4}, int8), values({4, 5}, int8), {3, 5}, {{"out_dtype", "int32"}});
  CHECK(
      contains(error_of(linear_algebra_table(), "matmul", {values({3, 4}), values({4, 5})}, {{"out_dtype", "number"}}),
               "argument 'out_dtype': expected a tensor's dtype, got \"number\""));
  CHECK(contains(error_of(linear_algebra_table(), "matmul", {values({3, 4}, uint8), values({4, 5}, int8)}),
                 "uint8 and int8"));
  CHECK(contains(error_of(linear_algebra_table(), "matmul", {values({3, 4}), values({5, 4})}),
                 "the contracted dims differ: 4 and 5"));
  CHECK(contains(error_of(linear_algebra_table(), "matmul", {values({2, 3, 4}), values({3, 4, 5})}),
                 "do not broadcast: 2 and 3"));
  CHECK(contains(error_of(linear_algebra_table(), "matmul", {values({}), values({4})}), "scalar"));
}

TEST_CASE("einsum", "[ops][einsum]") {
  auto check = [&](const std::string& subscripts, std::vector<std::string> terms, const std::string& out,
                   const std::vector<Tensor>& x, const Shape& shape, const Symbolic& symbolic = {}) {
    INFO(subscripts);
    check_tensor(einsum(subscripts, x, symbolic), shape,
                 [&](const Shape& i) { return einsum_reference(terms, out, x, i); });
  };
  Tensor square = values({3, 3}), m34 = values({3, 4}, kFloat32, 2), m45 = values({4, 5}, kFloat32, 5);
  Tensor b1 = values({2, 3, 4}, kFloat32, 6), b2 = values({2, 4, 5}, kFloat32, 7), v3 = values({3}, kFloat32, 8);
  check("...ii ->...i", {"bii"}, "bi", {values({2, 3, 3})}, {2, 3});
  check("bij, bjk -> bik", {"bij", "bjk"}, "bik", {b1, b2}, {2, 3, 5});
  check("i,i", {"i", "i"}, "", {v3, v3}, {});
  check("ij->i", {"ij"}, "i", {m34}, {3});
  check("ij->ji", {"ij"}, "ji", {m34}, {4, 3});
  check("ij,jk", {"ij", "jk"}, "ik", {m34, m45}, {3, 5});
  check("ba", {"ba"}, "ab", {m34}, {4, 3});
  check("ii", {"ii"}, "", {square}, {});
  check("ii->i", {"ii"}, "i", {square}, {3});
  check("i,j->ij", {"i", "j"}, "ij", {v3, values({2})}, {3, 2});
  check("i,ij,jk->k", {"i", "ij", "jk"}, "k", {v3, m34, m45}, {5});
  check("...ij,...jk->...ik", {"ij", "bjk"}, "bik", {m34, b2}, {2, 3, 5});
  check("...ij,...jk", {"bij", "bjk"}, "bik", {b1, b2}, {2, 3, 5});
  check("ij,ij->", {"ij", "ij"}, "", {m34, m34}, {});
  check("ij->", {"ij"}, "", {values({0, 4})}, {});
  VarRef n = make_dim("n"), k = make_dim("k"), b = make_dim("b");
  check("bij,bjk->bik", {"bij", "bjk"}, "bik", {b1, b2}, {2, 3, 5}, {{b, n, k}, {b, k, make_dim("m")}});
}

TEST_CASE("einsum errors", "[ops][einsum]") {
  auto message = [](const std::string& subscripts, const std::vector<Tensor>& x) -> std::string {
    try {
      einsum(subscripts, x);
    } catch (const CompileError& error) {
      return error.what();
    }
    return "no error";
  };
  Tensor m = values({3, 4});
  CHECK(contains(message("ij,jk->ik", {m}), "subscripts of 2 operands, got 1"));
  CHECK(contains(message("ijk->i", {m}), "'ijk' names 3 dims of an operand of rank 2"));
  CHECK(contains(message("ij->k", {m}), "'k' of the result is in no operand"));
  CHECK(contains(message("ij->ii", {m}), "'i' is twice in the result"));
  CHECK(contains(message("i?->i", {m}), "unexpected '?'"));
  CHECK(contains(message("...j->j", {m}), "has no '...'"));
  CHECK(contains(message("ii->i", {m}), "3 and 4"));
}

TEST_CASE("determinant", "[ops][det]") {
  Tensor x = Tensor::of<float>({2, 3, 3}, kFloat32, {0, 2, 1, 1, 1, 0, 3, 0, 4, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  VarRef b = make_dim("b"), n = make_dim("n");
  for (const Symbolic& symbolic : {Symbolic{}, Symbolic{{b, n, n}}}) {
    Tensor det = run_op(linear_algebra_table(), "linalg.det", {x}, {}, symbolic)[0];
    REQUIRE(det.shape() == Shape{2});
    CHECK(det.as_double(0) == Approx(-11));
    CHECK(std::fabs(det.as_double(1)) < 1e-5);
  }
  CHECK(run_op(linear_algebra_table(), "linalg.det", {values({1, 1})})[0].as_double(0) == values({1, 1}).as_double(0));
  CHECK(run_op(linear_algebra_table(), "linalg.det", {Tensor::empty({0, 0}, kFloat32)})[0].as_double(0) == 1);
  CHECK(contains(error_of(linear_algebra_table(), "linalg.det", {values({2, 3})}), "not square: 2 and 3"));
}
