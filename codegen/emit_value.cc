#include "codegen/emit_value.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include <cmath>

#include "codegen/lanes.h"
#include "ir/intrinsics.h"
#include "ir/op_names.h"
#include "support/diagnostic.h"
#include "support/lists.h"

namespace relaxc::codegen {

// g++ 12 takes LLVM's own operators new and delete of a GlobalVariable for a mismatch.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif
llvm::GlobalVariable* make_global(llvm::Module& module, llvm::Constant* contents, const std::string& name) {
  return new llvm::GlobalVariable(module, contents->getType(), true, llvm::GlobalValue::PrivateLinkage, contents, name);
}

namespace {

bool is_narrow_float(DType dtype) { return dtype.is_float() && dtype.bits <= 16; }

// Converts DType's lane count to LLVM's.
llvm::ElementCount element_count(int lanes) {
  bool scalable = lanes >= DType::kScalable;
  return llvm::ElementCount::get(static_cast<unsigned>(scalable ? lanes - DType::kScalable : lanes), scalable);
}
llvm::Type* with_lanes(llvm::Type* element, int lanes) {
  return lanes == 1 ? element : static_cast<llvm::Type*>(llvm::VectorType::get(element, element_count(lanes)));
}

// Returns the type of the value with another element type.
llvm::Type* retyped(Value value, llvm::Type* element) { return value->getType()->getWithNewType(element); }

// Returns the constant that is in every lane, or null.
llvm::Constant* constant_lane(Value value) {
  auto* constant = llvm::dyn_cast<llvm::Constant>(value);
  return constant && constant->getType()->isVectorTy() ? constant->getSplatValue() : constant;
}
bool is_constant_number(Value value) {
  auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant_lane(value));
  return number && !number->isNaN();
}

// LLVM's opcode of an operation, or the predicate of a comparison, for each kind of number; 0 if there is none.
struct InstructionRow {
  BinaryOp op;
  unsigned on_bool, on_int = 0, on_uint = 0, on_float = 0;
};
using Op = llvm::Instruction;
using Cmp = llvm::CmpInst;
constexpr InstructionRow kInstructions[] = {
    {BinaryOp::kAdd, Op::Or, Op::Add, Op::Add, Op::FAdd},
    {BinaryOp::kSub, Op::Xor, Op::Sub, Op::Sub, Op::FSub},
    {BinaryOp::kMul, Op::And, Op::Mul, Op::Mul, Op::FMul},
    {BinaryOp::kDiv, 0, 0, 0, Op::FDiv},
    {BinaryOp::kMin, Op::And},
    {BinaryOp::kMax, Op::Or},
    {BinaryOp::kEQ, Cmp::ICMP_EQ, Cmp::ICMP_EQ, Cmp::ICMP_EQ, Cmp::FCMP_OEQ},
    {BinaryOp::kNE, Cmp::ICMP_NE, Cmp::ICMP_NE, Cmp::ICMP_NE, Cmp::FCMP_UNE},
    {BinaryOp::kLT, Cmp::ICMP_ULT, Cmp::ICMP_SLT, Cmp::ICMP_ULT, Cmp::FCMP_OLT},
    {BinaryOp::kLE, Cmp::ICMP_ULE, Cmp::ICMP_SLE, Cmp::ICMP_ULE, Cmp::FCMP_OLE},
    {BinaryOp::kGT, Cmp::ICMP_UGT, Cmp::ICMP_SGT, Cmp::ICMP_UGT, Cmp::FCMP_OGT},
    {BinaryOp::kGE, Cmp::ICMP_UGE, Cmp::ICMP_SGE, Cmp::ICMP_UGE, Cmp::FCMP_OGE},
    {BinaryOp::kAnd, Op::And},
    {BinaryOp::kOr, Op::Or},
    {BinaryOp::kBitAnd, Op::And, Op::And, Op::And},
    {BinaryOp::kBitOr, Op::Or, Op::Or, Op::Or},
    {BinaryOp::kBitXor, Op::Xor, Op::Xor, Op::Xor},
};

// Returns the bits of the bfloat16 nearest to a float32, in the low half. It uses integers rather than LLVM's bfloat,
// because the AVX512-BF16 instruction flushes subnormals.
Lanes to_bfloat16(const Lanes& x) {
  Lanes bits = x.bits(), high = bits >> 16;
  Lanes rounded = (bits + ((high & 1) + 0x7fff)) >> 16;
  return select(x == x, rounded, high | 0x40);  // NaN stays NaN
}

unsigned instruction_of(BinaryOp op, DType dtype) {
  const InstructionRow* row = find_item(kInstructions, op, &InstructionRow::op);
  if (!row) return 0;
  if (dtype.is_bool()) return row->on_bool;
  if (dtype.is_float()) return row->on_float;
  return dtype.is_int() ? row->on_int : row->on_uint;
}

}  // namespace

