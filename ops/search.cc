// Searches in sorted values, draws by probabilities, which is a search in their running sums, and counts of patterns.
#include <algorithm>

#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace relaxc {

namespace {

Type infer_bucketize(const OpCall& op) {
  require_rank(op, 1, 1);
  return tensor_type(op.shape(0), op.attrs<BucketizeAttrs>().out_int32 ? kInt32 : kInt64);
}
// Returns the dtype in which elements of both can be compared.
DType compared_dtype(DType a, DType b) {
  if (a == b) return a;
  return a.is_float() || b.is_float() ? kFloat64 : kInt64;
}
// Searches by halves. A NaN is larger than all boundaries.
PrimFuncRef lower_bucketize(const OpCall& op) {
  auto [b, x] = OpProgram(op);
  DType result = *tensor_dtype(infer_bucketize(op)), dtype = compared_dtype(op.dtype(0), op.dtype(1));
  bool counts_equal = op.attrs<BucketizeAttrs>().right;
  Buffer out = b.buffer("T_bucketize", result, op.shape(0));
  b.block("T_bucketize", op.shape(0), {}, [&](Axes i, Axes) {
    LocalScalar low("low", kInt64), high("high", kInt64);
    VarRef middle = make_dim("middle");
    Expr value = cast_to(at(x[0], i), dtype), boundary = cast_to(load(x[1], {middle}), dtype);
    Expr is_before = counts_equal ? value < boundary : value <= boundary;
    Stmt halve = seq({make(Bind{middle, floor_div(low.get() + high.get(), 2)}),
                      make(IfThenElse{is_before, high.set(middle), low.set(middle + 1)})});
    Stmt body = seq({low.declared(), high.declared(), low.set(int_imm(0)), high.set(op.shape(1)[0]),
                     make(While{low.get() < high.get(), halve}), store(out, cast_to(low.get(), result), i)});
    return ComputeBuilder::Bodies{std::nullopt, body};
  });
  return b.finish({out});
}

// Each element of sample_indices is one draw, from the row of prob that it names.
Type infer_multinomial(const OpCall& op) {
  for (size_t i = 0; i < 3; ++i) require_rank(op, i, 2);
  for (size_t i = 0; i < 2; ++i) {
    if (!op.dtype(i).is_float()) op.fail("argument {} has {}, expected a float", i, to_string(op.dtype(i)));
  }
  if (!op.dtype(2).is_integral()) op.fail("sample_indices have {}, expected integers", to_string(op.dtype(2)));
  op.require_equal(op.shape(1)[0], op.shape(2)[0], "samples and their indices");
  for (size_t i = 1; i < 3; ++i) op.require_equal(op.shape(i)[1], int_imm(1), "columns of the samples");
  return tensor_type(op.shape(2), op.attrs<MultinomialAttrs>().dtype);
}
// Draws the first class at which the running sum of the probabilities exceeds the sample, and the last one where none
// does, because of rounding. The sums of a row grow, so that each draw searches them by halves.
PrimFuncRef lower_multinomial(const OpCall& op) {
  auto [b, x] = OpProgram(op);
  DType dtype = op.attrs<MultinomialAttrs>().dtype;
  const Expr &rows = op.shape(0)[0], &classes = op.shape(0)[1];
  Buffer sums = b.buffer("T_running", kFloat64, op.shape(0));
  b.block("T_running", {rows}, {}, [&, &inputs = x](Axes i, Axes) {
    LocalScalar sum("sum", kFloat64);
    VarRef k = make_dim("k");
    Stmt add =
        seq({sum.set(sum.get() + cast_to(load(inputs[0], {i[0], k}), kFloat64)), store(sums, sum.get(), {i[0], k})});
    return ComputeBuilder::Bodies{std::nullopt, seq({sum.declared(), sum.set(zero(kFloat64)), loop(k, classes, add)})};
  });
  Buffer out = b.buffer("T_multinomial", dtype, op.shape(2));
  b.block("T_multinomial", op.shape(2), {}, [&, &inputs = x](Axes i, Axes) {
    LocalScalar low("low", kInt64), high("high", kInt64);
    VarRef middle = make_dim("middle"), row = make_dim("row");
    Expr index = cast_to(at(inputs[2], i), kInt64), sample = cast_to(at(inputs[1], i), kFloat64);
    Expr position = max(min(select(index < int_imm(0), index + rows, index), rows - 1), int_imm(0));
    Stmt halve = seq({make(Bind{middle, floor_div(low.get() + high.get(), 2)}),
                      make(IfThenElse{sample < load(sums, {row, middle}), high.set(middle), low.set(middle + 1)})});
    Stmt body = seq({low.declared(), high.declared(), low.set(int_imm(0)), high.set(classes - 1),
                     make(Bind{row, position}), when(int_imm(0) < rows, make(While{low.get() < high.get(), halve})),
                     store(out, cast_to(low.get(), dtype), i)});
    return ComputeBuilder::Bodies{std::nullopt, body};
  });
  return b.finish({out});
}

// Counts in each row the places where each n-gram begins. Up to max_skip_count elements, and always as many, may lie
// between its elements.
Type infer_count_ngrams(const OpCall& op) {
  require_ranks(op, {2, 2});
  require_same_dtype(op, 0, 1);
  if (!op.dtype(0).is_integral()) op.fail("expected integers, got {}", to_string(op.dtype(0)));
  if (!as_int(op.shape(1)[1])) op.unsupported("the length of the n-grams is not a constant");
  if (op.attrs<NgramAttrs>().max_skip_count < 0) op.fail("max_skip_count is negative");
  return tensor_type({op.shape(0)[0], op.shape(1)[0]}, kInt64);
}
PrimFuncRef lower_count_ngrams(const OpCall& op) {
  auto [b, x] = OpProgram(op);
  const Buffer data = x[0], ngrams = x[1];
  const Expr& length = op.shape(0)[1];
  int64_t items = *as_int(op.shape(1)[1]);
  Expr steps = int_imm(items > 1 ? op.attrs<NgramAttrs>().max_skip_count + 1 : 1);
  return b.finish({b.reduce("T_count_ngrams", kInt64, {op.shape(0)[0], op.shape(1)[0]}, {steps, length}, int_imm(0),
                            combine_sum, [&](Axes i, Axes r) {
                              Expr step = r[0] + 1, is_there = r[1] + step * (items - 1) < length;
                              for (int64_t k = 0; k < items; ++k) {
                                Expr position = min(r[1] + step * k, length - 1);
                                is_there =
                                    is_there && equal(load(data, {i[0], position}), load(ngrams, {i[1], int_imm(k)}));
                              }
                              return select(is_there, int_imm(1), int_imm(0));
                            })});
}

}  // namespace

