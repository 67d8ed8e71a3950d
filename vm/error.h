// A failure while a program runs that its user can see and act upon: a wrong input, a dim that does not fit, memory
// that is short, a kernel that failed. The message is lower case and names the input, the dim and both values.
#pragma once
#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace relaxc {

struct RuntimeError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// throw_runtime_error("input '{}': dtype is {}, expected {}", name, a, b).
template <class... Args>
[[noreturn]] void throw_runtime_error(fmt::format_string<Args...> format, Args&&... args) {
  throw RuntimeError(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace relaxc
