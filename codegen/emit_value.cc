#include "codegen/emit_value.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include "codegen/emit_math.h"
#include "ir/intrinsics.h"
#include "support/diagnostic.h"

namespace relaxc::codegen {

namespace {

using Value = llvm::Value*;

bool is_16_bit_float(DType dtype) { return dtype.is_float() && dtype.bits == 16; }

// Converts DType's lane count to LLVM's.
llvm::ElementCount element_count(int lanes) {
  bool scalable = lanes >= DType::kScalable;
  return llvm::ElementCount::get(static_cast<unsigned>(scalable ? lanes - DType::kScalable : lanes), scalable);
}
llvm::Type* with_lanes(llvm::Type* element, int lanes) {
  return lanes == 1 ? element : static_cast<llvm::Type*>(llvm::VectorType::get(element, element_count(lanes)));
}

// Returns the constant that is in every lane, or null.
const llvm::APInt* constant_int(Value value) {
  if (auto* scalar = llvm::dyn_cast<llvm::ConstantInt>(value)) return &scalar->getValue();
  auto* vector = llvm::dyn_cast<llvm::Constant>(value);
  if (!vector || !vector->getType()->isVectorTy()) return nullptr;
  auto* lane = llvm::dyn_cast_or_null<llvm::ConstantInt>(vector->getSplatValue());
  return lane ? &lane->getValue() : nullptr;
}
bool is_constant_number(Value value) {
  auto* constant = llvm::dyn_cast<llvm::Constant>(value);
  if (!constant) return false;
  if (constant->getType()->isVectorTy()) constant = constant->getSplatValue();
  auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
  return number && !number->isNaN();
}
int bits_of(Value value) { return static_cast<int>(value->getType()->getScalarSizeInBits()); }

}  // namespace

llvm::Type* ValueEmitter::type(DType dtype) const {
  RELAXC_CHECK(!dtype.is_handle(), "a handle in a lowered tensor program");
  llvm::Type* element = dtype.is_bool()          ? b_.getInt1Ty()
                        : is_16_bit_float(dtype) ? b_.getInt16Ty()
                        : !dtype.is_float()      ? static_cast<llvm::Type*>(b_.getIntNTy(dtype.bits))
                        : dtype.bits == 32       ? b_.getFloatTy()
                                                 : b_.getDoubleTy();
  return with_lanes(element, dtype.lanes);
}
llvm::Type* ValueEmitter::memory_type(DType dtype) const {
  bool is_byte = dtype.is_bool() || (dtype.is_integral() && dtype.bits < 8);
  return is_byte ? with_lanes(b_.getInt8Ty(), dtype.lanes) : type(dtype);
}
Value ValueEmitter::to_memory(Value value, DType dtype) {
  llvm::Type* wanted = memory_type(dtype);
  if (value->getType() == wanted) return value;
  return dtype.is_int() ? b_.CreateSExt(value, wanted) : b_.CreateZExt(value, wanted);
}
Value ValueEmitter::from_memory(Value value, DType dtype) {
  llvm::Type* wanted = type(dtype);
  if (value->getType() == wanted) return value;
  if (dtype.is_bool()) return b_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
  return b_.CreateTrunc(value, wanted);
}

Value ValueEmitter::int_constant(int64_t value, DType dtype) const {
  if (dtype.is_bool()) value = value != 0;
  return llvm::ConstantInt::get(
      type(dtype), llvm::APInt(64, static_cast<uint64_t>(value)).trunc(type(dtype)->getScalarSizeInBits()));
}
Value ValueEmitter::float_constant(double value, DType dtype) const {
  float single = static_cast<float>(value);
  if (dtype.code == DTypeCode::kBFloat) return llvm::ConstantInt::get(type(dtype), float_to_bfloat16(single));
  if (dtype.bits == 16) return llvm::ConstantInt::get(type(dtype), float_to_half(single));
  return llvm::ConstantFP::get(type(dtype), value);
}
Value ValueEmitter::splat(Value scalar, int lanes) { return b_.CreateVectorSplat(element_count(lanes), scalar); }

// ---- Binary

Value ValueEmitter::binary(BinaryOp op, DType dtype, Value x, Value y, IndexFacts facts) {
  if (dtype.is_bool()) return bool_binary(op, x, y);
  if (!dtype.is_float()) return int_binary(op, dtype, x, y, facts);
  if (!is_16_bit_float(dtype)) return float_binary(op, x, y);
  // Processors with 16-bit arithmetic could contract it; results must not depend on which one it is.
  llvm::IRBuilderBase::FastMathFlagGuard guard(b_);
  b_.clearFastMathFlags();
  Value result = float_binary(op, widen(x, dtype), widen(y, dtype));
  return info(op).compares ? result : narrow(result, dtype);
}

Value ValueEmitter::bool_binary(BinaryOp op, Value x, Value y) {
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kMax:
    case BinaryOp::kOr:
    case BinaryOp::kBitOr:
      return b_.CreateOr(x, y);
    case BinaryOp::kMul:
    case BinaryOp::kMin:
    case BinaryOp::kAnd:
    case BinaryOp::kBitAnd:
      return b_.CreateAnd(x, y);
    case BinaryOp::kSub:
    case BinaryOp::kNE:
    case BinaryOp::kBitXor:
      return b_.CreateXor(x, y);
    case BinaryOp::kEQ:
      return b_.CreateICmpEQ(x, y);
    case BinaryOp::kLT:
      return b_.CreateICmpULT(x, y);
    case BinaryOp::kLE:
      return b_.CreateICmpULE(x, y);
    case BinaryOp::kGT:
      return b_.CreateICmpUGT(x, y);
    case BinaryOp::kGE:
      return b_.CreateICmpUGE(x, y);
    case BinaryOp::kDiv:
    case BinaryOp::kTruncMod:
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod:
    case BinaryOp::kShiftLeft:
    case BinaryOp::kShiftRight:
      break;
  }
  RELAXC_CHECK(false, "{} of bool", info(op).name);
}

