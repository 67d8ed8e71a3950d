// Element types: a code, a width in bits and a number of lanes, as in DLPack.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace relaxc {

// The codes after kHandle are floats of 8 bits and less, in the order of DLPack's codes.
enum class DTypeCode : uint8_t {
  kInt,
  kUInt,
  kFloat,
  kBFloat,
  kComplex,
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

// Elements of 1, 2 and 4 bits are packed: eight, four or two in a byte, the first one in its low bits; the unused bits
// of a tensor's last byte are 0. Elements of 6 bits take a byte.
//
// Complex numbers of 64 and 128 bits are two floats of half as many, the real part first. They are only moved: nothing
// computes with them, and kernels hold them as integers of as many bits.
//
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
  bool is_complex() const { return code == DTypeCode::kComplex; }
  bool is_bool() const { return code == DTypeCode::kBool; }
  bool is_string() const { return code == DTypeCode::kString; }
  bool is_handle() const { return code == DTypeCode::kHandle; }
  bool is_void() const { return is_handle() && bits == 0; }
  bool is_packed() const { return lanes == 1 && (bits == 1 || bits == 2 || bits == 4); }
  bool is_scalable() const { return lanes >= kScalable; }
  // Negative counts are scalable.
  constexpr DType with_lanes(int count) const {
    return {code, bits, static_cast<uint16_t>(count < 0 ? kScalable - count : count)};
  }
  DType element() const { return with_lanes(1); }
  // Returns the dtype of the real and of the imaginary part of a complex number.
  DType part() const { return float_(bits / 2); }
  // Returns the bytes of one element in memory; bool takes one byte, a packed element by itself, too, and a string
  // its offset (vm/tensor.h).
  int64_t bytes() const { return (bits * lanes + 7) / 8; }
  int64_t per_byte() const { return is_packed() ? 8 / bits : 1; }  // elements of a packed type
  // Returns the bytes of so many elements, which for packed ones cannot overflow.
  int64_t bytes_of(int64_t count) const {
    return is_packed() ? count / per_byte() + (count % per_byte() != 0) : count * bytes();
  }

  static constexpr DType int_(int bits) { return {DTypeCode::kInt, static_cast<uint8_t>(bits), 1}; }
  static constexpr DType uint(int bits) { return {DTypeCode::kUInt, static_cast<uint8_t>(bits), 1}; }
  static constexpr DType float_(int bits) { return {DTypeCode::kFloat, static_cast<uint8_t>(bits), 1}; }
  static constexpr DType bfloat16() { return {DTypeCode::kBFloat, 16, 1}; }
  static constexpr DType complex(int bits) { return {DTypeCode::kComplex, static_cast<uint8_t>(bits), 1}; }
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
// Returns the largest finite value of a float dtype.
double largest_of(DType dtype);

// The layout of a float of 8 bits and less: sign, exponent and mantissa as in IEEE 754, but for the codes that are not
// finite. `nan` tells which codes are NaN: those of IEEE, all ones below the sign, the one of -0, or none.
struct SmallFloat {
  enum class NaN : uint8_t { kIeee, kAllOnes, kNegativeZero, kNone };
  DTypeCode code;
  std::string_view name;
  int bits, mantissa, bias;
  NaN nan;
  bool has_sign = true;

  constexpr int sign() const { return has_sign ? 1 << (bits - 1) : 0; }
  constexpr int all() const { return (1 << (bits - (has_sign ? 1 : 0))) - 1; }  // the bits below the sign
  constexpr int infinity() const { return all() & ~((1 << mantissa) - 1); }     // in formats of IEEE
  // Return the codes of the largest finite number, of what is too large for it, and of a NaN, which in a format without
  // NaN is -0.
  constexpr int most() const { return nan == NaN::kIeee ? infinity() - 1 : nan == NaN::kAllOnes ? all() - 1 : all(); }
  constexpr int too_large() const {
    return nan == NaN::kIeee ? infinity() : nan == NaN::kNegativeZero ? sign() : all();
  }
  constexpr int not_a_number() const {
    return nan == NaN::kIeee ? infinity() | 1 << (mantissa - 1) : nan == NaN::kAllOnes ? all() : sign();
  }
};
const SmallFloat& small_float(DType dtype);

// Return and replace the bits of packed element i.
uint8_t packed_bits(const void* elements, int64_t i, DType dtype);
void set_packed_bits(void* elements, int64_t i, DType dtype, uint8_t bits);
// Returns the nearest value of the float dtype.
double rounded_to(double value, DType dtype);

}  // namespace relaxc
