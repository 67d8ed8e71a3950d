#include "support/formatted.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace relaxc {

std::string plain_decimal(std::string_view scientific) {
  const bool negative = scientific.starts_with('-');
  if (negative) scientific.remove_prefix(1);
  const size_t e = scientific.find('e');
  if (e == std::string_view::npos) return (negative ? "-" : "") + std::string(scientific);  // inf, nan
  std::string digits(scientific.substr(0, 1));
  if (e > 2) digits += scientific.substr(2, e - 2);
  while (digits.size() > 1 && digits.back() == '0') digits.pop_back();
  const int exponent = std::atoi(std::string(scientific.substr(e + 1)).c_str());
  std::string result = negative ? "-" : "";
  if (exponent < -4 || exponent >= 16) {
    result += digits[0];
    if (digits.size() > 1) result.append(".").append(digits, 1);
    const int size = std::abs(exponent);
    return result.append(exponent < 0 ? "e-" : "e+").append(size < 10 ? "0" : "").append(std::to_string(size));
  }
  if (exponent < 0) return result.append("0.").append(static_cast<size_t>(-exponent - 1), '0').append(digits);
  const size_t point = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= point) return result.append(digits).append(point - digits.size(), '0');
  return result.append(digits, 0, point).append(".").append(digits, point);
}

namespace {

// With a fraction: "1.0" for "1", "1.0e+20" for "1e+20".
std::string with_fraction(std::string text) {
  const size_t end = std::min(text.find('e'), text.size());
  if (text.find('.') == std::string::npos && text.find('n') == std::string::npos) text.insert(end, ".0");
  return text;
}

std::string real_text(const FormatArgument& argument, const FormatField& field) {
  char buffer[400];  // the largest double has 309 digits before its point
  if (field.type == 0 && field.precision < 0) {
    constexpr auto kForm = std::chars_format::scientific;
    const bool is_float = argument.kind == FormatArgument::Kind::kFloat;
    char* end = is_float ? std::to_chars(buffer, std::end(buffer), static_cast<float>(argument.real), kForm).ptr
                         : std::to_chars(buffer, std::end(buffer), argument.real, kForm).ptr;
    std::string text = plain_decimal({buffer, end});
    return field.alternate ? with_fraction(std::move(text)) : text;
  }
  const auto form = field.type == 'f'   ? std::chars_format::fixed
                    : field.type == 'e' ? std::chars_format::scientific
                                        : std::chars_format::general;
  const int precision = field.precision < 0 ? 6 : field.precision;
  return {buffer, std::to_chars(buffer, std::end(buffer), argument.real, form, precision).ptr};
}

// The first character of a text and the columns that it takes on a terminal.
struct WideCharacter {
  size_t bytes, columns;
};

// Takes 2 columns for the characters of East Asian scripts and for emoji, as std::format estimates
// ([format.string.std]). A byte that is not UTF-8 counts as a character.
WideCharacter first_character(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  constexpr uint32_t kWide[][2] = {{0x1100, 0x115f},   {0x2329, 0x232a},  {0x2e80, 0x303e},   {0x3040, 0xa4cf},
                                   {0xac00, 0xd7a3},   {0xf900, 0xfaff},  {0xfe10, 0xfe19},   {0xfe30, 0xfe6f},
                                   {0xff00, 0xff60},   {0xffe0, 0xffe6},  {0x1f300, 0x1f64f}, {0x1f900, 0x1f9ff},
                                   {0x20000, 0x2fffd}, {0x30000, 0x3fffd}};
  const size_t bytes = byte(0) < 0xc0 ? 1 : byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : 4;
  uint32_t code = byte(0) & (0xffu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if (i == text.size() || (byte(i) & 0xc0) != 0x80) return {1, 1};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  const bool is_wide = std::ranges::any_of(kWide, [&](const auto& r) { return code >= r[0] && code <= r[1]; });
  return {bytes, is_wide ? size_t{2} : size_t{1}};
}

struct TextSize {
  size_t bytes = 0, columns = 0;
};
// Returns the size of the longest beginning of the text that takes at most so many columns.
TextSize size_within(std::string_view text, size_t most_columns) {
  TextSize size;
  while (size.bytes < text.size()) {
    const WideCharacter next = first_character(text.substr(size.bytes));
    if (size.columns + next.columns > most_columns) break;
    size = {size.bytes + next.bytes, size.columns + next.columns};
  }
  return size;
}

std::string integer_text(const FormatArgument& argument, const FormatField& field) {
  char buffer[24];
  const int base = field.type == 'x' ? 16 : 10;
  char* end = argument.kind == FormatArgument::Kind::kUnsigned
                  ? std::to_chars(buffer, std::end(buffer), static_cast<uint64_t>(argument.integer), base).ptr
                  : std::to_chars(buffer, std::end(buffer), argument.integer, base).ptr;
  std::string text(buffer, end);
  if (field.alternate && base == 16) text.insert(text.starts_with('-') ? 1 : 0, "0x");
  return text;
}

std::string value_text(const FormatArgument& argument, const FormatField& field) {
  using enum FormatArgument::Kind;
  switch (argument.kind) {
    case kText: {
      const std::string_view text(argument.text, argument.size);
      return std::string(text.substr(0, size_within(text, static_cast<size_t>(field.precision)).bytes));  // -1: all
    }
    case kCharacter:
      return std::string(1, static_cast<char>(argument.integer));
    case kFloat:
    case kDouble:
      return real_text(argument, field);
    case kBool:
      if (field.type == 0) return argument.integer != 0 ? "true" : "false";
      break;
    case kSigned:
    case kUnsigned:
      break;
  }
  return integer_text(argument, field);
}

void append_field(std::string& result, const FormatArgument& argument, const FormatField& field) {
  std::string text = value_text(argument, field);
  const bool is_text = field.shows_text(argument.kind);
  if (field.sign && !text.starts_with('-')) text.insert(0, "+");
  const size_t width = static_cast<size_t>(field.width);
  const size_t missing = width - std::min(width, size_within(text, std::string::npos).columns);
  const bool is_finite = !FormatArgument::is_real(argument.kind) || std::isfinite(argument.real);
  if (field.zeros && !field.align && is_finite) {
    const size_t sign = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
    text.insert(field.alternate && field.type == 'x' ? sign + 2 : sign, missing, '0');
    result += text;
    return;
  }
  const char align = field.align ? field.align : is_text ? '<' : '>';
  const size_t before = align == '<' ? 0 : align == '>' ? missing : missing / 2;
  result.append(before, field.fill).append(text).append(missing - before, field.fill);
}

}  // namespace

std::string formatted_text(std::string_view pattern, std::span<const FormatArgument> arguments) {
  std::string result;
  size_t next = 0;
  while (!pattern.empty()) {
    const size_t plain = std::min(pattern.find_first_of("{}"), pattern.size());
    result += pattern.substr(0, plain);
    pattern.remove_prefix(plain);
    if (pattern.empty()) break;
    const char bracket = pattern[0];
    pattern.remove_prefix(1);
    if (pattern.starts_with(bracket)) {
      result += bracket;
      pattern.remove_prefix(1);
    } else {
      const FormatField field = take_field(pattern, next);
      append_field(result, arguments[field.argument], field);
    }
  }
  return result;
}

}  // namespace relaxc