Value ValueEmitter::float_binary(BinaryOp op, Value x, Value y) {
  switch (op) {
    case BinaryOp::kAdd:
      return b_.CreateFAdd(x, y);
    case BinaryOp::kSub:
      return b_.CreateFSub(x, y);
    case BinaryOp::kMul:
      return b_.CreateFMul(x, y);
    case BinaryOp::kDiv:
      return b_.CreateFDiv(x, y);
    case BinaryOp::kTruncMod:
      return call_libm("fmod", {x, y});
    case BinaryOp::kFloorDiv:
      return b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, b_.CreateFDiv(x, y));
    case BinaryOp::kFloorMod: {  // as numpy: fmod, moved to the divisor's sign
      Value remainder = call_libm("fmod", {x, y});
      Value zero = llvm::Constant::getNullValue(x->getType());
      Value differs = b_.CreateXor(b_.CreateFCmpOLT(remainder, zero), b_.CreateFCmpOLT(y, zero));
      Value moved = b_.CreateSelect(differs, b_.CreateFAdd(remainder, y), remainder);
      return b_.CreateSelect(b_.CreateFCmpOEQ(remainder, zero),
                             b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, zero, y), moved);
    }
    case BinaryOp::kMin:
      return float_extremum(true, x, y);
    case BinaryOp::kMax:
      return float_extremum(false, x, y);
    case BinaryOp::kEQ:
      return b_.CreateFCmpOEQ(x, y);
    case BinaryOp::kNE:
      return b_.CreateFCmpUNE(x, y);
    case BinaryOp::kLT:
      return b_.CreateFCmpOLT(x, y);
    case BinaryOp::kLE:
      return b_.CreateFCmpOLE(x, y);
    case BinaryOp::kGT:
      return b_.CreateFCmpOGT(x, y);
    case BinaryOp::kGE:
      return b_.CreateFCmpOGE(x, y);
    case BinaryOp::kAnd:
    case BinaryOp::kOr:
    case BinaryOp::kBitAnd:
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor:
    case BinaryOp::kShiftLeft:
    case BinaryOp::kShiftRight:
      break;
  }
  RELAXC_CHECK(false, "{} of a float", info(op).name);
}

