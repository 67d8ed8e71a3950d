// Calls that stand for instructions: T.reinterpret, T.prefetch, and LLVM's intrinsics by name.
#include <llvm/ADT/StringExtras.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>

#include "codegen/function_emitter.h"
#include "codegen/target.h"
#include "ir/visit.h"
#include "support/diagnostic.h"
#include "tir/dot_intrinsics.h"

namespace relaxc::codegen {

using Value = llvm::Value*;

namespace {

// Returns the features that a processor needs for an intrinsic, as DotIntrinsic::features spells them; empty: they are
// not known. They are checked because LLVM ends the process over an intrinsic that the target lacks.
std::string_view find_features(std::string_view name) {
  if (const DotIntrinsic* row = find_dot_intrinsic(name)) return row->features;
  // The first prefix that fits counts. Intrinsics of AVX-512 do not name the extension that they belong to; those that
  // x86-64-v4 lacks stand before the others.
  static constexpr std::pair<std::string_view, std::string_view> kFamilies[] = {
      {"llvm.x86.avx512.vpdp", "avx512vnni+avx512vl|avxvnni"},
      {"llvm.x86.avx512.vpmadd52", "avx512ifma+avx512vl"},
      {"llvm.x86.avx512.permvar.qi", "avx512vbmi+avx512vl"},
      {"llvm.x86.avx512.vpermi2var.qi", "avx512vbmi+avx512vl"},
      {"llvm.x86.avx512.pmultishift", "avx512vbmi+avx512vl"},
      {"llvm.x86.avx512.vpshufbitqmb", "avx512bitalg+avx512vl"},
      {"llvm.x86.avx512.mask.compress", "avx512vbmi2+avx512vl"},
      {"llvm.x86.avx512.mask.expand", "avx512vbmi2+avx512vl"},
      {"llvm.x86.avx512.vp2intersect", "avx512vp2intersect+avx512vl"},
      {"llvm.x86.avx512.conflict", "avx512cd+avx512vl"},
      {"llvm.x86.avx512.exp2", ""},
      {"llvm.x86.avx512.rcp28", ""},
      {"llvm.x86.avx512.rsqrt28", ""},
      {"llvm.x86.avx512.gatherpf", ""},
      {"llvm.x86.avx512.scatterpf", ""},
      {"llvm.x86.avx512.", "avx512f+avx512bw+avx512cd+avx512dq+avx512vl"},
      {"llvm.x86.avx512bf16.", "avx512bf16+avx512vl"},
      {"llvm.x86.avx2.", "avx2"},
      {"llvm.x86.avx.", "avx"},
      {"llvm.x86.fma.", "fma"},
      {"llvm.x86.sse42.", "sse4.2"},
      {"llvm.x86.sse41.", "sse4.1"},
      {"llvm.x86.ssse3.", "ssse3"},
      {"llvm.x86.sse3.", "sse3"},
      {"llvm.x86.sse2.", "sse2"},
      {"llvm.x86.sse.", "sse"},
      {"llvm.aarch64.neon.sdot", "dotprod"},
      {"llvm.aarch64.neon.udot", "dotprod"},
      {"llvm.aarch64.neon.usdot", "i8mm"},
      {"llvm.aarch64.neon.usmmla", "i8mm"},
      {"llvm.aarch64.neon.smmla", "i8mm"},
      {"llvm.aarch64.neon.ummla", "i8mm"},
      {"llvm.aarch64.neon.bf", "bf16"},
      {"llvm.aarch64.neon.", "neon"},
      {"llvm.aarch64.sve.", "sve"},
  };
  for (const auto& [prefix, features] : kFamilies) {
    if (name.starts_with(prefix)) return features;
  }
  return {};
}

void check_target(llvm::StringRef name, const Target& target, const Span& span) {
  // A name without an architecture is an intrinsic of LLVM that every target has.
  constexpr const char* kArchitectures[] = {"x86",     "aarch64", "arm",  "riscv",  "ppc", "s390",
                                            "hexagon", "mips",    "nvvm", "amdgcn", "wasm"};
  auto is_of = [&](const char* each) { return name.starts_with(std::string("llvm.") + each + "."); };
  if (std::ranges::none_of(kArchitectures, is_of)) return;
  std::string_view alternatives = find_features(name);
  if (alternatives.empty())
    fail_unsupported(span,
                     "intrinsic '{}': which processors have it is not known here; add a row to the table in "
                     "tir/dot_intrinsics.cc, or its family to the one in codegen/emit_builtin.cc",
                     name.str());
  // LLVM knows features by name within one architecture only.
  bool same_family = name.starts_with("llvm.x86.") == llvm::Triple(target.triple).isX86();
  llvm::SmallVector<llvm::StringRef> lists;
  llvm::StringRef(alternatives).split(lists, '|');
  for (llvm::StringRef features : lists) {
    if (same_family && has_features(target, features.str())) return;
  }
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
  std::vector<llvm::Type*> types;
  for (Value arg : args) types.push_back(arg->getType());
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
  if (name == "tir.reinterpret") {
    llvm::Type* type = ops_.type(dtype_of(node));
    Value value = expr(op.args[0]);
    if (type->getPrimitiveSizeInBits() != value->getType()->getPrimitiveSizeInBits())
      fail(node.span(), "T.reinterpret of {} as {}: the sizes differ", to_string(dtype_of(op.args[0])),
           to_string(dtype_of(node)));
    return b_.CreateBitCast(value, type);
  }
  if (name == ops::kPrefetch) return prefetch(op, node);
  if (name == ops::kVscale) return b_.CreateIntrinsic(llvm::Intrinsic::vscale, {ops_.type(dtype_of(node))}, {});
  if (name == ops::kActiveLaneMask) {
    Value first = int64(op.args[0]), end = int64(op.args[1]);
    return b_.CreateIntrinsic(llvm::Intrinsic::get_active_lane_mask, {ops_.type(dtype_of(node)), first->getType()},
                              {first, end});
  }
  if (name == "tir.call_llvm_intrin" || name == "tir.call_llvm_pure_intrin") return llvm_intrinsic(op, node);
  fail_unsupported(node.span(), "{} in a tensor program", name);
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
  std::vector<Value> args = {pointer(element->buffer, where.offset, false)};  // may lie behind the end
  for (int64_t number : numbers) args.push_back(b_.getInt32(static_cast<uint32_t>(number)));
  return b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()}, args);
}

