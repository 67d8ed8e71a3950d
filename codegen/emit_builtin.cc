// Calls that become instructions: T.reinterpret, T.prefetch, and LLVM's intrinsics by name.
#include <llvm/ADT/StringExtras.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include "codegen/function_emitter.h"
#include "codegen/target.h"
#include "ir/op_names.h"
#include "ir/visit.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/lists.h"
#include "tir/dot_intrinsics.h"

namespace relaxc::codegen {

namespace {

#if LLVM_VERSION_MAJOR >= 20
namespace Lookup = llvm::Intrinsic;
#else
using Lookup = llvm::Function;
#endif

void check_target(llvm::StringRef name, const Target& target, const Span& span) {
  // LLVM ends the process at an intrinsic that the target lacks.
  std::string_view alternatives = features_of_intrinsic(name);
  if (alternatives.empty())
    fail_unsupported(span,
                     "intrinsic '{}': the processor features that it needs are not known; add a row for its family to "
                     "the table in tir/dot_intrinsics.cc",
                     name.str());
  if (has_intrinsic(target, std::string_view(name))) return;
  llvm::SmallVector<llvm::StringRef> lists;
  llvm::StringRef(alternatives).split(lists, '|');
  fail_unsupported(span, "intrinsic '{}' needs a processor with {}; the target is {} {}", name.str(),
                   llvm::join(lists, " or "), target.triple, target.cpu);
}

std::string text_of(llvm::Type* type) {
  std::string text;
  llvm::raw_string_ostream(text) << *type;
  return text;
}

// Returns the declaration of the intrinsic for these types. Where the intrinsic fixes a type, it is used instead.
llvm::Function* declare(llvm::Module& module, llvm::Intrinsic::ID id, llvm::Type* result,
                        const std::vector<Value>& args) {
  if (!llvm::Intrinsic::isOverloaded(id)) return llvm::Intrinsic::getDeclaration(&module, id);
  std::vector<llvm::Type*> types = map_each(args, [&](Value arg) -> llvm::Type* { return arg->getType(); });
  llvm::SmallVector<llvm::Intrinsic::IITDescriptor> table;
  llvm::Intrinsic::getIntrinsicInfoTableEntries(id, table);
  llvm::ArrayRef<llvm::Intrinsic::IITDescriptor> rest = table;
  llvm::SmallVector<llvm::Type*> overloads;
  auto match = llvm::Intrinsic::matchIntrinsicSignature(llvm::FunctionType::get(result, types, false), rest, overloads);
  if (match != llvm::Intrinsic::MatchIntrinsicTypes_Match || !rest.empty()) return nullptr;
  return llvm::Intrinsic::getDeclaration(&module, id, overloads);
}

}  // namespace

Value FunctionEmitter::builtin(const Call& op, const Expr& node) {
  const std::string& name = op_name(node);
  if (name == ops::kReinterpret) return reinterpreted(op.args[0], node);
  if (name == ops::kBufferData) return variable(cast<Var>(op.args[0]));
  if (name == ops::kAddByteOffset) return b_.CreateGEP(b_.getInt8Ty(), expr(op.args[0]), int64(op.args[1]));
  if (name == ops::kIsNullPtr) return b_.CreateIsNull(expr(op.args[0]));
  if (name == ops::kShuffle) return shuffled(op, node);
  if (name == ops::kCallExtern || name == ops::kCallPureExtern) return extern_call(op, node);
  if (name == ops::kCallPacked || name == ops::kCallCPacked) return packed_call(op, node);
  if (name == ops::kAddressOf) {
    const BufferLoad* element = op.args[0].as<BufferLoad>();
    if (!element) fail(node.span(), "T.address_of takes an element of a buffer");
    return pointer(element->buffer, place(element->buffer, element->indices).offset, false);
  }
  if (name == ops::kPrefetch) return prefetch(op, node);
  if (name == ops::kVscale) return b_.CreateIntrinsic(llvm::Intrinsic::vscale, {ops_.type(dtype_of(node))}, {});
  if (name == ops::kGetActiveLaneMask) {
    Value first = int64(op.args[0]), end = int64(op.args[1]);
    return b_.CreateIntrinsic(llvm::Intrinsic::get_active_lane_mask, {ops_.type(dtype_of(node)), first->getType()},
                              {first, end});
  }
  if (name == ops::kCallLlvmIntrin || name == ops::kCallLlvmPureIntrin) return llvm_intrinsic(op, node);
  fail_unsupported(node.span(), "{} in a tensor program", name);
}

Value FunctionEmitter::reinterpreted(const Expr& e, const Expr& node) {
  DType from = dtype_of(e), to = dtype_of(node);
  Value value = expr(e);
  if (from.is_handle() || to.is_handle()) {
    auto is_address = [](DType dtype) { return dtype.is_handle() || (dtype.is_integral() && dtype.bits == 64); };
    if (!is_address(from) || !is_address(to))
      fail(node.span(), "T.reinterpret of {} as {}: a pointer has 64 bits", to_string(from), to_string(to));
    return b_.CreateBitOrPointerCast(value, ops_.type(to));
  }
  llvm::Type* type = ops_.type(to);
  if (type->getPrimitiveSizeInBits() != value->getType()->getPrimitiveSizeInBits())
    fail(node.span(), "T.reinterpret of {} as {}: the sizes differ", to_string(from), to_string(to));
  return b_.CreateBitCast(value, type);
}

// Returns the shuffle of two vectors of the same size as LLVM's instruction, or null if it is another one.
Value FunctionEmitter::shuffled_pair(const Tuple& vectors, const Tuple& numbers) {
  if (vectors.items.size() != 2 || numbers.items.size() < 2) return nullptr;
  const DType dtype = dtype_of(vectors.items[0]);
  if (dtype.lanes < 2 || dtype.is_scalable() || dtype != dtype_of(vectors.items[1])) return nullptr;
  llvm::SmallVector<int> mask;
  for (const Expr& item : numbers.items) {
    int64_t number = as_int(item).value_or(-1);
    if (number < 0 || number >= 2 * dtype.lanes) return nullptr;
    mask.push_back(static_cast<int>(number));
  }
  Value first = expr(vectors.items[0]), second = expr(vectors.items[1]);
  return b_.CreateShuffleVector(first, second, mask);
}

// T.Shuffle([vectors], [numbers of lanes, counted through all vectors])
Value FunctionEmitter::shuffled(const Call& op, const Expr& node) {
  const Tuple *vectors = op.args[0].as<Tuple>(), *numbers = op.args[1].as<Tuple>();
  if (!vectors || !numbers) fail(node.span(), "T.Shuffle takes a list of vectors and a list of numbers");
  if (Value pair = shuffled_pair(*vectors, *numbers)) return pair;
  std::vector<Value> lanes;
  for (const Expr& vector : vectors->items) {
    Value value = expr(vector);
    for (int i = 0; i < dtype_of(vector).lanes; ++i) {
      bool is_vector = value->getType()->isVectorTy();
      lanes.push_back(is_vector ? b_.CreateExtractElement(value, static_cast<uint64_t>(i)) : value);
    }
  }
  Value result = llvm::PoisonValue::get(ops_.type(dtype_of(node)));
  for (size_t i = 0; i < numbers->items.size(); ++i) {
    int64_t number = as_int(numbers->items[i]).value_or(-1);
    if (number < 0 || number >= std::ssize(lanes))
      fail(node.span(), "T.Shuffle: {} is not the number of one of {} lanes", debug_print(numbers->items[i]),
           lanes.size());
    Value lane = lanes[static_cast<size_t>(number)];
    if (numbers->items.size() == 1) return lane;
    result = b_.CreateInsertElement(result, lane, static_cast<uint64_t>(i));
  }
  return result;
}

// T.prefetch(T.address_of(A[i]), 0 read or 1 write, locality 0 to 3, 1 data)
Value FunctionEmitter::prefetch(const Call& op, const Expr& node) {
  const Call* address = as_call(op.args[0], ops::kAddressOf);
  const BufferLoad* element = address ? address->args[0].as<BufferLoad>() : nullptr;
  if (!element) fail(node.span(), "T.prefetch takes T.address_of(an element)");
  Place where = place(element->buffer, element->indices);
  int64_t numbers[] = {0, 3, 1};
  for (size_t i = 1; i < op.args.size(); ++i) numbers[i - 1] = as_int(op.args[i]).value_or(-1);
  if (where.lanes != 1 || numbers[0] < 0 || numbers[0] > 1 || numbers[1] < 0 || numbers[1] > 3 || numbers[2] != 1)
    fail(node.span(), "T.prefetch(address, 0 or 1 for write, locality 0 to 3, 1 for data) takes constants");
  std::vector<Value> args = {pointer(element->buffer, where.offset, false)};  // may be past the end
  for (int64_t number : numbers) args.push_back(b_.getInt32(static_cast<uint32_t>(number)));
  return b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()}, args);
}

