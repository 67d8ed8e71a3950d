// Operators that make tensors from scalars and shapes.
#include <cmath>

#include "ops/common.h"
#include "ops/ops.h"

namespace relaxc {

namespace {

struct DTypeAttrs {
  std::optional<DType> dtype;
  static constexpr auto fields() { return std::tuple(field("dtype", &DTypeAttrs::dtype)); }
};

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
  return {name,
          doc,
          {{"shape", "the dims"}},
          op_attrs<DTypeAttrs>(),
          OpPattern::kInjective,
          true,
          [=](const OpCall& op) { return tensor_type(op.shape(0), dtype_of_call(op)); },
          [=](const OpCall& op) {
            DType dtype = dtype_of_call(op);
            return filled("T_fill", op.shape(0), dtype, [&](Axes) { return scalar_imm(value, dtype); });
          }};
}

// The bounds are scalars; the count of floats is computed from constants only.
Expr arange_count(const OpCall& op) {
  for (size_t i = 0; i < 3; ++i) {
    if (!op.arg(i).type().is<PrimType>()) op.fail("argument {} must be a scalar", i);
  }
  auto float_value = [&](size_t i) -> std::optional<double> {
    if (const FloatImm* imm = op.arg(i).as<FloatImm>()) return imm->value;
    if (auto known = as_int(op.arg(i))) return static_cast<double>(*known);
    return std::nullopt;
  };
  bool integers = true;
  for (size_t i = 0; i < 3; ++i) integers = integers && dtype_of(op.arg(i)).is_integral();
  if (!integers) {
    auto start = float_value(0), end = float_value(1), step = float_value(2);
    if (!start || !end || !step) op.unsupported("float bounds must be constants");
    double count = *step == 0 ? -1 : std::ceil((*end - *start) / *step);
    if (*step == 0 || !(count < 1e15)) op.fail("step is {}", *step);
    return int_imm(std::max<int64_t>(0, static_cast<int64_t>(count)));
  }
  if (is_int(op.arg(2), 0)) op.fail("step is 0");
  auto wide = [&](size_t i) { return cast_to(op.arg(i), kInt64); };
  auto step = as_int(op.arg(2));
  Expr sign = step ? int_imm(*step > 0 ? 1 : -1) : select(wide(2) > int_imm(0), int_imm(1), int_imm(-1));
  Expr count = floor_div(wide(1) - wide(0) + wide(2) - sign, wide(2));
  // Facts: symbolic bounds are dims more often than not, but may be negative.
  return simplify(max(simplify(count), int_imm(0)));
}
Type infer_arange(const OpCall& op) {
  DType dtype = op.attrs<DTypeAttrs>().dtype.value_or(dtype_of(op.arg(0)));
  return tensor_type({arange_count(op)}, dtype);
}
PrimFuncRef lower_arange(const OpCall& op) {
  DType dtype = op.attrs<DTypeAttrs>().dtype.value_or(dtype_of(op.arg(0)));
  DType wide = dtype_of(op.arg(0)).is_integral() && dtype_of(op.arg(2)).is_integral() ? kInt64 : kFloat64;
  return filled("T_arange", {arange_count(op)}, dtype, [&](Axes i) {
    Expr value = binary(BinaryOp::kAdd, cast_to(op.arg(0), wide),
                        binary(BinaryOp::kMul, cast_to(i[0], wide), cast_to(op.arg(2), wide)));
    return cast_to(value, dtype);
  });
}

Type infer_triangle(const OpCall& op) {
  if (op.rank(0) < 2) op.fail("expected at least two axes, got {}", op.rank(0));
  return tensor_type(op.shape(0), op.dtype(0));
}
OpRow triangle(const char* name, const char* doc, BinaryOp keep) {
  return {name,
          doc,
          {{"x", "the tensor"}, {"k", "int64 scalar: the diagonal, 0 is the main one"}},
          {},
          OpPattern::kInjective,
          true,
          infer_triangle,
          [=](const OpCall& op) {
            ComputeBuilder b;
            Buffer x = b.inputs_of(op)[0];
            return b.finish({b.compute("T_trilu", op.dtype(0), op.shape(0), [&](Axes i) {
              Expr row = i[i.size() - 2], column = i[i.size() - 1];
              return select(binary(keep, column - row, op.arg(1)), at(x, i), zero(op.dtype(0)));
            })});
          }};
}

// Arguments: shape of two dims, k.
Type infer_eye(const OpCall& op) {
  if (op.rank(0) != 2) op.fail("the shape has rank {}, expected 2", op.rank(0));
  return tensor_type(op.shape(0), op.attrs<DTypeAttrs>().dtype.value_or(kFloat32));
}
PrimFuncRef lower_eye(const OpCall& op) {
  DType dtype = op.attrs<DTypeAttrs>().dtype.value_or(kFloat32);
  return filled("T_eye", op.shape(0), dtype,
                [&](Axes i) { return select(equal(i[1] - i[0], op.arg(1)), one(dtype), zero(dtype)); });
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

// The scalar as a tensor of rank 0.
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
      {"relax.full",
       "every element is fill_value",
       {{"shape", "the dims"}, {"fill_value", "scalar tensor"}},
       op_attrs<DTypeAttrs>(),
       injective,
       true,
       infer_full,
       lower_full},
      constant_fill("relax.zeros", "every element is 0", 0),
      constant_fill("relax.ones", "every element is 1", 1),
      {"relax.arange",
       "start, start + step, ... before end",
       {{"start", "scalar"}, {"end", "scalar"}, {"step", "scalar, not 0"}},
       op_attrs<DTypeAttrs>(),
       injective,
       true,
       infer_arange,
       lower_arange},
      triangle("relax.tril", "the elements on and below diagonal k, 0 above it", BinaryOp::kLE),
      triangle("relax.triu", "the elements on and above diagonal k, 0 below it", BinaryOp::kGE),
      {"relax.eye",
       "1 on diagonal k, 0 elsewhere",
       {{"shape", "two dims"}, {"k", "int64 scalar"}},
       op_attrs<DTypeAttrs>(),
       injective,
       true,
       infer_eye,
       lower_eye},
      {"relax.shape_to_tensor",
       "the dims as an int64 tensor",
       {{"shape", "the shape"}},
       {},
       OpPattern::kOpaque,
       true,
       infer_shape_to_tensor,
       lower_shape_to_tensor},
      {"relax.scalar_to_tensor",
       "a scalar as a tensor of rank 0",
       {{"value", "scalar"}},
       op_attrs<DTypeAttrs>(),
       injective,
       true,
       infer_scalar_to_tensor,
       lower_scalar_to_tensor},
  };
}

}  // namespace relaxc
