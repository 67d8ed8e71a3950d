// The work of tensor programs: formulas that tir/analysis/work.h makes and vm/formula.h computes.
#include "tir/analysis/work.h"

#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "tests/catch.h"
#include "vm/formula.h"

namespace relaxc {
namespace {

Work work_of_text(const std::string& body) {
  Diagnostics diagnostics;
  const std::string text = "@T.prim_func\ndef f(a: T.handle, b: T.handle):\n    n = T.int64()\n" + body;
  IRModule module = parse_module(text, "work.py", op_table(), diagnostics);
  diagnostics.throw_if_errors();
  return work_of(programs_of(module).begin()->second);
}

// Returns the formula's value for tensors of these shapes.
std::optional<double> value_of(const std::string& formula, const std::vector<std::vector<int64_t>>& shapes) {
  std::vector<Tensor> tensors;
  for (const auto& shape : shapes) tensors.push_back(Tensor::empty(shape, kFloat32));
  std::vector<const Tensor*> all;
  for (const Tensor& tensor : tensors) all.push_back(&tensor);
  return vm::evaluate_formula(formula, all);
}

TEST_CASE("operations and accesses follow from the loops") {
  Work work = work_of_text(R"(
    A = T.match_buffer(a, (n, 4), "float32")
    B = T.match_buffer(b, (n // 2,), "float32")
    for i, k in T.grid(n // 2, 4):
        B[i] = B[i] + A[2 * i, k] * T.exp(A[2 * i + 1, k])
)");
  // Of 5 pairs of rows: an addition, a product and a function of 16, two loads of A, and a load and a store of B.
  CHECK(value_of(work.operations, {{11, 4}, {5}}) == 5 * 4 * (1 + 1 + 16));
  CHECK(value_of(work.accesses.at(0), {{11, 4}, {5}}) == 5 * 4 * 2);
  CHECK(value_of(work.accesses.at(1), {{11, 4}, {5}}) == 5 * 4 * 2);
}

TEST_CASE("dims of a form tell what their variables are") {
  Work pooled = work_of_text(R"(
    A = T.match_buffer(a, (T.max(n // 2, 1), 4), "float32")
    B = T.match_buffer(b, (T.max(n // 2, 1), 4), "float32")
    for i, k in T.grid(T.max(n // 2, 1), 4):
        B[i, k] = A[i, k] + T.float32(1)
)");
  CHECK(value_of(pooled.operations, {{5, 4}, {5, 4}}) == 20);
  Work several = work_of_text(R"(
    A = T.match_buffer(a, (n * 4,), "float32")
    B = T.match_buffer(b, (n * 4,), "float32")
    for i in range(n):
        B[i] = A[i] + T.float32(1)
)");
  CHECK(value_of(several.operations, {{20}, {20}}) == 5);
}

TEST_CASE("a choice by the iteration is no operation, and one side counts") {
  Work work = work_of_text(R"(
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        B[i] = T.if_then_else(i < 2, A[i] + T.float32(1), A[i] * T.float32(2) + T.float32(1))
)");
  CHECK(value_of(work.operations, {{7}, {7}}) == 7 * 2);
}

TEST_CASE("a loop without a count has no formula") {
  Work work = work_of_text(R"(
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    while A[0] < T.float32(1):
        A[0] = A[0] * T.float32(2)
)");
  CHECK(work.operations.empty());
  CHECK(!value_of(work.operations, {{7}, {7}}));
}

TEST_CASE("formulas are computed, and damaged ones have no value") {
  CHECK(value_of("2 * (t0[0] + 3) // (4) * 10", {{7}}) == 50);
  CHECK(value_of("min(t0[0] % (4), max(1, t0[1]))", {{7, 2}}) == 2);
  CHECK(value_of("(t0[0] - 9) * (-2)", {{7}}) == 4);
  for (const char* wrong : {"", "2 *", "t0[1]", "t1[0]", "t0[0", "2 3", "min(1)", "x", "99999999999999999999999"})
    CHECK(!value_of(wrong, {{7}}));
  CHECK(!value_of(std::string(100000, '('), {{7}}));
}

}  // namespace
}  // namespace relaxc
