// The functions that networks use most are computed in float. All others are computed in double and rounded once. That
// halves the lanes of a vector, but the 29 spare bits make plain series and textbook identities accurate enough.
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>

#include <array>
#include <limits>
#include <numbers>

#include "codegen/emit_value.h"
#include "support/lists.h"

namespace relaxc::codegen {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = std::numbers::pi, kLn2 = std::numbers::ln2, kLog2e = std::numbers::log2e;

template <size_t N>
Lanes polynomial(const Lanes& x, const double (&coefficients)[N]) {
  return polynomial(x, std::span<const double>(coefficients));
}

// ---- In float

constexpr int kBias = 127;  // of exponents

// As copysign, for a magnitude that is 0 or more.
Lanes with_sign(const Lanes& magnitude, const Lanes& sign) {
  return (magnitude.bits() | (sign.bits() & std::numeric_limits<int32_t>::min())).floats();
}

// (e^r - 1 - r) / r^2 for |r| <= ln2 / 2, such that the relative error of e^r is the least (Lawson's algorithm, 2^-28).
constexpr double kExpm1[] = {1.381454058e-3, 8.3687454462e-3, 4.1668388993e-2, 1.6666521132e-1, 4.999999404e-1};
// As in Cephes' expf: e^x = (1 + fraction) 2^n, by a polynomial of r = x - n ln2 with |r| <= ln2 / 2. |x| <= 105.
struct Exponential {
  Lanes fraction, n;
  Nearest scale;  // n, also as a float
};
// ln2 in two parts, the first with 15 significant bits: exact products without fma, too. Where small powers do not
// count, one part is enough.
struct Ln2 {
  double high = 0.693145751953125, low = 1.428606765330187045e-6;
};
constexpr Ln2 kOnePart{kLn2, 0};
// scale_bias: what is added to n where the caller uses 2^n, as in nearest().
Exponential exponential(const Lanes& x, int scale_bias, const Ln2& ln2 = {}) {
  Nearest n = nearest(x, kLog2e, scale_bias);
  Lanes r = fma(n.number, -ln2.high, x);
  if (ln2.low != 0) r = fma(n.number, -ln2.low, r);
  return {fma(polynomial(r, kExpm1), r * r, r), n.integer, n};
}

// An argument that is -infinity below a bound, as those of a softmax are (power_in_softmax), and otherwise `x`.
struct Bounded {
  Lanes x, is_below;
  double bound;
};
std::optional<Bounded> bounded(const Lanes& argument, double least) {
  using namespace llvm::PatternMatch;
  llvm::Value *is_below = nullptr, *x = nullptr;
  const llvm::APFloat *bound = nullptr, *below = nullptr;
  llvm::FCmpInst::Predicate compared = {};
  const bool is = match(argument.value(), m_Select(m_Value(is_below), m_APFloat(below), m_Value(x))) &&
                  below->isInfinity() && below->isNegative() &&
                  match(is_below, m_FCmp(compared, m_Specific(x), m_APFloat(bound))) &&
                  compared == llvm::FCmpInst::FCMP_OLT && bound->convertToDouble() >= least;
  if (!is) return std::nullopt;
  return Bounded{argument.with(x), argument.with(is_below), bound->convertToDouble()};
}

// The scale 2^n is applied in two factors, so that multiplications alone give correct overflow and subnormal results;
// in one where n is -125 or more, to twice the number, which is normal. Below -104 the result is 0 without them: masked
// scores of attention are far below, and a processor takes a hundred cycles for a vector with a result that is too
// small for a normal number.
Lanes exp(const Lanes& argument) {
  constexpr double kLeast = -104;
  constexpr double kLeastInOneFactor = -125.5 * kLn2;
  const auto [x, is_zero, bound] = bounded(argument, kLeast).value_or(Bounded{argument, argument < kLeast, kLeast});
  const bool in_one_factor = bound > kLeastInOneFactor;
  Exponential e = exponential(at_most(select(is_zero, 0, x), 89), in_one_factor ? kBias - 1 : 0);
  if (auto result = scaled(e.fraction + 1, e.scale)) return select(is_zero, 0, *result);
  if (in_one_factor) return select(is_zero, 0, fma(e.fraction, 2, 2) * power_of_two(e.n - 1));
  Lanes half = shift_right_signed(e.n, 1);
  return select(is_zero, 0, (e.fraction + 1) * power_of_two(half) * power_of_two(e.n - half));
}

// Cephes logf: x = m 2^e with m in [sqrt(1/2), sqrt(2)), a polynomial for log m, e ln2 added in two parts.
Lanes log(const Lanes& x) {
  Lanes is_subnormal = x < 0x1p-126;
  Lanes bits = select(is_subnormal, x * 0x1p25, x).bits();
  Lanes exponent = shift_right_signed(bits - 0x3f3504f3, 23);  // sqrt(1/2)
  Lanes r = (bits - (exponent << 23)).floats() - 1;
  Lanes e = to_float(exponent + select(is_subnormal, Lanes(-25).typed_as(bits), 0));
  Lanes square = r * r;
  Lanes p = polynomial(r, {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
                           -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1});
  Lanes y = fma(e, -2.12194440e-4, p * r * square);
  y = fma(square, -0.5, y);
  Lanes result = fma(e, 0.693359375, r + y);
  result = select(x < kInf, result, x);  // infinity and NaN
  return select(x == 0, -kInf, select(x < 0, kNaN, result));
}

// (1 - e^2t) / (1 + e^2t) with t = -|x|, which is 1 from -10 on, and e^2t = (1 + fraction) 2^n. Near 0, where n is 0,
// the numerator is as exact as the fraction. Its mantissa is there just below that of the result, so that its rounding
// counts little; that of e^-2t - 1 is just above.
Lanes tanh(const Lanes& x) {
  Lanes t = at_least(-abs(x), -10);
  Exponential e = exponential(t + t, kBias, kOnePart);
  Lanes scale = power_of_two(e.n);
  return with_sign(fma(-e.fraction, scale, 1 - scale) / fma(e.fraction, scale, 1 + scale), x);
}

// 1 / (1 + e^-x) with e^-x = (1 + fraction) 2^n, as 2^-64 / (2^-64 + (1 + fraction) 2^(n - 64)), in which all but the
// result are normal numbers. From x = 43 on, e^-x does not count. Never forming e^-x itself saves a rounding.
Lanes sigmoid(const Lanes& x) {
  constexpr double kScale = 0x1p-64;
  Exponential e = exponential(-at_most(at_least(x, -105), 43), kBias - 64);
  Lanes scale = power_of_two(e.n - 64);
  return kScale / (fma(e.fraction, scale, kScale) + scale);
}

// erf(x) = 1 - e^r with r = log(erfc(t)) = -t q(t), t = |x|, as one formula everywhere: e^r is 2^n (1 + fraction), so
// 1 - e^r keeps its accuracy near 0, where n is 0. q is a polynomial that minimizes the error of the result on
// [0, 3.95] (Lawson's algorithm; q - 1 below, 2^-28). Beyond that the result is 1. The rounding of r is added back as
// `lost`.
Lanes erf(const Lanes& x) {
  Lanes t = at_most(abs(x), 3.95);
  Lanes p = polynomial(t, {-9.2578512e-6, 1.1765604e-4, -6.328920e-4, 1.66713388e-3, -1.6050973e-4, -1.915299706e-2,
                           1.0277780890e-1, 6.3661938905e-1, 1.2837916613e-1});
  Lanes r = fma(p, -t, -t), lost = fma(p, -t, -t - r);
  Nearest n = nearest(r, kLog2e, kBias);
  Lanes f = fma(n.number, -kLn2, r), scale = power_of_two(n.integer);
  Lanes fraction = f + fma(polynomial(f, kExpm1), f * f, lost);
  return with_sign(fma(fraction, -scale, 1 - scale), x);
}

// acos(x) = pi/2 - asin(x), and 2 asin(s) with s = sqrt((1 - |x|) / 2) where |x| > 1/2, or pi minus that for x < 0. The
// polynomial is (asin(s) - s) / s^3 of s^2 up to 1/4 (Lawson's algorithm, 2^-27.6). pi/2 has two parts.
Lanes acos(const Lanes& x) {
  constexpr double kHigh = static_cast<float>(kPi / 2), kLow = kPi / 2 - kHigh;
  Lanes magnitude = abs(x), is_large = magnitude > 0.5;
  Lanes square = select(is_large, fma(magnitude, -0.5, 0.5), x * x), s = select(is_large, sqrt(square), magnitude);
  Lanes p = polynomial(square, {4.2178258e-2, 2.4172936e-2, 4.5471609e-2, 7.4952886e-2, 1.66667521e-1});
  Lanes angle = fma(p, square * s, s), twice = angle + angle;
  Lanes large = select(x < 0, 2 * kHigh - (twice - 2 * kLow), twice);
  return select(is_large, large, kHigh - (copysign(angle, x) - kLow));
}

// ---- In double

constexpr double factorial(int n) { return n <= 1 ? 1 : n * factorial(n - 1); }
// Returns the first N terms of a series, for polynomial().
template <size_t N>
constexpr std::array<double, N> series(double (*term)(int)) {
  std::array<double, N> result{};
  for (size_t k = 0; k < N; ++k) result[N - 1 - k] = term(static_cast<int>(k));
  return result;
}

// Computes 2^t as (1 + fraction) * scale; the fraction is exact near 0. The limits round to 0 and infinity.
struct Power {
  Lanes fraction, scale;
};
Power power(const Lanes& exponent) {
  Lanes t = at_most(at_least(exponent, -300), 300);
  Nearest n = nearest(t, 1);
  Lanes r = (t - n.number) * kLn2;
  static constexpr auto kSeries = series<9>([](int k) { return 1 / factorial(k + 1); });  // to 2^-35
  return {r * polynomial(r, kSeries), power_of_two(n.integer)};
}
Lanes exp2(const Lanes& x) {
  Power p = power(x);
  return fma(p.fraction, p.scale, p.scale);
}
Lanes exp10(const Lanes& x) { return exp2(x * (std::numbers::ln10 * kLog2e)); }
Lanes sinh(const Lanes& x) {
  Power p = power(abs(x) * kLog2e);
  Lanes expm1 = fma(p.fraction, p.scale, p.scale - 1);
  return copysign((expm1 + expm1 / (expm1 + 1)) * 0.5, x);
}
Lanes cosh(const Lanes& x) {
  Lanes e = exp2(abs(x) * kLog2e);
  return (e + 1 / e) * 0.5;
}

// log(offset + x), offset 0 or 1: offset + x = (1 + f) 2^e with 1 + f in [sqrt(1/2), sqrt(2)), where f keeps what the
// rounding of 1 + x loses; then log(1 + f) = 2 artanh(f / (2 + f)).
Lanes log_of_sum(int offset, const Lanes& x) {
  Lanes sum = offset == 0 ? x : x + offset;
  Lanes e = ((sum.bits() + (0x4000000000000000 - 0x3fe6a09e00000000)) >> 52) - 1024;  // the bits of 2 and sqrt(1/2)
  Lanes scale = power_of_two(0 - e);
  Lanes f = fma(x, scale, offset == 0 ? Lanes(-1) : scale - 1);
  Lanes s = f / (f + 2);
  static constexpr auto kArtanh = series<8>([](int k) { return 2.0 / (2 * k + 1); });  // to 2^-44, for pow
  Lanes result = fma(to_float(e), kLn2, s * polynomial(s * s, kArtanh));
  result = select(sum < kInf, result, sum);  // infinity and NaN
  return select(sum == 0, -kInf, select(sum < 0, kNaN, result));
}
Lanes log2(const Lanes& x) { return log_of_sum(0, x) * kLog2e; }
Lanes log10(const Lanes& x) { return log_of_sum(0, x) * std::numbers::log10e; }
Lanes log1p(const Lanes& x) { return copysign(log_of_sum(1, x), x); }
// For a large negative x the sum would round to 0, so log_of_sum gets x itself.
Lanes acosh(const Lanes& x) { return log_of_sum(0, select(x < 0, x, x + sqrt(x * x - 1))); }
Lanes asinh(const Lanes& x) {
  Lanes magnitude = abs(x), square = x * x;
  Lanes excess = magnitude + square / (sqrt(square + 1) + 1);  // e^asinh - 1
  return copysign(log_of_sum(1, select(magnitude < kInf, excess, magnitude)), x);
}
Lanes atanh(const Lanes& x) {
  Lanes magnitude = abs(x);
  return copysign(log_of_sum(1, magnitude * 2 / (1 - magnitude)) * 0.5, x);
}

// x^y = 2^(y log2 |x|), with the sign and the special cases of C99.
Lanes pow(const Lanes& x, const Lanes& y) {
  Lanes log_x = log_of_sum(0, abs(x));
  Lanes magnitude = exp2(select((log_x == 0) | (y == 0), 0, y * log_x) * kLog2e);  // 1 even of NaN and infinity
  Lanes limited = at_most(at_least(y, -0x1p25), 0x1p25);                           // even, as all larger floats
  Nearest n = nearest(limited, 1);
  Lanes is_integer = n.number == limited;
  Lanes sign = select(is_integer, (n.integer << 63) & x.bits(), 0);
  Lanes result = (magnitude.bits() | sign).floats();
  return select((x < 0) & (x > -kInf), select(is_integer, result, kNaN), result);
}

// The angle of the point (x, y): the smaller coordinate over the larger one, turned by an eighth of a circle when that
// is above tan(pi / 8), gives |q| <= tan(pi / 8). With limits in place of infinity and 0, quotients are those of C99.
Lanes atan2(const Lanes& y, const Lanes& x) {
  Lanes height = at_most(abs(y), 1e300), width = at_most(abs(x), 1e300);
  Lanes is_steep = height > width;
  Lanes low = select(is_steep, width, height), high = at_least(select(is_steep, height, width), 1e-300);
  Lanes turns = low > high * (std::numbers::sqrt2 - 1);
  Lanes q = select(turns, low - high, low) / select(turns, low + high, high);
  // Minimax on the interval, relative error 2^-35 (Remez).
  Lanes angle = q * polynomial(q * q, {0.047141162054926, -0.084596955911938, 0.11041169428292, -0.14281649706029,
                                       0.19999886327008, -0.33333332134316, 0.99999999997929});
  angle = select(turns, angle + kPi / 4, angle);
  angle = select(is_steep, kPi / 2 - angle, angle);
  return copysign(select(x.bits() < 0, kPi - angle, angle), y);
}
Lanes atan(const Lanes& x) { return atan2(x, Lanes(1).typed_as(x)); }
Lanes asin(const Lanes& x) { return atan2(x, sqrt((1 - x) * (1 + x))); }

// 2/pi in binary; bit 0 is worth 1/2.
constexpr uint32_t kTwoOverPi[] = {0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};
constexpr double bits_of_two_over_pi(int first, int count) {
  double value = 0;
  for (int bit = first; bit < first + count; ++bit)
    value = value * 2 + (bit < 0 ? 0 : kTwoOverPi[bit / 32] >> (31 - bit % 32) & 1);
  return value;
}
// 2^k 2/pi mod 4 for the exponents k of a float's last place, each in two parts: 29 bits, whose products with a float
// are exact, and the 53 bits after.
constexpr int kExponents = 105;
constexpr auto kQuarterTurns = [] {
  std::array<double, 2 * kExponents> table{};
  for (int k = 0; k < kExponents; ++k) {
    table[2 * k] = bits_of_two_over_pi(k - 2, 29) * 0x1p-27;
    table[2 * k + 1] = bits_of_two_over_pi(k + 27, 53) * 0x1p-80;
  }
  return table;
}();

// Returns table[index] for each lane. The table becomes a constant of the module.
Lanes quarter_turns(const Lanes& index) {
  constexpr const char* kName = "relaxc.quarter_turns";
  llvm::IRBuilder<>& b = index.builder();
  llvm::Module& module = *b.GetInsertBlock()->getModule();
  llvm::GlobalVariable* table = module.getNamedGlobal(kName);
  if (!table) {
    llvm::Constant* data = llvm::ConstantDataArray::get(module.getContext(), llvm::ArrayRef(kQuarterTurns));
    table = make_global(module, data, kName);
    table->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  }
  llvm::Value* address = b.CreateGEP(b.getDoubleTy(), table, index.value());
  llvm::Type* type = index.type()->getWithNewType(b.getDoubleTy());
  llvm::Align align(alignof(double));
  return index.with(type->isVectorTy() ? b.CreateMaskedGather(type, address, align)
                                       : static_cast<llvm::Value*>(b.CreateAlignedLoad(type, address, align)));
}

// x = quadrant * pi/2 + r with |r| <= pi/4. After Payne and Hanek (1983), with a table in place of long integers: the
// exponent beyond 24 bits moves from x to 2/pi, whose multiples of 4 drop out.
struct Angle {
  Lanes quadrant, sin, cos;  // of r
};
Angle reduce(const Lanes& x) {
  Lanes k = at_most(at_least((abs(x).bits() >> 52) - (1023 + 23), 0), kExponents - 1);
  Lanes scaled = (x.bits() - (k << 52)).floats();
  Lanes product = scaled * quarter_turns(k << 1), tail = scaled * quarter_turns((k << 1) + 1);
  Nearest n = nearest(product + tail, 1);
  Lanes r = ((product - n.number) + tail) * (kPi / 2), square = r * r;
  static constexpr auto kSin = series<6>([](int i) { return (i % 2 ? -1 : 1) / factorial(2 * i + 1); });  // to 2^-36
  static constexpr auto kCos = series<7>([](int i) { return (i % 2 ? -1 : 1) / factorial(2 * i); });      // to 2^-41
  return {n.integer, r * polynomial(square, kSin), polynomial(square, kCos)};
}
Lanes nan_unless_finite(const Lanes& result, const Lanes& x) { return select(abs(x) < kInf, result, kNaN); }

Lanes sin_after_quarter_turns(int turns, const Lanes& x) {
  Angle a = reduce(x);
  Lanes quadrant = a.quadrant + turns;
  Lanes magnitude = select((quadrant & 1) == 1, a.cos, a.sin);
  return nan_unless_finite((magnitude.bits() ^ ((quadrant & 2) << 62)).floats(), x);
}
Lanes sin(const Lanes& x) { return sin_after_quarter_turns(0, x); }
Lanes cos(const Lanes& x) { return sin_after_quarter_turns(1, x); }
Lanes tan(const Lanes& x) {
  Angle a = reduce(x);
  Lanes is_odd = (a.quadrant & 1) == 1;
  return nan_unless_finite(select(is_odd, -a.cos, a.sin) / select(is_odd, a.sin, a.cos), x);
}

// ---- The table

struct Expansion {
  std::string_view name;
  enum class In : uint8_t { kFloat, kDouble } in;
  Lanes (*unary)(const Lanes&);
  Lanes (*binary)(const Lanes&, const Lanes&) = nullptr;
};
using In = Expansion::In;
constexpr Expansion kExpansions[] = {
    {"tir.acos", In::kFloat, acos},       {"tir.acosh", In::kDouble, acosh}, {"tir.asin", In::kDouble, asin},
    {"tir.asinh", In::kDouble, asinh},    {"tir.atan", In::kDouble, atan},   {"tir.atan2", In::kDouble, {}, atan2},
    {"tir.atanh", In::kDouble, atanh},    {"tir.cos", In::kDouble, cos},     {"tir.cosh", In::kDouble, cosh},
    {"tir.erf", In::kFloat, erf},         {"tir.exp", In::kFloat, exp},      {"tir.exp10", In::kDouble, exp10},
    {"tir.exp2", In::kDouble, exp2},      {"tir.log", In::kFloat, log},      {"tir.log10", In::kDouble, log10},
    {"tir.log1p", In::kDouble, log1p},    {"tir.log2", In::kDouble, log2},   {"tir.pow", In::kDouble, {}, pow},
    {"tir.sigmoid", In::kFloat, sigmoid}, {"tir.sin", In::kDouble, sin},     {"tir.sinh", In::kDouble, sinh},
    {"tir.tan", In::kDouble, tan},        {"tir.tanh", In::kFloat, tanh},
};

}  // namespace

Value emit_float32_math(llvm::IRBuilder<>& builder, std::string_view intrinsic, std::span<const Value> args,
                        const Target& target) {
  const Expansion* row = find_item(kExpansions, intrinsic, &Expansion::name);
  if (!row) return nullptr;
  // Contraction of operations other than the fmuladds could break the error-free steps.
  llvm::IRBuilderBase::FastMathFlagGuard guard(builder);
  builder.clearFastMathFlags();
  bool in_double = row->in == In::kDouble;
  llvm::Type* type = args[0]->getType();
  auto argument = [&](size_t i) {
    llvm::Type* wide = type->getWithNewType(builder.getDoubleTy());
    return Lanes(builder, in_double ? builder.CreateFPExt(args[i], wide) : args[i], uses_avx512(target));
  };
  Lanes result = row->unary ? row->unary(argument(0)) : row->binary(argument(0), argument(1));
  return in_double ? builder.CreateFPTrunc(result.value(), type) : result.value();
}

}  // namespace relaxc::codegen
