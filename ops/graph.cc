// Operators of the graph itself: calls of kernels, shapes as values, checks. Bytecode has calls and builtins for them.
#include <algorithm>

#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace relaxc {

namespace {

Type infer_nothing(const OpCall&) { return tuple_type({}); }
// A call states the types of its outputs as type arguments. Some operators may leave them out.
template <Type (*otherwise)(const OpCall&)>
Type infer_stated_or(const OpCall& op) {
  return op.call.type_args.empty() ? otherwise(op) : infer_stated(op);
}
Type infer_call_tir(const OpCall& op) {
  if (op.size() > 1 && !op.arg(1).type().is<TupleType>()) op.fail("the inputs must be a tuple");
  return infer_stated(op);
}

void require_tensor(const OpCall& op) {
  if (!op.arg(0).type().is<TensorType>()) op.fail("expected a tensor");
}
Type infer_shape_of(const OpCall& op) {
  require_tensor(op);
  const std::vector<Expr>* shape = known_shape(op.arg(0).type());
  return shape ? shape_type(*shape) : shape_type_of_rank(known_rank(op.arg(0).type()));
}
Type infer_tensor_to_shape(const OpCall& op) {
  if (op.dtype(0) != kInt64 || op.rank(0) != 1)
    op.fail("expected int64 of rank 1, got {} of rank {}", to_string(op.dtype(0)), op.rank(0));
  return shape_type_of_rank(as_int(op.shape(0)[0]).value_or(-1));
}

Type infer_size(const OpCall& op) {
  require_tensor(op);
  return tensor_type({}, kInt64);
}

void check_inplace(const OpCall& op, size_t inputs) {
  const std::vector<Type>& types = op.call.type_args;
  const TupleType* several = types.size() == 1 ? types[0].as<TupleType>() : nullptr;
  size_t outputs = several ? several->items.size() : types.size();
  std::vector<int64_t> indices = op.attrs<InplaceAttrs>().inplace_indices;
  if (indices.size() != outputs) op.fail("inplace_indices has {} items for {} outputs", indices.size(), outputs);
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < -1 || indices[i] >= static_cast<int64_t>(inputs))
      op.fail("inplace_indices[{}] is {}, expected -1 to {}", i, indices[i], inputs - 1);
    if (indices[i] >= 0 && std::ranges::count(indices, indices[i]) > 1)
      op.fail("input {} becomes two outputs", indices[i]);
  }
  if (std::ranges::all_of(indices, [](int64_t input) { return input < 0; })) op.fail("no input becomes an output");
}
Type infer_call_tir_inplace(const OpCall& op) {
  Type result = infer_call_tir(op);
  check_inplace(op, op.arg(1).type().as<TupleType>()->items.size());
  return result;
}
Type infer_call_inplace_packed(const OpCall& op) {
  Type result = infer_stated(op);
  check_inplace(op, op.size() - 1);
  return result;
}

DType dtype_argument(const OpCall& op, size_t i) {
  const DTypeImm* dtype = op.arg(i).as<DTypeImm>();
  if (!dtype) op.fail("argument {} must be an R.dtype", i);
  return dtype->value;
}
Type tensor_of_shape(const OpCall& op, size_t shape, DType dtype) {
  if (!op.arg(shape).type().is<ShapeType>()) op.fail("argument {} must be a shape", shape);
  return tensor_type(op.shape(shape), dtype);
}

Type infer_to_vdevice(const OpCall& op) {
  TensorType type = *infer_like_first(op).as<TensorType>();
  type.vdevice = op.attrs<DeviceAttrs>().dst_vdevice;
  return make(std::move(type));
}
// The result is the same memory under another shape or dtype, from an offset on. null_value() stands for an argument
// that is left out.
Type infer_view(const OpCall& op) {
  auto is_given = [&](size_t i) { return i < op.size() && !op.arg(i).type().is<ObjectType>(); };
  DType dtype = op.dtype(0);
  if (op.size() > 2 && op.arg(2).is<DTypeImm>()) dtype = op.arg(2).as<DTypeImm>()->value;
  if (is_given(1)) return tensor_of_shape(op, 1, dtype);
  return tensor_type(op.shape(0), dtype);
}
OpRow inspect(const char* name, const char* doc, DType result, bool takes_axis = false) {
  std::vector<OpInput> inputs = {{"tensor", "the tensor"}};
  if (takes_axis) inputs.push_back({"axis", "int64 scalar"});
  auto infer = [=](const OpCall& op) {
    require_tensor(op);
    if (takes_axis) require_scalar(op, 1);
    auto axis = takes_axis ? as_int(op.arg(1)) : std::nullopt;
    if (axis && (*axis < 0 || *axis >= op.rank(0))) op.fail("axis {} of a tensor of rank {}", *axis, op.rank(0));
    return prim_type(result);
  };
  return {.name = fmt::format("relax.inspect.{}", name),
          .doc = doc,
          .inputs = std::move(inputs),
          .infer = infer,
          .infer_partial = [=](const OpCall&) { return prim_type(result); }};
}
// A count of bytes is a scalar, or a shape of one item.
void require_bytes(const OpCall& op, size_t i) {
  if (op.arg(i).type().is<PrimType>()) return;
  if (!op.arg(i).type().is<ShapeType>() || op.rank(i) != 1) op.fail("argument {} must be a count of bytes", i);
}
Type infer_alloc_storage(const OpCall& op) {
  require_bytes(op, 0);
  return object_type();
}
Type infer_alloc_tensor(const OpCall& op) {
  require_bytes(op, 1);
  return tensor_of_shape(op, 2, dtype_argument(op, 3));
}
// Makes the row of a call whose type does not depend on the operands.
OpRow call_row(const char* name, const char* doc, std::vector<OpInput> inputs, Type (*infer)(const OpCall&),
               std::vector<OpAttr> attrs = {}) {
  return {.name = name,
          .doc = doc,
          .inputs = std::move(inputs),
          .attrs = std::move(attrs),
          .infer = infer,
          .infer_partial = infer};
}
OpRow impure(OpRow row) {
  row.pure = false;
  return row;
}
Type infer_tensor_item(const OpCall& op) {
  DType dtype = op.dtype(0);
  if (!dtype.is_integral() && !dtype.is_bool()) op.fail("expected integers, got {}", to_string(dtype));
  int64_t index = op.attrs<TensorItemAttrs>().index;
  auto size = as_int(simplify(product(op.shape(0))));
  if (index < 0 || (size && index >= *size)) op.fail("element {} of a tensor of {}", index, size.value_or(0));
  return prim_type(kInt64);
}