// `x < y ? x : y` is x86's minps, which gives y when either is NaN. So one more select is needed, and none when the
// first operand is a constant (relu).
Value ValueEmitter::float_extremum(bool minimum, Value x, Value y) {
  if (is_constant_number(y)) std::swap(x, y);
  Value result = b_.CreateSelect(minimum ? b_.CreateFCmpOLT(x, y) : b_.CreateFCmpOGT(x, y), x, y);
  if (is_constant_number(x)) return result;
  return b_.CreateSelect(b_.CreateFCmpUNO(x, x), x, result);
}

Value ValueEmitter::int_binary(BinaryOp op, DType dtype, Value x, Value y, IndexFacts facts) {
  bool is_signed = dtype.is_int();
  bool no_signed_wrap = facts.no_overflow && is_signed;
  switch (op) {
    case BinaryOp::kAdd:
      return b_.CreateAdd(x, y, "", false, no_signed_wrap);
    case BinaryOp::kSub:
      return b_.CreateSub(x, y, "", false, no_signed_wrap);
    case BinaryOp::kMul:
      return b_.CreateMul(x, y, "", false, no_signed_wrap);
    case BinaryOp::kDiv:
    case BinaryOp::kTruncMod:
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod:
      return divide(op, dtype, x, y, facts);
    case BinaryOp::kMin:
      return b_.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, x, y);
    case BinaryOp::kMax:
      return b_.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, x, y);
    case BinaryOp::kEQ:
      return b_.CreateICmpEQ(x, y);
    case BinaryOp::kNE:
      return b_.CreateICmpNE(x, y);
    case BinaryOp::kLT:
      return is_signed ? b_.CreateICmpSLT(x, y) : b_.CreateICmpULT(x, y);
    case BinaryOp::kLE:
      return is_signed ? b_.CreateICmpSLE(x, y) : b_.CreateICmpULE(x, y);
    case BinaryOp::kGT:
      return is_signed ? b_.CreateICmpSGT(x, y) : b_.CreateICmpUGT(x, y);
    case BinaryOp::kGE:
      return is_signed ? b_.CreateICmpSGE(x, y) : b_.CreateICmpUGE(x, y);
    case BinaryOp::kBitAnd:
      return b_.CreateAnd(x, y);
    case BinaryOp::kBitOr:
      return b_.CreateOr(x, y);
    case BinaryOp::kBitXor:
      return b_.CreateXor(x, y);
    case BinaryOp::kShiftLeft:
    case BinaryOp::kShiftRight:
      return shift(op, dtype, x, y);
    case BinaryOp::kAnd:
    case BinaryOp::kOr:
      break;
  }
  RELAXC_CHECK(false, "{} of an integer", info(op).name);
}

