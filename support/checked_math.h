// Integer arithmetic that reports overflow, and the floor forms of division that index arithmetic uses.
#pragma once
#include <cstdint>
#include <optional>

namespace relaxc {

inline std::optional<int64_t> checked_add(int64_t a, int64_t b) {
  int64_t result;
  return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
}
inline std::optional<int64_t> checked_sub(int64_t a, int64_t b) {
  int64_t result;
  return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(result);
}
inline std::optional<int64_t> checked_mul(int64_t a, int64_t b) {
  int64_t result;
  return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
}

// Rounds toward minus infinity; the divisor must not be zero, nor -1 with INT64_MIN.
inline int64_t floor_div(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }
inline int64_t floor_mod(int64_t a, int64_t b) {
  int64_t remainder = a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}
// Returns the k with k * b == a, when there is one. No k exists for b == 0, since extents and strides may be 0.
inline std::optional<int64_t> exact_div(int64_t a, int64_t b) {
  if (b == 0 || (b == -1 && a == INT64_MIN) || a % b != 0) return std::nullopt;
  return a / b;
}
inline int64_t ceil_div(int64_t a, int64_t b) { return -floor_div(-a, b); }
// Rounds a size up to a multiple.
inline int64_t round_up(int64_t size, int64_t multiple) { return ceil_div(size, multiple) * multiple; }

}  // namespace relaxc
