#include "tools/complex_text.h"

#include <cstdlib>

namespace relaxc::tools {

std::optional<std::complex<double>> as_complex(const std::string& text) {
  char* end = nullptr;
  const double first = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) return std::nullopt;
  if (*end == '\0') return first;
  if (end[0] == 'j' && end[1] == '\0') return std::complex<double>(0, first);
  const char* second = end;
  const double imaginary = std::strtod(second, &end);
  const bool is_whole = (*second == '+' || *second == '-') && end != second && end[0] == 'j' && end[1] == '\0';
  return is_whole ? std::optional(std::complex<double>(first, imaginary)) : std::nullopt;
}

}  // namespace relaxc::tools
