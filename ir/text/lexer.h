// Tokens of the text format: Python's lexical rules (indentation, implicit line joining, comments, strings, numbers).
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "support/diagnostic.h"
#include "support/file_kind.h"

namespace relaxc::text {

// A place in a source: lines and columns count from 1, columns in bytes. A message underlines `length` bytes.
struct Place {
  uint32_t line = 0, column = 0, length = 0;
};

enum class TokenKind : uint8_t { kName, kInt, kFloat, kString, kOperator, kNewline, kIndent, kDedent, kEnd };

struct Token {
  TokenKind kind;
  std::string_view text;  // as written, quotes included
  uint32_t line, column;
  bool is_missing = false;  // a closing bracket that the source lacks: the text is not a part of the source

  // Returns where the token is, up to the end of its first line.
  Place place() const;
  uint32_t end_column() const { return column + static_cast<uint32_t>(text.size()); }
  bool is(TokenKind wanted) const { return kind == wanted; }
  // Returns whether the token is this operator or keyword. The first character decides nearly always.
  bool is(std::string_view op) const { return text.size() == op.size() && text[0] == op[0] && text == op; }
};

// A piece of a file that is lexed by itself: the whole file, or the content of a string.
struct Source {
  std::shared_ptr<const Origin> origin;
  std::string_view text;  // part of *origin->text
  uint32_t line = 1, column = 1;

  Span span(const Place& at) const { return {origin, at.line, at.column, at.length}; }
};

// Reads a source line by line. Characters with which no token begins are reported and left out. Brackets that are open
// where a new statement begins are reported as never closed.
class Lexer {
 public:
  Lexer(const Source& source, Diagnostics& diagnostics)
      : source_(source), text_(source.text), diagnostics_(diagnostics), line_(source.line), column_(source.column) {
    position_ = text_.size() - without_byte_order_mark(text_).size();
  }
  // Appends the tokens of at least one more line that is not blank; kEnd at the end of the source, then nothing more.
  void read_line(std::vector<Token>& tokens);
  // Returns whether this line is part of a statement whose tokens have an error: grammar errors in it are consequences.
  bool broken(uint32_t line) const;

 private:
  bool at_end() const { return position_ >= text_.size(); }
  char peek(size_t ahead = 0) const { return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0'; }
  void advance(size_t count) {
    position_ += count;
    column_ += static_cast<uint32_t>(count);
  }
  void newline() {
    ++position_;
    ++line_;
    column_ = 1;
  }
  std::string_view rest_of_line() const { return text_.substr(position_, text_.find('\n', position_) - position_); }
  void push(TokenKind kind, size_t length);
  template <class... Args>
  void error(FormatString<Args...> pattern, const Args&... args) {
    mark_broken(line_);
    diagnostics_.error(source_.span({line_, column_, 1}), pattern, args...);
  }
  void end_line();
  void skip_blanks();
  bool start_line();
  void report_open_brackets();
  void close_bracket(uint32_t line, uint32_t column);
  void mark_broken(uint32_t last);
  void check_statement_in_brackets();
  void token(char c);
  size_t unmatched(size_t closed) const;
  void bracket_or_operator(size_t length);
  void number();
  void string(size_t prefix);

  Source source_;
  std::string_view text_;
  Diagnostics& diagnostics_;
  size_t position_ = 0;
  uint32_t line_, column_;
  bool at_line_start_ = true, fresh_line_ = true, ended_ = false;
  bool indentation_lost_ = false;     // an unclosed bracket took lines, whose indentation is not known
  TokenKind last_ = TokenKind::kEnd;  // the last token's kind; kEnd: none yet
  std::vector<size_t> indents_ = {0};
  std::vector<Token> brackets_;
  uint32_t statement_line_ = 1;                        // where the statement begins
  std::vector<std::pair<uint32_t, uint32_t>> broken_;  // first and last lines, in order
  std::vector<Token>* tokens_ = nullptr;               // where read_line appends tokens
};

// Reads a number in decimal digits; nullopt for other text, or when it needs more than 63 bits.
std::optional<int64_t> whole_number(std::string_view digits);
inline constexpr std::string_view kNeverClosed = "this string is never closed";
// Returns the value of a string token. `error` gets a message without a place when an escape is wrong.
std::string unquote(std::string_view literal, std::string& error);
// Returns the text in double quotes, with escapes.
std::string string_literal(std::string_view text);

// Returns the second item of the row that begins with the key; null when there is none.
template <class Key, class T, size_t kRows>
const T* row_of(const std::pair<Key, T> (&rows)[kRows], const std::type_identity_t<Key>& key) {
  auto row = std::ranges::find(rows, key, &std::pair<Key, T>::first);
  return row == std::end(rows) ? nullptr : &row->second;
}

}  // namespace relaxc::text
