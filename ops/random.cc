// Random numbers. Element i of a tensor is a function of i and the seed alone (Philox4x32-10; Salmon et al., "Parallel
// random numbers: as easy as 1, 2, 3", 2011), so that the numbers are the same for any number of threads.
#include <numbers>

#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace relaxc {

namespace {

constexpr DType kWide = DType::uint(64);
Expr word(int64_t value) { return int_imm(value, kWide); }
Expr low_word(const Expr& x) { return binary(BinaryOp::kBitAnd, x, word(0xffffffff)); }
Expr high_word(const Expr& x) { return binary(BinaryOp::kShiftRight, x, word(32)); }

// Gives the result that `use` makes of the four random words for a counter: numbers below 2^32, in uint64.
Expr with_random_words(const Expr& counter, const Expr& seed, const std::function<Expr(Axes)>& use) {
  constexpr int64_t kFactors[] = {0xD2511F53, 0xCD9E8D57}, kSteps[] = {0x9E3779B9, 0xBB67AE85};
  std::vector<std::pair<VarRef, Expr>> bound;
  auto name = [&](const char* hint, const Expr& value) -> Expr {
    bound.emplace_back(make_var(hint, prim_type(kWide)), value);
    return bound.back().first;
  };
  Expr position = name("position", cast_to(counter, kWide)), key = name("key", cast_to(seed, kWide));
  std::vector<Expr> c = {low_word(position), high_word(position), word(0), word(0)};
  Expr keys[] = {low_word(key), high_word(key)};
  for (int64_t round = 0; round < 10; ++round) {
    Expr a = name("a", c[0] * word(kFactors[0])), b = name("b", c[2] * word(kFactors[1]));
    auto mixed = [&](const Expr& product, const Expr& other, size_t k) {
      Expr of_round = low_word(keys[k] + word(kSteps[k] * round));
      return name("c", binary(BinaryOp::kBitXor, binary(BinaryOp::kBitXor, high_word(product), other), of_round));
    };
    c = {mixed(b, c[1], 0), name("c", low_word(b)), mixed(a, c[3], 1), name("c", low_word(a))};
  }
  Expr result = use(c);
  for (size_t k = bound.size(); k-- > 0;) result = let(bound[k].first, bound[k].second, result);
  return result;
}
// Returns a number in [0, 1) from one or two words, as many as the dtype has digits for.
Expr fraction(const Expr& first, const Expr& second, DType dtype) {
  if (dtype != kFloat64) {
    Expr digits = binary(BinaryOp::kShiftRight, first, word(8));
    return cast_to(cast_to(digits, DType::int_(32)), dtype) * float_imm(0x1p-24, dtype);
  }
  Expr digits = binary(BinaryOp::kShiftLeft, first, word(21)) + binary(BinaryOp::kShiftRight, second, word(11));
  return cast_to(cast_to(digits, kInt64), dtype) * float_imm(0x1p-53, dtype);
}
DType wide_dtype(DType dtype) { return dtype == kFloat64 ? kFloat64 : kFloat32; }

template <class A>
Type infer_random(const OpCall& op) {
  require_scalar(op, 1);
  DType dtype = op.attrs<A>().dtype.value_or(kFloat32);
  if (!dtype.is_float()) op.fail("dtype is {}, expected a float", to_string(dtype));
  return tensor_type(op.shape(0), dtype);
}
// Makes the row's elements from their random words, in float32 or float64.
template <class A>
OpRow random_row(const char* name, const char* doc, Expr (*value)(const A&, Axes words, DType dtype)) {
  OpRow row{.name = name,
            .doc = doc,
            .inputs = {{"shape", "the dims"}, {"seed", "int64 scalar"}},
            .attrs = op_attrs<A>(),
            .infer = infer_random<A>,
            .infer_partial = infer_stated_dtype};
  return by_element(std::move(row), [value](const OpCall& op, Inputs, Axes i) {
    DType dtype = *tensor_dtype(infer_random<A>(op));
    Expr counter = i.empty() ? int_imm(0) : flatten_index(i, op.shape(0));
    return cast_to(with_random_words(counter, op.arg(1),
                                     [&](Axes words) { return value(op.attrs<A>(), words, wide_dtype(dtype)); }),
                   dtype);
  });
}
// Rounding may reach the upper end, which is not among the numbers; those of 16 bits have fewer digits, so that they
// are not rounded.
Expr uniform(const RandomUniformAttrs& attrs, Axes words, DType dtype) {
  Expr low = float_imm(attrs.low, dtype), high = float_imm(attrs.high, dtype), first = words[0];
  DType result = attrs.dtype.value_or(kFloat32);
  if (result.bits == 16)
    first = binary(BinaryOp::kBitAnd, first, word(result == DType::float_(16) ? 0xffe00000 : 0xff000000));
  Expr value = low + fraction(first, words[1], dtype) * (high - low);
  return attrs.low < attrs.high ? select(value < high, value, low) : value;
}
// (Box and Muller, 1958)
Expr normal(const RandomNormalAttrs& attrs, Axes words, DType dtype) {
  Expr radius = float_imm(1, dtype) - fraction(words[0], words[1], dtype);  // above 0
  Expr angle = fraction(words[2], words[3], dtype) * float_imm(2 * std::numbers::pi, dtype);
  Expr length = intrinsic("tir.sqrt", {intrinsic("tir.log", {radius}, dtype) * float_imm(-2, dtype)}, dtype);
  Expr standard = length * intrinsic("tir.cos", {angle}, dtype);
  return float_imm(attrs.mean, dtype) + standard * float_imm(attrs.scale, dtype);
}

Type infer_seed(const OpCall& op) {
  require_scalar(op, 0);
  return prim_type(kInt64);
}

}  // namespace

std::vector<OpRow> random_ops() {
  return {
      random_row<RandomUniformAttrs>("relax.random.uniform", "random numbers in [low, high)", uniform),
      random_row<RandomNormalAttrs>("relax.random.normal", "random numbers of a normal distribution", normal),
      {.name = "relax.random.seed",
       .doc = "a seed, another one in each run; calls with one number may become one call",
       .inputs = {{"number", "int64 scalar"}},
       .infer = infer_seed,
       .infer_partial = infer_seed,
       .decompose = [](const OpCall& op,
                       Builder&) { return call_builtin("vm.builtin.random_seed", op.call.args, infer_seed(op)); },
       .why_runtime = "its result differs from run to run, and a tensor program is a function of its operands"},
  };
}

}  // namespace relaxc
