// A value of one type where another type is expected: the answers proven, possible and contradicted.
#include "ir/type_relation.h"

#include "tests/catch.h"

using namespace relaxc;

namespace {

const VarRef n = make_dim("n"), m = make_dim("m");

Type floats(std::vector<Expr> shape) { return tensor_type(std::move(shape), kFloat32); }
Type function(std::vector<Type> params, Type result, bool pure = true) {
  return make(FuncType{std::move(params), std::move(result), pure});
}

}  // namespace

TEST_CASE("dims are equal, may be equal or differ for all values", "[type_relation]") {
  CHECK(equal_dims(n + 1, m + n - m + 1) == Verdict::kProven);
  CHECK(equal_dims(n, m) == Verdict::kPossible);
  CHECK(equal_dims(n, n + 1) == Verdict::kContradicted);
  CHECK(equal_dims(int_imm(4, kInt32), int_imm(4)) == Verdict::kProven);
  CHECK(equal_dims(floor_div(n, 2) * 2 + floor_mod(n, 2), n) == Verdict::kProven);
  Analyzer facts;
  facts.bind(m, Expr(n));
  CHECK(equal_dims(n, m, facts) == Verdict::kProven);
  CHECK(equal_dims(n, m + 2, facts) == Verdict::kContradicted);
}

TEST_CASE("a type asks for no more than it says", "[type_relation]") {
  Type unknown = make(TensorType{});
  Type of_rank = tensor_type_of_rank(2, std::nullopt);
  CHECK(fits(unknown, floats({n})) == Verdict::kProven);
  CHECK(fits(floats({n}), unknown) == Verdict::kPossible);
  CHECK(fits(of_rank, floats({n, m})) == Verdict::kProven);
  CHECK(fits(of_rank, floats({n})) == Verdict::kContradicted);
  CHECK(fits(floats({n, m}), of_rank) == Verdict::kPossible);
  CHECK(fits(floats({n, m}), floats({n, n})) == Verdict::kPossible);
  CHECK(fits(floats({n, int_imm(3)}), floats({m, int_imm(4)})) == Verdict::kContradicted);
  CHECK(fits(tensor_type({n}, kInt64), floats({n})) == Verdict::kContradicted);
  CHECK(fits(shape_type({n}), floats({n})) == Verdict::kContradicted);
  CHECK(fits(object_type(), shape_type({n})) == Verdict::kProven);
  CHECK(fits(shape_type({n}), object_type()) == Verdict::kPossible);
}

TEST_CASE("a tuple is as certain as its least certain item", "[type_relation]") {
  Type wanted = tuple_type({floats({n}), floats({m})});
  CHECK(fits(wanted, tuple_type({floats({n}), floats({m})})) == Verdict::kProven);
  CHECK(fits(wanted, tuple_type({floats({n}), object_type()})) == Verdict::kPossible);
  CHECK(fits(wanted, tuple_type({object_type(), floats({m + 1})})) == Verdict::kContradicted);
  CHECK(fits(wanted, tuple_type({floats({n})})) == Verdict::kContradicted);
}

TEST_CASE("a scalar's value counts where it is asked for", "[type_relation]") {
  Type any = prim_type(kInt64), four = make(PrimType{.dtype = kInt64, .value = int_imm(4)}),
       five = make(PrimType{.dtype = kInt64, .value = int_imm(5)});
  CHECK(fits(any, four) == Verdict::kProven);
  CHECK(fits(four, any) == Verdict::kPossible);
  CHECK(fits(four, five) == Verdict::kContradicted);
  CHECK(fits(any, prim_type(kInt32)) == Verdict::kContradicted);
}

TEST_CASE("a function must take what the caller hands it", "[type_relation]") {
  VarRef k = make_dim("k");
  Type identity = function({floats({k})}, floats({k}));
  Type wanted = function({floats({int_imm(3)})}, floats({int_imm(3)}));
  CHECK(fits(wanted, identity) == Verdict::kProven);
  CHECK(fits(wanted, function({floats({int_imm(4)})}, floats({int_imm(3)}))) == Verdict::kContradicted);
  CHECK(fits(wanted, function({floats({k})}, floats({k + 1}))) == Verdict::kContradicted);
  CHECK(fits(wanted, function({floats({k})}, floats({k}), false)) == Verdict::kContradicted);
  CHECK(fits(wanted, function({object_type()}, object_type())) == Verdict::kPossible);
}
