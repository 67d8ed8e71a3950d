// Element types: a code, a width in bits and a number of lanes, as in DLPack.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace relaxc {

// The codes after kHandle are floats of 8 bits and less: modules may mention them, but kernels do not use them yet.
enum class DTypeCode : uint8_t {
  kInt,
  kUInt,
  kFloat,
  kBFloat,
  kBool,
  kString,
  kHandle,
  kFloat8E3M4,
  kFloat8E4M3,
  kFloat8E4M3B11FNUZ,
  kFloat8E4M3FN,
  kFloat8E4M3FNUZ,
  kFloat8E5M2,
  kFloat8E5M2FNUZ,
  kFloat8E8M0FNU,
  kFloat6E2M3FN,
  kFloat6E3M2FN,
  kFloat4E2M1FN
};

// Lanes of kScalable and above count multiples of the machine's vector length (vscale). A handle of 0 bits is void: the
// type of a call without a value.
struct DType {
  static constexpr uint16_t kScalable = 0x8000;
  DTypeCode code = DTypeCode::kFloat;
  uint8_t bits = 32;
  uint16_t lanes = 1;

  friend bool operator==(const DType&, const DType&) = default;

  bool is_int() const { return code == DTypeCode::kInt; }
  bool is_uint() const { return code == DTypeCode::kUInt; }
  bool is_integral() const { return is_int() || is_uint(); }  // without bool
  bool is_float() const { return code == DTypeCode::kFloat || code == DTypeCode::kBFloat || is_small_float(); }
  bool is_small_float() const { return code > DTypeCode::kHandle; }
  bool is_bool() const { return code == DTypeCode::kBool; }
  bool is_string() const { return code == DTypeCode::kString; }
  bool is_handle() const { return code == DTypeCode::kHandle; }
  bool is_void() const { return is_handle() && bits == 0; }
  bool is_scalable() const { return lanes >= kScalable; }
  // Negative counts are scalable.
  constexpr DType with_lanes(int count) const {
    return {code, bits, static_cast<uint16_t>(count < 0 ? kScalable - count : count)};
  }
  DType element() const { return with_lanes(1); }
  // Returns the bytes of one element in memory; bool takes one byte, and a string its offset (vm/tensor.h).
  int64_t bytes() const { return (bits * lanes + 7) / 8; }

  static constexpr DType int_(int bits) { return {DTypeCode::kInt, static_cast<uint8_t>(bits), 1}; }
  static constexpr DType uint(int bits) { return {DTypeCode::kUInt, static_cast<uint8_t>(bits), 1}; }
  static constexpr DType float_(int bits) { return {DTypeCode::kFloat, static_cast<uint8_t>(bits), 1}; }
  static constexpr DType bfloat16() { return {DTypeCode::kBFloat, 16, 1}; }
  static constexpr DType bool_() { return {DTypeCode::kBool, 8, 1}; }
  static constexpr DType string() { return {DTypeCode::kString, 64, 1}; }
  static constexpr DType handle() { return {DTypeCode::kHandle, 64, 1}; }
  static constexpr DType void_() { return {DTypeCode::kHandle, 0, 1}; }
};

inline constexpr DType kInt32 = DType::int_(32), kInt64 = DType::int_(64), kFloat32 = DType::float_(32),
                       kFloat64 = DType::float_(64), kBool = DType::bool_();

// Returns "float32", "int8x4", "float16xvscalex8", "bool", "bfloat16", "float8_e4m3fn", "string", "handle" or "void".
std::string to_string(DType dtype);
std::optional<DType> parse_dtype(std::string_view text);

// Convert the 16-bit float formats, rounding to nearest even and keeping NaN.
float half_to_float(uint16_t bits);
uint16_t float_to_half(float value);
float bfloat16_to_float(uint16_t bits);
uint16_t float_to_bfloat16(float value);
// Convert between values and the bits of a float of 16 bits or less, rounding once, to nearest even. In formats of 8
// bits and less a value that is too large becomes infinity where the format has one, else NaN where it has that, else
// the largest value.
uint16_t float_bits(double value, DType dtype);
double float_from_bits(uint16_t bits, DType dtype);
// Returns the nearest value of the float dtype.
double rounded_to(double value, DType dtype);

}  // namespace relaxc
