// Puts the texts of several items into one.
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace relaxc {

// Returns text_of(item) for each item, separated: "a, b, c".
template <class Items, class TextOf>
  requires(!std::convertible_to<TextOf, std::string_view>)
std::string joined(Items&& items, TextOf text_of, std::string_view separator = ", ") {
  std::string result;
  std::string_view before;
  for (const auto& item : items) {
    result.append(before).append(std::invoke(text_of, item));
    before = separator;
  }
  return result;
}

// Return the items themselves, separated. Not fmt::join, whose templates take the compiler longer.
template <class Items>
  requires requires(const Items& items) { std::string_view(*std::begin(items)); }
std::string joined(const Items& items, std::string_view separator = ", ") {
  return joined(items, std::identity(), separator);
}
std::string joined(std::span<const int64_t> items, std::string_view separator = ", ");

}  // namespace relaxc