llvm::Type* ValueEmitter::type(DType dtype) const {
  if (dtype.is_handle()) return b_.getPtrTy();
  bool is_integer = !dtype.is_float() || is_narrow_float(dtype);
  llvm::Type* element = dtype.is_bool()    ? b_.getInt1Ty()
                        : is_integer       ? static_cast<llvm::Type*>(b_.getIntNTy(dtype.bits))
                        : dtype.bits == 32 ? b_.getFloatTy()
                                           : b_.getDoubleTy();
  return with_lanes(element, dtype.lanes);
}
llvm::Type* ValueEmitter::memory_type(DType dtype) const {
  bool is_byte = dtype.is_bool() || (!dtype.is_handle() && dtype.bits < 8);
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
  if (is_narrow_float(dtype)) return llvm::ConstantInt::get(type(dtype), float_bits(value, dtype));
  if (dtype.is_complex()) {  // the real part is in the low half
    const llvm::APFloat real =
        dtype.part() == kFloat32 ? llvm::APFloat(static_cast<float>(value)) : llvm::APFloat(value);
    return llvm::ConstantInt::get(type(dtype), real.bitcastToAPInt().zext(dtype.bits));
  }
  return llvm::ConstantFP::get(type(dtype), value);
}
Value ValueEmitter::splat(Value scalar, int lanes) { return b_.CreateVectorSplat(element_count(lanes), scalar); }

// ---- Binary

Value ValueEmitter::binary(BinaryOp op, DType dtype, Value x, Value y, IndexFacts facts) {
  if (is_narrow_float(dtype)) {
    // Processors with 16-bit arithmetic could contract it, but results must not depend on the processor.
    llvm::IRBuilderBase::FastMathFlagGuard guard(b_);
    b_.clearFastMathFlags();
    Value result = binary(op, kFloat32, widen(x, dtype), widen(y, dtype), facts);
    return info(op).compares ? result : narrow(result, dtype);
  }
  if (op == BinaryOp::kDiv && dtype.is_float()) {
    if (Value quotient = divide_by_constant(x, y)) return quotient;
  }
  unsigned instruction = instruction_of(op, dtype);
  if (instruction == 0) return dtype.is_float() ? float_binary(op, x, y) : int_binary(op, dtype, x, y, facts);
  if (info(op).compares) return b_.CreateCmp(static_cast<Cmp::Predicate>(instruction), x, y);
  Value result = b_.CreateBinOp(static_cast<Op::BinaryOps>(instruction), x, y);
  auto* wrapping = llvm::dyn_cast<llvm::BinaryOperator>(result);
  if (wrapping && llvm::isa<llvm::OverflowingBinaryOperator>(wrapping) && facts.no_overflow && dtype.is_int())
    wrapping->setHasNoSignedWrap();
  return result;
}

Value ValueEmitter::float_binary(BinaryOp op, Value x, Value y) {
  if (op == BinaryOp::kTruncMod) return call_libm("fmod", {x, y});
  if (op == BinaryOp::kFloorDiv) return b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, b_.CreateFDiv(x, y));
  if (op == BinaryOp::kMin || op == BinaryOp::kMax) return float_extremum(op == BinaryOp::kMin, x, y);
  RELAXC_CHECK(op == BinaryOp::kFloorMod, "{} of a float", info(op).name);
  // As in numpy: fmod, corrected to the divisor's sign.
  Value remainder = call_libm("fmod", {x, y});
  Value zero = llvm::Constant::getNullValue(x->getType());
  Value differs = b_.CreateXor(b_.CreateFCmpOLT(remainder, zero), b_.CreateFCmpOLT(y, zero));
  Value moved = b_.CreateSelect(differs, b_.CreateFAdd(remainder, y), remainder);
  Value signed_zero = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, zero, y);
  return b_.CreateSelect(b_.CreateFCmpOEQ(remainder, zero), signed_zero, moved);
}