// T.call_llvm_pure_intrin(dtype, "llvm.name", [T.uint32(number of arguments),] arguments...)
Value FunctionEmitter::llvm_intrinsic(const Call& op, const Expr& node) {
  const StringImm* name = op.args[0].as<StringImm>();
  if (!name) fail(node.span(), "{} takes the name of the intrinsic", op_name(node));
#if LLVM_VERSION_MAJOR >= 20
  llvm::Intrinsic::ID id = llvm::Intrinsic::lookupIntrinsicID(name->value);
#else
  llvm::Intrinsic::ID id = llvm::Function::lookupIntrinsicID(name->value);
#endif
  if (id == llvm::Intrinsic::not_intrinsic)
    fail(node.span(), "LLVM {} has no intrinsic '{}'", LLVM_VERSION_STRING, name->value);
  check_target(name->value, kernel_.target, node.span());
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
    std::vector<std::string> types;
    for (Value arg : args) types.push_back(text_of(arg->getType()));
    fail(node.span(), "intrinsic '{}' is {}, called as {} ({})", name->value, text_of(type), text_of(result),
         fmt::join(types, ", "));
  }
  for (size_t i = 0; i < args.size(); ++i)
    args[i] = b_.CreateBitCast(args[i], type->getParamType(static_cast<unsigned>(i)));
  Value value = b_.CreateCall(function, args);
  return result->isVoidTy() ? value : b_.CreateBitCast(value, result);
}

}  // namespace relaxc::codegen
