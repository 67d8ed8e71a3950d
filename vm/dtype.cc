#include "vm/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include "support/check.h"
#include "support/lists.h"

namespace relaxc {

namespace {

using NaN = SmallFloat::NaN;
constexpr SmallFloat kSmallFloats[] = {
    {DTypeCode::kFloat8E3M4, "float8_e3m4", 8, 4, 3, NaN::kIeee},
    {DTypeCode::kFloat8E4M3B11FNUZ, "float8_e4m3b11fnuz", 8, 3, 11, NaN::kNegativeZero},
    {DTypeCode::kFloat8E4M3FNUZ, "float8_e4m3fnuz", 8, 3, 8, NaN::kNegativeZero},
    {DTypeCode::kFloat8E4M3FN, "float8_e4m3fn", 8, 3, 7, NaN::kAllOnes},
    {DTypeCode::kFloat8E4M3, "float8_e4m3", 8, 3, 7, NaN::kIeee},
    {DTypeCode::kFloat8E5M2FNUZ, "float8_e5m2fnuz", 8, 2, 16, NaN::kNegativeZero},
    {DTypeCode::kFloat8E5M2, "float8_e5m2", 8, 2, 15, NaN::kIeee},
    {DTypeCode::kFloat8E8M0FNU, "float8_e8m0fnu", 8, 0, 127, NaN::kAllOnes, false},
    {DTypeCode::kFloat6E2M3FN, "float6_e2m3fn", 6, 3, 1, NaN::kNone},
    {DTypeCode::kFloat6E3M2FN, "float6_e3m2fn", 6, 2, 3, NaN::kNone},
    {DTypeCode::kFloat4E2M1FN, "float4_e2m1fn", 4, 1, 1, NaN::kNone},
};

struct CodeName {
  DTypeCode code;
  std::string_view name;
  std::array<int, 7>
      widths;  // bits, which the name ends in; 0: "bool", "string" and "handle" have no width in their names
};
constexpr CodeName kCodeNames[] = {{DTypeCode::kInt, "int", {1, 2, 4, 8, 16, 32, 64}},
                                   {DTypeCode::kUInt, "uint", {1, 2, 4, 8, 16, 32, 64}},
                                   {DTypeCode::kFloat, "float", {16, 32, 64}},
                                   {DTypeCode::kBFloat, "bfloat", {16}},
                                   {DTypeCode::kComplex, "complex", {64, 128}},
                                   {DTypeCode::kBool, "bool", {}},
                                   {DTypeCode::kString, "string", {}},
                                   {DTypeCode::kHandle, "handle", {}}};

std::optional<int> parse_number(std::string_view text) {
  int value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value <= 0) return std::nullopt;
  return value;
}

}  // namespace

const SmallFloat& small_float(DType dtype) {
  const SmallFloat* row = find_item(kSmallFloats, dtype.code, &SmallFloat::code);
  RELAXC_CHECK(row, "code {} is not a float of 8 bits or less", static_cast<int>(dtype.code));
  return *row;
}

std::string to_string(DType dtype) {
  if (dtype.is_void()) return "void";
  const CodeName* row = find_item(kCodeNames, dtype.code, &CodeName::code);
  std::string text(row ? row->name : small_float(dtype).name);
  if (dtype.code < DTypeCode::kBool) text += std::to_string(dtype.bits);
  if (dtype.is_scalable()) return text + formatted("xvscalex{}", dtype.lanes - DType::kScalable);
  if (dtype.lanes != 1) text += formatted("x{}", dtype.lanes);
  return text;
}

std::optional<DType> parse_dtype(std::string_view text) {
  constexpr std::string_view kVscale = "vscalex", kComplex = "complex";
  if (text == "void") return DType::void_();
  int lanes = 1;
  const size_t from = text.starts_with(kComplex) ? kComplex.size() : 0;  // the name has an x
  if (size_t x = text.find('x', from); x != std::string_view::npos) {
    std::string_view count = text.substr(x + 1);
    bool scalable = count.starts_with(kVscale);
    auto parsed = parse_number(scalable ? count.substr(kVscale.size()) : count);
    if (!parsed || *parsed > 4096) return std::nullopt;
    lanes = *parsed + (scalable ? DType::kScalable : 0);
    text = text.substr(0, x);
  }
  if (text == "uint1") text = "bool";                 // LLVM's way to say it
  if (text == "e4m3_float8") text = "float8_e4m3fn";  // names of TVM 0.17
  if (text == "e5m2_float8") text = "float8_e5m2";
  if (const SmallFloat* row = find_item(kSmallFloats, text, &SmallFloat::name))
    return DType{row->code, static_cast<uint8_t>(row->bits), static_cast<uint16_t>(lanes)};
  for (const CodeName& row : kCodeNames) {
    if (!text.starts_with(row.name)) continue;
    std::string_view rest = text.substr(row.name.size());
    if (row.widths[0] == 0) {
      if (!rest.empty()) return std::nullopt;
      if (row.code == DTypeCode::kString && lanes != 1) return std::nullopt;
      return DType{row.code, static_cast<uint8_t>(row.code == DTypeCode::kBool ? 8 : 64), static_cast<uint16_t>(lanes)};
    }
    auto bits = parse_number(rest);
    if (!bits || std::ranges::find(row.widths, *bits) == row.widths.end()) return std::nullopt;
    return DType{row.code, static_cast<uint8_t>(*bits), static_cast<uint16_t>(lanes)};
  }
  return std::nullopt;
}

