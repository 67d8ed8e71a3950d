// Tokens of the text format: Python's lexical rules (indentation, implicit line joining, comments, strings, numbers).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/diagnostic.h"

namespace relaxc::text {

enum class TokenKind : uint8_t { kName, kInt, kFloat, kString, kOperator, kNewline, kIndent, kDedent, kEnd };

struct Token {
  TokenKind kind;
  std::string_view text;  // as written, quotes included
  uint32_t line;          // 1-based
  uint32_t column;        // 1-based, in bytes

  // An operator or a keyword. The first character decides nearly always.
  bool is(std::string_view op) const { return text.size() == op.size() && text[0] == op[0] && text == op; }
};

// A piece of a file that is lexed on its own: the whole file, or what stands in a string.
struct Source {
  std::shared_ptr<const Origin> origin;
  std::string_view text;  // part of *origin->text
  uint32_t line = 1, column = 1;

  Span span(uint32_t at_line, uint32_t at_column, size_t length) const {
    return {origin, at_line, at_column, static_cast<uint32_t>(length)};
  }
  Span span(const Token& token) const;
};

// Every token of the source, kEnd last. Characters that no token begins with are reported and left out. Brackets that
// are open where a new statement begins are reported as never closed.
std::vector<Token> lex(const Source& source, Diagnostics& diagnostics);

inline constexpr std::string_view kNeverClosed = "this string is never closed";
// What a string token means. The span-less error text when an escape is wrong; empty when it is right.
std::string unquote(std::string_view literal, std::string& error);

}  // namespace relaxc::text
