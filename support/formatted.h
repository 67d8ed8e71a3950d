// Text from a pattern with fields: formatted("dim {} is {}, expected {}", d, a, b). The fields are those of fmt and
// std::format that messages need: `{}` or `{0}`, then `:`, fill and `<`, `^` or `>`, `+`, `#`, `0`, width, precision,
// and one of `d x e f g s`, with the meaning that they have there: widths count columns of a terminal, texts are UTF-8.
// Patterns are checked against the arguments when they are compiled.
//
// It is here because the runtime consists of small parts that report errors: fmt takes 70 KB of it, and more at each
// call. The compiler uses fmt, of which its hosts have the library.
#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace relaxc {

// An argument of a pattern. Texts are those of the caller.
class FormatArgument {
 public:
  enum class Kind : uint8_t { kSigned, kUnsigned, kFloat, kDouble, kBool, kCharacter, kText };

  template <class T>
    requires std::is_arithmetic_v<T>
  constexpr FormatArgument(T value) : kind(kind_of<T>()) {
    if constexpr (std::is_floating_point_v<T>)
      real = static_cast<double>(value);
    else
      integer = static_cast<int64_t>(value);
  }
  template <class T>
    requires std::convertible_to<const T&, std::string_view>
  constexpr FormatArgument(const T& value) : kind(Kind::kText) {
    const std::string_view view = value;
    size = view.size();
    text = view.data();
  }

  // The kind of arguments of the type.
  template <class T>
  static consteval Kind kind_of() {
    if (std::is_same_v<T, bool>) return Kind::kBool;
    if (std::is_same_v<T, char>) return Kind::kCharacter;
    if (std::is_same_v<T, float>) return Kind::kFloat;
    if (std::is_floating_point_v<T>) return Kind::kDouble;
    if (std::is_integral_v<T>) return std::is_signed_v<T> ? Kind::kSigned : Kind::kUnsigned;
    return Kind::kText;
  }

  static constexpr bool is_real(Kind kind) { return kind == Kind::kFloat || kind == Kind::kDouble; }

  Kind kind;
  size_t size = 0;  // of the text
  union {
    int64_t integer = 0;
    double real;
    const char* text;
  };
};

// A field of a pattern.
struct FormatField {
  size_t argument = 0;
  char fill = ' ', align = 0, type = 0;
  bool sign = false, alternate = false, zeros = false;
  int width = 0, precision = -1;

  // Returns whether it shows letters and not a number: of a truth value "true", unless a type asks for its number.
  constexpr bool shows_text(FormatArgument::Kind kind) const {
    using enum FormatArgument::Kind;
    return kind == kText || kind == kCharacter || (kind == kBool && type == 0);
  }
  // Throws a text where the field does not fit an argument of the kind.
  constexpr void check(FormatArgument::Kind kind) const;
};

constexpr void FormatField::check(FormatArgument::Kind kind) const {
  constexpr int kMostDigits = 60;  // a buffer has room for them
  using enum FormatArgument::Kind;
  const bool is_real = FormatArgument::is_real(kind);
  const std::string_view fitting = is_real ? "efg" : kind == kText || kind == kCharacter ? "s" : "dx";
  if (type != 0 && fitting.find(type) == std::string_view::npos) throw "the type of a field does not fit its argument";
  if (shows_text(kind) && (sign || alternate || zeros)) throw "a field of a text has '+', '#' or '0', of numbers";
  if (precision >= 0 && !is_real && kind != kText) throw "a field has a precision, which floats and texts have";
  if (is_real && precision > kMostDigits) throw "the precision of a field is above 60";
  if (is_real && alternate && (type != 0 || precision >= 0)) throw "a field of a float has '#' beside its type";
}

// Takes a field from a pattern, behind its `{`. `next` counts the fields without a number. Throws a text for a pattern
// that is wrong, which no pattern is at run time.
constexpr FormatField take_field(std::string_view& rest, size_t& next) {
  FormatField field;
  auto has_any = [&](std::string_view set, size_t at = 0) {
    return rest.size() > at && set.find(rest[at]) != std::string_view::npos;
  };
  auto take = [&](char c) { return rest.starts_with(c) ? (rest.remove_prefix(1), true) : false; };
  auto take_number = [&] {
    int number = 0;
    for (; has_any("0123456789"); rest.remove_prefix(1)) number = number * 10 + (rest[0] - '0');
    return number;
  };
  field.argument = has_any("0123456789") ? static_cast<size_t>(take_number()) : next++;
  if (take(':')) {
    if (has_any("<^>", 1)) {
      field.fill = rest[0];
      rest.remove_prefix(1);
    }
    if (has_any("<^>")) {
      field.align = rest[0];
      rest.remove_prefix(1);
    }
    field.sign = take('+');
    field.alternate = take('#');
    field.zeros = take('0');
    field.width = take_number();
    if (take('.')) field.precision = take_number();
    if (has_any("dxefgs")) {
      field.type = rest[0];
      rest.remove_prefix(1);
    }
  }
  if (!take('}')) throw "a field of the pattern is not one of support/formatted.h";
  return field;
}

// A pattern that fits arguments of these types.
template <class... Args>
struct FormatPattern {
  template <class Text>
    requires std::convertible_to<const Text&, std::string_view>
  consteval FormatPattern(const Text& pattern) : text(pattern) {
    constexpr FormatArgument::Kind kKinds[] = {FormatArgument::kind_of<std::remove_cvref_t<Args>>()...,
                                               FormatArgument::Kind::kText};
    std::string_view rest = text;
    size_t next = 0, fields = 0;
    while (!rest.empty()) {
      const char c = rest[0];
      rest.remove_prefix(1);
      if (c != '{' && c != '}') continue;
      if (rest.starts_with(c)) {
        rest.remove_prefix(1);
        continue;
      }
      if (c == '}') throw "a '}' of the pattern has no '{'";
      const FormatField field = take_field(rest, next);
      if (field.argument >= sizeof...(Args)) throw "the pattern has more fields than there are arguments";
      field.check(kKinds[field.argument]);
      ++fields;
    }
    if (fields < sizeof...(Args)) throw "an argument has no field in the pattern";
  }
  std::string_view text;
};
template <class... Args>
using FormatString = FormatPattern<std::type_identity_t<Args>...>;

template <class... Args>
constexpr std::array<FormatArgument, sizeof...(Args)> format_arguments(const Args&... args) {
  return {FormatArgument(args)...};
}

// Returns the pattern with the arguments in its fields.
std::string formatted_text(std::string_view pattern, std::span<const FormatArgument> arguments);
template <class... Args>
std::string formatted(FormatString<Args...> pattern, const Args&... args) {
  return formatted_text(pattern.text, format_arguments(args...));
}

// Returns "0.001" for "1e-03" and "1500" for "1.5e+03": a number in scientific form (std::to_chars) as people write it.
std::string plain_decimal(std::string_view scientific);

}  // namespace relaxc
