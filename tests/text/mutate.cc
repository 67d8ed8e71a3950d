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

namespace {

// Where an opening bracket's closing one stands; the end when there is none.
size_t closing(const std::vector<std::string>& parts, size_t open) {
  int depth = 0;
  for (size_t at = open; at < parts.size(); ++at) {
    if (parts[at] == "(" || parts[at] == "[" || parts[at] == "{") ++depth;
    if ((parts[at] == ")" || parts[at] == "]" || parts[at] == "}") && --depth == 0) return at;
  }
  return parts.size();
}

// Another number of items between two brackets: none, one less, one twice, or one given by its name.
void change_items(std::vector<std::string>& parts, std::mt19937_64& random) {
  constexpr const char* kNames[] = {"var", "value", "index",   "kinds", "dtype",
                                    "dom", "shape", "indices", "func",  "args"};
  std::vector<size_t> opening;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] == "(" || parts[i] == "[" || parts[i] == "{") opening.push_back(i);
  }
  if (opening.empty()) return;
  size_t open = opening[random() % opening.size()], close = closing(parts, open);
  if (close == parts.size()) return;
  std::vector<std::pair<size_t, size_t>> items = {{open + 1, open + 1}};
  for (size_t at = open + 1; at < close; ++at) {
    if (parts[at] == "(" || parts[at] == "[" || parts[at] == "{") at = closing(parts, at);
    if (parts[at] == ",") items.back().second = at, items.emplace_back(at + 1, at + 1);
  }
  items.back().second = close;
  auto [from, to] = items[random() % items.size()];
  auto begin = parts.begin() + static_cast<int64_t>(from), end = parts.begin() + static_cast<int64_t>(to);
  std::vector<std::string> item(begin, end);
  switch (random() % 4) {
    case 0:
      parts.erase(parts.begin() + static_cast<int64_t>(open) + 1, parts.begin() + static_cast<int64_t>(close));
      return;
    case 1:
      parts.erase(begin, to < close ? end + 1 : end);
      return;
    case 2:
      item.push_back(", ");
      parts.insert(begin, item.begin(), item.end());
      return;
    default:
      parts.insert(begin, std::string(" ") + kNames[random() % std::size(kNames)] + "=");
  }
}

}  // namespace

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
    switch (below(8)) {
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
      case 5:
      case 6:
        change_items(parts, random);
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
