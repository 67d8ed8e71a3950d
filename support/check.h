// RELAXC_CHECK(): an assertion that is always on. A failing one is a bug of relaxc, never of the user's input: the
// tools print it together with the pass and the command that reproduces it.
#pragma once
#include <stdexcept>
#include <string>

#include "support/formatted.h"

namespace relaxc {

// A failing check throws this. Each tool's main() catches it, and so does the pass runner, to add pass and reproducer.
struct InternalError : std::logic_error {
  using std::logic_error::logic_error;
};

[[noreturn]] void check_failed(const char* condition, const char* file, int line, const std::string& message);
inline std::string check_text() { return {}; }
template <class... Args>
std::string check_text(FormatString<Args...> pattern, const Args&... args) {
  return formatted(pattern, args...);
}

}  // namespace relaxc

// Use: RELAXC_CHECK(cond) or RELAXC_CHECK(cond, "expected {}, got {}", a, b).
#define RELAXC_CHECK(cond, ...)                                                                        \
  do {                                                                                                 \
    if (!(cond)) ::relaxc::check_failed(#cond, __FILE__, __LINE__, ::relaxc::check_text(__VA_ARGS__)); \
  } while (false)