Type infer_assert(const OpCall& op) {
  const Type& type = op.arg(0).type();
  const PrimType* prim = type.as<PrimType>();
  bool is_bool = prim ? prim->dtype.is_bool() : type.is<ObjectType>() ? true : op.dtype(0).is_bool() && op.rank(0) == 0;
  if (!is_bool) op.fail("the condition must be a bool scalar");
  return tuple_type({});
}

}  // namespace

std::vector<OpRow> graph_ops() {
  using Arity = OpInput::Arity;
  const OpInput inputs{"args", "tuple of tensors"}, scalars{"tir_vars", "shape: scalar arguments", Arity::kOptional},
      device{"runtime_device_index", "0: the only one", Arity::kOptional},
      scope{"storage_scope", "\"global\"", Arity::kOptional}, storage{"storage", "the block"},
      tensor{"x", "the tensor"};
  const OpInput program{"gvar", "the program"}, function{"func", "the function"}, closure{"closure", "the closure"},
      arguments{"args", "its arguments", Arity::kVariadic};
  return {
      call_row("relax.call_tir", "a tensor program of this module; outputs are made by the caller",
               {program, inputs, scalars}, infer_call_tir),
      call_row("relax.call_dps_packed", "an external kernel with the C ABI; outputs are made by the caller",
               {{"func", "the kernel"}, inputs, scalars}, infer_call_tir),
      call_row("relax.call_pure_packed", "an external function without side effects", {function, arguments},
               infer_stated_or<infer_unknown>),
      impure(call_row("relax.vm.call_tir_dyn", "a tensor program, with its scalar arguments last as a shape",
                      {{"func", "the program"}, inputs}, infer_nothing)),
      call_row("relax.call_tir_inplace", "a tensor program that overwrites inputs", {program, inputs, scalars},
               infer_call_tir_inplace, op_attrs<InplaceAttrs>()),
      call_row("relax.call_tir_with_grad", "call_tir with the name of its gradient", {program, inputs, scalars},
               infer_call_tir, op_attrs<GradientAttrs>()),
      call_row("relax.call_inplace_packed", "an external function that overwrites arguments", {function, arguments},
               infer_call_inplace_packed, op_attrs<InplaceAttrs>()),
      impure(call_row("relax.call_py_func", "a Python function", {{"func_name", "its name"}, inputs}, infer_stated)),
      impure(call_row("relax.call_builtin_with_ctx", "a function of the virtual machine", {function, inputs},
                      infer_stated_or<infer_nothing>)),
      call_row("relax.make_closure", "a function with the values that it captures", {function, inputs}, infer_unknown),
      impure(
          call_row("relax.invoke_closure", "a call of a closure", {closure, inputs}, infer_stated_or<infer_unknown>)),
      call_row("relax.invoke_pure_closure", "a call of a closure without side effects", {closure, inputs},
               infer_stated_or<infer_unknown>),
      {.name = "relax.shape_of",
       .doc = "the dims of a tensor as a shape",
       .inputs = {{"expr", "the tensor"}},
       .infer = infer_shape_of},
      {.name = "relax.tensor_to_shape",
       .doc = "the elements of an int64 tensor of rank 1 as a shape",
       .inputs = {{"expr", "the tensor"}},
       .infer = infer_tensor_to_shape,
       .infer_partial = [](const OpCall&) { return shape_type_of_rank(-1); }},
      {.name = "relax.inspect.tensor_item",
       .doc = "an element of an integer or bool tensor, in row-major order, as an int64 scalar",
       .inputs = {{"t", "the tensor"}},
       .attrs = op_attrs<TensorItemAttrs>(),
       .infer = infer_tensor_item,
       .infer_partial = [](const OpCall&) { return prim_type(kInt64); }},
      {.name = "relax.builtin.alloc_tensor",
       .doc = "a new tensor, contents undefined",
       .inputs = {{"shape", "its dims"}, {"dtype", "of its elements"}, device, scope},
       .infer = [](const OpCall& op) { return tensor_of_shape(op, 0, dtype_argument(op, 1)); },
       .infer_partial = infer_unknown},
      {.name = "relax.memory.alloc_storage",
       .doc = "a block of memory, 64-byte aligned",
       .inputs = {{"size", "in bytes"},
                  {"virtual_device_index", "0: the only one", Arity::kOptional},
                  scope,
                  {"dtype", "of its contents", Arity::kOptional}},
       .infer = infer_alloc_storage},
      {.name = "relax.memory.alloc_tensor",
       .doc = "a tensor at an offset (a multiple of 64) of a storage",
       .inputs = {storage, {"offset", "in bytes"}, {"shape", "its dims"}, {"dtype", "of its elements"}, device},
       .infer = infer_alloc_tensor,
       .infer_partial = infer_unknown},
      impure(call_row("relax.memory.kill_storage", "the end of a storage's life", {storage}, infer_nothing)),
      impure(call_row("relax.memory.kill_tensor", "the end of a tensor's life", {{"tensor", "the tensor"}},
                      infer_nothing)),
      {.name = "relax.memory.view",
       .doc = "the same memory under another shape, dtype or offset",
       .inputs = {{"data", "the tensor"},
                  {"shape", "the new dims", Arity::kOptional},
                  {"dtype", "the new dtype", Arity::kOptional},
                  {"relative_byte_offset", "int64 scalar", Arity::kOptional}},
       .infer = infer_view,
       .infer_partial = infer_unknown},
      {.name = "relax.memory.ensure_zero_offset",
       .doc = "the tensor, copied if it begins inside of its memory",
       .inputs = {{"data", "the tensor"}},
       .infer = infer_like_first},
      {.name = "relax.vm.alloc_storage",
       .doc = "a block of memory on a device",
       .inputs = {{"size", "shape of one item: bytes"}, device, {"dtype", "of its contents", Arity::kOptional}, scope},
       .infer = infer_alloc_storage},
      {.name = "relax.vm.alloc_tensor",
       .doc = "a tensor at an offset of a storage",
       .inputs = {storage, {"offset", "in bytes"}, {"shape", "its dims"}, {"dtype", "of its elements"}, device},
       .infer = infer_alloc_tensor,
       .infer_partial = infer_unknown},
      impure(call_row("relax.vm.kill_object", "the end of an object's life", {{"obj", "the object"}}, infer_nothing)),
      {.name = "relax.builtin.stop_lift_params",
       .doc = "the tensor itself; operators that use it are not computed ahead",
       .inputs = {tensor},
       .infer = infer_like_first},
      {.name = "relax.null_value", .doc = "the value that stands for nothing", .infer = infer_unknown},
      {.name = "relax.size",
       .doc = "the number of elements, as an int64 tensor of rank 0",
       .inputs = {{"expr", "the tensor"}},
       .infer = infer_size},
      {.name = "relax.to_vdevice",
       .doc = "the tensor copied to a device",
       .inputs = {{"data", "the tensor"}},
       .attrs = op_attrs<DeviceAttrs>(),
       .infer = infer_to_vdevice},
      {.name = "relax.hint_on_device",
       .doc = "the tensor itself, with the device that is to compute it",
       .inputs = {{"data", "the tensor"}},
       .attrs = op_attrs<DeviceHintAttrs>(),
       .infer = infer_like_first},
      inspect("tensor_dtype_code", "DLPack's code of the dtype", DType::uint(8)),
      inspect("tensor_dtype_bits", "bits of an element", DType::uint(8)),
      inspect("tensor_dtype_lanes", "lanes of an element", DType::uint(16)),
      inspect("tensor_ndim", "the rank", kInt32),
      inspect("tensor_shape_i", "a dim", kInt64, true),
      inspect("tensor_stride_i", "elements from one index of an axis to the next", kInt64, true),
      inspect("tensor_byte_offset", "where the tensor begins in its memory", DType::uint(64)),
      inspect("tensor_elem_offset", "where the tensor begins in its memory, in elements", DType::uint(64)),
      impure(call_row("relax.print", "prints its arguments", {{"values", "any", Arity::kVariadic}}, infer_nothing,
                      op_attrs<FormatAttrs>())),
      {.name = "relax.assert_op",
       .doc = "ends the run with an error when the condition is false",
       .inputs = {{"condition", "bool scalar or tensor of rank 0"},
                  {"format_args", "for the message", Arity::kVariadic}},
       .attrs = op_attrs<FormatAttrs>(),
       .pure = false,
       .infer = infer_assert,
       .infer_partial = infer_nothing},
  };
}

}  // namespace relaxc
