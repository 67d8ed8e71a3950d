// A failure of a running program that its user can see and act upon: a wrong input, a dim that does not fit,
// insufficient memory, a kernel that failed. The message is lower case and names the input, the dim and both values.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "support/diagnostic.h"

namespace relaxc {

struct RuntimeError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Memory is short, or more than the host allows.
struct OutOfMemory : RuntimeError {
  using RuntimeError::RuntimeError;
};

// The host ended the run (Session::cancel).
struct Cancelled : RuntimeError {
  using RuntimeError::RuntimeError;
};

// Dims that do not fit.
struct ShapeError : RuntimeError {
  using RuntimeError::RuntimeError;
};

// Use: throw_runtime_error("input '{}': dtype is {}, expected {}", name, a, b).
template <class... Args>
[[noreturn]] void throw_runtime_error(fmt::format_string<Args...> format, Args&&... args) {
  throw RuntimeError(fmt::format(format, std::forward<Args>(args)...));
}

// Returns work(). Its RuntimeErrors, such as those of files, become CompileErrors at the span.
template <class Work>
decltype(auto) with_compile_errors(const Span& span, Work&& work) {
  try {
    return work();
  } catch (const RuntimeError& error) {
    fail(span, "{}", error.what());
  }
}

// Returns the message of a kernel with the first `{}`s replaced by the values in order.
inline std::string with_values(std::string_view message, std::span<const int64_t> values) {
  std::string text;
  for (int64_t value : values) {
    size_t place = message.find("{}");
    if (place == std::string_view::npos) break;
    text.append(message.substr(0, place)).append(std::to_string(value));
    message.remove_prefix(place + 2);
  }
  return text.append(message);
}

}  // namespace relaxc
