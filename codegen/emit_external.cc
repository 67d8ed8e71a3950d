// Calls of functions outside of the kernel: C functions by name (T.call_extern), and functions of the host
// (T.call_packed), which relaxc_kernel_context::call_packed reaches.
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/Module.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <cctype>
#include <cstddef>

#include "codegen/function_emitter.h"
#include "ir/op_names.h"
#include "support/diagnostic.h"
#include "support/lists.h"
#include "vm/artifact.h"
#include "vm/bytecode.h"
#include "vm/kernel_abi.h"

namespace relaxc::codegen {

// ---- C functions

bool is_extern_call(const Expr& e) {
  const std::string& name = op_name(e);
  return name == ops::kCallExtern || name == ops::kCallPureExtern;
}

bool is_known_function(const llvm::TargetLibraryInfoImpl& known, const std::string& name) {
  llvm::LibFunc function;
  return known.getLibFunc(name, function);
}

// LLVM gives names of other forms, such as llvm.trap, a meaning of their own.
static bool is_c_name(std::string_view name) {
  auto fits = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  return !name.empty() && std::ranges::all_of(name, fits) && !std::isdigit(static_cast<unsigned char>(name[0]));
}

// Returns the lanes of the vectors among the operands, on which the function is called one by one.
static int lanes_of_call(std::span<const Expr> operands) {
  int lanes = 1;
  for (const Expr& e : operands) {
    const PrimType* type = e.type().as<PrimType>();
    if (type && type->dtype.lanes > 1) lanes = type->dtype.lanes;
  }
  return lanes;
}

static llvm::Attribute::AttrKind extension_of(DType dtype) {
  bool is_narrow = !dtype.is_float() && !dtype.is_handle() && !dtype.is_void() && dtype.bits < 32;
  if (!is_narrow) return llvm::Attribute::None;
  return dtype.is_int() ? llvm::Attribute::SExt : llvm::Attribute::ZExt;
}

Value FunctionEmitter::extern_call(const Call& op, const Expr& node) {
  const StringImm* symbol = op.args[0].as<StringImm>();
  if (!symbol || !is_c_name(symbol->value))
    fail(node.span(), "{} takes the name of a C function, got {}", op_name(node), debug_print(op.args[0]));
  std::span<const Expr> operands = std::span(op.args).subspan(1);
  DType result = dtype_of(node);
  int lanes = lanes_of_call(operands);
  bool fits = result.is_void() ? lanes == 1 : result.lanes == lanes;
  if (!fits || lanes >= DType::kScalable)
    fail_unsupported(node.span(), "a call of '{}' on vectors of {} lanes that gives {}", symbol->value, lanes,
                     to_string(result));
  std::vector<Value> values = map_each(operands, [&](const Expr& e) { return c_value(e); });
  llvm::Type* type = result.is_void()   ? b_.getVoidTy()
                     : result.is_bool() ? b_.getInt8Ty()
                                        : ops_.type(result.element());
  auto call_lane = [&](int lane) {
    std::vector<Value> args = values;
    for (Value& arg : args) {
      if (arg->getType()->isVectorTy()) arg = b_.CreateExtractElement(arg, static_cast<uint64_t>(lane));
    }
    std::vector<llvm::Type*> types = map_each(args, [](Value arg) -> llvm::Type* { return arg->getType(); });
    auto* signature = llvm::FunctionType::get(type, types, false);
    llvm::CallInst* call = b_.CreateCall(signature, c_function(symbol->value, signature), args);
    for (size_t i = 0; i < operands.size(); ++i) {
      const PrimType* scalar = operands[i].type().as<PrimType>();
      auto extension = scalar ? extension_of(scalar->dtype) : llvm::Attribute::None;
      if (extension != llvm::Attribute::None) call->addParamAttr(static_cast<unsigned>(i), extension);
    }
    return result.is_bool() ? b_.CreateICmpNE(call, b_.getInt8(0)) : static_cast<Value>(call);
  };
  if (lanes == 1) return call_lane(0);
  Value all = llvm::PoisonValue::get(ops_.type(result));
  for (int lane = 0; lane < lanes; ++lane)
    all = b_.CreateInsertElement(all, call_lane(lane), static_cast<uint64_t>(lane));
  return all;
}

// Returns the address of a C function: of one that LLVM knows its name, of another the value of a variable that is set
// when the code is loaded (vm::connect_functions).
Value FunctionEmitter::c_function(const std::string& name, llvm::FunctionType* signature) {
  llvm::Module& module = kernel_.module;
  if (is_known_function(llvm::TargetLibraryInfoImpl(llvm::Triple(module.getTargetTriple())), name))
    return module.getOrInsertFunction(name, signature).getCallee();
  const std::string symbol = vm::slot_symbol(name);
  llvm::GlobalVariable* slot = module.getNamedGlobal(symbol);
  if (!slot)  // weak, since several kernels may have it, and the functions that are linked in another one
    slot = new llvm::GlobalVariable(module, b_.getPtrTy(), false, llvm::GlobalValue::WeakAnyLinkage,
                                    llvm::ConstantPointerNull::get(b_.getPtrTy()), symbol);
  llvm::LoadInst* address = b_.CreateLoad(b_.getPtrTy(), slot);
  address->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b_.getContext(), {}));
  return address;
}

