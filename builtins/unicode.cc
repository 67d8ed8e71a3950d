#include "builtins/unicode.h"

#include <algorithm>
#include <span>

#include "builtins/unicode_tables.h"

namespace relaxc::vm {

namespace {

uint32_t take_varint(std::span<const uint8_t>& bytes) {
  uint32_t value = 0;
  for (uint32_t shift = 0;; shift += 7) {
    const uint32_t byte = bytes[0];
    bytes = bytes.subspan(1);
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

std::vector<std::string_view> names_in(std::string_view list) {
  std::vector<std::string_view> names;
  for (size_t end = 0; end != std::string_view::npos; list.remove_prefix(end + 1)) {
    end = list.find(',');
    names.push_back(list.substr(0, end));
    if (end == std::string_view::npos) break;
  }
  return names;
}

// Returns the runs whose name is one that is wanted.
template <typename Wanted>
CharacterSet runs_of(std::span<const uint8_t> bytes, std::string_view list, const Wanted& is_wanted) {
  const std::vector<std::string_view> names = names_in(list);
  CharacterSet result;
  for (uint32_t first = 0; !bytes.empty();) {
    const uint32_t run = take_varint(bytes), count = static_cast<uint32_t>(names.size());
    const uint32_t last = first + run / count;
    if (is_wanted(names[run % count])) result.push_back({first, last});
    first = last + 1;
  }
  return in_order(std::move(result));
}

struct Folding {
  uint32_t character, to;
};
struct Foldings {
  std::vector<Folding> by_character, by_target;  // in both each target folds to itself
};

Foldings read_foldings() {
  std::vector<Folding> all;
  uint32_t first = 0;
  for (std::span<const uint8_t> bytes = unicode_tables::kFoldings; !bytes.empty();) {
    first += take_varint(bytes);
    const uint32_t count = take_varint(bytes), distance = take_varint(bytes);
    for (uint32_t i = 0; i < count / 2; ++i) {
      const uint32_t character = first + i * (count % 2 + 1);
      const uint32_t to = distance % 2 ? character - (distance + 1) / 2 : character + distance / 2;
      all.insert(all.end(), {{character, to}, {to, to}});
    }
  }
  std::ranges::sort(all, {}, &Folding::character);
  const auto rest = std::ranges::unique(all, {}, &Folding::character);
  all.erase(rest.begin(), rest.end());
  Foldings result{all, all};
  std::ranges::sort(result.by_target, {}, &Folding::to);
  return result;
}

}  // namespace

CharacterSet in_order(CharacterSet ranges) {
  std::ranges::sort(ranges, {}, &CharacterRange::first);
  CharacterSet result;
  for (const CharacterRange& range : ranges) {
    if (!result.empty() && range.first <= result.back().last + 1)
      result.back().last = std::max(result.back().last, range.last);
    else
      result.push_back(range);
  }
  return result;
}

CharacterSet complement(CharacterSet ranges) {
  CharacterSet result;
  uint32_t next = 0;
  for (const CharacterRange& range : in_order(std::move(ranges))) {
    if (range.first > next) result.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLastCharacter) result.push_back({next, kLastCharacter});
  return result;
}

bool contains(const CharacterSet& ordered, uint32_t character) {
  auto behind = std::ranges::upper_bound(ordered, character, {}, &CharacterRange::first);
  return behind != ordered.begin() && character <= std::prev(behind)->last;
}

CharacterSet with_other_cases(CharacterSet ranges) {
  static const Foldings kFoldings = read_foldings();
  CharacterSet more;
  for (const CharacterRange& range : in_order(ranges)) {
    for (auto at = std::ranges::lower_bound(kFoldings.by_character, range.first, {}, &Folding::character);
         at != kFoldings.by_character.end() && at->character <= range.last; ++at) {
      for (const Folding& other : std::ranges::equal_range(kFoldings.by_target, at->to, {}, &Folding::to))
        more.push_back({other.character, other.character});
    }
  }
  ranges.insert(ranges.end(), more.begin(), more.end());
  return in_order(std::move(ranges));
}

std::optional<CharacterSet> characters_named(std::string_view name) {
  using namespace unicode_tables;
  if (name == "Any") return CharacterSet{{0, kLastCharacter}};
  if (name.empty() || name == "Cn") return std::nullopt;
  CharacterSet result = runs_of(kCategories, kCategoryNames, [&](std::string_view category) {
    return category == name || (name.size() == 1 && category[0] == name[0] && category != "Cn");
  });
  if (result.empty()) result = runs_of(kScripts, kScriptNames, [&](std::string_view script) { return script == name; });
  return result.empty() ? std::nullopt : std::optional(std::move(result));
}

}  // namespace relaxc::vm
