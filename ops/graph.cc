// Operators of the graph itself: calls of kernels, shapes as values, checks. They have no tensor program; the lowering
// to bytecode turns them into calls and builtins.
#include "ops/common.h"
#include "ops/ops.h"

namespace relaxc {

namespace {

// call_tir and its kin: the type arguments are the outputs.
Type infer_from_type_args(const OpCall& op) {
  if (op.call.type_args.empty()) op.fail("the output type is missing");
  if (op.call.type_args.size() == 1) return op.call.type_args[0];
  return tuple_type(op.call.type_args);
}
Type infer_call_tir(const OpCall& op) {
  if (op.size() > 1 && !op.arg(1).type().is<TupleType>()) op.fail("the inputs must be a tuple");
  return infer_from_type_args(op);
}
Type infer_call_packed(const OpCall& op) {
  return op.call.type_args.empty() ? object_type() : infer_from_type_args(op);
}

Type infer_shape_of(const OpCall& op) {
  const Type& type = op.arg(0).type();
  if (!type.is<TensorType>()) op.fail("expected a tensor");
  if (const std::vector<Expr>* shape = known_shape(type)) return shape_type(*shape);
  return shape_type_of_rank(known_rank(type));
}
Type infer_tensor_to_shape(const OpCall& op) {
  if (op.dtype(0) != kInt64 || op.rank(0) != 1)
    op.fail("expected int64 of rank 1, got {} of rank {}", to_string(op.dtype(0)), op.rank(0));
  return shape_type_of_rank(as_int(op.shape(0)[0]).value_or(-1));
}

struct TensorItemAttrs {
  int64_t index = 0;
  static constexpr auto fields() { return std::tuple(field("index", &TensorItemAttrs::index)); }
};
Type infer_tensor_item(const OpCall& op) {
  DType dtype = op.dtype(0);
  if (!dtype.is_integral() && !dtype.is_bool()) op.fail("expected integers, got {}", to_string(dtype));
  int64_t index = op.attrs<TensorItemAttrs>().index;
  auto size = as_int(simplify(product(op.shape(0))));
  if (index < 0 || (size && index >= *size)) op.fail("element {} of a tensor of {}", index, size.value_or(0));
  return prim_type(kInt64);
}

struct FormatAttrs {
  std::string format;
  static constexpr auto fields() { return std::tuple(field("format", &FormatAttrs::format)); }
};
Type infer_assert(const OpCall& op) {
  const Type& type = op.arg(0).type();
  const PrimType* prim = type.as<PrimType>();
  bool is_bool = prim ? prim->dtype.is_bool() : tensor_dtype(type) == kBool && known_rank(type) == 0;
  if (!is_bool) op.fail("the condition must be a bool scalar");
  return tuple_type({});
}

// Explicit memory, as destination_passing and plan_memory leave it. Shapes are R.shape values; sizes and offsets count
// bytes and are R.shape values of one item.
const std::vector<Expr>& shape_argument(const OpCall& op, size_t i) {
  const ShapeExpr* shape = op.arg(i).as<ShapeExpr>();
  if (!shape) op.fail("argument {} must be an R.shape", i);
  return shape->values;
}
DType dtype_argument(const OpCall& op, size_t i) {
  const DTypeImm* dtype = op.arg(i).as<DTypeImm>();
  if (!dtype) op.fail("argument {} must be an R.dtype", i);
  return dtype->value;
}

}  // namespace

std::vector<OpRow> graph_ops() {
  using Arity = OpInput::Arity;
  const auto opaque = OpPattern::kOpaque;
  const OpInput inputs{"args", "tuple of tensors"}, scalars{"tir_vars", "shape: scalar arguments", Arity::kOptional};
  return {
      {"relax.call_tir",
       "a tensor program of this module; outputs are made by the caller",
       {{"gvar", "the program"}, inputs, scalars},
       {},
       opaque,
       true,
       infer_call_tir,
       nullptr},
      {"relax.call_dps_packed",
       "an external kernel with the C ABI; outputs are made by the caller",
       {{"func", "the kernel"}, inputs, scalars},
       {},
       opaque,
       true,
       infer_call_tir,
       nullptr},
      {"relax.call_pure_packed",
       "an external function without side effects",
       {{"func", "the function"}, {"args", "its arguments", Arity::kVariadic}},
       {},
       opaque,
       true,
       infer_call_packed,
       nullptr},
      {"relax.shape_of",
       "the dims of a tensor as a shape",
       {{"x", "the tensor"}},
       {},
       opaque,
       true,
       infer_shape_of,
       nullptr},
      {"relax.tensor_to_shape",
       "the elements of an int64 tensor of rank 1 as a shape",
       {{"t", "the tensor"}},
       {},
       opaque,
       true,
       infer_tensor_to_shape,
       nullptr},
      {"relax.inspect.tensor_item",
       "an element of an integer or bool tensor, in row-major order, as an int64 scalar",
       {{"t", "the tensor"}},
       op_attrs<TensorItemAttrs>(),
       opaque,
       true,
       infer_tensor_item,
       nullptr},
      {"relax.builtin.alloc_tensor",
       "a new tensor, contents undefined",
       {{"shape", "its dims"}, {"dtype", "of its elements"}},
       {},
       opaque,
       true,
       [](const OpCall& op) { return tensor_type(shape_argument(op, 0), dtype_argument(op, 1)); },
       nullptr},
      {"relax.memory.alloc_storage",
       "a block of memory, 64-byte aligned",
       {{"size", "in bytes"}},
       {},
       opaque,
       true,
       [](const OpCall&) { return object_type(); },
       nullptr},
      {"relax.memory.alloc_tensor",
       "a tensor at an offset (a multiple of 64) of a storage",
       {{"storage", "the block"}, {"offset", "in bytes"}, {"shape", "its dims"}, {"dtype", "of its elements"}},
       {},
       opaque,
       true,
       [](const OpCall& op) { return tensor_type(shape_argument(op, 2), dtype_argument(op, 3)); },
       nullptr},
      {"relax.print",
       "prints its arguments",
       {{"values", "any", Arity::kVariadic}},
       op_attrs<FormatAttrs>(),
       opaque,
       false,
       [](const OpCall&) { return tuple_type({}); },
       nullptr},
      {"relax.assert_op",
       "ends the run with an error when the condition is false",
       {{"condition", "bool scalar or tensor of rank 0"}, {"values", "for the message", Arity::kVariadic}},
       op_attrs<FormatAttrs>(),
       opaque,
       false,
       infer_assert,
       nullptr},
  };
}

}  // namespace relaxc
