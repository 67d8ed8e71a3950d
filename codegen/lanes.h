// Internal to codegen/: a number or a vector of numbers in registers, with C's operators, so that a formula in IR reads
// as a formula. Includes LLVM.
#pragma once
#include <llvm/IR/IRBuilder.h>

#include <optional>
#include <span>

namespace relaxc::codegen {

class Lanes {
 public:
  Lanes(double constant) : constant_(constant) {}  // NOLINT: takes the type of the other operand
  // scales: the processor multiplies vectors by powers of 2 in one instruction, of AVX-512.
  Lanes(llvm::IRBuilder<>& builder, llvm::Value* value, bool scales = false)
      : builder_(&builder), value_(value), scales_(scales) {}

  llvm::IRBuilder<>& builder() const { return *builder_; }
  llvm::Value* value() const { return value_; }  // null for a constant without a type
  llvm::Type* type() const { return value_->getType(); }
  bool is_float() const { return type()->isFPOrFPVectorTy(); }
  bool scales() const { return scales_; }
  Lanes with(llvm::Value* value) const { return {*builder_, value, scales_}; }
  Lanes typed_as(const Lanes& other) const;  // a constant gets the type of `other`

  Lanes bits() const;    // of floats, as integers of their size
  Lanes floats() const;  // the reverse

 private:
  llvm::IRBuilder<>* builder_ = nullptr;
  llvm::Value* value_ = nullptr;
  bool scales_ = false;
  double constant_ = 0;
};

// These work on floats, or on integers that wrap. `a >> n` shifts zeros in. At least one operand is not a constant.
Lanes operator+(const Lanes& a, const Lanes& b);
Lanes operator-(const Lanes& a, const Lanes& b);
Lanes operator*(const Lanes& a, const Lanes& b);
Lanes operator/(const Lanes& a, const Lanes& b);
Lanes operator-(const Lanes& a);
Lanes operator&(const Lanes& a, const Lanes& b);
Lanes operator|(const Lanes& a, const Lanes& b);
Lanes operator^(const Lanes& a, const Lanes& b);
Lanes operator<<(const Lanes& a, const Lanes& b);
Lanes operator>>(const Lanes& a, const Lanes& b);
Lanes shift_right_signed(const Lanes& a, const Lanes& b);
// A comparison with NaN is false; integers are signed.
Lanes operator<(const Lanes& a, const Lanes& b);
Lanes operator>(const Lanes& a, const Lanes& b);
Lanes operator==(const Lanes& a, const Lanes& b);

Lanes select(const Lanes& condition, const Lanes& a, const Lanes& b);
// Returns a * b + c, fused where the machine can, with two roundings elsewhere. It never calls fmaf.
Lanes fma(const Lanes& a, const Lanes& b, const Lanes& c);
Lanes abs(const Lanes& x);
Lanes sqrt(const Lanes& x);
Lanes copysign(const Lanes& magnitude, const Lanes& sign);
// NaN stays NaN.
Lanes at_least(const Lanes& x, double low);
Lanes at_most(const Lanes& x, double high);
// Evaluates a polynomial by Horner's rule. The highest coefficient comes first.
Lanes polynomial(const Lanes& x, std::span<const double> coefficients);
// The integer nearest to x * factor, for |x * factor| below 2^22 (float) or 2^51 (double). For NaN the integer is
// arbitrary and the number is NaN. With the bias of exponents (127 of a float), power_of_two(integer) is one shift;
// with k less, power_of_two(integer - k) is.
struct Nearest {
  Lanes integer, number;
};
Nearest nearest(const Lanes& x, const Lanes& factor, int bias = 0);
// Converts small integers to floats of their size.
Lanes to_float(const Lanes& n);
// Returns x * 2^n, rounded once; nullopt where that is not one instruction.
std::optional<Lanes> scaled(const Lanes& x, const Nearest& n);
// Returns 2^n as a float of that size; n is the exponent of a normal number.
Lanes power_of_two(const Lanes& n);

}  // namespace relaxc::codegen
