#include "support/joined.h"

namespace relaxc {

namespace {
std::string copy_of(std::string_view text) { return std::string(text); }
}  // namespace

std::string joined(std::span<const std::string> items, std::string_view separator) {
  return joined(items, copy_of, separator);
}
std::string joined(std::span<const std::string_view> items, std::string_view separator) {
  return joined(items, copy_of, separator);
}
std::string joined(std::span<const char* const> items, std::string_view separator) {
  return joined(items, copy_of, separator);
}
std::string joined(std::span<const int64_t> items, std::string_view separator) {
  return joined(items, [](int64_t item) { return std::to_string(item); }, separator);
}

}  // namespace relaxc
