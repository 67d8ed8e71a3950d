// Operators of the graph itself: calls of kernels, shapes as values, allocations. Bytecode has calls and builtins for
// them.
#include <algorithm>

#include "ir/builder.h"
#include "ir/kernel_call.h"
#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace relaxc {

namespace {

// A call states the types of its outputs as type arguments. Some operators may leave them out.
template <Type (*otherwise)(const OpCall&)>
Type infer_stated_or(const OpCall& op) {
  return op.call.type_args.empty() ? otherwise(op) : infer_stated(op);
}
Type infer_call_tir(const OpCall& op) {
  if (op.size() > 1 && !op.arg(1).type().is<TupleType>()) op.fail("the inputs must be a tuple");
  return infer_stated(op);
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
  if (dtype->value.is_string()) op.fail("strings are made by functions, not allocated");
  return dtype->value;
}
Type tensor_of_shape(const OpCall& op, size_t shape, DType dtype) {
  if (!op.arg(shape).type().is<ShapeType>()) op.fail("argument {} must be a shape", shape);
  return tensor_type(op.shape(shape), dtype);
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

// The result has the elements of all tensors.
Type infer_join(const OpCall& op) {
  const DType dtype = common_dtype(op, tensor_list(op, 0));
  if (dtype.is_string() || dtype.is_packed()) op.fail("tensors of {} do not end at a byte", to_string(dtype));
  Expr count = int_imm(0);
  for (const Type& item : tensor_list(op, 0)) {
    const std::vector<Expr>* shape = known_shape(item);
    if (!shape) op.fail("tensors must have known shapes");
    count = count + product(*shape);
  }
  const Type type = tensor_of_shape(op, 1, dtype);
  op.require_equal(simplify(count), simplify(product(*known_shape(type))), "the tensors have other elements than all");
  return type;
}

// Where it is written before find_views finds what may lie where, it is a concatenation.
Expr decompose_join(const OpCall& op, Builder& b) {
  std::vector<Expr> flat;
  const Tuple* tensors = op.arg(0).as<Tuple>();
  if (!tensors) op.fail("a tuple value as an argument; run spread_tuples before");
  for (const Expr& tensor : tensors->items) {
    const std::vector<Expr>* shape = known_shape(tensor.type());
    if (!shape) op.fail("tensors must have known shapes");
    flat.push_back(b.op("reshape", {tensor, shape_expr({product(*shape)})}));
  }
  return b.op("reshape", {b.op("concat", {tuple(std::move(flat))}, ConcatAttrs{.axis = 0}), op.arg(1)});
}

// Returns the type of the rows that a loop stacks; a condition leaves open how many they are.
Type rows_of(const OpCall& op, const Type& row, bool conditional) {
  int64_t rank = known_rank(row);
  if (rank < 0 || !tensor_dtype(row)) op.fail("rows must be tensors of known rank and dtype");
  if (tensor_dtype(row)->is_string()) op.fail("strings are not stacked; carry a sequence, and join it behind the loop");
  const std::vector<Expr>* shape = known_shape(row);
  return shape && !conditional ? tensor_type(with_new_item(*shape, 0, op.arg(1)), tensor_dtype(row))
                               : tensor_type_of_rank(rank + 1, tensor_dtype(row));
}
// The result has the carried values, then the rows of all iterations.
Type infer_loop(const OpCall& op) {
  const FuncType* body = op.arg(0).type().as<FuncType>();
  const TupleType* carried = op.arg(2).type().as<TupleType>();
  if (!body || !body->params) op.fail("body must be a function whose params are known");
  if (!body->pure) op.fail("the body must be pure");
  const PrimType* trips = op.arg(1).type().as<PrimType>();
  if (!trips || trips->dtype != kInt64) op.fail("trips must be an int64 scalar");
  if (!carried) op.fail("the carried values must be a tuple");
  const std::vector<Type>& params = *body->params;
  const TupleType* given = body->result.as<TupleType>();
  size_t count = carried->items.size(), first = op.size() > 3 ? 1 : 0;
  if (params.size() != count + 1)
    op.fail("the body has {} params, expected the iteration's number and {} carried values", params.size(), count);
  if (!given || given->items.size() < first + count)
    op.fail("the body must give a tuple of {}{} carried values, then rows", first ? "the condition, " : "", count);
  if (fits(params[0], prim_type(kInt64)) == Verdict::kContradicted)
    op.fail("the body's param 0 must be an int64 scalar");
  VarMap dims;  // of the body's params, which stay when the types of all carried values do
  bool stay = true;
  for (size_t i = 0; i < count; ++i) {
    bind_dims(params[i + 1], carried->items[i], dims);
    stay = stay && structural_equal(params[i + 1], given->items[first + i]);
  }
  auto without_own = [&](const Type& type) {
    return without_dims(type, [&](const VarRef& dim) { return dims.contains(dim.get()); });
  };
  for (size_t i = 0; i < count; ++i) {
    for (const Type& type : {carried->items[i], without_own(given->items[first + i])}) {
      if (fits(params[i + 1], type) == Verdict::kContradicted)
        op.fail("carried value {} does not fit the body's param {}, at first or after an iteration", i, i + 1);
    }
  }
  std::vector<Type> types;
  for (const Type& item : std::span(given->items).subspan(first)) {
    Type type = stay ? substitute(item, dims) : without_own(item);
    // Without an iteration the result is the value before it.
    size_t i = types.size();
    bool changes = i < count && !structural_equal(params[i + 1], given->items[first + i]);
    types.push_back(changes ? common_type(carried->items[i], type) : i < count ? type : rows_of(op, type, first > 0));
  }
  return tuple_type(std::move(types));
}

// ---- Calls that lowered modules of TVM have

// A tensor program of which all arguments are given, destinations included, and its scalar params last as a shape.
Expr decompose_call_tir_dyn(const OpCall& op, Builder&) {
  const Tuple* args = op.arg(1).as<Tuple>();
  if (!args || !op.arg(0).is<GlobalVar>()) op.fail("expected a program of the module and a tuple of its arguments");
  std::vector<Expr> tensors = args->items, scalars;
  if (!tensors.empty() && tensors.back().is<ShapeExpr>()) {
    scalars = tensors.back().as<ShapeExpr>()->values;
    tensors.pop_back();
  }
  return call_with_destinations(op.arg(0), std::move(tensors), std::move(scalars), op.span);
}
Expr decompose_call_builtin(const OpCall& op, Builder&) {
  const Tuple* args = op.arg(1).as<Tuple>();
  if (!args || !op.arg(0).is<ExternFunc>()) op.fail("expected a function by name and a tuple of its arguments");
  Type type = infer_stated_or<infer_nothing>(op);
  return call(op.arg(0), args->items, {}, type, op.span, {type});
}
// The function gets copies of the arguments that it overwrites, which may be in use elsewhere, or constants.
Expr decompose_call_inplace(const OpCall& op, Builder& b) {
  std::vector<Expr> args = op.call.args;
  for (int64_t i : op.attrs<InplaceAttrs>().inplace_indices) {
    if (i >= 0) args[i + 1] = b.emit(call_builtin("vm.builtin.copy", {args[i + 1]}, args[i + 1].type()));
  }
  return call(op_ref(ops::kCallPurePacked), std::move(args), {}, infer_stated(op), op.span, op.call.type_args);
}
Expr decompose_call_py_func(const OpCall& op, Builder&) {
  const Tuple* args = op.arg(1).as<Tuple>();
  const StringImm* name = op.arg(0).as<StringImm>();
  Expr function = name ? extern_func(name->value) : op.arg(0);
  if (!args || !function.is<ExternFunc>()) op.fail("expected a function by name and a tuple of its arguments");
  std::vector<Expr> all = {function};
  all.insert(all.end(), args->items.begin(), args->items.end());
  return call(op_ref(ops::kCallPurePacked), std::move(all), {}, infer_stated(op), op.span, op.call.type_args);
}
// The device must be the only one, and the memory plain.
Expr plain_memory(const OpCall& op, Builder& b, std::string name, size_t used, size_t device, size_t scope) {
  auto number = device < op.size() ? as_int(op.arg(device)) : 0;
  if (number && *number > 0) op.unsupported("device {}; there is device 0 only, the CPU", *number);
  const StringImm* place = scope < op.size() ? op.arg(scope).as<StringImm>() : nullptr;
  if (place && place->value != "global") op.unsupported("memory of scope '{}', expected \"global\"", place->value);
  return b.op(std::move(name), {op.call.args.begin(), op.call.args.begin() + static_cast<int64_t>(used)});
}
Expr nothing(const OpCall&, Builder&) { return tuple({}); }

OpRow decomposed(OpRow row, Expr (*decompose)(const OpCall&, Builder&)) {
  row.decompose = decompose;
  return row;
}
// Makes the row of a call whose type does not depend on the operands.
OpRow call_row(const char* name, const char* doc, std::vector<OpInput> inputs, Type (*infer)(const OpCall&),
               std::vector<OpAttr> attrs = {}) {
  return {.name = name,
          .doc = doc,
          .inputs = std::move(inputs),
          .attrs = std::move(attrs),
          .moves = true,
          .infer = infer,
          .infer_partial = infer};
}
Type infer_tensor_item(const OpCall& op) {
  DType dtype = op.dtype(0);
  if (!dtype.is_integral() && !dtype.is_bool()) op.fail("expected integers, got {}", to_string(dtype));
  int64_t index = op.attrs<TensorItemAttrs>().index;
  auto size = as_int(simplify(product(op.shape(0))));
  if (index < 0 || (size && index >= *size)) op.fail("element {} of a tensor of {}", index, size.value_or(0));
  return prim_type(kInt64);
}

}  // namespace

std::vector<OpRow> graph_ops() {
  using Arity = OpInput::Arity;
  const OpInput inputs{"args", "tuple of tensors"}, scalars{"tir_vars", "shape: scalar arguments", Arity::kOptional},
      device{"runtime_device_index", "0: the only one", Arity::kOptional},
      scope{"storage_scope", "\"global\"", Arity::kOptional}, storage{"storage", "the block"};
  const OpInput program{"gvar", "the program"}, function{"func", "the function"}, closure{"closure", "the closure"},
      arguments{"args", "its arguments", Arity::kVariadic};
  return {
      call_row("relax.call_tir", "a tensor program of this module; outputs are made by the caller",
               {program, inputs, scalars}, infer_call_tir),
      call_row("relax.call_dps_packed", "an external kernel with the C ABI; outputs are made by the caller",
               {{"func", "the kernel"}, inputs, scalars}, infer_call_tir),
      call_row("relax.call_pure_packed", "an external function without side effects", {function, arguments},
               infer_stated_or<infer_unknown>),
      decomposed(impure(call_row("relax.vm.call_tir_dyn",
                                 "a tensor program that writes some of its arguments, with its scalars last as a shape",
                                 {{"func", "the program"}, inputs}, infer_nothing)),
                 decompose_call_tir_dyn),
      call_row("relax.call_tir_inplace", "a tensor program that overwrites inputs", {program, inputs, scalars},
               infer_call_tir_inplace, op_attrs<InplaceAttrs>()),
      call_row("relax.call_tir_with_grad", "call_tir with the name of its gradient", {program, inputs, scalars},
               infer_call_tir, op_attrs<GradientAttrs>()),
      decomposed(call_row("relax.call_inplace_packed",
                          "an external function that overwrites arguments, of which it gets copies",
                          {function, arguments}, infer_call_inplace_packed, op_attrs<InplaceAttrs>()),
                 decompose_call_inplace),
      decomposed(call_row("relax.call_py_func", "a Python function, for which the host registers one of its name",
                          {{"func_name", "its name"}, inputs}, infer_stated),
                 decompose_call_py_func),
      decomposed(impure(call_row("relax.call_builtin_with_ctx", "a function of the virtual machine", {function, inputs},
                                 infer_stated_or<infer_nothing>)),
                 decompose_call_builtin),
      call_row("relax.make_closure", "a function with the values that it captures", {function, inputs}, infer_unknown),
      impure(
          call_row("relax.invoke_closure", "a call of a closure", {closure, inputs}, infer_stated_or<infer_unknown>)),
      call_row("relax.invoke_pure_closure", "a call of a closure without side effects", {closure, inputs},
               infer_stated_or<infer_unknown>),
      call_row("relax.loop",
               "values after `trips` calls of body(i, *carried) -> ([condition,] *carried, *rows); rows are stacked",
               {{"body", "a pure function"},
                {"trips", "the most iterations, at least 0"},
                {"carried", "tuple: the values before the first iteration"},
                {"condition", "whether there is a first one; the body then gives that for the next", Arity::kOptional}},
               infer_loop),
      {.name = "relax.shape_of",
       .doc = "the dims of a tensor as a shape",
       .inputs = {{"expr", "the tensor"}},
       .moves = true,
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
       .moves = true,
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
       .moves = true,
       .infer = infer_alloc_tensor,
       .infer_partial = infer_unknown},
      {.name = "relax.memory.join",
       .doc = "tensors one after another in one memory, which the kernels that make them write, as a tensor",
       .inputs = {{"tensors", "tuple of results of kernels"}, {"shape", "the dims of all"}},
       .moves = true,
       .infer = infer_join,
       .infer_partial = infer_unknown,
       .decompose = decompose_join},
      decomposed(call_row("relax.memory.kill_storage", "the end of a storage's life, which is found without it",
                          {storage}, infer_nothing),
                 nothing),
      decomposed(call_row("relax.memory.kill_tensor", "the end of a tensor's life, which is found without it",
                          {{"tensor", "the tensor"}}, infer_nothing),
                 nothing),
      {.name = "relax.vm.alloc_storage",
       .doc = "a block of memory on a device",
       .inputs = {{"size", "shape of one item: bytes"}, device, {"dtype", "of its contents", Arity::kOptional}, scope},
       .infer = infer_alloc_storage,
       .decompose = [](const OpCall& op, Builder& b) { return plain_memory(op, b, "memory.alloc_storage", 1, 1, 3); }},
      {.name = "relax.vm.alloc_tensor",
       .doc = "a tensor at an offset of a storage",
       .inputs = {storage, {"offset", "in bytes"}, {"shape", "its dims"}, {"dtype", "of its elements"}, device},
       .moves = true,
       .infer = infer_alloc_tensor,
       .infer_partial = infer_unknown,
       .decompose = [](const OpCall& op, Builder& b) { return plain_memory(op, b, "memory.alloc_tensor", 4, 4, 9); }},
      decomposed(call_row("relax.vm.kill_object", "the end of an object's life, which is found without it",
                          {{"obj", "the object"}}, infer_nothing),
                 nothing),
  };
}

}  // namespace relaxc
