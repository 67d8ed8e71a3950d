#include "ir/text/lexer.h"

#include <algorithm>
#include <charconv>

namespace relaxc::text {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool is_name_char(char c) { return is_name_start(c) || is_digit(c); }

// Returns the length of the operator that begins with these characters; 0 when none does.
size_t operator_length(char a, char b, char c) {
  auto is_one_of = [&](std::string_view set) { return set.find(a) != std::string_view::npos; };
  if (a == '.') return b == '.' && c == '.' ? 3 : 1;
  if (a == b && is_one_of("*/<>")) return c == '=' ? 3 : 2;
  if (a == '-' && b == '>') return 2;
  if (b == '=' && is_one_of("+-*/%&|^@:<>=!")) return 2;
  return is_one_of("()[]{},:=+-*/%&|^~<>;@") ? 1 : 0;
}

bool opens(char c) { return c == '(' || c == '[' || c == '{'; }
bool closes(char c) { return c == ')' || c == ']' || c == '}'; }
std::string_view closing(std::string_view bracket) { return bracket == "(" ? ")" : bracket == "[" ? "]" : "}"; }

// Words that begin a statement and cannot occur inside an expression.
constexpr std::string_view kStatementWords[] = {"def", "class", "with", "return", "while", "assert", "elif", "@"};
// Words that begin a statement and can occur inside an expression, unless a ':' ends their line.
constexpr std::string_view kBlockWords[] = {"for", "if", "else"};

void append_utf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  constexpr uint32_t kFirst[] = {0, 0xc0, 0xe0, 0xf0};
  int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;  // bytes after the first
  out += static_cast<char>(kFirst[more] | (code >> (6 * more)));
  while (more-- > 0) out += static_cast<char>(0x80 | ((code >> (6 * more)) & 63));
}

}  // namespace

void Lexer::read_line(std::vector<Token>& tokens) {
  tokens_ = &tokens;
  const size_t before = tokens.size();
  while (!ended_) {
    if (at_line_start_ && brackets_.empty()) {
      if (tokens.size() > before) return;
      if (!start_line()) break;
    }
    skip_blanks();
    if (at_end()) break;
    char c = peek();
    if (c == '\n') {
      end_line();
      continue;
    }
    if (!brackets_.empty() && fresh_line_) check_statement_in_brackets();
    fresh_line_ = false;
    token(c);
  }
  if (ended_) return;
  ended_ = true;
  report_open_brackets();
  if (last_ != TokenKind::kEnd && last_ != TokenKind::kNewline) push(TokenKind::kNewline, 0);
  for (; indents_.size() > 1; indents_.pop_back()) push(TokenKind::kDedent, 0);
  push(TokenKind::kEnd, 0);
}

void Lexer::push(TokenKind kind, size_t length) {
  tokens_->push_back({kind, text_.substr(position_, length), line_, column_});
  last_ = kind;
  advance(length);
}
void Lexer::mark_broken(uint32_t last) {
  if (broken_.empty() || broken_.back().first != statement_line_) broken_.emplace_back(statement_line_, last);
  broken_.back().second = std::max(broken_.back().second, last);
}
bool Lexer::broken(uint32_t line) const {
  for (auto lines = broken_.rbegin(); lines != broken_.rend() && line <= lines->second; ++lines) {
    if (lines->first <= line) return true;
  }
  return false;
}

// Consumes the newline.
void Lexer::end_line() {
  if (brackets_.empty()) {
    bool in_statement = last_ != TokenKind::kEnd && last_ != TokenKind::kNewline && last_ != TokenKind::kIndent &&
                        last_ != TokenKind::kDedent;
    if (in_statement) push(TokenKind::kNewline, 0);
    at_line_start_ = true;
  }
  fresh_line_ = true;
  newline();
}

void Lexer::skip_blanks() {
  while (!at_end()) {
    char c = peek();
    if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
      advance(1);
    } else if (c == '#') {
      advance(rest_of_line().size());
    } else if (c == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
      advance(peek(1) == '\n' ? 1 : 2);
      newline();
    } else {
      return;
    }
  }
}

// Measures the indentation of the next line that holds a token; false at the end of the text.
bool Lexer::start_line() {
  size_t width = 0;
  for (char c = peek(); c == ' ' || c == '\t' || c == '\f' || c == '\r' || c == '\n' || c == '#'; c = peek()) {
    if (c == '\n') {
      newline();
      width = 0;
      continue;
    }
    if (c == ' ') ++width;
    if (c == '\t') width = (width / 8 + 1) * 8;
    advance(c == '#' ? rest_of_line().size() : 1);
  }
  if (at_end()) return false;
  at_line_start_ = false;
  fresh_line_ = false;
  statement_line_ = line_;
  if (last_ == TokenKind::kEnd && source_.column > 1) return true;  // inside of a string there is one line
  if (width > indents_.back()) {
    indents_.push_back(width);
    push(TokenKind::kIndent, 0);
  }
  while (width < indents_.back()) {
    if (width > indents_[indents_.size() - 2]) {
      // It counts as a line of the block above it. Below an unclosed bracket the indentation is not known.
      if (!indentation_lost_) error("this line is indented by {} columns, which matches no line above", width);
      indents_.back() = width;
      break;
    }
    indents_.pop_back();
    push(TokenKind::kDedent, 0);
    indentation_lost_ = indentation_lost_ && width != indents_.back();
  }
  return true;
}

