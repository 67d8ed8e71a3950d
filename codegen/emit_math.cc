#include "codegen/emit_math.h"

#include <llvm/IR/Intrinsics.h>

#include <initializer_list>

namespace relaxc::codegen {

namespace {

using Value = llvm::Value*;

// Splats constants to the shape of one argument and names the few operations that the expansions use.
class Float32Math {
 public:
  Float32Math(llvm::IRBuilder<>& builder, Value x)
      : b_(builder), float_type_(x->getType()), int_type_(x->getType()->getWithNewType(builder.getInt32Ty())) {}

  // Cephes expf: x = n ln2 + r with |r| <= ln2 / 2, a polynomial for e^r, then the scale 2^n in two factors, so that
  // results that overflow or are subnormal come out right by the multiplications alone.
  Value exp(Value x) {
    x = b_.CreateSelect(b_.CreateFCmpOLT(x, f(-105.0)), f(-105.0), x);  // keeps NaN
    x = b_.CreateSelect(b_.CreateFCmpOGT(x, f(89.0)), f(89.0), x);
    // Adding 1.5 * 2^23 leaves the nearest integer in the low bits; no float-to-int conversion, which NaN would spoil.
    Value shifted = fma(x, f(1.44269504088896341), f(12582912.0));
    Value n = b_.CreateSub(bits(shifted), i(0x4b400000));
    Value rounded = b_.CreateFSub(shifted, f(12582912.0));
    Value r = fma(rounded, f(-0.693145751953125), x);  // 15 significant bits: exact products without fma, too
    r = fma(rounded, f(-1.428606765330187045e-6), r);
    Value p = polynomial(
        r, {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1});
    Value result = b_.CreateFAdd(fma(p, b_.CreateFMul(r, r), r), f(1.0));
    Value half = b_.CreateAShr(n, i(1));
    return b_.CreateFMul(b_.CreateFMul(result, power_of_two(half)), power_of_two(b_.CreateSub(n, half)));
  }

  // Cephes logf: x = m 2^e with m in [sqrt(1/2), sqrt(2)), a polynomial for log m, e ln2 added in two parts.
  Value log(Value x) {
    Value is_subnormal = b_.CreateFCmpOLT(x, f(0x1p-126));
    Value scaled = b_.CreateSelect(is_subnormal, b_.CreateFMul(x, f(0x1p25)), x);
    Value offset = b_.CreateSub(bits(scaled), i(0x3f3504f3));  // sqrt(1/2)
    Value exponent = b_.CreateAShr(offset, i(23));
    Value mantissa = floats(b_.CreateSub(bits(scaled), b_.CreateShl(exponent, i(23))));
    exponent = b_.CreateAdd(exponent, b_.CreateSelect(is_subnormal, i(-25), i(0)));
    Value e = b_.CreateSIToFP(exponent, float_type_);
    Value r = b_.CreateFSub(mantissa, f(1.0));
    Value square = b_.CreateFMul(r, r);
    Value p = polynomial(r, {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
                             -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1});
    Value y = b_.CreateFMul(b_.CreateFMul(p, r), square);
    y = fma(e, f(-2.12194440e-4), y);
    y = fma(square, f(-0.5), y);
    Value result = fma(e, f(0.693359375), b_.CreateFAdd(r, y));
    result = b_.CreateSelect(b_.CreateFCmpOLT(x, f(__builtin_inf())), result, x);  // infinity and NaN
    result = b_.CreateSelect(b_.CreateFCmpOLT(x, f(0.0)), f(__builtin_nan("")), result);
    return b_.CreateSelect(b_.CreateFCmpOEQ(x, f(0.0)), f(-__builtin_inf()), result);
  }

  // Cephes tanhf: an odd polynomial near 0, 1 - 2 / (e^2x + 1) elsewhere.
  Value tanh(Value x) {
    Value magnitude = fabs(x);
    Value square = b_.CreateFMul(x, x);
    Value p = polynomial(square,
                         {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1});
    Value small = fma(b_.CreateFMul(p, square), x, x);
    Value e = exp(b_.CreateFMul(magnitude, f(2.0)));
    Value large = b_.CreateFSub(f(1.0), b_.CreateFDiv(f(2.0), b_.CreateFAdd(e, f(1.0))));
    return copysign(b_.CreateSelect(b_.CreateFCmpOLT(magnitude, f(0.625)), small, large), x);  // of -0, too
  }

