// Operators that make tensors from scalars and shapes.
#include <algorithm>
#include <cmath>

#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "support/checked_math.h"

namespace relaxc {

namespace {

PrimFuncRef filled(const char* name, const std::vector<Expr>& shape, DType dtype,
                   const std::function<Expr(Axes)>& value) {
  ComputeBuilder b;
  return b.finish({b.compute(name, dtype, shape, value)});
}

Type infer_full(const OpCall& op) {
  if (op.rank(1) != 0) op.fail("the fill value has rank {}, expected 0", op.rank(1));
  return tensor_type(op.shape(0), op.attrs<DTypeAttrs>().dtype.value_or(op.dtype(1)));
}
PrimFuncRef lower_full(const OpCall& op) {
  DType dtype = op.attrs<DTypeAttrs>().dtype.value_or(op.dtype(1));
  ComputeBuilder b;
  Buffer value = b.inputs_of(op)[0];
  return b.finish({b.compute("T_full", dtype, op.shape(0), [&](Axes) { return cast_to(load(value, {}), dtype); })});
}
OpRow constant_fill(const char* name, const char* doc, double value) {
  auto dtype_of_call = [](const OpCall& op) { return op.attrs<DTypeAttrs>().dtype.value_or(kFloat32); };
  return {.name = name,
          .doc = doc,
          .inputs = {{"shape", "the dims"}},
          .attrs = {dtype_attr("dtype", kFloat32)},
          .pattern = OpPattern::kInjective,
          .infer = [=](const OpCall& op) { return tensor_type(op.shape(0), dtype_of_call(op)); },
          .legalize =
              [=](const OpCall& op) {
                DType dtype = dtype_of_call(op);
                return filled("T_fill", op.shape(0), dtype, [&](Axes) { return scalar_imm(value, dtype); });
              }};
}

// The result has the shape and dtype of x, unless the attribute gives another dtype.
DType like_dtype(const OpCall& op) { return op.attrs<DTypeAttrs>().dtype.value_or(op.dtype(0)); }
Type infer_partial_like(const OpCall& op) {
  std::optional<DType> stated = op.attrs<DTypeAttrs>().dtype;
  return tensor_type_of_rank(known_rank(op.arg(0).type()), stated ? stated : op.first_dtype());
}
OpRow like(const char* name, std::string doc, std::vector<OpInput> more,
           const std::function<Expr(const OpCall&, const std::vector<Buffer>&, Axes, DType)>& value) {
  std::vector<OpInput> inputs = {{"x", "gives the shape, and the dtype unless stated"}};
  inputs.insert(inputs.end(), more.begin(), more.end());
  return {.name = name,
          .doc = std::move(doc),
          .inputs = std::move(inputs),
          .attrs = op_attrs<DTypeAttrs>(),
          .pattern = OpPattern::kInjective,
          .infer = [](const OpCall& op) { return tensor_type(op.shape(0), like_dtype(op)); },
          .infer_partial = infer_partial_like,
          .legalize =
              [=](const OpCall& op) {
                ComputeBuilder b;
                std::vector<Buffer> x = b.inputs_of(op);
                return b.finish({b.compute("T_like", like_dtype(op), op.shape(0),
                                           [&](Axes i) { return value(op, x, i, like_dtype(op)); })});
              }};
}
OpRow constant_like(const char* name, const char* doc, double constant) {
  return like(name, doc, {}, [=](const OpCall&, const std::vector<Buffer>&, Axes, DType dtype) {
    return scalar_imm(constant, dtype);
  });
}
OpRow full_like() {
  OpRow row = like(
      "relax.full_like", "every element is fill_value", {{"fill_value", "scalar tensor"}},
      [](const OpCall&, const std::vector<Buffer>& x, Axes, DType dtype) { return cast_to(load(x[1], {}), dtype); });
  row.infer = [](const OpCall& op) {
    require_rank(op, 1, 0);
    return tensor_type(op.shape(0), like_dtype(op));
  };
  return row;
}
// The diagonal is the main one by default.
void complete_diagonal(Call& call) {
  if (call.args.size() == 1) call.args.push_back(int_imm(0));
}

OpRow eye_like() {
  OpRow row = like("relax.eye_like", "1 on diagonal k, 0 elsewhere", {{"k", "int64 scalar", OpInput::Arity::kOptional}},
                   [](const OpCall& op, const std::vector<Buffer>&, Axes i, DType dtype) {
                     Expr k = op.size() > 1 ? op.arg(1) : int_imm(0);
                     return select(equal(i[1] - i[0], cast_to(k, kInt64)), one(dtype), zero(dtype));
                   });
  row.infer = [](const OpCall& op) {
    require_rank(op, 0, 2);
    if (op.size() > 1) require_scalar(op, 1);
    return tensor_type(op.shape(0), like_dtype(op));
  };
  row.complete = complete_diagonal;
  return row;
}

// The bounds are scalars; one alone is the end. A count of floats is computed from constants only.
struct Range {
  Expr start, end, step;
};
Range range_of(const OpCall& op) {
  for (size_t i = 0; i < op.size(); ++i) require_scalar(op, i);
  Expr none = int_imm(0), step = op.size() > 2 ? op.arg(2) : int_imm(1);
  return op.size() == 1 ? Range{none, op.arg(0), step} : Range{op.arg(0), op.arg(1), step};
}
Expr arange_count(const OpCall& op) {
  auto [start_value, end_value, step_value] = range_of(op);
  const Expr bounds[] = {start_value, end_value, step_value};
  auto float_value = [&](size_t i) -> std::optional<double> {
    if (const FloatImm* imm = bounds[i].as<FloatImm>()) return imm->value;
    if (auto known = as_int(bounds[i])) return static_cast<double>(*known);
    return std::nullopt;
  };
  bool integers = true;
  for (const Expr& bound : bounds) integers = integers && dtype_of(bound).is_integral();
  if (!integers) {
    auto start = float_value(0), end = float_value(1), step = float_value(2);
    if (!start || !end || !step) op.unsupported("float bounds must be constants");
    double count = *step == 0 ? -1 : std::ceil((*end - *start) / *step);
    if (*step == 0 || !(count < 1e15)) op.fail("step is {}", *step);
    return int_imm(std::max<int64_t>(0, static_cast<int64_t>(count)));
  }
  if (is_int(step_value, 0)) op.fail("step is 0");
  auto wide = [&](size_t i) { return cast_to(bounds[i], kInt64); };
  auto first = as_int(start_value), last = as_int(end_value);
  if (first && last && !checked_sub(*last, *first))
    op.fail("{} to {} are more elements than can be counted", *first, *last);
  auto step = as_int(step_value);
  if (first && last && step && (*step > 0 ? *first >= *last : *first <= *last)) return int_imm(0);
  Expr sign = step ? int_imm(*step > 0 ? 1 : -1) : select(wide(2) > int_imm(0), int_imm(1), int_imm(-1));
  Expr count = floor_div(wide(1) - wide(0) - sign, wide(2)) + 1;  // a large step added before would overflow
  // Symbolic bounds are usually dims, but they may be negative.
  return simplify(max(simplify(count), int_imm(0)));
}
DType arange_dtype(const OpCall& op) {
  Range range = range_of(op);
  DType natural = kFloat32;
  for (const Expr& bound : {range.start, range.end, range.step})
    natural = dtype_of(bound).is_integral() ? natural : dtype_of(bound);
  bool integers =
      dtype_of(range.start).is_integral() && dtype_of(range.end).is_integral() && dtype_of(range.step).is_integral();
  return op.attrs<DTypeAttrs>().dtype.value_or(integers ? dtype_of(range.start) : natural);
}
Type infer_arange(const OpCall& op) { return tensor_type({arange_count(op)}, arange_dtype(op)); }
PrimFuncRef lower_arange(const OpCall& op) {
  Range range = range_of(op);
  DType dtype = arange_dtype(op);
  DType wide = dtype_of(range.start).is_integral() && dtype_of(range.step).is_integral() ? kInt64 : kFloat64;
  return filled("T_arange", {arange_count(op)}, dtype, [&](Axes i) {
    Expr value = binary(BinaryOp::kAdd, cast_to(range.start, wide),
                        binary(BinaryOp::kMul, cast_to(i[0], wide), cast_to(range.step, wide)));
    return cast_to(value, dtype);
  });
}

bool all_scalars(const Call& call, size_t first) {
  return std::all_of(call.args.begin() + static_cast<std::ptrdiff_t>(std::min(first, call.args.size())),
                     call.args.end(), [](const Expr& arg) { return arg.type().is<PrimType>(); });
}
// arange(n) is arange(0, n, 1), of int64 or float32.
void complete_arange(Call& call) {
  if (call.args.empty() || !all_scalars(call, 0)) return;
  if (call.args.size() == 1) call.args.insert(call.args.begin(), int_imm(0));
  if (call.args.size() == 2) call.args.push_back(int_imm(1));
  Span nowhere;
  call.attrs.set("dtype", arange_dtype(OpCall{call, nowhere}));
}
// eye(n) is eye(n, n, 0).
void complete_eye(Call& call) {
  if (call.args.empty() || !all_scalars(call, 0)) return;
  if (call.args.size() == 1) call.args.push_back(call.args[0]);
  if (call.args.size() == 2) call.args.push_back(int_imm(0));
}
// Clamps the diagonal's number. One that far away lies outside of every matrix, and its sums with positions do not
// overflow.
Expr near_diagonal(const Expr& k) {
  constexpr int64_t kFar = int64_t{1} << 40;
  return simplify(max(min(cast_to(k, kInt64), int_imm(kFar)), int_imm(-kFar)));
}
Type infer_triangle(const OpCall& op) {
  if (op.rank(0) < 2) op.fail("expected at least two axes, got {}", op.rank(0));
  if (op.size() > 1) require_scalar(op, 1);
  return tensor_type(op.shape(0), op.dtype(0));
}
OpRow triangle(const char* name, const char* doc, BinaryOp keep) {
  return {.name = name,
          .doc = doc,
          .inputs = {{"x", "the tensor"},
                     {"k", "int64 scalar: the diagonal, 0 is the main one", OpInput::Arity::kOptional}},
          .pattern = OpPattern::kInjective,
          .infer = infer_triangle,
          .legalize =
              [=](const OpCall& op) {
                ComputeBuilder b;
                Buffer x = b.inputs_of(op)[0];
                Expr k = op.size() > 1 ? near_diagonal(op.arg(1)) : int_imm(0);
                return b.finish({b.compute("T_trilu", op.dtype(0), op.shape(0), [&](Axes i) {
                  Expr row = i[i.size() - 2], column = i[i.size() - 1];
                  return select(binary(keep, column - row, k), at(x, i), zero(op.dtype(0)));
                })});
              },
          .complete = complete_diagonal};
}

// The arguments are the rows, the columns (as many as rows by default), and k.
Type infer_eye(const OpCall& op) {
  for (size_t i = 0; i < op.size(); ++i) require_scalar(op, i);
  for (size_t i = 0; i < std::min<size_t>(op.size(), 2); ++i) {
    if (!dtype_of(op.arg(i)).is_integral()) op.fail("a size of {}", to_string(dtype_of(op.arg(i))));
    op.require_at_most(int_imm(0), cast_to(op.arg(i), kInt64), "a size is negative");
  }
  Expr rows = cast_to(op.arg(0), kInt64), columns = op.size() > 1 ? cast_to(op.arg(1), kInt64) : rows;
  return tensor_type({rows, columns}, op.attrs<DTypeAttrs>().dtype.value_or(kFloat32));
}
PrimFuncRef lower_eye(const OpCall& op) {
  DType dtype = op.attrs<DTypeAttrs>().dtype.value_or(kFloat32);
  Type type = infer_eye(op);
  Expr k = op.size() > 2 ? near_diagonal(op.arg(2)) : int_imm(0);
  return filled("T_eye", *known_shape(type), dtype,
                [&](Axes i) { return select(equal(i[1] - i[0], k), one(dtype), zero(dtype)); });
}

Type infer_hamming_window(const OpCall& op) {
  for (size_t i = 0; i < op.size(); ++i) require_scalar(op, i);
  if (!dtype_of(op.arg(0)).is_integral()) op.fail("a size of {}", to_string(dtype_of(op.arg(0))));
  return tensor_type({cast_to(op.arg(0), kInt64)}, op.attrs<DTypeAttrs>().dtype.value_or(kFloat32));
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

// Turns the scalar into a tensor of rank 0.
Type infer_scalar_to_tensor(const OpCall& op) {
  if (!op.arg(0).type().is<PrimType>()) op.fail("expected a scalar");
  return tensor_type({}, op.attrs<DTypeAttrs>().dtype.value_or(dtype_of(op.arg(0))));
}
PrimFuncRef lower_scalar_to_tensor(const OpCall& op) {
  DType dtype = op.attrs<DTypeAttrs>().dtype.value_or(dtype_of(op.arg(0)));
  return filled("T_scalar", {}, dtype, [&](Axes) { return cast_to(op.arg(0), dtype); });
}

}  // namespace

std::vector<OpRow> create_ops() {
  const auto injective = OpPattern::kInjective;
  return {
      {.name = "relax.full",
       .doc = "every element is fill_value",
       .inputs = {{"shape", "the dims"}, {"fill_value", "scalar tensor"}},
       .attrs = op_attrs<DTypeAttrs>(),
       .pattern = injective,
       .infer = infer_full,
       .infer_partial =
           [](const OpCall& op) {
             std::optional<DType> stated = op.attrs<DTypeAttrs>().dtype;
             return infer_unranked(stated ? stated : tensor_dtype(op.arg(1).type()));
           },
       .legalize = lower_full},
      full_like(),
      constant_fill("relax.zeros", "every element is 0", 0),
      constant_fill("relax.ones", "every element is 1", 1),
      constant_like("relax.zeros_like", "every element is 0", 0),
      constant_like("relax.ones_like", "every element is 1", 1),
      eye_like(),
      {.name = "relax.hamming_window",
       .doc = "alpha - beta * cos(2 pi i / n), n one less unless periodic",
       .inputs = {{"window_size", "int64 scalar"},
                  {"periodic", "bool scalar"},
                  {"alpha", "float scalar"},
                  {"beta", "float scalar"}},
       .attrs = {dtype_attr("dtype", kFloat32)},
       .infer = infer_hamming_window},
      {.name = "relax.arange",
       .doc = "start, start + step, ... before end",
       .inputs = {{"start", "scalar; the end when alone"},
                  {"end", "scalar", OpInput::Arity::kOptional},
                  {"step", "scalar, not 0; 1 otherwise", OpInput::Arity::kOptional}},
       .attrs = op_attrs<DTypeAttrs>(),
       .pattern = injective,
       .infer = infer_arange,
       .legalize = lower_arange,
       .complete = complete_arange},
      triangle("relax.tril", "the elements on and below diagonal k, 0 above it", BinaryOp::kLE),
      triangle("relax.triu", "the elements on and above diagonal k, 0 below it", BinaryOp::kGE),
      {.name = "relax.eye",
       .doc = "1 on diagonal k, 0 elsewhere",
       .inputs = {{"n", "rows"},
                  {"m", "columns; as many as rows otherwise", OpInput::Arity::kOptional},
                  {"k", "int64 scalar; 0 otherwise", OpInput::Arity::kOptional}},
       .attrs = {dtype_attr("dtype", kFloat32)},
       .pattern = injective,
       .infer = infer_eye,
       .legalize = lower_eye,
       .complete = complete_eye},
      {.name = "relax.shape_to_tensor",
       .doc = "the dims as an int64 tensor",
       .inputs = {{"expr", "the shape"}},
       .infer = infer_shape_to_tensor,
       .infer_partial = [](const OpCall&) { return tensor_type_of_rank(1, kInt64); },
       .legalize = lower_shape_to_tensor},
      {.name = "relax.scalar_to_tensor",
       .doc = "a scalar as a tensor of rank 0",
       .inputs = {{"value", "scalar"}},
       .attrs = op_attrs<DTypeAttrs>(),
       .pattern = injective,
       .infer = infer_scalar_to_tensor,
       .legalize = lower_scalar_to_tensor},
  };
}

}  // namespace relaxc
