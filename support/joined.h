// Puts the texts of several items into one.
#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace relaxc {

// Returns text_of(item) for each item, separated: "a, b, c".
template <class Items, class TextOf>
std::string joined(Items&& items, TextOf text_of, std::string_view separator = ", ") {
  std::string result;
  std::string_view before;
  for (const auto& item : items) {
    result.append(before).append(std::invoke(text_of, item));
    before = separator;
  }
  return result;
}

}  // namespace relaxc
