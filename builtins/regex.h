// Regular expressions in the syntax of RE2, for full and longest matches. Like RE2 it simulates the automaton
// (Thompson, "Regular expression search algorithm", 1968), so that the time is a product of text and pattern, whatever
// they are.
#pragma once
#include <bitset>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "builtins/unicode.h"

namespace relaxc::vm {

class Regex {
 public:
  // Throws RuntimeError that names the place in a pattern that RE2 refuses, too, or that is too large.
  explicit Regex(std::string_view pattern);
  // Returns whether the whole text matches. Characters are those of UTF-8; other bytes match nothing but \C.
  bool matches(std::string_view text) const { return longest(text, 0) == text.size(); }
  // Returns begin and end, in bytes, of the first match that begins at `from` or behind it: the longest of those that
  // begin there. Characters before `from` are seen by \b and ^. The time grows with the square of the text.
  std::optional<std::pair<size_t, size_t>> find(std::string_view text, size_t from) const;

  struct Class {
    explicit Class(CharacterSet characters);
    bool holds(uint32_t c) const { return c < 128 ? ascii[c] : contains(set, c); }
    CharacterSet set;  // in order
    std::bitset<128> ascii;
  };
  enum class Op : uint8_t {
    kClass,
    kByte,
    kSplit,
    kJump,
    kBegin,
    kEnd,
    kLineBegin,
    kLineEnd,
    kWordEdge,
    kNoWordEdge,
    kMatch
  };
  struct Step {
    Op op;
    size_t a = 0, b = 0;  // the class; the next steps of a split or jump
  };

 private:
  // Returns the end of the longest match that begins at `from`.
  std::optional<size_t> longest(std::string_view text, size_t from) const;
  std::vector<Step> steps_;
  std::vector<Class> classes_;
};

}  // namespace relaxc::vm