// Returns the quotient of float32s by a constant as three multiplications instead of a division, which takes as long as
// ten; null if that does not apply. It is rounded correctly (P. Markstein, IBM J. Res. Dev. 34, 1990, theorem 8.3) as
// long as the remainder is not subnormal: a quotient below 2^-100 may differ in its last bit. Infinities make the
// remainder NaN, and LLVM has one multiplication for a power of 2.
Value ValueEmitter::divide_by_constant(Value x, Value y) {
  auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant_lane(y));
  if (!target_.has_fma || !number || !number->getType()->isFloatTy() || llvm::isa<llvm::Constant>(x)) return nullptr;
  const float divisor = number->getValueAPF().convertToFloat();
  int exponent = 0;
  const float mantissa = std::frexp(std::fabs(divisor), &exponent);
  constexpr int kMostExponent = 20;  // beyond it, more quotients would be close to the limits of float32
  if (!std::isfinite(divisor) || mantissa == 0 || mantissa == 0.5F || std::abs(exponent) > kMostExponent)
    return nullptr;
  llvm::IRBuilderBase::FastMathFlagGuard guard(b_);
  b_.clearFastMathFlags();
  auto fma = [&](Value a, Value b, Value c) {
    return b_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
  };
  Value reciprocal = llvm::ConstantFP::get(x->getType(), static_cast<double>(1 / divisor));
  Value quotient = b_.CreateFMul(x, reciprocal);
  Value remainder = fma(b_.CreateFNeg(quotient), y, x);
  Value rounded = fma(remainder, reciprocal, quotient);
  return b_.CreateSelect(b_.CreateFCmpORD(rounded, rounded), rounded, quotient);
}

// A comparison with a constant (relu) is x86's minps, which gives its second operand when either is NaN. Otherwise
// LLVM's intrinsic is one instruction (AArch64's fmin), or blends a NaN of its first operand in by one comparison more,
// which is of y: a chain of `result = T.max(result, value)` does not wait for it. Of zeros of both signs either is
// right.
Value ValueEmitter::float_extremum(bool minimum, Value x, Value y) {
  if (is_constant_number(y)) std::swap(x, y);
  auto first_if_better = [&](Value a, Value b) {
    return b_.CreateSelect(minimum ? b_.CreateFCmpOLT(a, b) : b_.CreateFCmpOGT(a, b), a, b);
  };
  if (is_constant_number(x)) return first_if_better(x, y);
  // With masks a NaN of y stays where it is: two instructions, where LLVM has three for its intrinsic.
  const llvm::Type* element = x->getType()->getScalarType();
  if (uses_avx512(target_) && x->getType()->isVectorTy() && (element->isFloatTy() || element->isDoubleTy()))
    return b_.CreateSelect(b_.CreateFCmpORD(y, y), first_if_better(y, x), y);
  llvm::IRBuilder<>::FastMathFlagGuard guard(b_);
  llvm::FastMathFlags flags = b_.getFastMathFlags();
  flags.setNoSignedZeros();
  b_.setFastMathFlags(flags);
  return b_.CreateBinaryIntrinsic(minimum ? llvm::Intrinsic::minimum : llvm::Intrinsic::maximum, y, x);
}

Value ValueEmitter::int_binary(BinaryOp op, DType dtype, Value x, Value y, IndexFacts facts) {
  RELAXC_CHECK(dtype.is_integral() && op != BinaryOp::kAnd && op != BinaryOp::kOr, "{} of {}", info(op).name,
               to_string(dtype));
  bool is_signed = dtype.is_int();
  if (op == BinaryOp::kMin)
    return b_.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, x, y);
  if (op == BinaryOp::kMax)
    return b_.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, x, y);
  return is_shift(op) ? shift(op, dtype, x, y) : divide(op, dtype, x, y, facts);
}

