// Slices and splits of sizes that only the run knows, against numpy's rules.
#include "tests/ops/harness.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

const OpTable& slice_table() {
  static const OpTable kTable = make_op_table();
  return kTable;
}

// [begin, end) as numpy takes them for `size` elements.
std::pair<int64_t, int64_t> bounds(int64_t begin, int64_t end, int64_t size) {
  auto clamped = [&](int64_t bound) { return std::clamp<int64_t>(bound < 0 ? bound + size : bound, 0, size); };
  return {clamped(begin), std::max(clamped(begin), clamped(end))};
}

void check_slice(int64_t size, const Expr& dim, const Expr& begin, const Expr& end, std::pair<int64_t, int64_t> want) {
  Tensor x = values({size});
  std::vector<Expr> args = arguments({x}, {{dim}});
  for (const Expr& part : {int_imm(-1), begin, end}) args.push_back(tuple({part}));
  Tensor result = run_call(slice_table(), "strided_slice", args, {}, {x})[0];
  INFO(size);
  check_tensor(result, {want.second - want.first}, [&](const Shape& i) { return x.as_double(want.first + i[0]); });
}

}  // namespace

TEST_CASE("slices by negative and symbolic bounds", "[ops][slice]") {
  VarRef n = make_dim("n");
  for (int64_t size = 0; size < 7; ++size) {
    check_slice(size, n, int_imm(-3), int_imm(-1), bounds(-3, -1, size));
    check_slice(size, n, int_imm(0), floor_div(n, 2), {0, size / 2});
    check_slice(size, n, floor_div(n, 2), n, {size / 2, size});
    check_slice(size, n, n - 1, n, {std::max<int64_t>(size - 1, 0), size});
    check_slice(size, n, n - 2, n, bounds(size - 2, size, size));
  }
}

TEST_CASE("splits into parts of the rounded up size", "[ops][slice]") {
  VarRef n = make_dim("n");
  auto check = [&](int64_t size, const AttrValue& how, const std::vector<int64_t>& offsets) {
    Tensor x = values({size, 2});
    for (const Symbolic& dims : {Symbolic{}, Symbolic{{n, int_imm(2)}}}) {
      std::vector<Tensor> parts = run_op(slice_table(), "split", {x}, {{"indices_or_sections", how}}, dims);
      REQUIRE(parts.size() + 1 == offsets.size());
      for (size_t k = 0; k < parts.size(); ++k) {
        check_tensor(parts[k], {offsets[k + 1] - offsets[k], 2},
                     [&](const Shape& i) { return element(x, {offsets[k] + i[0], i[1]}); });
      }
    }
  };
  check(10, 3, {0, 4, 8, 10});
  check(9, 3, {0, 3, 6, 9});
  check(4, 3, {0, 2, 4, 4});
  check(0, 2, {0, 0, 0});
  check(5, std::vector<int64_t>{2, 12}, {0, 2, 5, 5});
}

}  // namespace relaxc::test
