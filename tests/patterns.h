// Searches in texts, with regular expressions (ECMAScript's). std::regex is compiled in one file only: its templates
// take seconds.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace relaxc::test {

// Returns each match in the text: the matched text, then its groups.
std::vector<std::vector<std::string>> matches(const std::string& text, const std::string& pattern);
// Returns the match of the whole text and its groups, empty where the pattern is another.
std::vector<std::string> whole_match(const std::string& text, const std::string& pattern);
// Returns the text with each match replaced.
std::string with_matches_replaced(const std::string& text, const std::string& pattern, const std::string& replacement);

// Returns whether the part stands in the text; a failed check of it prints no position.
bool contains(std::string_view text, std::string_view part);

}  // namespace relaxc::test