// Division never traps: a divisor 0 counts as 1, and the least integer divided by -1 wraps to itself. For a
// loop-invariant divisor all of the added instructions, except for one select, move out of the loop.
Value ValueEmitter::divide(BinaryOp op, DType dtype, Value x, Value y, IndexFacts facts) {
  bool wants_quotient = op == BinaryOp::kDiv || op == BinaryOp::kFloorDiv;
  bool floors = op == BinaryOp::kFloorDiv || op == BinaryOp::kFloorMod;
  auto* known = llvm::dyn_cast_or_null<llvm::ConstantInt>(constant_lane(y));
  const llvm::APInt* constant = known ? &known->getValue() : nullptr;
  llvm::Type* type = x->getType();
  Value zero = llvm::Constant::getNullValue(type), one = llvm::ConstantInt::get(type, 1);
  if (!dtype.is_int() || facts.non_negative) {
    Value divisor = constant && !constant->isZero() ? y : b_.CreateSelect(b_.CreateICmpEQ(y, zero), one, y);
    return wants_quotient ? b_.CreateUDiv(x, divisor) : b_.CreateURem(x, divisor);
  }
  if (floors && constant && constant->isStrictlyPositive() && constant->isPowerOf2()) {
    if (!wants_quotient) return b_.CreateAnd(x, b_.CreateSub(y, one));
    return b_.CreateAShr(x, llvm::ConstantInt::get(type, constant->logBase2()));
  }
  bool is_safe = constant && !constant->isZero() && !constant->isAllOnes();
  Value is_minus_one = is_safe ? nullptr : b_.CreateICmpEQ(y, llvm::Constant::getAllOnesValue(type));
  Value divisor = y;
  if (!is_safe) divisor = b_.CreateSelect(b_.CreateICmpULE(b_.CreateAdd(y, one), one), one, y);  // 0 and -1 become 1
  Value quotient = wants_quotient ? b_.CreateSDiv(x, divisor) : nullptr;
  if (floors) {
    Value remainder = quotient ? b_.CreateSub(x, b_.CreateMul(quotient, divisor)) : b_.CreateSRem(x, divisor);
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
  uint64_t bits = type->getScalarSizeInBits();
  Value zero = llvm::Constant::getNullValue(type);
  Value in_range = b_.CreateICmpULT(y, llvm::ConstantInt::get(type, bits));
  if (op == BinaryOp::kShiftRight && dtype.is_int())
    return b_.CreateAShr(x, b_.CreateSelect(in_range, y, llvm::ConstantInt::get(type, bits - 1)));
  Value count = b_.CreateSelect(in_range, y, zero);
  Value shifted = op == BinaryOp::kShiftLeft ? b_.CreateShl(x, count) : b_.CreateLShr(x, count);
  return b_.CreateSelect(in_range, shifted, zero);
}

// ---- Casts

// As for float16 below: a multiplication corrects the exponent's bias.
Lanes ValueEmitter::widen_small(const SmallFloat& format, const Lanes& bits) {
  using NaN = SmallFloat::NaN;
  Lanes magnitude = bits & format.all(), sign = (bits & format.sign()) << (32 - format.bits);
  Lanes moved = magnitude << (23 - format.mantissa);
  Lanes result = (moved.floats() * std::ldexp(1, 127 - format.bias)).bits();
  if (format.mantissa == 0) result = select(magnitude == 0, 0x00400000, moved);  // 2^-127
  constexpr int kInfinity = 0x7f800000, kNaN = 0x7fc00000;
  if (format.nan == NaN::kIeee) result = select(magnitude > format.infinity() - 1, moved | kInfinity, result);
  if (format.nan == NaN::kAllOnes) result = select(magnitude == format.all(), kNaN, result);
  if (format.nan == NaN::kNegativeZero) result = select(bits == format.sign(), kNaN, result);
  return (result | sign).floats();
}

Value ValueEmitter::widen(Value value, DType from) {
  if (from.is_small_float()) {
    Lanes bits(b_, b_.CreateZExt(value, retyped(value, b_.getInt32Ty())));
    return widen_small(small_float(from), bits).value();
  }
  bool is_bfloat = from.code == DTypeCode::kBFloat;
  if (!is_bfloat && target_.has_float16_conversion)
    return b_.CreateFPExt(b_.CreateBitCast(value, retyped(value, b_.getHalfTy())), retyped(value, b_.getFloatTy()));
  Lanes bits(b_, b_.CreateZExt(value, retyped(value, b_.getInt32Ty())));
  if (is_bfloat) return (bits << 16).floats().value();
  // Moves the exponent and mantissa to float32's place, then corrects the exponent's bias by a multiplication, which is
  // exact and makes subnormals normal.
  Lanes sign = (bits & 0x8000) << 16, magnitude = bits & 0x7fff, moved = magnitude << 13;
  Lanes finite = (moved.floats() * 0x1p112).bits();
  Lanes result = select(magnitude > 0x7bff, moved | 0x7f800000, finite);  // infinity and NaN
  return (result | sign).floats().value();
}

Value ValueEmitter::round_to_odd(Value value) {
  Value nearest = b_.CreateFPTrunc(value, retyped(value, b_.getFloatTy()));
  Lanes exact(b_, value), back(b_, b_.CreateFPExt(nearest, value->getType())), bits = Lanes(b_, nearest).bits();
  Lanes is_even = (bits & 1) == 0, is_inexact(b_, b_.CreateFCmpONE(back.value(), value));
  Lanes neighbor = select(abs(back) > abs(exact), bits - 1, bits + 1);
  return select(is_even & is_inexact, neighbor, bits).floats().value();
}

Value ValueEmitter::narrow(Value value, DType to) {
  if (value->getType()->getScalarType()->isDoubleTy()) value = round_to_odd(value);
  Lanes bits = to.is_small_float()             ? to_small_float(small_float(to), Lanes(b_, value))
               : to.code == DTypeCode::kBFloat ? to_bfloat16(Lanes(b_, value))
                                               : to_float16(value);
  return b_.CreateTrunc(bits.value(), retyped(value, b_.getIntNTy(to.bits)));
}

// Rounds as to_float16 does, in int32 lanes.
Lanes ValueEmitter::to_small_float(const SmallFloat& format, const Lanes& x) {
  int dropped = 23 - format.mantissa;
  Lanes bits = x.bits(), magnitude = bits & 0x7fffffff, sign = (bits >> (32 - format.bits)) & format.sign();
  Lanes carry = ((magnitude >> dropped) & 1) + ((1 << (dropped - 1)) - 1);
  Lanes result = ((magnitude - ((127 - format.bias) << 23)) + carry) >> dropped;
  if (format.mantissa > 0) {
    int one = 24 - format.bias - format.mantissa + 127;  // the exponent of the number whose last bit is the least one
    Lanes subnormal = (magnitude.floats() + std::ldexp(1, one - 127)).bits() - (one << 23);
    result = select(magnitude < (128 - format.bias) << 23, subnormal, result);
  } else {  // 2^-127 is a subnormal float32, and the code 0 is even
    result = select(magnitude < 0x00800000, (magnitude + 0x001fffff) >> 23, result);
  }
  result = select(result > format.most(), format.too_large(), result);
  if (format.nan == SmallFloat::NaN::kNegativeZero) sign = select(result == 0, 0, sign);
  result = result | sign;
  Lanes is_nan = magnitude > 0x7f800000;
  if (!format.has_sign) is_nan = is_nan | ((bits < 0) & (magnitude > 0));
  return select(is_nan, format.not_a_number(), result);
}

// Returns int32 lanes whose low half holds the bits.
Lanes ValueEmitter::to_float16(Value value) {
  if (target_.has_float16_conversion) {
    Value half = b_.CreateFPTrunc(value, retyped(value, b_.getHalfTy()));
    return {b_, b_.CreateBitCast(half, retyped(value, b_.getInt16Ty()))};
  }
  Lanes bits = Lanes(b_, value).bits(), sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7fffffff;
  // Adding 0.5 aligns a subnormal's last bit with float32's; the addition rounds to even.
  Lanes subnormal = (magnitude.floats() + 0.5).bits() - 0x3f000000;
  Lanes carry = ((magnitude >> 13) & 1) + 0xfff;
  Lanes normal = ((magnitude - 0x38000000) + carry) >> 13;
  Lanes result = select(magnitude < 0x38800000, subnormal, normal);
  result = select(magnitude > 0x477fffff, 0x7c00, result);
  return select(magnitude > 0x7f800000, 0x7e00, result) | sign;
}

// Does what fptosi.sat and fptoui.sat do, which LLVM expands lane by lane: limits float32 lanes to the integers of up
// to 32 bits, and makes NaN 0.
Value ValueEmitter::saturated_lanes(Value value, DType to) {
  double low = to.is_int() ? -std::ldexp(1, to.bits - 1) : 0, high = low + std::ldexp(1, to.bits) - 1;
  bool is_exact = to.bits <= 24;  // float32 has the limits
  Lanes x(b_, value), kept = to.is_uint() ? x : select(Lanes(b_, b_.CreateFCmpORD(value, value)), x, 0);
  Lanes limited = select(kept > low, kept, low);
  limited = select(limited < (is_exact ? high : 0x7fffff80), limited, is_exact ? high : 0x7fffff80);
  Value result = b_.CreateFPToSI(limited.value(), retyped(value, b_.getInt32Ty()));
  if (!is_exact) result = select(kept > 0x7fffff80, 0x7fffffff, Lanes(b_, result)).value();
  return to.bits == 32 ? result : b_.CreateTrunc(result, type(to));
}

// Returns x in [low, high]. The comparisons are false for NaN, which becomes low.
Value ValueEmitter::limited(const std::vector<Value>& args) {
  Value above = b_.CreateSelect(b_.CreateFCmpOGT(args[0], args[1]), args[0], args[1]);
  return b_.CreateSelect(b_.CreateFCmpOLT(above, args[2]), above, args[2]);
}
Value ValueEmitter::round_within_to_int32(const std::vector<Value>& args, DType from) {
  auto is_in_int32 = [](Value bound) {
    auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant_lane(bound));
    return number && std::abs(number->getValueAPF().convertToDouble()) < 0x1p31;
  };
  Value x = limited(args);
  llvm::Type* result = retyped(x, b_.getInt32Ty());
  if (!is_in_int32(args[1]) || !is_in_int32(args[2]))
    return cast(b_.CreateUnaryIntrinsic(llvm::Intrinsic::nearbyint, x), from, kInt32.with_lanes(from.lanes));
#if LLVM_VERSION_MAJOR >= 19
  return b_.CreateIntrinsic(llvm::Intrinsic::lrint, {result, x->getType()}, {x});
#else
  return b_.CreateFPToSI(b_.CreateUnaryIntrinsic(llvm::Intrinsic::nearbyint, x), result);
#endif
}

