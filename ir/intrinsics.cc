#include "ir/intrinsics.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace relaxc {

namespace {

using R = Intrinsic::Result;

int64_t integer_abs(int64_t a) { return a < 0 ? static_cast<int64_t>(0 - static_cast<uint64_t>(a)) : a; }
int64_t integer_not(int64_t a) { return ~a; }
int64_t integer_popcount(int64_t a) { return std::popcount(static_cast<uint64_t>(a)); }

#define UNARY(name, fn, doc) \
  {"tir." #name, 1, R::kSame, #fn, [](double a, double, double) { return std::fn(a); }, nullptr, doc}

constexpr Intrinsic kIntrinsics[] = {
    {"tir.abs", 1, R::kSame, "fabs", [](double a, double, double) { return std::fabs(a); }, integer_abs,
     "absolute value"},
    UNARY(acos, acos, "arc cosine in radians"),
    UNARY(acosh, acosh, "inverse hyperbolic cosine"),
    UNARY(asin, asin, "arc sine in radians"),
    UNARY(asinh, asinh, "inverse hyperbolic sine"),
    UNARY(atan, atan, "arc tangent in radians"),
    {"tir.atan2", 2, R::kSame, "atan2", [](double a, double b, double) { return std::atan2(a, b); }, nullptr,
     "angle of the point (b, a)"},
    UNARY(atanh, atanh, "inverse hyperbolic tangent"),
    {"tir.bitwise_not", 1, R::kSame, nullptr, nullptr, integer_not, "complement of each bit (integers)"},
    UNARY(ceil, ceil, "least integer not below"),
    {"tir.copysign", 2, R::kSame, "copysign", [](double a, double b, double) { return std::copysign(a, b); }, nullptr,
     "magnitude of a with the sign of b"},
    UNARY(cos, cos, "cosine of radians"),
    UNARY(cosh, cosh, "hyperbolic cosine"),
    UNARY(erf, erf, "error function"),
    UNARY(exp, exp, "e to the power"),
    UNARY(floor, floor, "greatest integer not above"),
    {"tir.fma", 3, R::kSame, "fma", [](double a, double b, double c) { return std::fma(a, b, c); }, nullptr,
     "a * b + c, rounded once"},
    {"tir.isfinite", 1, R::kBool, nullptr, [](double a, double, double) { return std::isfinite(a) ? 1.0 : 0.0; },
     nullptr, "neither infinite nor NaN"},
    {"tir.isinf", 1, R::kBool, nullptr, [](double a, double, double) { return std::isinf(a) ? 1.0 : 0.0; }, nullptr,
     "infinite"},
    {"tir.isnan", 1, R::kBool, nullptr, [](double a, double, double) { return std::isnan(a) ? 1.0 : 0.0; }, nullptr,
     "not a number"},
    UNARY(log, log, "natural logarithm"),
    {"tir.log1p", 1, R::kSame, "log1p", [](double a, double, double) { return std::log1p(a); }, nullptr, "log(1 + a)"},
    UNARY(log2, log2, "binary logarithm"),
    {"tir.nearbyint", 1, R::kSame, "nearbyint", [](double a, double, double) { return std::nearbyint(a); }, nullptr,
     "nearest integer, ties to even"},
    {"tir.popcount", 1, R::kSame, nullptr, nullptr, integer_popcount, "number of set bits (unsigned integers)"},
    {"tir.pow", 2, R::kSame, "pow", [](double a, double b, double) { return std::pow(a, b); }, nullptr,
     "a to the power b"},
    {"tir.round", 1, R::kSame, "round", [](double a, double, double) { return std::round(a); }, nullptr,
     "nearest integer, ties away from zero"},
    {"tir.rsqrt", 1, R::kSame, nullptr, [](double a, double, double) { return 1.0 / std::sqrt(a); }, nullptr,
     "1 / sqrt(a)"},
    {"tir.sigmoid", 1, R::kSame, nullptr, [](double a, double, double) { return 1.0 / (1.0 + std::exp(-a)); }, nullptr,
     "1 / (1 + exp(-a))"},
    UNARY(sin, sin, "sine of radians"),
    UNARY(sinh, sinh, "hyperbolic sine"),
    UNARY(sqrt, sqrt, "square root"),
    UNARY(tan, tan, "tangent of radians"),
    UNARY(tanh, tanh, "hyperbolic tangent"),
    UNARY(trunc, trunc, "integer part, toward zero"),
};

#undef UNARY

}  // namespace

std::span<const Intrinsic> intrinsics() { return kIntrinsics; }

const Intrinsic* find_intrinsic(std::string_view name) {
  const Intrinsic* row = std::lower_bound(std::begin(kIntrinsics), std::end(kIntrinsics), name,
                                          [](const Intrinsic& a, std::string_view b) { return a.name < b; });
  return row != std::end(kIntrinsics) && row->name == name ? row : nullptr;
}

}  // namespace relaxc