// Closes the innermost bracket by a token that the source lacks.
void Lexer::close_bracket(uint32_t line, uint32_t column) {
  tokens_->push_back({TokenKind::kOperator, closing(brackets_.back().text), line, column, /*is_missing=*/true});
  brackets_.pop_back();
}

// Reports the innermost open bracket of each line, and closes all brackets after the statement's last token.
void Lexer::report_open_brackets() {
  if (brackets_.empty()) return;
  bool known = broken(statement_line_);
  const Token& last = tokens_->back();
  uint32_t line = last.line, column = last.end_column();
  mark_broken(line);
  for (size_t i = 0; !known && i < brackets_.size(); ++i) {
    bool innermost = i + 1 == brackets_.size() || brackets_[i + 1].line != brackets_[i].line;
    if (innermost) diagnostics_.error(source_.span(brackets_[i].place()), "'{}' was never closed", brackets_[i].text);
  }
  while (!brackets_.empty()) close_bracket(line, column);
  tokens_->push_back({TokenKind::kNewline, {}, line, column});
  last_ = TokenKind::kNewline;
}

// Reports a bracket that is still open where a line begins with `def`, and goes on with the statement.
void Lexer::check_statement_in_brackets() {
  std::string_view line = rest_of_line();
  auto begins_with = [&](std::string_view word) {
    return line.starts_with(word) && (word == "@" || !is_name_char(peek(word.size())));
  };
  size_t last = line.substr(0, line.find('#')).find_last_not_of(" \t\r");
  bool heads_block = last != std::string_view::npos && line[last] == ':';
  bool begins = std::ranges::any_of(kStatementWords, begins_with) ||
                (heads_block && std::ranges::any_of(kBlockWords, begins_with));
  if (!begins) return;
  bool lost_if = begins_with("elif") || begins_with("else");
  report_open_brackets();
  indentation_lost_ = true;
  // The line's indentation counts again.
  position_ -= column_ - 1;
  column_ = 1;
  start_line();
  if (lost_if) mark_broken(line_);  // the bracket may have taken the `if` before it
}

void Lexer::token(char c) {
  if (is_name_start(c)) {
    size_t length = 1;
    while (is_name_char(peek(length))) ++length;
    bool prefix = (peek(length) == '"' || peek(length) == '\'') && length <= 2 &&
                  text_.substr(position_, length).find_first_not_of("rRbBuUfF") == std::string_view::npos;
    if (prefix) return string(length);
    return push(TokenKind::kName, length);
  }
  if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return number();
  if (c == '"' || c == '\'') return string(0);
  if (size_t length = operator_length(c, peek(1), peek(2))) return bracket_or_operator(length);
  bool is_control = static_cast<unsigned char>(c) < 32;
  error("unexpected character {}", is_control ? fmt::format("0x{:02x}", static_cast<int>(c)) : fmt::format("'{}'", c));
  advance(1);
}

// Returns the number of brackets of this line that match none, when the bracket here closes `closed` of them.
size_t Lexer::unmatched(size_t closed) const {
  std::string open;
  size_t earlier = 0, wrong = 0;
  for (size_t i = 0; i + closed < brackets_.size(); ++i) {
    open += closing(brackets_[i].text);
    earlier += brackets_[i].line < line_;
  }
  char quote = 0;
  for (char c : rest_of_line().substr(1)) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (opens(c)) {
      open += closing(std::string_view(&c, 1));
    } else if (closes(c) && !open.empty() && open.back() == c) {
      open.pop_back();
    } else if (closes(c)) {
      ++wrong;
    }
  }
  return wrong + (open.size() > earlier ? open.size() - earlier : 0);
}

