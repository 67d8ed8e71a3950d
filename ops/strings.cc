// Operators of tensors of strings, which functions of the runtime do (builtins/strings.cc). Those that move strings are
// ordinary operators on positions: a tensor of strings is a pool of strings and a tensor of int64 positions in it,
// which R.string.take makes one of again. Strings are compared by their places in a sorted pool.
#include "ir/builder.h"
#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace relaxc {

namespace {

void require_strings(const OpCall& op, size_t i) {
  auto dtype = tensor_dtype(op.type(i));
  bool is_open = op.type(i).is<ObjectType>() || (op.type(i).is<TensorType>() && !dtype);
  if (!is_open && dtype != DType::string()) op.fail("argument {} must be a tensor of strings", i);
}
// Returns the type of a tensor of the same shape.
Type with_dtype(const Type& type, DType dtype) {
  const std::vector<Expr>* shape = known_shape(type);
  return shape ? tensor_type(*shape, dtype) : tensor_type_of_rank(known_rank(type), dtype);
}

Type infer_string_take(const OpCall& op) {
  require_strings(op, 0);
  auto dtype = tensor_dtype(op.type(1));
  if (dtype && !dtype->is_integral()) op.fail("the positions must be a tensor of integers");
  return with_dtype(op.type(1), DType::string());
}
Type infer_string_join(const OpCall& op) {
  Expr count = int_imm(0);
  bool is_known = true;
  for (size_t i = 0; i < op.size(); ++i) {
    require_strings(op, i);
    const std::vector<Expr>* shape = known_shape(op.type(i));
    is_known = is_known && shape;
    if (shape) count = count + product(*shape);
  }
  return is_known ? tensor_type({simplify(count)}, DType::string()) : tensor_type_of_rank(1, DType::string());
}
Type infer_string_sort(const OpCall& op) {
  require_strings(op, 0);
  const std::vector<Expr>* shape = known_shape(op.type(0));
  return tuple_type({tensor_type_of_rank(1, DType::string()),
                     shape ? tensor_type({simplify(product(*shape))}, kInt64) : tensor_type_of_rank(1, kInt64)});
}
Type infer_string_find(const OpCall& op) {
  require_strings(op, 0);
  require_strings(op, 1);
  return with_dtype(op.type(0), kInt64);
}
Type infer_string_concat(const OpCall& op) {
  require_strings(op, 0);
  require_strings(op, 1);
  const std::vector<Expr>*a = known_shape(op.type(0)), *b = known_shape(op.type(1));
  if (a && b) require_same_dims(op, *a, *b, "of the second argument");
  return op.type(0);
}
Type infer_string_split(const OpCall& op) {
  require_strings(op, 0);
  int64_t rank = known_rank(op.type(0));
  return tuple_type({tensor_type_of_rank(rank < 0 ? -1 : rank + 1, DType::string()), with_dtype(op.type(0), kInt64)});
}
Type infer_full_match(const OpCall& op) {
  require_strings(op, 0);
  return with_dtype(op.type(0), kBool);
}
Type infer_string_hash(const OpCall& op) {
  require_strings(op, 0);
  const int64_t seed = op.attrs<SeedAttrs>().seed;
  if (seed < 0 || seed > UINT32_MAX) op.fail("seed is {}, expected one of 32 bits", seed);
  return with_dtype(op.type(0), DType::uint(32));
}
Type infer_string_normalize(const OpCall& op) {
  require_strings(op, 0);
  require_strings(op, 1);
  std::string action = op.attrs<StringNormalizeAttrs>().case_change_action;
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    op.fail("case_change_action is '{}', expected NONE, LOWER or UPPER", action);
  int64_t rank = known_rank(op.type(0));
  if (rank == 0 || rank > 2) op.fail("expected a vector or a matrix of one row, got rank {}", rank);
  return tensor_type_of_rank(rank, DType::string());
}
Type infer_tokenize(const OpCall& op) {
  require_strings(op, 0);
  require_strings(op, 1);
  const int64_t rank = known_rank(op.type(0));
  return tensor_type_of_rank(rank < 0 ? -1 : rank + 1, DType::string());
}
Type infer_from_numbers(const OpCall& op) {
  require_tensor(op);
  return with_dtype(op.type(0), DType::string());
}
Type infer_to_numbers(const OpCall& op) {
  require_strings(op, 0);
  DType dtype = op.attrs<CastAttrs>().dtype;
  if (dtype.is_string() || dtype.is_handle()) op.fail("expected a dtype of numbers, got {}", to_string(dtype));
  return with_dtype(op.type(0), dtype);
}

}  // namespace

