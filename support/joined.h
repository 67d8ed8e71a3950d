// Puts the texts of several items into one, and takes such a text apart.
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

// Returns the parts between the separators, without empty ones. They are views of the text.
std::vector<std::string_view> parts_of(std::string_view text, char separator);

}  // namespace relaxc
