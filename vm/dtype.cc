#include "vm/dtype.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

namespace relaxc {

namespace {

struct CodeName {
  DTypeCode code;
  std::string_view name;
};
// "bool" and "handle" have no width in their name.
constexpr CodeName kCodeNames[] = {{DTypeCode::kInt, "int"},     {DTypeCode::kUInt, "uint"},
                                   {DTypeCode::kFloat, "float"}, {DTypeCode::kBFloat, "bfloat"},
                                   {DTypeCode::kBool, "bool"},   {DTypeCode::kHandle, "handle"}};

std::optional<int> parse_number(std::string_view text) {
  int value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value <= 0) return std::nullopt;
  return value;
}

}  // namespace

std::string to_string(DType dtype) {
  std::string text;
  for (const CodeName& row : kCodeNames) {
    if (row.code == dtype.code) text = row.name;
  }
  if (!dtype.is_bool() && !dtype.is_handle()) text += std::to_string(dtype.bits);
  if (dtype.lanes != 1) text += fmt::format("x{}", dtype.lanes);
  return text;
}

std::optional<DType> parse_dtype(std::string_view text) {
  for (const CodeName& row : kCodeNames) {
    if (!text.starts_with(row.name)) continue;
    std::string_view rest = text.substr(row.name.size());
    int lanes = 1;
    if (size_t x = rest.find('x'); x != std::string_view::npos) {
      auto parsed = parse_number(rest.substr(x + 1));
      if (!parsed || *parsed > 4096) return std::nullopt;
      lanes = *parsed;
      rest = rest.substr(0, x);
    }
    if (row.code == DTypeCode::kBool || row.code == DTypeCode::kHandle) {
      if (!rest.empty()) return std::nullopt;
      return (row.code == DTypeCode::kBool ? DType::bool_() : DType::handle()).with_lanes(lanes);
    }
    auto bits = parse_number(rest);
    if (!bits) return std::nullopt;
    bool known = row.code == DTypeCode::kBFloat ? *bits == 16
                 : row.code == DTypeCode::kFloat
                     ? *bits == 16 || *bits == 32 || *bits == 64
                     : *bits == 1 || *bits == 4 || *bits == 8 || *bits == 16 || *bits == 32 || *bits == 64;
    if (!known) return std::nullopt;
    return DType{row.code, static_cast<uint8_t>(*bits), static_cast<uint16_t>(lanes)};
  }
  return std::nullopt;
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