// Does the same for int64: a value outside of its range, or NaN, is converted as 0, which is then replaced.
Value ValueEmitter::saturated_wide_lanes(Value value, DType to) {
  const double limit = std::ldexp(1, 63);
  auto real = [&](double number) { return llvm::ConstantFP::get(value->getType(), number); };
  auto whole = [&](int64_t number) { return llvm::ConstantInt::get(type(to), static_cast<uint64_t>(number), true); };
  Value is_below = b_.CreateFCmpOLT(value, real(-limit)), is_above = b_.CreateFCmpOGE(value, real(limit));
  Value is_inside = b_.CreateAnd(b_.CreateFCmpOGE(value, real(-limit)), b_.CreateFCmpOLT(value, real(limit)));
  Value result = b_.CreateFPToSI(b_.CreateSelect(is_inside, value, real(0)), type(to));
  result = b_.CreateSelect(is_above, whole(std::numeric_limits<int64_t>::max()), result);
  return b_.CreateSelect(is_below, whole(std::numeric_limits<int64_t>::min()), result);
}

Value ValueEmitter::cast(Value value, DType from, DType to) {
  if (from == to) return value;
  if (is_narrow_float(from)) {
    value = widen(value, from);
    from = kFloat32.with_lanes(from.lanes);
    if (from == to) return value;
  }
  Value zero = llvm::Constant::getNullValue(value->getType());
  if (to.is_bool()) return from.is_float() ? b_.CreateFCmpUNE(value, zero) : b_.CreateICmpNE(value, zero);
  if (is_narrow_float(to)) {
    if (from.is_float()) return narrow(value, to);
    // float64 holds every integer up to 53 bits, so that the only rounding is the last one.
    DType through = from.is_bool() || from.bits <= 16 ? kFloat32 : kFloat64;
    return narrow(cast(value, from, through.with_lanes(from.lanes)), to);
  }
  llvm::Type* result = type(to);
  if (from.is_float() && to.is_float()) return b_.CreateFPCast(value, result);
  bool is_small = to.bits < 32 || to.is_int();
  if (from.element() == kFloat32 && from.lanes > 1 && to.bits <= 32 && is_small) return saturated_lanes(value, to);
  if (from.is_float() && to.element() == kInt64 && from.lanes > 1) return saturated_wide_lanes(value, to);
  if (from.is_float()) {  // saturates
    auto id = to.is_int() ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    return b_.CreateIntrinsic(id, {result, value->getType()}, {value});
  }
  if (to.is_float()) return from.is_int() ? b_.CreateSIToFP(value, result) : b_.CreateUIToFP(value, result);
  return b_.CreateIntCast(value, result, from.is_int());
}