// T.call_llvm_pure_intrin(dtype, "llvm.name", [T.uint32(number of arguments),] arguments...)
Value FunctionEmitter::llvm_intrinsic(const Call& op, const Expr& node) {
  const StringImm* name = op.args[0].as<StringImm>();
  if (!name) fail(node.span(), "{} takes the name of the intrinsic", op_name(node));
  llvm::Intrinsic::ID id = Lookup::lookupIntrinsicID(name->value);
  if (id == llvm::Intrinsic::not_intrinsic)
    fail(node.span(), "LLVM {} has no intrinsic '{}'", LLVM_VERSION_STRING, name->value);
  if (Lookup::isTargetIntrinsic(id)) check_target(name->value, kernel_.target, node.span());
  uses_tiles_ = uses_tiles_ || features_of_intrinsic(name->value).starts_with("amx-tile");
  size_t first = op.args.size() > 1 && op.args[1].is<IntImm>() && dtype_of(op.args[1]) == DType::uint(32) ? 2 : 1;
  std::vector<Value> args;
  for (size_t i = first; i < op.args.size(); ++i) args.push_back(expr(op.args[i]));
  llvm::Type* result = dtype_of(node).is_void() ? b_.getVoidTy() : ops_.type(dtype_of(node));
  llvm::Function* function = declare(kernel_.module, id, result, args);
  if (!function) fail(node.span(), "intrinsic '{}' does not take these types", name->value);
  llvm::FunctionType* type = function->getFunctionType();
  // Values of bfloat16 and float16 are integers here, and LLVM takes some vectors of bytes as vectors of int32.
  auto fits = [](llvm::Type* a, llvm::Type* b) { return a == b || llvm::CastInst::isBitCastable(a, b); };
  bool all_fit = args.size() == type->getNumParams() && fits(result, type->getReturnType());
  for (size_t i = 0; all_fit && i < args.size(); ++i)
    all_fit = fits(args[i]->getType(), type->getParamType(static_cast<unsigned>(i)));
  if (!all_fit) {
    std::vector<std::string> types = map_each(args, [&](Value arg) -> std::string { return text_of(arg->getType()); });
    fail(node.span(), "intrinsic '{}' is {}, called as {} ({})", name->value, text_of(type), text_of(result),
         joined(types));
  }
  for (size_t i = 0; i < args.size(); ++i)
    args[i] = b_.CreateBitCast(args[i], type->getParamType(static_cast<unsigned>(i)));
  for (unsigned i = 0; i < args.size(); ++i) {
    if (function->hasParamAttribute(i, llvm::Attribute::ImmArg) && !llvm::isa<llvm::ConstantInt>(args[i]))
      fail(node.span(), "argument {} of intrinsic '{}' has to be a constant; unroll the loops that it depends on",
           i + 1, name->value);
  }
  Value value = b_.CreateCall(function, args);
  return result->isVoidTy() ? value : b_.CreateBitCast(value, result);
}

}  // namespace relaxc::codegen