// Division never traps: a divisor 0 counts as 1, and the least integer divided by -1 wraps to itself. For a
// loop-invariant divisor everything that this adds, except for one select, moves out of the loop.
Value ValueEmitter::divide(BinaryOp op, DType dtype, Value x, Value y, IndexFacts facts) {
  bool wants_quotient = op == BinaryOp::kDiv || op == BinaryOp::kFloorDiv;
  bool floors = op == BinaryOp::kFloorDiv || op == BinaryOp::kFloorMod;
  const llvm::APInt* constant = constant_int(y);
  llvm::Type* type = x->getType();
  Value zero = llvm::Constant::getNullValue(type), one = llvm::ConstantInt::get(type, 1);
  if (!dtype.is_int() || facts.non_negative) {
    Value divisor = constant && !constant->isZero() ? y : b_.CreateSelect(b_.CreateICmpEQ(y, zero), one, y);
    return wants_quotient ? b_.CreateUDiv(x, divisor) : b_.CreateURem(x, divisor);
  }
  if (floors && constant && constant->isStrictlyPositive() && constant->isPowerOf2()) {
    return wants_quotient ? b_.CreateAShr(x, llvm::ConstantInt::get(type, constant->logBase2()))
                          : b_.CreateAnd(x, b_.CreateSub(y, one));
  }
  bool is_safe = constant && !constant->isZero() && !constant->isAllOnes();
  Value is_minus_one = is_safe ? nullptr : b_.CreateICmpEQ(y, llvm::Constant::getAllOnesValue(type));
  Value divisor =
      is_safe ? y : b_.CreateSelect(b_.CreateICmpULE(b_.CreateAdd(y, one), one), one, y);  // 0 and -1 become 1
  Value quotient = nullptr;
  Value remainder = nullptr;
  if (wants_quotient) quotient = b_.CreateSDiv(x, divisor);
  if (floors) {
    remainder = wants_quotient ? b_.CreateSub(x, b_.CreateMul(quotient, divisor)) : b_.CreateSRem(x, divisor);
    Value wrong_side =
        b_.CreateAnd(b_.CreateICmpNE(remainder, zero), b_.CreateICmpSLT(b_.CreateXor(remainder, divisor), zero));
    if (!wants_quotient) return b_.CreateSelect(wrong_side, b_.CreateAdd(remainder, divisor), remainder);
    quotient = b_.CreateSub(quotient, b_.CreateZExt(wrong_side, type));
  }
  if (!wants_quotient) return b_.CreateSRem(x, divisor);
  return is_minus_one ? b_.CreateSelect(is_minus_one, b_.CreateNeg(x), quotient) : quotient;
}

// Counts outside [0, bits) shift all bits out.
Value ValueEmitter::shift(BinaryOp op, DType dtype, Value x, Value y) {
  llvm::Type* type = x->getType();
  uint64_t bits = static_cast<uint64_t>(bits_of(x));
  Value zero = llvm::Constant::getNullValue(type);
  Value in_range = b_.CreateICmpULT(y, llvm::ConstantInt::get(type, bits));
  if (op == BinaryOp::kShiftRight && dtype.is_int()) {
    return b_.CreateAShr(x, b_.CreateSelect(in_range, y, llvm::ConstantInt::get(type, bits - 1)));
  }
  Value count = b_.CreateSelect(in_range, y, zero);
  Value shifted = op == BinaryOp::kShiftLeft ? b_.CreateShl(x, count) : b_.CreateLShr(x, count);
  return b_.CreateSelect(in_range, shifted, zero);
}

// ---- Casts

Value ValueEmitter::widen(Value bits, DType from) {
  llvm::Type* int_type = bits->getType()->getWithNewType(b_.getInt32Ty());
  llvm::Type* float_type = bits->getType()->getWithNewType(b_.getFloatTy());
  auto constant = [&](uint32_t value) { return llvm::ConstantInt::get(int_type, value); };
  if (from.code == DTypeCode::kBFloat) {
    return b_.CreateBitCast(b_.CreateShl(b_.CreateZExt(bits, int_type), constant(16)), float_type);
  }
  if (target_.has_float16_conversion) {
    return b_.CreateFPExt(b_.CreateBitCast(bits, bits->getType()->getWithNewType(b_.getHalfTy())), float_type);
  }
  // Moves the exponent and mantissa to float32's place, then corrects the exponent's bias by a multiplication, which is
  // exact and makes subnormals normal.
  Value wide = b_.CreateZExt(bits, int_type);
  Value sign = b_.CreateShl(b_.CreateAnd(wide, constant(0x8000)), constant(16));
  Value magnitude = b_.CreateAnd(wide, constant(0x7fff));
  Value moved = b_.CreateShl(magnitude, constant(13));
  Value finite = b_.CreateBitCast(
      b_.CreateFMul(b_.CreateBitCast(moved, float_type), llvm::ConstantFP::get(float_type, 0x1p112)), int_type);
  Value special = b_.CreateOr(moved, constant(0x7f800000));
  Value result = b_.CreateSelect(b_.CreateICmpUGE(magnitude, constant(0x7c00)), special, finite);
  return b_.CreateBitCast(b_.CreateOr(result, sign), float_type);
}