std::vector<OpRow> search_ops() {
  return {
      {.name = "relax.bucketize",
       .doc = "the position in sorted boundaries where each element belongs",
       .inputs = {{"input_tensor", "the tensor"}, {"boundaries", "sorted tensor of rank 1"}},
       .attrs = op_attrs<BucketizeAttrs>(),
       .infer = infer_bucketize,
       .infer_partial =
           [](const OpCall& op) { return infer_unranked(op.attrs<BucketizeAttrs>().out_int32 ? kInt32 : kInt64); },
       .legalize = lower_bucketize},
      {.name = "relax.multinomial_from_uniform",
       .doc = "draws from rows of probabilities, by uniform random numbers",
       .inputs = {{"prob", "[batch, classes]"},
                  {"uniform_sample", "[n, 1], numbers in [0, 1)"},
                  {"sample_indices", "[n, 1], rows of prob"}},
       .attrs = op_attrs<MultinomialAttrs>(),
       .infer = infer_multinomial,
       .infer_partial = infer_stated_dtype,
       .legalize = lower_multinomial,
       .indexed = [](const OpCall& op) -> std::optional<IndexOperand> {
         const std::vector<Expr>* prob = known_shape(op.arg(0).type());
         return prob ? std::optional(IndexOperand{2, {(*prob)[0]}}) : std::nullopt;
       }},
      {.name = "relax.dyn.count_ngrams",
       .doc = "how often each n-gram occurs in each row",
       .inputs = {{"data", "[rows, n], integers"}, {"ngrams", "[m, length]"}},
       .attrs = op_attrs<NgramAttrs>(),
       .pattern = OpPattern::kReduction,
       .infer = infer_count_ngrams,
       .infer_partial = [](const OpCall&) { return tensor_type_of_rank(2, kInt64); },
       .legalize = lower_count_ngrams},
  };
}

}  // namespace relaxc
