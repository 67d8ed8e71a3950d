#include "tests/patterns.h"

#include <map>
#include <regex>

namespace relaxc::test {

namespace {

const std::regex& compiled(const std::string& pattern) {
  thread_local std::map<std::string, std::regex> known;
  return known.try_emplace(pattern, pattern).first->second;
}

}  // namespace

std::vector<std::vector<std::string>> matches(const std::string& text, const std::string& pattern) {
  std::vector<std::vector<std::string>> result;
  for (std::sregex_iterator at(text.begin(), text.end(), compiled(pattern)), end; at != end; ++at)
    result.emplace_back(at->begin(), at->end());
  return result;
}

std::vector<std::string> whole_match(const std::string& text, const std::string& pattern) {
  std::smatch match;
  if (!std::regex_match(text, match, compiled(pattern))) return {};
  return {match.begin(), match.end()};
}

std::string with_matches_replaced(const std::string& text, const std::string& pattern, const std::string& replacement) {
  return std::regex_replace(text, compiled(pattern), replacement);
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace relaxc::test