Value ValueEmitter::round_to_odd(Value value) {
  llvm::Type* float_type = value->getType()->getWithNewType(b_.getFloatTy());
  llvm::Type* int_type = value->getType()->getWithNewType(b_.getInt32Ty());
  Value nearest = b_.CreateFPTrunc(value, float_type);
  Value back = b_.CreateFPExt(nearest, value->getType());
  Value bits = b_.CreateBitCast(nearest, int_type);
  Value one = llvm::ConstantInt::get(int_type, 1);
  Value is_even = b_.CreateICmpEQ(b_.CreateAnd(bits, one), llvm::Constant::getNullValue(int_type));
  Value is_inexact = b_.CreateFCmpONE(back, value);
  auto magnitude = [&](Value x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); };
  Value too_large = b_.CreateFCmpOGT(magnitude(back), magnitude(value));
  Value neighbor = b_.CreateSelect(too_large, b_.CreateSub(bits, one), b_.CreateAdd(bits, one));
  Value odd = b_.CreateSelect(b_.CreateAnd(is_even, is_inexact), neighbor, bits);
  return b_.CreateBitCast(odd, float_type);
}

Value ValueEmitter::narrow(Value value, DType to) {
  if (value->getType()->getScalarType()->isDoubleTy()) value = round_to_odd(value);
  return to.code == DTypeCode::kBFloat ? narrow_to_bfloat16(value) : narrow_to_float16(value);
}

// Uses integers rather than LLVM's bfloat, because the AVX512-BF16 instruction flushes subnormals.
Value ValueEmitter::narrow_to_bfloat16(Value value) {
  llvm::Type* int_type = value->getType()->getWithNewType(b_.getInt32Ty());
  auto constant = [&](uint32_t number) { return llvm::ConstantInt::get(int_type, number); };
  Value bits = b_.CreateBitCast(value, int_type);
  Value high = b_.CreateLShr(bits, constant(16));
  Value carry = b_.CreateAdd(b_.CreateAnd(high, constant(1)), constant(0x7fff));
  Value rounded = b_.CreateLShr(b_.CreateAdd(bits, carry), constant(16));
  Value quiet = b_.CreateOr(high, constant(0x40));
  Value result = b_.CreateSelect(b_.CreateFCmpUNO(value, value), quiet, rounded);
  return b_.CreateTrunc(result, value->getType()->getWithNewType(b_.getInt16Ty()));
}

Value ValueEmitter::narrow_to_float16(Value value) {
  llvm::Type* half_bits = value->getType()->getWithNewType(b_.getInt16Ty());
  if (target_.has_float16_conversion) {
    return b_.CreateBitCast(b_.CreateFPTrunc(value, value->getType()->getWithNewType(b_.getHalfTy())), half_bits);
  }
  llvm::Type* int_type = value->getType()->getWithNewType(b_.getInt32Ty());
  auto constant = [&](uint32_t number) { return llvm::ConstantInt::get(int_type, number); };
  Value bits = b_.CreateBitCast(value, int_type);
  Value sign = b_.CreateAnd(b_.CreateLShr(bits, constant(16)), constant(0x8000));
  Value magnitude = b_.CreateAnd(bits, constant(0x7fffffff));
  // Adding 0.5 aligns a subnormal's last bit with float32's; the addition rounds to even.
  Value sum =
      b_.CreateFAdd(b_.CreateBitCast(magnitude, value->getType()), llvm::ConstantFP::get(value->getType(), 0.5));
  Value subnormal = b_.CreateSub(b_.CreateBitCast(sum, int_type), constant(0x3f000000));
  Value carry = b_.CreateAdd(b_.CreateAnd(b_.CreateLShr(magnitude, constant(13)), constant(1)), constant(0xfff));
  Value rebased = b_.CreateSub(magnitude, constant(0x38000000));
  Value normal = b_.CreateLShr(b_.CreateAdd(rebased, carry), constant(13));
  Value result = b_.CreateSelect(b_.CreateICmpULT(magnitude, constant(0x38800000)), subnormal, normal);
  result = b_.CreateSelect(b_.CreateICmpUGE(magnitude, constant(0x47800000)), constant(0x7c00), result);
  result = b_.CreateSelect(b_.CreateICmpUGT(magnitude, constant(0x7f800000)), constant(0x7e00), result);
  return b_.CreateTrunc(b_.CreateOr(result, sign), half_bits);
}