std::vector<OpRow> strings_ops() {
  using Arity = OpInput::Arity;
  const OpInput x{"x", "strings"}, pool{"pool", "strings"};
  std::vector<OpRow> rows = {
      runtime_row("string.take", "the strings at positions of a pool, in row-major order",
                  {pool, {"positions", "integers from 0 on"}}, infer_string_take),
      runtime_row("string.join", "the strings of all pools in one vector", {{"pools", "strings", Arity::kVariadic}},
                  infer_string_join),
      runtime_row("string.sort", "a vector of the different strings by their bytes, and the place of each string in it",
                  {pool}, infer_string_sort),
      runtime_row("string.find", "the place of each string among the keys, or -1", {x, {"keys", "strings"}},
                  infer_string_find),
      runtime_row("string.concat", "each string behind the one before it", {x, {"y", "strings of the same shape"}},
                  infer_string_concat),
      runtime_row("string.split",
                  "parts of strings along a new last axis, \"\" behind the last, and the number of each", {x},
                  infer_string_split, op_attrs<StringSplitAttrs>(),
                  [](const OpCall& op) -> std::vector<Expr> {
                    auto [delimiter, maxsplit] = op.attrs<StringSplitAttrs>();
                    return {op.arg(0), string_imm(delimiter), int_imm(maxsplit)};
                  }),
      runtime_row("string.full_match", "whether each string matches a regular expression as a whole", {x},
                  infer_full_match, op_attrs<PatternAttrs>(),
                  [](const OpCall& op) -> std::vector<Expr> {
                    return {op.arg(0), string_imm(op.attrs<PatternAttrs>().pattern)};
                  }),
      runtime_row(
          "string.hash", "MurmurHash3_x86_32 of the bytes of each string", {x}, infer_string_hash,
          op_attrs<SeedAttrs>(),
          [](const OpCall& op) -> std::vector<Expr> { return {op.arg(0), int_imm(op.attrs<SeedAttrs>().seed)}; }),
      runtime_row("string.normalize", "the strings that are not stop words, in lower or upper case",
                  {x, {"stop_words", "strings"}}, infer_string_normalize, op_attrs<StringNormalizeAttrs>(),
                  [](const OpCall& op) -> std::vector<Expr> {
                    auto [action, case_sensitive, locale] = op.attrs<StringNormalizeAttrs>();
                    return {op.arg(0), string_imm(action), int_imm(case_sensitive), op.arg(1), string_imm(locale)};
                  }),
      runtime_row("string.tokenize",
                  "tokens of strings along a new last axis, which patterns match or part; pad behind the last",
                  {x, {"patterns", "strings; none: characters are tokens"}}, infer_tokenize, op_attrs<TokenizeAttrs>(),
                  [](const OpCall& op) -> std::vector<Expr> {
                    auto [is_token, least, marks, pad] = op.attrs<TokenizeAttrs>();
                    return {op.arg(0), op.arg(1), int_imm(is_token), int_imm(least), int_imm(marks), string_imm(pad)};
                  }),
      runtime_row("string.from_numbers", "numbers as texts, the shortest that read back", {{"x", "the numbers"}},
                  infer_from_numbers),
      runtime_row("string.to_numbers", "the numbers that strings show", {x}, infer_to_numbers, op_attrs<CastAttrs>(),
                  [](const OpCall& op) -> std::vector<Expr> {
                    return {op.arg(0), make(DTypeImm{op.attrs<CastAttrs>().dtype}, object_type())};
                  }),
  };
  return with_reason(
      "a tensor program computes on elements of one size, and each string has a length that the run decides", rows);
}

}  // namespace relaxc
