#include "tests/text/mutate.h"

#include <cctype>
#include <cstdint>

namespace relaxc::test {

std::vector<std::string> pieces(const std::string& text) {
  std::vector<std::string> result;
  auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin + 1;
    if (is_word(text[begin])) {
      while (end < text.size() && is_word(text[end])) ++end;
    } else if (text[begin] == ' ') {
      while (end < text.size() && text[end] == ' ') ++end;
    }
    result.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return result;
}

std::string mutated(const std::string& text, const std::vector<std::string>& others, std::mt19937_64& random) {
  std::vector<std::string> parts = pieces(text);
  auto below = [&](size_t count) { return static_cast<size_t>(random() % count); };
  constexpr const char* kOdd[] = {"None",    "-1",      "9223372036854775808",
                                  "\"\"",    "(",       ")",
                                  "[0]",     "T.int64", "R",
                                  "cls",     "1e999",   "\t",
                                  "*",       "lambda",  "\n",
                                  "\x01",    "T.X",     "**",
                                  "\"n\"",   ".5",      "0:4:2",
                                  "x=x, x=", "True",    "@"};
  for (size_t edits = 1 + below(3); edits > 0 && !parts.empty(); --edits) {
    size_t at = below(parts.size());
    switch (below(6)) {
      case 0:
        parts.erase(parts.begin() + static_cast<int64_t>(at));
        break;
      case 1:
        parts.insert(parts.begin() + static_cast<int64_t>(at), parts[below(parts.size())]);
        break;
      case 2:
        std::swap(parts[at], parts[below(parts.size())]);
        break;
      case 3:
        parts[at] = kOdd[below(std::size(kOdd))];
        break;
      case 4:
        parts[at] = others[below(others.size())];
        break;
      default: {  // a stretch is gone, such as a line
        size_t end = std::min(parts.size(), at + 1 + below(20));
        parts.erase(parts.begin() + static_cast<int64_t>(at), parts.begin() + static_cast<int64_t>(end));
      }
    }
  }
  std::string result;
  for (const std::string& part : parts) result += part;
  return result;
}

}  // namespace relaxc::test
