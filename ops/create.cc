// Operators that make tensors from scalars and shapes.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/reference.h"
#include "support/checked_math.h"

namespace relaxc {

namespace {

Type infer_full(const OpCall& op) {
  if (op.rank(1) != 0) op.fail("the fill value has rank {}, expected 0", op.rank(1));
  return tensor_type(op.shape(0), op.attrs<DTypeAttrs>().dtype.value_or(op.dtype(1)));
}
Expr full_element(const OpCall& op, Inputs x, Axes) { return cast_to(load(x[0], {}), *tensor_dtype(infer_full(op))); }
DType filled_dtype(const OpCall& op) { return op.attrs<FillAttrs>().dtype.value_or(*FillAttrs().dtype); }
// A fill writes a number, so it has no strings.
Type filled_tensor(const OpCall& op, std::vector<Expr> shape, DType dtype) {
  if (dtype.is_string()) op.fail("the dtype is string, expected one of numbers");
  return tensor_type(std::move(shape), dtype);
}
Type infer_filled(const OpCall& op) { return filled_tensor(op, op.shape(0), filled_dtype(op)); }
// The references of operators that repeat a value, and of those that put 1 on diagonal k.
reference::Tensors filled(const reference::Index& shape, DType dtype, double value) {
  return {reference::tensor_of(shape, dtype, [=](const reference::Index&) { return value; })};
}
reference::Tensors diagonal(const reference::Index& shape, DType dtype, int64_t k) {
  return {reference::tensor_of(shape, dtype, [=](const reference::Index& i) { return i[1] - i[0] == k ? 1 : 0; })};
}
OpRow constant_fill(const char* name, const char* doc, double value) {
  return by_element(
      {.name = name,
       .doc = doc,
       .inputs = {{"shape", "the dims"}},
       .attrs = op_attrs<FillAttrs>(),
       .moves = true,
       .infer = infer_filled,
       .reference = [=](const ReferenceCall& c) { return filled(c.dims(0), *c.attrs<FillAttrs>().dtype, value); }},
      [=](const OpCall& op, Inputs, Axes) { return scalar_imm(value, filled_dtype(op)); }, OpPattern::kInjective,
      "T_fill");
}

DType like_dtype(const OpCall& op) { return op.attrs<DTypeAttrs>().dtype.value_or(op.dtype(0)); }
DType like_dtype(const ReferenceCall& c) { return c.attrs<DTypeAttrs>().dtype.value_or(c.x[0].dtype()); }
Type infer_like(const OpCall& op) { return filled_tensor(op, op.shape(0), like_dtype(op)); }
OpRow like_row(const char* name, const char* doc, const std::vector<OpInput>& more, const Element& element) {
  std::vector<OpInput> inputs = {{"x", "gives the shape, and the dtype unless stated"}};
  inputs.insert(inputs.end(), more.begin(), more.end());
  return by_element({.name = name,
                     .doc = doc,
                     .inputs = std::move(inputs),
                     .attrs = op_attrs<DTypeAttrs>(),
                     .moves = true,
                     .infer = infer_like,
                     .infer_partial = infer_stated_dtype_same_rank},
                    element, OpPattern::kInjective, "T_like");
}
OpRow constant_like(const char* name, const char* doc, double constant) {
  return reference::with(
      like_row(name, doc, {}, [=](const OpCall& op, Inputs, Axes) { return scalar_imm(constant, like_dtype(op)); }),
      [=](const ReferenceCall& c) { return filled(c.x[0].shape(), like_dtype(c), constant); });
}
OpRow full_like() {
  OpRow row = like_row("relax.full_like", "every element is fill_value", {{"fill_value", "scalar tensor"}},
                       [](const OpCall& op, Inputs x, Axes) { return cast_to(load(x[1], {}), like_dtype(op)); });
  row.infer = [](const OpCall& op) {
    require_rank(op, 1, 0);
    return infer_like(op);
  };
  row.reference = [](const ReferenceCall& c) { return filled(c.x[0].shape(), like_dtype(c), c.x[1].as_double(0)); };
  return row;
}
Expr on_diagonal(Axes i, const Expr& k, DType dtype) { return select(equal(i[1] - i[0], k), one(dtype), zero(dtype)); }
void complete_diagonal(Call& call) {
  if (call.args.size() == 1) call.args.push_back(int_imm(0));
}

OpRow eye_like() {
  OpRow row = like_row("relax.eye_like", "1 on diagonal k, 0 elsewhere",
                       {{"k", "int64 scalar", OpInput::Arity::kOptional}}, [](const OpCall& op, Inputs, Axes i) {
                         Expr k = op.size() > 1 ? op.arg(1) : int_imm(0);
                         return on_diagonal(i, cast_to(k, kInt64), like_dtype(op));
                       });
  row.infer = [](const OpCall& op) {
    require_rank(op, 0, 2);
    if (op.size() > 1) require_scalar(op, 1);
    return infer_like(op);
  };
  row.complete = complete_diagonal;
  row.reference = [](const ReferenceCall& c) { return diagonal(c.x[0].shape(), like_dtype(c), c.number(1)); };
  return row;
}

// The operands of arange. A single one is the end.
struct Steps {
  Expr start, end, step;
  bool has_integers() const {
    return dtype_of(start).is_integral() && dtype_of(end).is_integral() && dtype_of(step).is_integral();
  }
};
Steps range_of(const OpCall& op) {
  for (size_t i = 0; i < op.size(); ++i) require_scalar(op, i);
  Expr none = int_imm(0), step = op.size() > 2 ? op.arg(2) : int_imm(1);
  return op.size() == 1 ? Steps{none, op.arg(0), step} : Steps{op.arg(0), op.arg(1), step};
}
std::optional<double> number_of(const Expr& e) {
  if (const FloatImm* imm = e.as<FloatImm>()) return imm->value;
  auto known = as_int(e);
  return known ? std::optional(static_cast<double>(*known)) : std::nullopt;
}
Expr arange_count(const OpCall& op) {
  Steps range = range_of(op);
  if (!range.has_integers()) {
    auto start = number_of(range.start), end = number_of(range.end), step = number_of(range.step);
    if (!start || !end || !step) op.unsupported("float bounds must be constants");
    double count = *step == 0 ? -1 : std::ceil((*end - *start) / *step);
    if (*step == 0 || !(count < 1e15)) op.fail("step is {}", *step);
    return int_imm(std::max<int64_t>(0, static_cast<int64_t>(count)));
  }
  if (is_int(range.step, 0)) op.fail("step is 0");
  auto first = as_int(range.start), last = as_int(range.end), step = as_int(range.step);
  if (first && last && !checked_sub(*last, *first))
    op.fail("{} to {} are more elements than can be counted", *first, *last);
  if (first && last && step && (*step > 0 ? *first >= *last : *first <= *last)) return int_imm(0);
  Expr length = cast_to(range.end, kInt64) - cast_to(range.start, kInt64), stride = cast_to(range.step, kInt64);
  Expr sign = step ? int_imm(*step > 0 ? 1 : -1) : select(stride > int_imm(0), int_imm(1), int_imm(-1));
  Expr count = floor_div(length - sign, stride) + 1;  // to add a large step first would overflow
  // Symbolic bounds are usually dims, but they may be negative.
  return simplify(max(simplify(count), int_imm(0)));
}
// The default dtype is that of the last operand that is a float, or that of the start when all are integers.
DType arange_dtype(const OpCall& op) {
  Steps range = range_of(op);
  DType natural = dtype_of(range.start);
  for (const Expr& bound : {range.start, range.end, range.step})
    natural = dtype_of(bound).is_integral() ? natural : dtype_of(bound);
  return op.attrs<DTypeAttrs>().dtype.value_or(natural);
}
Type infer_arange(const OpCall& op) { return tensor_type({arange_count(op)}, arange_dtype(op)); }
Expr arange_element(const OpCall& op, Inputs, Axes i) {
  Steps range = range_of(op);
  DType wide = dtype_of(range.start).is_integral() && dtype_of(range.step).is_integral() ? kInt64 : kFloat64;
  Expr offset = binary(BinaryOp::kMul, cast_to(i[0], wide), cast_to(range.step, wide));
  return cast_to(binary(BinaryOp::kAdd, cast_to(range.start, wide), offset), arange_dtype(op));
}

// Returns whether the call has arguments, all of which are scalars.
bool takes_scalars(const Call& call) {
  return !call.args.empty() &&
         std::ranges::all_of(call.args, [](const Expr& arg) { return arg.type().is<PrimType>(); });
}
// arange(n) is arange(0, n, 1), of int64 or float32.
void complete_arange(Call& call) {
  if (!takes_scalars(call)) return;
  if (call.args.size() == 1) call.args.insert(call.args.begin(), int_imm(0));
  if (call.args.size() == 2) call.args.push_back(int_imm(1));
  Span nowhere;
  call.attrs.set("dtype", arange_dtype(OpCall{call, nowhere}));
}
// eye(n) is eye(n, n, 0).
void complete_eye(Call& call) {
  if (!takes_scalars(call)) return;
  if (call.args.size() == 1) call.args.push_back(call.args[0]);
  if (call.args.size() == 2) call.args.push_back(int_imm(0));
}
// Clamps the number of a diagonal to a range that exceeds every matrix, so that its sums with positions do not
// overflow.
Expr near_diagonal(const Expr& k) {
  constexpr int64_t kFar = int64_t{1} << 40;
  return simplify(max(min(cast_to(k, kInt64), int_imm(kFar)), int_imm(-kFar)));
}
Type infer_triangle(const OpCall& op) {
  if (op.rank(0) < 2) op.fail("expected at least two axes, got {}", op.rank(0));
  if (op.size() > 1) require_scalar(op, 1);
  return infer_like_first(op);
}
OpRow triangle(const char* name, const char* doc, BinaryOp keep) {
  auto element = [=](const OpCall& op, Inputs x, Axes i) {
    Expr k = op.size() > 1 ? near_diagonal(op.arg(1)) : int_imm(0);
    Expr row = i[i.size() - 2], column = i[i.size() - 1];
    return select(binary(keep, column - row, k), at(x[0], i), zero(op.dtype(0)));
  };
  return by_element({.name = name,
                     .doc = doc,
                     .inputs = {{"x", "the tensor"},
                                {"k", "int64 scalar: the diagonal, 0 is the main one", OpInput::Arity::kOptional}},
                     .moves = true,
                     .infer = infer_triangle,
                     .complete = complete_diagonal},
                    element, OpPattern::kInjective, "T_trilu");
}

Type infer_eye(const OpCall& op) {
  for (size_t i = 0; i < op.size(); ++i) require_scalar(op, i);
  for (size_t i = 0; i < std::min<size_t>(op.size(), 2); ++i) {
    if (!dtype_of(op.arg(i)).is_integral())
      op.fail("a size is {}, expected an integer", to_string(dtype_of(op.arg(i))));
    op.require_at_most(int_imm(0), cast_to(op.arg(i), kInt64), "a size is negative");
  }
  Expr rows = cast_to(op.arg(0), kInt64), columns = op.size() > 1 ? cast_to(op.arg(1), kInt64) : rows;
  return filled_tensor(op, {rows, columns}, filled_dtype(op));
}
Expr eye_element(const OpCall& op, Inputs, Axes i) {
  return on_diagonal(i, op.size() > 2 ? near_diagonal(op.arg(2)) : int_imm(0), filled_dtype(op));
}

Type infer_hamming_window(const OpCall& op) {
  for (size_t i = 0; i < op.size(); ++i) require_scalar(op, i);
  if (!dtype_of(op.arg(0)).is_integral()) op.fail("a size is {}, expected an integer", to_string(dtype_of(op.arg(0))));
  return tensor_type({cast_to(op.arg(0), kInt64)}, filled_dtype(op));
}

// A window of one element is 1.
Expr hamming_window_element(const OpCall& op, Inputs, Axes i) {
  DType dtype = filled_dtype(op);
  Expr size = cast_to(op.arg(0), kInt64);
  Expr period = cast_to(select(op.arg(1), size, size - 1), kFloat64);
  Expr angle = binary(BinaryOp::kDiv, cast_to(i[0], kFloat64) * float_imm(2 * std::numbers::pi, kFloat64), period);
  auto parameter = [&](size_t k) { return cast_to(op.arg(k), kFloat64); };
  Expr value = parameter(2) - parameter(3) * intrinsic("tir.cos", {angle}, kFloat64);
  return cast_to(select(size > int_imm(1), value, float_imm(1, kFloat64)), dtype);
}

Type infer_shape_to_tensor(const OpCall& op) { return tensor_type({int_imm(op.rank(0))}, kInt64); }
PrimFuncRef lower_shape_to_tensor(const OpCall& op) {
  ComputeBuilder b;
  Buffer out = b.buffer("T_shape", kInt64, {int_imm(op.rank(0))});
  std::vector<Stmt> stores;
  for (int64_t d = 0; d < op.rank(0); ++d) stores.push_back(store(out, op.shape(0)[d], {int_imm(d)}));
  b.extern_block("T_shape", seq(std::move(stores)));
  return b.finish({out});
}

Type infer_scalar_to_tensor(const OpCall& op) {
  if (!op.arg(0).type().is<PrimType>()) op.fail("expected a scalar");
  return tensor_type({}, op.attrs<DTypeAttrs>().dtype.value_or(dtype_of(op.arg(0))));
}
Expr scalar_to_tensor_element(const OpCall& op, Inputs, Axes) {
  return cast_to(op.arg(0), *tensor_dtype(infer_scalar_to_tensor(op)));
}

reference::Tensors eye_matrix(const ReferenceCall& c) {
  return diagonal({c.number(0), c.number(1)}, *c.attrs<FillAttrs>().dtype, c.number(2));
}
reference::Tensors dims_as_tensor(const ReferenceCall& c) {
  return {Tensor::of<int64_t>({std::ssize(c.dims(0))}, kInt64, c.dims(0))};
}

}  // namespace

std::vector<OpRow> create_ops() {
  return {
      by_element({.name = "relax.full",
                  .doc = "every element is fill_value",
                  .inputs = {{"shape", "the dims"}, {"fill_value", "scalar tensor"}},
                  .attrs = op_attrs<DTypeAttrs>(),
                  .moves = true,
                  .infer = infer_full,
                  .infer_partial = infer_stated_dtype},
                 full_element),
      full_like(),
      constant_fill("relax.zeros", "every element is 0", 0),
      constant_fill("relax.ones", "every element is 1", 1),
      constant_like("relax.zeros_like", "every element is 0", 0),
      constant_like("relax.ones_like", "every element is 1", 1),
      eye_like(),
      by_element({.name = "relax.hamming_window",
                  .doc = "alpha - beta * cos(2 pi i / n), n one less unless periodic",
                  .inputs = {{"window_size", "int64 scalar"},
                             {"periodic", "bool scalar"},
                             {"alpha", "float scalar"},
                             {"beta", "float scalar"}},
                  .attrs = op_attrs<FillAttrs>(),
                  .infer = infer_hamming_window},
                 hamming_window_element),
      by_element({.name = "relax.arange",
                  .doc = "start, start + step, ... before end",
                  .inputs = {{"start", "scalar; the end when alone"},
                             {"end", "scalar", OpInput::Arity::kOptional},
                             {"step", "scalar, not 0; 1 otherwise", OpInput::Arity::kOptional}},
                  .attrs = op_attrs<DTypeAttrs>(),
                  .infer = infer_arange,
                  .complete = complete_arange},
                 arange_element),
      triangle("relax.tril", "the elements on and below diagonal k, 0 above it", BinaryOp::kLE),
      triangle("relax.triu", "the elements on and above diagonal k, 0 below it", BinaryOp::kGE),
      by_element({.name = "relax.eye",
                  .doc = "1 on diagonal k, 0 elsewhere",
                  .inputs = {{"n", "rows"},
                             {"m", "columns; as many as rows otherwise", OpInput::Arity::kOptional},
                             {"k", "int64 scalar; 0 otherwise", OpInput::Arity::kOptional}},
                  .attrs = op_attrs<FillAttrs>(),
                  .infer = infer_eye,
                  .complete = complete_eye,
                  .reference = eye_matrix},
                 eye_element),
      {.name = "relax.shape_to_tensor",
       .doc = "the dims as an int64 tensor",
       .inputs = {{"expr", "the shape"}},
       .infer = infer_shape_to_tensor,
       .infer_partial = [](const OpCall&) { return tensor_type_of_rank(1, kInt64); },
       .legalize = lower_shape_to_tensor,
       .reference = dims_as_tensor},
      by_element({.name = "relax.scalar_to_tensor",
                  .doc = "a scalar as a tensor of rank 0",
                  .inputs = {{"value", "scalar"}},
                  .attrs = op_attrs<DTypeAttrs>(),
                  .infer = infer_scalar_to_tensor},
                 scalar_to_tensor_element, OpPattern::kInjective, "T_scalar"),
  };
}

}  // namespace relaxc