// ---- Intrinsics

// Calls the function, lane by lane for vectors. The JIT or, in artifacts, the dynamic linker resolves the symbol.
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
    std::vector<Value> scalars = map_each(args, [&](Value arg) { return b_.CreateExtractElement(arg, lane); });
    result = b_.CreateInsertElement(result, b_.CreateCall(callee, scalars), lane);
  }
  return result;
}

namespace {

// Machines have an instruction for these operations, or LLVM has a short expansion.
constexpr std::pair<OpName, llvm::Intrinsic::ID> kUnary[] = {
    {ops::kScalarAbs, llvm::Intrinsic::fabs},    {ops::kScalarCeil, llvm::Intrinsic::ceil},
    {ops::kScalarFloor, llvm::Intrinsic::floor}, {ops::kNearbyint, llvm::Intrinsic::nearbyint},
    {ops::kScalarRound, llvm::Intrinsic::round}, {ops::kScalarSqrt, llvm::Intrinsic::sqrt},
    {ops::kScalarTrunc, llvm::Intrinsic::trunc},
};

}  // namespace

Value ValueEmitter::intrinsic(const std::string& name, const std::vector<Value>& args, DType dtype, const Span& span) {
  const Intrinsic* row = find_intrinsic(name);
  if (!row) fail_unsupported(span, "unknown intrinsic '{}' in a tensor program", name);
  RELAXC_CHECK(static_cast<int>(args.size()) == row->arity, "{} takes {} arguments, got {}", name, row->arity,
               args.size());
  if (!dtype.is_float()) return int_intrinsic(name, args[0], dtype, span);
  if (!is_narrow_float(dtype)) return float_intrinsic(*row, args, span);
  std::vector<Value> wide = map_each(args, [&](Value arg) { return widen(arg, dtype); });
  Value result = float_intrinsic(*row, wide, span);
  return row->result == Intrinsic::Result::kBool ? result : narrow(result, dtype);
}

