// Float32 functions, compiled as any kernel is, against the double references of ir/intrinsics.h. math_test.cc looks at
// samples, bench/math at every float.
#pragma once
#include <bit>
#include <span>
#include <utility>

#include "ir/intrinsics.h"
#include "tests/kernel_harness.h"

namespace relaxc::codegen {

// The rows of one or two float arguments and a float result.
std::vector<const Intrinsic*> float_functions();

// y[p] = function(a[p], b[p]) for arrays whose length is a multiple of 16, by vectors of 16; b only of two arguments.
class FloatFunction {
 public:
  FloatFunction(const Intrinsic& row, const std::string& target);
  void operator()(std::span<const float> a, std::span<const float> b, std::span<float> y) const;

 private:
  int arity_;
  CompiledKernel kernel_;
};

// The worst of many results. Results that are correctly rounded do not count.
struct Worst {
  // In units in the last place that the exact value has as a float, subnormal ones included; infinity counts as 2^128,
  // so that the border of overflow is a place as any other.
  double ulps = 0.5;
  float a = 0, b = 0;  // where
  uint64_t wrong = 0;  // what no small error excuses: NaN, exact zeros and infinities, signs
  void add(float value, double exact, float argument, float second) {
    if (std::bit_cast<uint32_t>(value) != std::bit_cast<uint32_t>(static_cast<float>(exact)))
      add_inexact(value, exact, argument, second);
  }
  void add(const Worst& other);

 private:
  void add_inexact(float value, double exact, float argument, float second);
};

// Zeros, infinities, NaN, the borders of the exponents, integers and halves, of both signs.
const std::vector<float>& corner_values();
// Pair number p of a large set: first all pairs of corner values; then in turns all pairs of exponents and signs with
// random mantissas, a random number to an integer or a half, pairs whose power is representable, the same next to 1.
std::pair<float, float> argument_pair(uint64_t p);

}  // namespace relaxc::codegen
