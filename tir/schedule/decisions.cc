#include "tir/schedule/decisions.h"

#include <algorithm>

#include "support/check.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/lists.h"

namespace relaxc {

const AttrValue& Decisions::decide(const std::string& name, AttrList candidates, AttrValue formula) {
  RELAXC_CHECK(find_item(rows_, (prefix_.empty() ? "" : "*.") + name, &DecisionRow::name),
               "expected a row of rule '{}' for the decision '{}' that it asks for", rule_, name);
  bool is_list = formula.as<AttrList>();
  auto is_candidate = [&](const AttrValue& value) {
    const AttrList items = is_list && value.as<AttrList>() ? *value.as<AttrList>() : AttrList{value};
    return std::ranges::all_of(items, [&](const AttrValue& item) { return std::ranges::count(candidates, item) > 0; });
  };
  std::string full = prefix_ + name;
  auto choices = [&] { return joined(candidates, [](const AttrValue& value) { return to_string(value); }); };
  RELAXC_CHECK(is_candidate(formula), "expected the formula of '{}' to choose one of {}, got {}", full, choices(),
               to_string(formula));
  auto taken = std::ranges::find(all_, full, &Decision::name);
  const AttrValue* given = given_.find(full);
  AttrValue value = taken != all_.end() ? taken->value : given ? *given : formula;
  if (!is_candidate(value))
    fail(place_, "rule '{}': '{}' of '{}' cannot be {}; candidates{}: {} (the formula chooses {})", rule_, full,
         subject_, to_string(value), is_list ? " of its items" : "", choices(), to_string(formula));
  if (taken != all_.end()) return taken->value;
  all_.push_back({std::move(full), std::move(candidates), std::move(formula), std::move(value)});
  return all_.back().value;
}

void Decisions::check_all_asked() const {
  std::vector<std::string> names = map_each(all_, &Decision::name);
  for (const auto& [name, value] : given_) {
    if (std::ranges::find(names, name) == names.end())
      fail(place_, "'{}' has no decision '{}'; it has: {}", subject_, name, joined(names));
  }
}

std::vector<int64_t> numbers_between(int64_t first, int64_t last) {
  std::vector<int64_t> result;
  for (int64_t number = first; number <= last; ++number) result.push_back(number);
  return result;
}

std::vector<int64_t> divisors_between(int64_t first, int64_t last, int64_t extent) {
  std::vector<int64_t> result = numbers_between(std::max<int64_t>(first, 1), last);
  std::erase_if(result, [&](int64_t number) { return extent % number != 0; });
  return result;
}

std::vector<int64_t> doublings_between(int64_t first, int64_t last) {
  std::vector<int64_t> result;
  for (int64_t number = first; number <= last; number *= 2) result.push_back(number);
  return result;
}

}  // namespace relaxc
