#include "vm/error.h"

namespace relaxc {

void throw_runtime_pattern(std::string_view pattern, std::span<const FormatArgument> arguments) {
  throw RuntimeError(formatted_text(pattern, arguments));
}

void throw_usage_pattern(std::string_view pattern, std::span<const FormatArgument> arguments) {
  throw UsageError(formatted_text(pattern, arguments));
}

std::string with_values(std::string_view message, std::span<const int64_t> values) {
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