Value ValueEmitter::float_to_int(Value value, DType to) {
  llvm::Type* int_type = type(to);
  return b_.CreateIntrinsic(to.is_int() ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat,
                            {int_type, value->getType()}, {value});
}

Value ValueEmitter::cast(Value value, DType from, DType to) {
  if (from == to) return value;
  if (is_16_bit_float(from)) {
    value = widen(value, from);
    from = kFloat32.with_lanes(from.lanes);
    if (from == to) return value;
  }
  Value zero = llvm::Constant::getNullValue(value->getType());
  if (to.is_bool()) return from.is_float() ? b_.CreateFCmpUNE(value, zero) : b_.CreateICmpNE(value, zero);
  if (is_16_bit_float(to)) {
    if (from.is_float()) return narrow(value, to);
    // float64 holds every integer up to 53 bits, so that the only rounding is the last one.
    bool is_small = from.is_bool() || from.bits <= 16;
    DType through = is_small ? kFloat32 : kFloat64;
    return narrow(cast(value, from, through.with_lanes(from.lanes)), to);
  }
  llvm::Type* result = type(to);
  if (from.is_float() && to.is_float()) return b_.CreateFPCast(value, result);
  if (from.is_float()) return float_to_int(value, to);
  if (to.is_float()) return from.is_int() ? b_.CreateSIToFP(value, result) : b_.CreateUIToFP(value, result);
  return b_.CreateIntCast(value, result, from.is_int());
}

// ---- Intrinsics

// Calls the function lane by lane for vectors. The symbol is resolved by the JIT in the process, and in artifacts by
// the dynamic linker.
Value ValueEmitter::call_libm(const std::string& function, const std::vector<Value>& args) {
  llvm::Type* type = args[0]->getType();
  llvm::Type* element = type->getScalarType();
  std::string symbol = element->isFloatTy() ? function + "f" : function;
  std::vector<llvm::Type*> parameters(args.size(), element);
  llvm::Module* module = b_.GetInsertBlock()->getModule();
  llvm::FunctionCallee callee =
      module->getOrInsertFunction(symbol, llvm::FunctionType::get(element, parameters, false));
  auto* declaration = llvm::cast<llvm::Function>(callee.getCallee());
  declaration->setDoesNotAccessMemory();  // compiled code never reads errno
  declaration->setDoesNotThrow();
  declaration->addFnAttr(llvm::Attribute::WillReturn);
  if (!type->isVectorTy()) return b_.CreateCall(callee, args);
  Value result = llvm::PoisonValue::get(type);
  if (llvm::isa<llvm::ScalableVectorType>(type))
    fail_unsupported({}, "function '{}' of libm on a vector of scalable length", function);
  unsigned lanes = llvm::cast<llvm::FixedVectorType>(type)->getNumElements();
  for (unsigned lane = 0; lane < lanes; ++lane) {
    std::vector<Value> scalars;
    for (Value arg : args) scalars.push_back(b_.CreateExtractElement(arg, lane));
    result = b_.CreateInsertElement(result, b_.CreateCall(callee, scalars), lane);
  }
  return result;
}

