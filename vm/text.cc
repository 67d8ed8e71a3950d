#include "vm/text.h"

#include <wctype.h>

#include <charconv>
#include <clocale>
#include <cmath>

#include "vm/error.h"

namespace relaxc::vm {

uint32_t take_character(std::string_view& text) {
  auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  uint32_t first = byte(0);
  size_t length = first < 0xc2 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 1;
  uint32_t character = length == 1 ? first : first & (0x7fU >> length);
  for (size_t i = 1; i < length; ++i) {
    if (i >= text.size() || (byte(i) & 0xc0) != 0x80) {
      text.remove_prefix(1);
      return first;
    }
    character = character << 6 | (byte(i) & 0x3f);
  }
  text.remove_prefix(length);
  return character;
}

void append_character(std::string& text, uint32_t character) {
  auto byte = [&](uint32_t bits) { text.push_back(static_cast<char>(bits)); };
  if (character < 0x80) return byte(character);
  if (character < 0x800) {
    byte(0xc0 | character >> 6);
  } else if (character < 0x10000) {
    byte(0xe0 | character >> 12);
    byte(0x80 | (character >> 6 & 0x3f));
  } else {
    byte(0xf0 | character >> 18);
    byte(0x80 | (character >> 12 & 0x3f));
    byte(0x80 | (character >> 6 & 0x3f));
  }
  byte(0x80 | (character & 0x3f));
}

// The C library's table of Unicode, whatever the locale of the process.
static locale_t unicode() {
  static const locale_t kUnicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return kUnicode;
}
uint32_t lower_case(uint32_t character) {
  if (character < 0x80 || unicode() == nullptr)
    return character >= 'A' && character <= 'Z' ? character + 32 : character;
  return static_cast<uint32_t>(towlower_l(static_cast<wint_t>(character), unicode()));
}
uint32_t upper_case(uint32_t character) {
  if (character < 0x80 || unicode() == nullptr)
    return character >= 'a' && character <= 'z' ? character - 32 : character;
  return static_cast<uint32_t>(towupper_l(static_cast<wint_t>(character), unicode()));
}
std::string mapped(std::string_view text, uint32_t (*map)(uint32_t character)) {
  std::string result;
  while (!text.empty()) {
    std::string_view before = text;
    uint32_t character = take_character(text);
    bool is_byte = character >= 0x80 && before.size() - text.size() == 1;  // not UTF-8: it stays
    is_byte ? result.push_back(before[0]) : append_character(result, map(character));
  }
  return result;
}

std::string number_text(double value, DType dtype) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40] = {};
  auto shortest = [&]() -> std::string_view {
    constexpr auto kForm = std::chars_format::scientific;
    if (dtype == kFloat64) return {buffer, std::to_chars(buffer, std::end(buffer), value, kForm).ptr};
    // Numbers of few bits are written whole: 1.6 would be enough to tell 1.625 from its neighbours.
    if (dtype == kFloat32 || dtype.bits < 16)
      return {buffer, std::to_chars(buffer, std::end(buffer), static_cast<float>(value), kForm).ptr};
    for (int digits = 0;; ++digits) {
      auto end = std::to_chars(buffer, std::end(buffer), value, kForm, digits).ptr;
      double back = 0;
      std::from_chars(buffer, end, back);
      if (rounded_to(back, dtype) == value || digits == 17) return {buffer, end};
    }
  };
  std::string_view text = shortest();
  bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  size_t e = text.find('e');
  std::string digits(text.substr(0, 1));
  if (e > 2) digits += text.substr(2, e - 2);
  while (digits.size() > 1 && digits.back() == '0') digits.pop_back();
  int exponent = std::atoi(text.data() + e + 1);
  auto point = static_cast<size_t>(std::max(exponent, 0)) + 1;
  std::string result = negative ? "-" : "";
  if (exponent < -4 || exponent >= 16)
    return result + formatted("{}{}{}e{:+03d}", digits[0], digits.size() > 1 ? "." : "", digits.substr(1), exponent);
  if (exponent < 0) return result + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  if (digits.size() < point + 1) digits.resize(point + 1, '0');
  return result + digits.substr(0, point) + "." + digits.substr(point);
}

std::optional<double> read_number(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\r\f\v";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  text = text.substr(0, text.find_last_not_of(kSpace) + 1);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) return std::strtod(std::string(text).c_str(), nullptr);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

}  // namespace relaxc::vm