static double small_float_to_double(uint8_t bits, DType dtype) {
  const SmallFloat& format = small_float(dtype);
  int magnitude = bits & format.all();
  bool negative = (bits & format.sign()) != 0;
  int mantissa = magnitude & ((1 << format.mantissa) - 1), exponent = magnitude >> format.mantissa;
  double sign = negative ? -1 : 1;
  if (format.nan == NaN::kIeee && magnitude >= format.infinity()) return mantissa ? NAN : sign * HUGE_VAL;
  if (format.nan == NaN::kAllOnes && magnitude == format.all()) return NAN;
  if (format.nan == NaN::kNegativeZero && negative && magnitude == 0) return NAN;
  bool subnormal = exponent == 0 && format.mantissa > 0;
  double fraction = subnormal ? mantissa : mantissa + (1 << format.mantissa);
  return sign * std::ldexp(fraction, (subnormal ? 1 : exponent) - format.bias - format.mantissa);
}

static uint8_t double_to_small_float(double value, DType dtype) {
  const SmallFloat& format = small_float(dtype);
  bool negative = std::signbit(value), has_negative_zero = format.nan != NaN::kNegativeZero;
  if (std::isnan(value) || (negative && !format.has_sign && value != 0))
    return static_cast<uint8_t>(format.not_a_number());
  int sign = negative ? format.sign() : 0;
  double magnitude = std::fabs(value);
  if (magnitude > largest_of(dtype) * 2) return static_cast<uint8_t>(format.too_large() | sign);
  // In units of the last place of its binade, which nearbyint rounds to even, the code is the rounded number plus a
  // multiple of the binade. A carry leads to the next binade by itself.
  int least = format.mantissa > 0 ? 1 - format.bias : -format.bias;
  int binade = magnitude > 0 ? std::max(std::ilogb(magnitude), least) : least;
  int code = static_cast<int>(std::nearbyint(std::ldexp(magnitude, format.mantissa - binade))) +
             (binade - least) * (1 << format.mantissa);
  if (format.mantissa == 0) {  // the code is the exponent; of two that are equally near, the even one
    double fraction = std::ldexp(magnitude, -binade);
    code = binade - least;
    code += fraction > 1.5 || (fraction == 1.5 && code % 2 != 0);
  }
  if (code > format.most()) return static_cast<uint8_t>(format.too_large() | sign);
  return static_cast<uint8_t>(code == 0 && !has_negative_zero ? 0 : code | sign);
}

double largest_of(DType dtype) {
  if (dtype.bits == 64) return std::numeric_limits<double>::max();
  if (dtype.bits == 32) return std::numeric_limits<float>::max();
  if (!dtype.is_small_float()) return dtype.code == DTypeCode::kBFloat ? bfloat16_to_float(0x7f7f) : 65504.0;
  return small_float_to_double(static_cast<uint8_t>(small_float(dtype).most()), dtype.element());
}

uint8_t packed_bits(const void* elements, int64_t i, DType dtype) {
  int64_t per_byte = dtype.per_byte();
  int byte = static_cast<const uint8_t*>(elements)[i / per_byte];
  return static_cast<uint8_t>(byte >> (i % per_byte * dtype.bits) & ((1 << dtype.bits) - 1));
}
void set_packed_bits(void* elements, int64_t i, DType dtype, uint8_t bits) {
  int64_t per_byte = dtype.per_byte();
  int mask = (1 << dtype.bits) - 1, shift = static_cast<int>(i % per_byte) * dtype.bits;
  uint8_t& byte = static_cast<uint8_t*>(elements)[i / per_byte];
  byte = static_cast<uint8_t>((byte & ~(mask << shift)) | (bits & mask) << shift);
}

uint16_t float_bits(double value, DType dtype) {
  if (dtype.is_small_float()) return double_to_small_float(value, dtype);
  // Rounding to the nearest float first could round twice. Rounding to odd lets the second rounding decide alone.
  float rounded = static_cast<float>(value);
  bool is_exact = !std::isfinite(rounded) || static_cast<double>(rounded) == value;
  if (!is_exact && std::bit_cast<uint32_t>(rounded) % 2 == 0)
    rounded = std::nextafter(rounded, static_cast<double>(rounded) < value ? HUGE_VALF : -HUGE_VALF);
  return dtype.code == DTypeCode::kBFloat ? float_to_bfloat16(rounded) : float_to_half(rounded);
}

double float_from_bits(uint16_t bits, DType dtype) {
  if (dtype.is_small_float()) return small_float_to_double(static_cast<uint8_t>(bits), dtype);
  return dtype.code == DTypeCode::kBFloat ? bfloat16_to_float(bits) : half_to_float(bits);
}

double rounded_to(double value, DType dtype) {
  if (dtype.bits == 64) return value;
  return dtype.bits == 32 ? static_cast<float>(value) : float_from_bits(float_bits(value, dtype), dtype);
}

float bfloat16_to_float(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t float_to_bfloat16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float half_to_float(uint16_t bits) {
  int exponent = (bits >> 10) & 31;
  int mantissa = bits & 1023;
  float magnitude = exponent == 31  ? (mantissa ? NAN : INFINITY)
                    : exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                                    : std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

uint16_t float_to_half(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  if (magnitude >= 0x47800000) return sign | 0x7c00;  // 65536 and above: infinity
  if (magnitude < 0x38800000) {                       // subnormal half: nearbyint rounds to even
    return sign | static_cast<uint16_t>(std::nearbyint(std::ldexp(std::bit_cast<float>(magnitude), 24)));
  }
  uint32_t rounded = magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1);
  return sign | static_cast<uint16_t>(rounded >> 13);
}

}  // namespace relaxc
