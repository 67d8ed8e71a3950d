// Numbers in texts.
#pragma once
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace relaxc {

// Reads a number in decimal digits; nullopt for other text, or when it needs more than 63 bits.
inline std::optional<int64_t> whole_number(std::string_view digits) {
  int64_t value = 0;
  const char* end = digits.data() + digits.size();
  auto [last, error] = std::from_chars(digits.data(), end, value);
  const bool is_whole = error == std::errc() && last == end && !digits.starts_with('-');
  return is_whole ? std::optional(value) : std::nullopt;
}

}  // namespace relaxc
