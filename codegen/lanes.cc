#include "codegen/lanes.h"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

namespace relaxc::codegen {

namespace {

using Op = llvm::Instruction;
using Cmp = llvm::CmpInst;

const Lanes& typed_operand(const Lanes& a, const Lanes& b) { return a.value() ? a : b; }

Lanes binary(const Lanes& a, const Lanes& b, Op::BinaryOps on_floats, Op::BinaryOps on_integers) {
  const Lanes& x = typed_operand(a, b);
  Op::BinaryOps op = x.is_float() ? on_floats : on_integers;
  return x.with(x.builder().CreateBinOp(op, a.typed_as(x).value(), b.typed_as(x).value()));
}
Lanes binary(const Lanes& a, const Lanes& b, Op::BinaryOps op) { return binary(a, b, op, op); }

Lanes compare(const Lanes& a, const Lanes& b, Cmp::Predicate on_floats, Cmp::Predicate on_integers) {
  const Lanes& x = typed_operand(a, b);
  Cmp::Predicate predicate = x.is_float() ? on_floats : on_integers;
  return x.with(x.builder().CreateCmp(predicate, a.typed_as(x).value(), b.typed_as(x).value()));
}

constexpr int64_t kMagic32 = 0x4b400000, kMagic64 = 0x4338000000000000;  // the bits of 1.5 * 2^23 and 1.5 * 2^52

bool is_single(const Lanes& x) { return x.type()->getScalarSizeInBits() == 32; }

}  // namespace

Lanes Lanes::typed_as(const Lanes& other) const {
  if (value_) return *this;
  if (other.is_float()) return other.with(llvm::ConstantFP::get(other.type(), constant_));
  return other.with(llvm::ConstantInt::get(other.type(), static_cast<uint64_t>(static_cast<int64_t>(constant_)), true));
}
Lanes Lanes::bits() const {
  llvm::Type* element = builder_->getIntNTy(type()->getScalarSizeInBits());
  return with(builder_->CreateBitCast(value_, type()->getWithNewType(element)));
}
Lanes Lanes::floats() const {
  llvm::Type* element = is_single(*this) ? builder_->getFloatTy() : builder_->getDoubleTy();
  return with(builder_->CreateBitCast(value_, type()->getWithNewType(element)));
}

Lanes operator+(const Lanes& a, const Lanes& b) { return binary(a, b, Op::FAdd, Op::Add); }
Lanes operator-(const Lanes& a, const Lanes& b) { return binary(a, b, Op::FSub, Op::Sub); }
Lanes operator*(const Lanes& a, const Lanes& b) { return binary(a, b, Op::FMul, Op::Mul); }
Lanes operator/(const Lanes& a, const Lanes& b) { return binary(a, b, Op::FDiv); }
Lanes operator&(const Lanes& a, const Lanes& b) { return binary(a, b, Op::And); }
Lanes operator|(const Lanes& a, const Lanes& b) { return binary(a, b, Op::Or); }
Lanes operator^(const Lanes& a, const Lanes& b) { return binary(a, b, Op::Xor); }
Lanes operator<<(const Lanes& a, const Lanes& b) { return binary(a, b, Op::Shl); }
Lanes operator>>(const Lanes& a, const Lanes& b) { return binary(a, b, Op::LShr); }
Lanes shift_right_signed(const Lanes& a, const Lanes& b) { return binary(a, b, Op::AShr); }
Lanes operator-(const Lanes& a) { return a.with(a.builder().CreateFNeg(a.value())); }

Lanes operator<(const Lanes& a, const Lanes& b) { return compare(a, b, Cmp::FCMP_OLT, Cmp::ICMP_SLT); }
Lanes operator>(const Lanes& a, const Lanes& b) { return compare(a, b, Cmp::FCMP_OGT, Cmp::ICMP_SGT); }
Lanes operator==(const Lanes& a, const Lanes& b) { return compare(a, b, Cmp::FCMP_OEQ, Cmp::ICMP_EQ); }

Lanes select(const Lanes& condition, const Lanes& a, const Lanes& b) {
  const Lanes& x = typed_operand(a, b);
  return x.with(x.builder().CreateSelect(condition.value(), a.typed_as(x).value(), b.typed_as(x).value()));
}
Lanes fma(const Lanes& a, const Lanes& b, const Lanes& c) {
  const Lanes& x = typed_operand(a, typed_operand(b, c));
  return x.with(x.builder().CreateIntrinsic(llvm::Intrinsic::fmuladd, {x.type()},
                                            {a.typed_as(x).value(), b.typed_as(x).value(), c.typed_as(x).value()}));
}
Lanes abs(const Lanes& x) { return x.with(x.builder().CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x.value())); }
Lanes sqrt(const Lanes& x) { return x.with(x.builder().CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x.value())); }
Lanes copysign(const Lanes& magnitude, const Lanes& sign) {
  llvm::Value* value = magnitude.typed_as(sign).value();
  return sign.with(sign.builder().CreateBinaryIntrinsic(llvm::Intrinsic::copysign, value, sign.value()));
}
Lanes at_least(const Lanes& x, double low) { return select(x < low, low, x); }
Lanes at_most(const Lanes& x, double high) { return select(x > high, high, x); }

Lanes polynomial(const Lanes& x, std::span<const double> coefficients) {
  Lanes sum = coefficients.front();
  for (double coefficient : coefficients.subspan(1)) sum = fma(sum, x, coefficient);
  return sum;
}

// Adding 1.5 * 2^23 (or 2^52) leaves the integer in the low bits. This avoids a conversion instruction, which NaN would
// spoil and which few machines have for int64 and double.
Nearest nearest(const Lanes& x, const Lanes& factor, int bias) {
  double magic = (is_single(x) ? 0x1.8p23 : 0x1.8p52) + bias;
  Lanes sum = fma(x, factor, magic);
  return {sum.bits() - ((is_single(x) ? kMagic32 : kMagic64) + bias), sum - magic};
}
Lanes to_float(const Lanes& n) {
  return is_single(n) ? (n + kMagic32).floats() - 0x1.8p23 : (n + kMagic64).floats() - 0x1.8p52;
}
std::optional<Lanes> scaled(const Lanes& x, const Nearest& n) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(x.type());
  constexpr unsigned kLanes = 16;  // of a register, of which a vector may take several
  if (!x.scales() || !type || type->getNumElements() % kLanes != 0 || !is_single(x)) return std::nullopt;
  constexpr int kCurrentRounding = 4;
  llvm::IRBuilder<>& b = x.builder();
  llvm::Value* all = llvm::ConstantInt::getAllOnesValue(b.getIntNTy(kLanes));
  std::vector<llvm::Value*> parts;
  for (unsigned first = 0; first < type->getNumElements(); first += kLanes) {
    const llvm::SmallVector<int> lanes = llvm::createSequentialMask(first, kLanes, 0);
    llvm::Value *part = b.CreateShuffleVector(x.value(), lanes),
                *power = b.CreateShuffleVector(n.number.value(), lanes);
    parts.push_back(b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {},
                                      {part, power, part, all, b.getInt32(kCurrentRounding)}));
  }
  return x.with(llvm::concatenateVectors(b, parts));
}
Lanes power_of_two(const Lanes& n) { return (is_single(n) ? (n + 127) << 23 : (n + 1023) << 52).floats(); }

}  // namespace relaxc::codegen