namespace {

struct UnaryRow {
  std::string_view name;
  llvm::Intrinsic::ID id;
};
// Machines have an instruction for these operations, or LLVM has a short expansion.
constexpr UnaryRow kUnary[] = {
    {"tir.abs", llvm::Intrinsic::fabs},    {"tir.ceil", llvm::Intrinsic::ceil},
    {"tir.floor", llvm::Intrinsic::floor}, {"tir.nearbyint", llvm::Intrinsic::nearbyint},
    {"tir.round", llvm::Intrinsic::round}, {"tir.sqrt", llvm::Intrinsic::sqrt},
    {"tir.trunc", llvm::Intrinsic::trunc},
};

}  // namespace

Value ValueEmitter::intrinsic(const std::string& name, const std::vector<Value>& args, DType dtype, const Span& span) {
  const Intrinsic* row = find_intrinsic(name);
  if (!row) fail_unsupported(span, "unknown intrinsic '{}' in a tensor program", name);
  RELAXC_CHECK(static_cast<int>(args.size()) == row->arity, "{} takes {} arguments, got {}", name, row->arity,
               args.size());
  if (!dtype.is_float()) return int_intrinsic(name, args[0], dtype, span);
  if (!is_16_bit_float(dtype)) return float_intrinsic(name, args, span);
  std::vector<Value> wide;
  for (Value arg : args) wide.push_back(widen(arg, dtype));
  Value result = float_intrinsic(name, wide, span);
  return row->result == Intrinsic::Result::kBool ? result : narrow(result, dtype);
}

Value ValueEmitter::int_intrinsic(const std::string& name, Value value, DType dtype, const Span& span) {
  if (name == "tir.abs" && dtype.is_uint()) return value;
  if (name == "tir.abs") return b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, value, b_.getFalse());
  if (name == "tir.bitwise_not") return b_.CreateNot(value);
  if (name == "tir.popcount") return b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, value);
  fail_unsupported(span, "{} of integers; cast the operand to a float type first", name);
}

Value ValueEmitter::float_intrinsic(const std::string& name, const std::vector<Value>& args, const Span& span) {
  Value x = args[0];
  llvm::Type* type = x->getType();
  for (const UnaryRow& row : kUnary) {
    if (row.name == name) return b_.CreateUnaryIntrinsic(row.id, x);
  }
  auto number = [&](double value) { return llvm::ConstantFP::get(type, value); };
  auto magnitude = [&] { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); };
  if (name == "tir.isnan") return b_.CreateFCmpUNO(x, x);
  if (name == "tir.isinf") return b_.CreateFCmpOEQ(magnitude(), number(__builtin_inf()));
  if (name == "tir.isfinite") return b_.CreateFCmpOLT(magnitude(), number(__builtin_inf()));
  if (name == "tir.copysign") return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x, args[1]);
  if (name == "tir.rsqrt") return b_.CreateFDiv(number(1), b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x));
  if (name == "tir.fma") {
    if (target_.has_fma) return b_.CreateIntrinsic(llvm::Intrinsic::fma, {type}, args);
    return call_libm("fma", args);
  }
  if (type->getScalarType()->isFloatTy()) {
    if (Value expanded = emit_float32_math(b_, name, args)) return expanded;
  }
  // e^-|x| never overflows, and e / (1 + e) keeps the far left tail down to subnormals.
  if (name == "tir.sigmoid") {
    Value e = call_libm("exp", {b_.CreateFNeg(magnitude())});
    Value numerator = b_.CreateSelect(b_.CreateFCmpOLT(x, number(0)), e, number(1));
    return b_.CreateFDiv(numerator, b_.CreateFAdd(e, number(1)));
  }
  const Intrinsic* row = find_intrinsic(name);
  if (!row || !row->libm) fail_unsupported(span, "{} of floats", name);
  return call_libm(row->libm, args);
}

}  // namespace relaxc::codegen
