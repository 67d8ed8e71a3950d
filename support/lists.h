// Short forms of loops over lists and of look-ups in lists and maps.
#pragma once
#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <vector>

namespace relaxc {

// Returns the function's results for the items, in order. Like std::invoke, it takes a pointer to a member, too.
template <class Items, class Fn>
auto map_each(const Items& items, const Fn& fn) {
  std::vector<std::remove_cvref_t<decltype(std::invoke(fn, *std::begin(items)))>> result;
  for (const auto& item : items) result.push_back(std::invoke(fn, item));
  return result;
}

// Does so for a function that returns an optional: nullopt when one of the results is nullopt.
template <class Items, class Fn>
auto all_or_none(const Items& items, const Fn& fn) {
  using Result = std::remove_cvref_t<decltype(std::invoke(fn, *std::begin(items)))>;
  std::optional<std::vector<typename Result::value_type>> results(std::in_place);
  for (const auto& item : items) {
    auto value = std::invoke(fn, item);
    if (!value) return decltype(results)();
    results->push_back(*value);
  }
  return results;
}

// Returns the first item whose member equals the value, such as the row of a table; null when there is none.
template <class Items, class Value, class Member>
auto* find_item(Items&& items, const Value& value, Member member) {
  auto found = std::ranges::find(items, value, member);
  return found == std::ranges::end(items) ? nullptr : &*found;
}

// Returns the value under the key of a map, or null.
template <class Map, class Key>
auto* find_value(Map& map, const Key& key) {
  auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}
// Returns a copy of it, or nullopt.
template <class Map, class Key>
auto copy_value(const Map& map, const Key& key) {
  auto found = map.find(key);
  return found == map.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace relaxc
