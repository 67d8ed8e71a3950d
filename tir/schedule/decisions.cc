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

bool is_candidate(const AttrValue& value, const AttrList& candidates) {
  return std::find(candidates.begin(), candidates.end(), value) != candidates.end();
}

}  // namespace

const AttrValue& Decisions::decide(const std::string& name, AttrList candidates, AttrValue formula) {
  std::string full = prefix_ + name;
  auto taken = std::find_if(all_.begin(), all_.end(), [&](const Decision& d) { return d.name == full; });
  if (taken != all_.end()) return taken->value;
  const AttrValue* given = given_.find(full);
  if (given) {
    const AttrList* list = formula.as<AttrList>() ? given->as<AttrList>() : nullptr;
    bool fits =
        list ? std::all_of(list->begin(), list->end(), [&](const auto& v) { return is_candidate(v, candidates); })
             : is_candidate(*given, candidates);
    if (!fits)
      fail(place_, "'{}' of '{}' cannot be {}; candidates{}: {} (the formula chooses {})", full, subject_,
           to_string(*given), formula.as<AttrList>() ? " of its items" : "", joined(candidates), to_string(formula));
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
  for (const auto& [name, value] : given_) {
    auto asked =
        std::find_if(all_.begin(), all_.end(), [&, &name = name](const Decision& d) { return d.name == name; });
    if (asked != all_.end()) continue;
    std::vector<std::string> names;
    for (const Decision& decision : all_) names.push_back(decision.name);
    fail(place_, "'{}' has no decision '{}'; it has: {}", subject_, name, fmt::join(names, ", "));
  }
}

std::vector<int64_t> numbers_between(int64_t first, int64_t last) {
  std::vector<int64_t> result;
  for (int64_t number = first; number <= last; ++number) result.push_back(number);
  return result;
}

std::vector<int64_t> divisors_between(int64_t first, int64_t last, int64_t extent) {
  std::vector<int64_t> result;
  for (int64_t number = first; number <= last; ++number) {
    if (number > 0 && extent % number == 0) result.push_back(number);
  }
  return result;
}

}  // namespace relaxc
