// Cuts texts into tokens, as Tokenizer of com.microsoft does.
#include <algorithm>
#include <optional>

#include "builtins/regex.h"
#include "builtins/strings.h"
#include "vm/error.h"
#include "vm/text.h"

namespace relaxc::vm::strings {

namespace {

using Tokens = std::vector<std::string_view>;

size_t bytes_of_first(std::string_view text) {
  std::string_view rest = text;
  if (!rest.empty()) take_character(rest);
  return std::max<size_t>(text.size() - rest.size(), 1);
}
int64_t characters_in(std::string_view text) {
  int64_t count = 0;
  for (; !text.empty(); ++count) take_character(text);
  return count;
}

struct Cutter {
  std::vector<Regex> patterns;
  int64_t least = 1;  // characters of a token

  // Returns the parts between the matches of each pattern in turn.
  Tokens between(std::string_view text) const {
    Tokens tokens = {text};
    for (const Regex& separator : patterns) {
      Tokens parts;
      auto add = [&](std::string_view part) {
        if (characters_in(part) >= least) parts.push_back(part);
      };
      for (std::string_view token : tokens) {
        size_t begin = 0;
        while (auto found = begin <= token.size() ? separator.find(token, begin) : std::nullopt) {
          auto [first, end] = *found;
          add(token.substr(begin, first - begin));
          begin = end > first ? end : first + bytes_of_first(token.substr(first));
        }
        add(token.substr(std::min(begin, token.size())));
      }
      tokens = std::move(parts);
    }
    return tokens;
  }
  // Returns what matches the pattern. Where that is too short, the search goes on at the next character.
  Tokens matching(std::string_view text) const {
    Tokens tokens;
    for (size_t begin = 0; begin <= text.size();) {
      auto found = patterns.at(0).find(text, begin);
      if (!found) break;
      auto [first, end] = *found;
      std::string_view token = text.substr(first, end - first);
      bool is_long = !token.empty() && characters_in(token) >= least;
      if (is_long) tokens.push_back(token);
      begin = is_long ? end : first + bytes_of_first(text.substr(first));
    }
    return tokens;
  }
};
Tokens characters_of(std::string_view text) {
  Tokens tokens;
  while (!text.empty()) {
    tokens.push_back(text.substr(0, bytes_of_first(text)));
    text.remove_prefix(tokens.back().size());
  }
  return tokens;
}

}  // namespace

// (strings, patterns, 1 if the only pattern is that of tokens and 0 for separators, least number of characters, 1 to
// mark begin and end, what stands behind the last token): the tokens along a new last axis. Without patterns each
// character is a token.
Value tokenize(BuiltinContext& context, Arguments arguments) {
  const Tensor &strings = strings_in(arguments[0]), &patterns = strings_in(arguments[1]);
  bool is_token = arguments[2].integer() != 0, has_marks = arguments[4].integer() != 0;
  Cutter cutter{{}, arguments[3].integer()};
  for (int64_t i = 0; i < patterns.size(); ++i) cutter.patterns.emplace_back(patterns.string(i));
  if (is_token && patterns.size() != 1) throw_runtime_error("{} patterns of tokens, expected one", patterns.size());
  std::vector<Tokens> rows;
  size_t width = 0;
  for (int64_t i = 0; i < strings.size(); ++i) {
    std::string_view text = strings.string(i);
    rows.push_back(patterns.size() == 0 ? characters_of(text)
                   : is_token           ? cutter.matching(text)
                                        : cutter.between(text));
    width = std::max(width, rows.back().size());
  }
  if (has_marks && width > 0) width += 2;
  Shape shape = strings.shape();
  shape.push_back(static_cast<int64_t>(width));
  checked_tensor_bytes(shape, DType::string());
  Tokens texts;
  for (Tokens& row : rows) {
    if (width == 0) break;
    if (has_marks) row.insert(row.begin(), "\x02");
    if (has_marks) row.emplace_back("\x03");
    row.resize(width, arguments[5].string());
    texts.insert(texts.end(), row.begin(), row.end());
  }
  return make_strings(context, std::move(shape), texts);
}

}  // namespace relaxc::vm::strings
