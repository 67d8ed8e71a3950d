// Element types: a code, a width in bits and a number of lanes, as in DLPack.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace relaxc {

enum class DTypeCode : uint8_t { kInt, kUInt, kFloat, kBFloat, kBool, kHandle };

struct DType {
  DTypeCode code = DTypeCode::kFloat;
  uint8_t bits = 32;
  uint16_t lanes = 1;

  friend bool operator==(const DType&, const DType&) = default;

  bool is_int() const { return code == DTypeCode::kInt; }
  bool is_uint() const { return code == DTypeCode::kUInt; }
  bool is_integral() const { return is_int() || is_uint(); }  // without bool
  bool is_float() const { return code == DTypeCode::kFloat || code == DTypeCode::kBFloat; }
  bool is_bool() const { return code == DTypeCode::kBool; }
  bool is_handle() const { return code == DTypeCode::kHandle; }
  DType with_lanes(int count) const { return {code, bits, static_cast<uint16_t>(count)}; }
  DType element() const { return with_lanes(1); }
  // Bytes of one element in memory; bool takes one byte.
  int64_t bytes() const { return (bits * lanes + 7) / 8; }

  static constexpr DType int_(int bits) { return {DTypeCode::kInt, static_cast<uint8_t>(bits), 1}; }
  static constexpr DType uint(int bits) { return {DTypeCode::kUInt, static_cast<uint8_t>(bits), 1}; }
  static constexpr DType float_(int bits) { return {DTypeCode::kFloat, static_cast<uint8_t>(bits), 1}; }
  static constexpr DType bfloat16() { return {DTypeCode::kBFloat, 16, 1}; }
  static constexpr DType bool_() { return {DTypeCode::kBool, 8, 1}; }
  static constexpr DType handle() { return {DTypeCode::kHandle, 64, 1}; }
};

inline constexpr DType kInt32 = DType::int_(32), kInt64 = DType::int_(64), kFloat32 = DType::float_(32),
                       kFloat64 = DType::float_(64), kBool = DType::bool_();

// "float32", "int8x4", "bool", "bfloat16", "handle".
std::string to_string(DType dtype);
std::optional<DType> parse_dtype(std::string_view text);

// Conversions of the 16-bit float formats, round to nearest even, NaN kept.
float half_to_float(uint16_t bits);
uint16_t float_to_half(float value);
float bfloat16_to_float(uint16_t bits);
uint16_t float_to_bfloat16(float value);

}  // namespace relaxc
