// Makes a list of the results of a function for each item of another list.
#pragma once
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

}  // namespace relaxc