void Lexer::bracket_or_operator(size_t length) {
  char c = peek();
  if (opens(c)) {
    brackets_.push_back({TokenKind::kOperator, text_.substr(position_, 1), line_, column_});
  } else if (closes(c)) {
    if (brackets_.empty()) {
      if (!broken(line_)) error("'{}' closes nothing", c);
      return advance(1);
    }
    const Token open = brackets_.back();
    if (closing(open.text)[0] != c) {
      if (!broken(line_)) error("'{}' does not match '{}' at {}:{}", c, open.text, open.line, open.column);
      // It closes a bracket further out, and those inside were forgotten; or it is written for the right one.
      auto matches = [&](const Token& bracket) { return closing(bracket.text)[0] == c; };
      auto found = std::find_if(brackets_.rbegin(), brackets_.rend(), matches);
      size_t inside = static_cast<size_t>(found - brackets_.rbegin());
      bool outer = inside < brackets_.size() && unmatched(inside + 1) <= unmatched(1);
      for (size_t i = 0; i < (outer ? inside : 1); ++i) close_bracket(line_, column_);
      if (!outer) return advance(1);
    }
    brackets_.pop_back();
  }
  push(TokenKind::kOperator, length);
}

void Lexer::number() {
  size_t length = 0;
  auto skip = [&](auto belongs) {
    while (belongs(peek(length))) ++length;
  };
  auto digits = [&] { skip([](char c) { return is_digit(c) || c == '_'; }); };
  if (peek() == '0' && std::string_view("xXbBo").find(peek(1)) != std::string_view::npos) {
    skip(is_name_char);
    return push(TokenKind::kInt, length);
  }
  digits();
  size_t whole = length;
  if (peek(length) == '.') {
    ++length;
    digits();
  }
  size_t sign = peek(length + 1) == '+' || peek(length + 1) == '-' ? 2 : 1;
  if ((peek(length) == 'e' || peek(length) == 'E') && is_digit(peek(length + sign))) {
    length += sign;
    digits();
  }
  push(length > whole ? TokenKind::kFloat : TokenKind::kInt, length);
}

void Lexer::string(size_t prefix) {
  size_t start = position_;
  uint32_t line = line_, column = column_;
  bool raw = text_.substr(position_, prefix).find_first_of("rR") != std::string_view::npos;
  advance(prefix);
  char quote = peek();
  bool triple = peek(1) == quote && peek(2) == quote;
  advance(triple ? 3 : 1);
  while (true) {
    if (at_end() || (!triple && peek() == '\n')) {
      mark_broken(line_);
      uint32_t length = triple ? 3 : static_cast<uint32_t>(position_ - start);
      diagnostics_.error(source_.span({line, column, length}), "{}", kNeverClosed);
      break;
    }
    bool escapes = peek() == '\\' && position_ + 1 < text_.size() && (!raw || peek(1) == quote);
    if (!escapes && peek() == quote && (!triple || (peek(1) == quote && peek(2) == quote))) {
      advance(triple ? 3 : 1);
      break;
    }
    if (escapes) advance(1);
    peek() == '\n' ? newline() : advance(1);
  }
  tokens_->push_back({TokenKind::kString, text_.substr(start, position_ - start), line, column});
  last_ = TokenKind::kString;
}

Place Token::place() const {
  size_t length = std::min(text.size(), text.find('\n'));
  return {line, column, static_cast<uint32_t>(std::max<size_t>(length, 1))};
}

std::optional<int64_t> whole_number(std::string_view digits) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  bool whole = error == std::errc() && end == digits.data() + digits.size() && value >= 0;
  return whole ? std::optional(value) : std::nullopt;
}

std::string unquote(std::string_view literal, std::string& error) {
  size_t prefix = std::min(literal.find_first_of("\"'"), literal.size());
  bool raw = literal.substr(0, prefix).find_first_of("rR") != std::string_view::npos;
  literal.remove_prefix(prefix);
  size_t quotes = literal.size() >= 6 && literal[1] == literal[0] && literal[2] == literal[0] ? 3 : 1;
  if (literal.size() < 2 * quotes || literal.back() != literal[0]) {
    error = kNeverClosed;
    return {};
  }
  std::string_view body = literal.substr(quotes, literal.size() - 2 * quotes);
  std::string result;
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i] != '\\' || raw || i + 1 >= body.size()) {
      result += body[i];
      continue;
    }
    char c = body[++i];
    constexpr std::string_view kLetters = "ntrabfv0\\\"'", kValues{"\n\t\r\a\b\f\v\0\\\"'", 11};
    size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits > 0) {
      uint32_t code = 0;
      std::string_view hex = body.substr(i + 1, digits);
      if (std::from_chars(hex.data(), hex.data() + hex.size(), code, 16).ptr != hex.data() + digits) {
        error = fmt::format("'\\{}' needs {} hexadecimal digits", c, digits);
        return {};
      }
      i += digits;
      if (c == 'x') {
        result += static_cast<char>(code);  // \x stands for a byte: names in models need not be UTF-8
      } else {
        append_utf8(result, std::min<uint32_t>(code, 0x10ffff));
      }
    } else if (size_t at = kLetters.find(c); at != std::string_view::npos) {
      result += kValues[at];
    } else if (c != '\n') {
      result += '\\';
      result += c;
    }
  }
  return result;
}

}  // namespace relaxc::text