  // e^-|x| never overflows; 1 / (1 + e) or e / (1 + e) by the sign keeps the far left tail down to subnormals.
  Value sigmoid(Value x) {
    Value e = exp(b_.CreateFNeg(fabs(x)));
    Value numerator = b_.CreateSelect(b_.CreateFCmpOLT(x, f(0.0)), e, f(1.0));
    return b_.CreateFDiv(numerator, b_.CreateFAdd(e, f(1.0)));
  }

  // N. Juffa's erff (published on Stack Overflow and the NVIDIA forums, BSD): an odd polynomial below 0.921875, else
  // 1 - exp of a polynomial. From 4 on the result is 1; the clamp keeps the polynomial inside its interval.
  Value erf(Value x) {
    Value magnitude = fabs(x);
    Value square = b_.CreateFMul(x, x);
    Value t = b_.CreateSelect(b_.CreateFCmpOGT(magnitude, f(4.0)), f(4.0), magnitude);
    Value s = b_.CreateFMul(t, t);
    Value r = fma(f(-1.72853470e-5), t, f(3.83197126e-4));
    r = fma(r, s, fma(f(-3.88396438e-3), t, f(2.42546219e-2)));
    r = fma(r, t, f(-1.06777877e-1));
    r = fma(r, t, f(-6.34846687e-1));
    r = fma(r, t, f(-1.28717512e-1));
    r = fma(r, t, b_.CreateFNeg(t));
    Value large = copysign(b_.CreateFSub(f(1.0), exp(r)), x);
    Value p = polynomial(square,
                         {-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1});
    return b_.CreateSelect(b_.CreateFCmpOGT(magnitude, f(0.921875)), large, fma(p, x, x));
  }

 private:
  Value f(double value) { return llvm::ConstantFP::get(float_type_, static_cast<float>(value)); }
  Value i(int32_t value) { return llvm::ConstantInt::get(int_type_, static_cast<uint64_t>(value), true); }
  Value bits(Value x) { return b_.CreateBitCast(x, int_type_); }
  Value floats(Value x) { return b_.CreateBitCast(x, float_type_); }
  // fmuladd: fused where the machine has it, two roundings elsewhere; never a call of fmaf.
  Value fma(Value x, Value y, Value z) {
    return b_.CreateIntrinsic(llvm::Intrinsic::fmuladd, {float_type_}, {x, y, z});
  }
  Value fabs(Value x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }
  Value copysign(Value x, Value sign) { return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x, sign); }
  Value power_of_two(Value n) { return floats(b_.CreateShl(b_.CreateAdd(n, i(127)), i(23))); }
  // Horner; the highest coefficient first.
  Value polynomial(Value x, std::initializer_list<double> coefficients) {
    Value sum = nullptr;
    for (double coefficient : coefficients) sum = sum ? fma(sum, x, f(coefficient)) : f(coefficient);
    return sum;
  }

  llvm::IRBuilder<>& b_;
  llvm::Type* float_type_;
  llvm::Type* int_type_;
};

struct Expansion {
  std::string_view name;
  Value (Float32Math::*emit)(Value);
};
constexpr Expansion kExpansions[] = {
    {"tir.erf", &Float32Math::erf},   {"tir.exp", &Float32Math::exp},         {"tir.log", &Float32Math::log},
    {"tir.tanh", &Float32Math::tanh}, {"tir.sigmoid", &Float32Math::sigmoid},
};

}  // namespace

llvm::Value* emit_float32_math(llvm::IRBuilder<>& builder, std::string_view intrinsic, llvm::Value* x) {
  for (const Expansion& row : kExpansions) {
    if (row.name != intrinsic) continue;
    // Contraction of what stands outside the fmuladds could break the error-free steps.
    llvm::IRBuilderBase::FastMathFlagGuard guard(builder);
    builder.clearFastMathFlags();
    return (Float32Math(builder, x).*row.emit)(x);
  }
  return nullptr;
}

}  // namespace relaxc::codegen