// Returns an argument as C passes it.
Value FunctionEmitter::c_value(const Expr& e) {
  if (const StringImm* text = e.as<StringImm>()) return b_.CreateGlobalString(text->value, "text");
  if (e.type().is<BufferType>()) return variable(cast<Var>(e));
  DType dtype = dtype_of(e);
  if (dtype.is_float() && dtype.bits < 32)
    fail_unsupported(e.span(), "C functions take no {}; cast it to float32", to_string(dtype));
  Value value = expr(e);
  return dtype.is_bool() ? b_.CreateZExt(value, ops_.type(DType::uint(8).with_lanes(dtype.lanes))) : value;
}

// ---- Functions of the host

// The layout of relaxc_value.
static llvm::StructType* value_type(llvm::LLVMContext& context) {
  auto *int32 = llvm::Type::getInt32Ty(context), *int64 = llvm::Type::getInt64Ty(context);
  auto* pointer = llvm::PointerType::getUnqual(context);
  return llvm::StructType::get(context,
                               {int32, int32, int64, llvm::Type::getDoubleTy(context), pointer, pointer, int64});
}
enum ValueMember : unsigned { kKind, kDType, kInteger, kReal, kPointer, kShape, kNDim };

Value FunctionEmitter::packed_call(const Call& op, const Expr& node) {
  const StringImm* name = op.args[0].as<StringImm>();
  if (!name) fail(node.span(), "{} takes the name of a function", op_name(node));
  llvm::StructType* type = value_type(b_.getContext());
  size_t count = op.args.size() - 1;
  auto* array = llvm::ArrayType::get(type, count + 1);
  Value values = stack_memory(array, "values");
  auto member = [&](size_t i, ValueMember which) {
    return b_.CreateStructGEP(type, b_.CreateConstInBoundsGEP2_64(array, values, 0, i), which);
  };
  for (size_t i = 0; i < count; ++i) {
    auto set = [&](ValueMember which, Value value) { b_.CreateStore(value, member(i, which)); };
    PackedArgument argument = packed_argument(op.args[i + 1]);
    set(kKind, b_.getInt32(argument.kind));
    set(kDType, b_.getInt32(static_cast<uint32_t>(argument.dtype)));
    set(argument.kind == relaxc_int ? kInteger : argument.kind == relaxc_float ? kReal : kPointer, argument.value);
    if (!argument.shape) continue;
    set(kShape, argument.shape);
    set(kNDim, b_.getInt64(argument.ndim));
  }
  Value text = b_.CreateGlobalString(name->value, "name");
  Value status =
      call_context(offsetof(relaxc_kernel_context, call_packed), b_.getInt32Ty(),
                   {context_, text, values, b_.getInt32(static_cast<uint32_t>(count)), member(count, kKind)});
  return_if(b_.CreateICmpNE(status, b_.getInt32(0)), status);
  DType dtype = dtype_of(node);
  if (dtype.is_void()) return nullptr;
  if (dtype.is_handle()) return b_.CreateLoad(b_.getPtrTy(), member(count, kPointer));
  DType given = dtype.is_float() ? kFloat64 : kInt64;
  Value result = b_.CreateLoad(ops_.type(given), member(count, dtype.is_float() ? kReal : kInteger));
  return ops_.cast(result, given, dtype);
}

FunctionEmitter::PackedArgument FunctionEmitter::packed_argument(const Expr& e) {
  if (const StringImm* text = e.as<StringImm>()) return {relaxc_string, 0, b_.CreateGlobalString(text->value, "text")};
  if (e.type().is<BufferType>()) {
    const BufferType& type = buffer_type(cast<Var>(e));
    return packed_tensor(variable(cast<Var>(e)), type.shape, type.dtype);
  }
  // T.tvm_stack_make_array(data, shape, strides, ndim, a value of the dtype, element offset)
  if (const Call* array = as_call(e, ops::kStackMakeArray)) {
    const Call* shape = as_call(array->args[1], ops::kStackMakeShape);
    bool is_dense = is_int(array->args[2], 0) || dtype_of(array->args[2]).is_handle();
    if (!shape || !is_dense || as_call(array->args[2], ops::kStackMakeShape))
      fail_unsupported(e.span(), "a tensor with strides as an argument of a packed function");
    DType dtype = dtype_of(array->args[4]);
    Value data = expr(array->args[0]);
    if (dtype.is_packed() && !is_int(array->args[5], 0))
      fail_unsupported(e.span(), "an offset of a tensor of {} as an argument of a packed function", to_string(dtype));
    if (!is_int(array->args[5], 0)) data = b_.CreateGEP(ops_.memory_type(dtype), data, int64(array->args[5]));
    return packed_tensor(data, shape->args, dtype);
  }
  DType dtype = dtype_of(e);
  if (dtype.lanes > 1) fail_unsupported(e.span(), "a vector as an argument of a packed function");
  if (dtype.is_handle()) return {relaxc_pointer, 0, expr(e)};
  if (dtype.is_float()) return {relaxc_float, 0, ops_.cast(expr(e), dtype, kFloat64)};
  return {relaxc_int, 0, ops_.cast(expr(e), dtype, kInt64)};
}

FunctionEmitter::PackedArgument FunctionEmitter::packed_tensor(Value data, const std::vector<Expr>& shape,
                                                               DType dtype) {
  auto* array = llvm::ArrayType::get(b_.getInt64Ty(), std::max<size_t>(shape.size(), 1));
  Value dims = stack_memory(array, "shape");
  for (size_t d = 0; d < shape.size(); ++d)
    b_.CreateStore(int64(shape[d]), b_.CreateConstInBoundsGEP2_64(array, dims, 0, d));
  return {relaxc_tensor, vm::pack_dtype(dtype), data, dims, shape.size()};
}

}  // namespace relaxc::codegen
