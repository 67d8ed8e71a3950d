// Sets of characters, and those that Unicode names.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace relaxc::vm {

constexpr uint32_t kLastCharacter = 0x10ffff;

struct CharacterRange {
  uint32_t first, last;
};
// In order, and none touches the next, in what the functions below return; they take ranges in any order.
using CharacterSet = std::vector<CharacterRange>;

CharacterSet in_order(CharacterSet ranges);
CharacterSet complement(CharacterSet ranges);
bool contains(const CharacterSet& ordered, uint32_t character);
// Adds the characters that fold to the same as one of these, by simple case folding: k, K and U+212A (the Kelvin sign).
CharacterSet with_other_cases(CharacterSet ranges);

// Returns the characters of a general category ("Lu", or "L" for all that begin with it), of a script ("Greek") or of
// "Any". As in RE2, characters that are not assigned have no name.
std::optional<CharacterSet> characters_named(std::string_view name);

}  // namespace relaxc::vm
