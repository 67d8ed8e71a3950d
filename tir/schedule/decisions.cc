#include "tir/schedule/decisions.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "support/diagnostic.h"

namespace relaxc {

namespace {

std::string joined(const AttrList& values) {
  std::string text;
  for (const AttrValue& value : values) text += (text.empty() ? "" : ", ") + to_string(value);
  return text;
}

}  // namespace

const AttrValue& Decisions::decide(const std::string& name, AttrList candidates, AttrValue formula) {
  std::string full = prefix_ + name;
  auto taken = std::ranges::find(all_, full, &Decision::name);
  if (taken != all_.end()) return taken->value;
  const AttrValue* given = given_.find(full);
  if (given) {
    bool is_list = formula.as<AttrList>() && given->as<AttrList>();
    const AttrList items = is_list ? *given->as<AttrList>() : AttrList{*given};
    for (const AttrValue& item : items) {
      if (std::ranges::find(candidates, item) != candidates.end()) continue;
      fail(place_, "'{}' of '{}' cannot be {}; candidates{}: {} (the formula chooses {})", full, subject_,
           to_string(*given), formula.as<AttrList>() ? " of its items" : "", joined(candidates), to_string(formula));
    }
  }
  AttrValue value = given ? *given : formula;
  all_.push_back({std::move(full), std::move(candidates), std::move(formula), std::move(value)});
  return all_.back().value;
}

int64_t Decisions::number(const std::string& name, const std::vector<int64_t>& candidates, int64_t formula) {
  return *decide(name, AttrList(candidates.begin(), candidates.end()), formula).as<int64_t>();
}

bool Decisions::flag(const std::string& name, bool formula) {
  return *decide(name, {AttrValue(false), AttrValue(true)}, formula).as<bool>();
}

std::string Decisions::word(const std::string& name, const std::vector<std::string>& candidates,
                            const std::string& formula) {
  return *decide(name, AttrList(candidates.begin(), candidates.end()), formula).as<std::string>();
}

std::vector<int64_t> Decisions::list(const std::string& name, const std::vector<int64_t>& candidates,
                                     const std::vector<int64_t>& formula) {
  std::vector<int64_t> result;
  from_attr(decide(name, AttrList(candidates.begin(), candidates.end()), AttrValue(formula)), result);
  return result;
}

void Decisions::check_all_asked() const {
  std::vector<std::string> names;
  for (const Decision& decision : all_) names.push_back(decision.name);
  for (const auto& [name, value] : given_) {
    if (std::ranges::find(names, name) == names.end())
      fail(place_, "'{}' has no decision '{}'; it has: {}", subject_, name, fmt::join(names, ", "));
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

}  // namespace relaxc
