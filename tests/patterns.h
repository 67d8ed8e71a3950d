// Regular expressions (ECMAScript's) for tests. std::regex is compiled in one file only: its templates take seconds.
#pragma once
#include <string>
#include <vector>

namespace relaxc::test {

// Returns each match in the text: the matched text, then its groups.
std::vector<std::vector<std::string>> matches(const std::string& text, const std::string& pattern);
// Returns the match of the whole text and its groups, empty where the pattern is another.
std::vector<std::string> whole_match(const std::string& text, const std::string& pattern);
// Returns the text with each match replaced.
std::string with_matches_replaced(const std::string& text, const std::string& pattern, const std::string& replacement);

}  // namespace relaxc::test
