// Operators on small tensors of known scalars, by their own tensor programs.
#include "ops/known_values.h"

#include "codegen/compile.h"
#include "ir/visit.h"
#include "ops/attributes.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

const VarRef kN = make_dim("n"), kM = make_dim("m");

KnownTensor list(std::vector<Expr> elements, DType dtype = kInt64) {
  return {dtype, {static_cast<int64_t>(elements.size())}, std::move(elements)};
}
std::optional<KnownTensor> run(const std::string& name, const std::vector<KnownTensor>& tensors,
                               const Attrs& attrs = {}, std::vector<Expr> more = {}) {
  KnownValues values;
  std::vector<Expr> args;
  for (const KnownTensor& tensor : tensors) {
    args.push_back(make_var("x", tensor.type()));
    values.set(args.back(), tensor);
  }
  if (name == "concat") args = {tuple(args)};
  args.insert(args.end(), more.begin(), more.end());
  Builder builder(op_table());
  auto evaluated = [&]() -> std::optional<KnownTensor> {
    builder.op(name, args, attrs);
    const KnownTensor* known = values.learn(builder.last().var, builder.last().value, op_table(), Analyzer());
    return known ? std::optional(*known) : std::nullopt;
  };
  std::optional<KnownTensor> first = evaluated(), again = evaluated();  // by the kept program
  CHECK(first.has_value() == again.has_value());
  if (first && again) {
    CHECK(std::ranges::equal(first->elements, again->elements,
                             [](const Expr& a, const Expr& b) { return structural_equal(a, b); }));
  }
  return first;
}
void check(const std::optional<KnownTensor>& got, const std::vector<int64_t>& shape,
           const std::vector<Expr>& elements) {
  REQUIRE(got);
  CHECK(got->shape == shape);
  REQUIRE(got->elements.size() == elements.size());
  for (size_t i = 0; i < elements.size(); ++i) {
    INFO(debug_print(got->elements[i]) << ", expected " << debug_print(elements[i]));
    bool is_float = dtype_of(elements[i]).is_float();
    CHECK(structural_equal(got->elements[i], is_float ? elements[i] : simplify(elements[i])));
  }
}

}  // namespace

TEST_CASE("moves and arithmetic of symbolic scalars", "[ops]") {
  KnownTensor shape = list({kN, int_imm(3), kM});
  check(run("take", {shape, {kInt64, {}, {int_imm(-1)}}}, write_attrs(TakeAttrs{.axis = 0})), {}, {kM});
  check(run("concat", {shape, list({int_imm(7)})}), {4}, {kN, int_imm(3), kM, int_imm(7)});
  check(run("multiply", {shape, list({int_imm(2)})}), {3}, {kN * 2, int_imm(6), kM * 2});
  check(run("prod", {shape}), {}, {kN * kM * 3});
  check(run("reshape", {shape}, {}, {shape_expr({int_imm(3), int_imm(1)})}), {3, 1}, {kN, int_imm(3), kM});
  check(run("astype", {shape}, write_attrs(CastAttrs{kInt32})), {3}, {kN, int_imm(3), kM});
}

TEST_CASE("elements that only the run can tell", "[ops]") {
  KnownTensor shape = list({kN, int_imm(3)});
  Attrs first = write_attrs(TakeAttrs{.axis = 0});
  CHECK_FALSE(run("take", {shape, list({int_imm(2)})}, first));  // the operator's error
  CHECK_FALSE(run("take", {shape, list({kN})}, first));          // any of them
  CHECK_FALSE(run("divide", {shape, list({int_imm(0)})}));
  KnownTensor most = list({int_imm(INT32_MAX)}, kInt32), one = list({int_imm(1)}, kInt32);
  CHECK_FALSE(run("add", {most, one}));  // an int32 wraps
  KnownTensor dims = list({kN}, kInt32), factor = list({int_imm(1 << 16)}, kInt32);
  auto once = run("multiply", {dims, factor});
  check(once, {1}, {kN * (1 << 16)});
  CHECK_FALSE(run("multiply", {*once, factor}));
  CHECK_FALSE(run("astype", {most}, write_attrs(CastAttrs{DType::int_(8)})));  // nor do narrow integers have values
  KnownTensor floats = list({float_imm(2), float_imm(3)}, kFloat32);
  CHECK_FALSE(run("sqrt", {floats}));  // libm and the kernels may differ in the last bit
  KnownTensor parts = list({float_imm(0.1), float_imm(3)}, kFloat32);
  CHECK_FALSE(run("sum", {parts}));  // the order of the sum decides the last bit
  CHECK_FALSE(run("sum", {list({float_imm(1 << 24), float_imm(1)}, kFloat32)}));
  check(run("multiply", {floats, floats}), {2}, {float_imm(4), float_imm(9)});
}

TEST_CASE("reductions of floats that no order rounds", "[ops]") {
  KnownTensor parts = list({float_imm(0.1), float_imm(-3.5)}, kFloat32);
  check(run("max", {parts}), {}, {float_imm(0.1)});
  check(run("min", {parts}), {}, {float_imm(-3.5)});
  check(run("sum", {list({float_imm(2), float_imm(3)}, kFloat32)}), {}, {float_imm(5)});
  CHECK_FALSE(run("max", {list({float_imm(NAN), float_imm(3)}, kFloat32)}));
  KnownTensor dims = list({cast_to(kN, kFloat32), float_imm(7)}, kFloat32);
  auto most = run("max", {dims});
  REQUIRE(most);
  check(run("astype", {*most}, write_attrs(CastAttrs{kInt64})), {}, {max(kN, int_imm(7))});
}

TEST_CASE("constants of any rank are known", "[ops]") {
  KnownValues values;
  const KnownTensor* pads = values.find(constant(Tensor::of<int64_t>({2, 2}, kInt64, {0, 1, 2, 3})));
  REQUIRE(pads);
  CHECK(pads->shape == std::vector<int64_t>{2, 2});
  CHECK(as_int(pads->elements[3]) == 3);
  CHECK_FALSE(values.find(constant(Tensor::empty({9, 9}, kInt64))));
}

TEST_CASE("floats that are whole numbers", "[ops]") {
  KnownTensor real = list({cast_to(kN, kFloat32)}, kFloat32);
  auto doubled = run("multiply", {real, list({float_imm(2)}, kFloat32)});
  REQUIRE(doubled);
  auto floor = run("floor", {*doubled});
  REQUIRE(floor);
  check(run("astype", {*floor}, write_attrs(CastAttrs{kInt64})), {1}, {kN * 2});
}

}  // namespace relaxc::test
