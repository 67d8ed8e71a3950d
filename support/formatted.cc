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
  const int precision = field.precision < 0 ? 6 : std::min(field.precision, 60);
  return {buffer, std::to_chars(buffer, std::end(buffer), argument.real, form, precision).ptr};
}

std::string value_text(const FormatArgument& argument, const FormatField& field) {
  using enum FormatArgument::Kind;
  const bool is_plain = field.type == 0 || field.type == 's';
  switch (argument.kind) {
    case kText:
      return {argument.text, std::min(argument.size, static_cast<size_t>(field.precision))};
    case kCharacter:
      return std::string(1, static_cast<char>(argument.integer));
    case kFloat:
    case kDouble:
      return real_text(argument, field);
    case kBool:
      if (is_plain) return argument.integer != 0 ? "true" : "false";
      [[fallthrough]];
    case kSigned:
    case kUnsigned:
      break;
  }
  char buffer[24];
  const int base = field.type == 'x' ? 16 : 10;
  char* end = argument.kind == kUnsigned
                  ? std::to_chars(buffer, std::end(buffer), static_cast<uint64_t>(argument.integer), base).ptr
                  : std::to_chars(buffer, std::end(buffer), argument.integer, base).ptr;
  return (field.alternate && base == 16 ? "0x" : "") + std::string(buffer, end);
}

void append_field(std::string& result, const FormatArgument& argument, const FormatField& field) {
  std::string text = value_text(argument, field);
  const bool is_text = argument.kind >= FormatArgument::Kind::kBool;
  if (field.sign && !is_text && !text.starts_with('-')) text.insert(0, "+");
  const size_t width = static_cast<size_t>(field.width), missing = width - std::min(width, text.size());
  if (field.zeros && !field.align && !is_text) {
    const size_t signs = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
    text.insert(text.starts_with("0x") ? 2 : signs, missing, '0');
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
