// A failure of a running program that its user can see and act upon: a wrong input, a dim that does not fit,
// insufficient memory, a kernel that failed. The message is lower case and names the input, the dim and both values.
#pragma once
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

// A call of the host is wrong whatever the program: a name that does not exist, another number of values than the
// function takes, an element read as another type.
struct UsageError : RuntimeError {
  using RuntimeError::RuntimeError;
};

// A file or stream cannot be written.
struct WriteError : RuntimeError {
  using RuntimeError::RuntimeError;
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

// A value that does not have the form of its place (vm.builtin.check_form). The message names the place.
struct FormError : RuntimeError {
  using RuntimeError::RuntimeError;
};

// Use: throw_runtime_error("input '{}': dtype is {}, expected {}", name, a, b).
[[noreturn, gnu::cold]] void throw_runtime_pattern(std::string_view pattern, std::span<const FormatArgument> arguments);
template <class... Args>
[[noreturn]] void throw_runtime_error(FormatString<Args...> pattern, const Args&... args) {
  throw_runtime_pattern(pattern.text, format_arguments(args...));
}
[[noreturn, gnu::cold]] void throw_usage_pattern(std::string_view pattern, std::span<const FormatArgument> arguments);
template <class... Args>
[[noreturn]] void throw_usage_error(FormatString<Args...> pattern, const Args&... args) {
  throw_usage_pattern(pattern.text, format_arguments(args...));
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
std::string with_values(std::string_view message, std::span<const int64_t> values);

}  // namespace relaxc
