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

// Return the items themselves, separated. Not fmt::join, whose templates are compiled in each file that uses it.
std::string joined(std::span<const std::string> items, std::string_view separator = ", ");
std::string joined(std::span<const std::string_view> items, std::string_view separator = ", ");
std::string joined(std::span<const char* const> items, std::string_view separator = ", ");
std::string joined(std::span<const int64_t> items, std::string_view separator = ", ");

}  // namespace relaxc
