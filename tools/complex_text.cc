#include "tools/complex_text.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>

namespace relaxc::tools {

std::optional<double> leading_number(const char*& at) {
  char* end = nullptr;
  errno = 0;
  const double number = std::strtod(at, &end);
  const bool is_number = end != at && !(errno == ERANGE && std::isinf(number));
  at = end;
  return is_number ? std::optional(number) : std::nullopt;
}

std::optional<std::complex<double>> as_complex(std::string_view written, bool& is_beyond) {
  is_beyond = false;
  std::string text(written);
  if (text.starts_with('(') && text.ends_with(')')) text = text.substr(1, text.size() - 2);
  std::optional<double> parts[2];
  const char* at = text.c_str();
  auto skip = [&](std::string_view characters) {
    while (*at == ' ') ++at;
    return *at != '\0' && characters.find(*at) != std::string_view::npos ? *at++ : '\0';
  };
  do {
    const char sign = skip("+-");
    skip("");
    if (sign == '\0' && (parts[0] || parts[1])) return std::nullopt;
    const char* begin = at;
    std::optional<double> number = leading_number(at);
    if (!number && at != begin) is_beyond = true, number = HUGE_VAL;
    const bool is_imaginary = *at == 'j' || *at == 'J';
    if (is_imaginary && at == begin) number = 1;
    if (is_imaginary) ++at;
    std::optional<double>& part = parts[is_imaginary ? 1 : 0];
    if (part || !number) return std::nullopt;
    part = sign == '-' ? -*number : *number;
    skip("");
  } while (*at != '\0');
  return std::complex<double>(parts[0].value_or(0), parts[1].value_or(0));
}

bool begins_with_complex(std::string_view text) {
  bool is_beyond = false;
  const std::string_view first = text.substr(0, text.find(')') + 1);  // empty where there is none
  return first.starts_with('(') && first.find_first_of("jJ") != std::string_view::npos && as_complex(first, is_beyond);
}

}  // namespace relaxc::tools