Value ValueEmitter::int_intrinsic(const std::string& name, Value value, DType dtype, const Span& span) {
  if (name == ops::kScalarAbs && dtype.is_uint()) return value;
  if (name == ops::kScalarAbs) return b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, value, b_.getFalse());
  if (name == ops::kScalarBitwiseNot) return b_.CreateNot(value);
  if (name == ops::kPopcount) return b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, value);
  fail_unsupported(span, "{} of integers; cast the operand to a float type first", name);
}

Value ValueEmitter::float_intrinsic(const Intrinsic& row, const std::vector<Value>& args, const Span& span) {
  const std::string name = row.name;
  Value x = args[0];
  llvm::Type* type = x->getType();
  for (const auto& [known, id] : kUnary) {
    if (name == known) return b_.CreateUnaryIntrinsic(id, x);
  }
  if (name == kRoundWithin) return b_.CreateUnaryIntrinsic(llvm::Intrinsic::nearbyint, limited(args));
  auto number = [&](double value) { return llvm::ConstantFP::get(type, value); };
  auto magnitude = [&] { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); };
  if (name == ops::kScalarIsNan) return b_.CreateFCmpUNO(x, x);
  if (name == ops::kScalarIsInf) return b_.CreateFCmpOEQ(magnitude(), number(__builtin_inf()));
  if (name == ops::kScalarIsFinite) return b_.CreateFCmpOLT(magnitude(), number(__builtin_inf()));
  if (name == ops::kCopysign) return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x, args[1]);
  if (name == ops::kScalarRsqrt) return b_.CreateFDiv(number(1), b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x));
  if (name == ops::kFma && target_.has_fma) return b_.CreateIntrinsic(llvm::Intrinsic::fma, {type}, args);
  if (type->getScalarType()->isFloatTy()) {
    if (Value expanded = emit_float32_math(b_, name, args, target_)) return expanded;
  }
  // e^-|x| never overflows, and e / (1 + e) keeps the far left tail down to subnormals.
  if (name == ops::kScalarSigmoid) {
    Value e = call_libm("exp", {b_.CreateFNeg(magnitude())});
    Value numerator = b_.CreateSelect(b_.CreateFCmpOLT(x, number(0)), e, number(1));
    return b_.CreateFDiv(numerator, b_.CreateFAdd(e, number(1)));
  }
  if (!row.libm) fail_unsupported(span, "{} of floats", name);
  return call_libm(row.libm, args);
}

}  // namespace relaxc::codegen
