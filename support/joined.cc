#include "support/joined.h"

#include <ranges>

namespace relaxc {

std::string joined(std::span<const int64_t> items, std::string_view separator) {
  return joined(items, [](int64_t item) { return std::to_string(item); }, separator);
}

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> result;
  for (auto part : std::views::split(text, separator)) {
    if (!part.empty()) result.emplace_back(part.begin(), part.end());
  }
  return result;
}

}  // namespace relaxc
