// The recursive-descent parser behind syntax.h: statements and recovery in syntax.cc, expressions in syntax_expr.cc.
// Internal to those two.
#pragma once
#include <algorithm>

#include "ir/text/syntax.h"

namespace relaxc::text {

// Thrown after a syntax error was reported; caught where statements are separated.
struct SyntaxError {};

bool is_keyword(std::string_view word);

class SyntaxParser {
 public:
  SyntaxParser(const Source& source, Diagnostics& diagnostics, const SyntaxLimits& limits)
      : source_(source), diagnostics_(diagnostics), limits_(limits), lexer_(source, diagnostics) {}
  SyntaxParser(const Source& source, SyntaxTree& tree, Diagnostics& diagnostics, const SyntaxLimits& limits)
      : SyntaxParser(source, diagnostics, limits) {
    tree_ = &tree;
  }

  bool next_definition(SyntaxTree& tree, Lines& out) {
    tree_ = &tree;
    // Tokens that were read are dropped, except for the last one, at which an underline may end.
    if (next_ > 1) {
      tokens_.erase(tokens_.begin(), tokens_.begin() + static_cast<int64_t>(next_) - 1);
      next_ = 1;
    }
    bool first = next_ == 0;
    while (first && (peek().kind == TokenKind::kIndent || peek().kind == TokenKind::kDedent)) ++next_;
    if (in_class_ && peek().kind == TokenKind::kDedent) {
      in_class_ = false;
      ++next_;
    }
    out.clear();
    if (peek().kind == TokenKind::kEnd) return false;
    was_in_class_ = in_class_;
    at_definition_ = true;
    statement(out);
    return true;
  }
  bool in_class() const { return was_in_class_; }

  const Syntax* single_expression() {
    try {
      while (peek().kind == TokenKind::kIndent) ++next_;
      const Syntax* result = expression();
      if (peek().kind != TokenKind::kNewline && peek().kind != TokenKind::kEnd)
        fail(peek(), "expected the end of the expression, got {}", describe(peek()));
      return result;
    } catch (const SyntaxError&) {
      return nullptr;
    }
  }

 private:
  // The token is returned by value, since reading ahead moves the tokens.
  Token peek(size_t ahead = 0) {
    while (next_ + ahead >= tokens_.size() && (tokens_.empty() || tokens_.back().kind != TokenKind::kEnd)) {
      lexer_.read_line(tokens_);
    }
    return tokens_[std::min(next_ + ahead, tokens_.size() - 1)];
  }
  Token take() {
    Token token = peek();
    if (token.kind != TokenKind::kEnd) ++next_;
    return token;
  }
  bool accept(std::string_view op) {
    if (!peek().is(op)) return false;
    ++next_;
    return true;
  }
  Token expect(std::string_view op, std::string_view where) {
    if (!peek().is(op)) fail(peek(), "expected '{}' {}, got {}", op, where, describe(peek()));
    return take();
  }
  static std::string describe(const Token& token) {
    switch (token.kind) {
      case TokenKind::kNewline:
        return "the end of the line";
      case TokenKind::kIndent:
        return "an indented line";
      case TokenKind::kDedent:
      case TokenKind::kEnd:
        return token.kind == TokenKind::kEnd ? "the end of the text" : "the end of the block";
      case TokenKind::kName:
      case TokenKind::kInt:
      case TokenKind::kFloat:
      case TokenKind::kString:
      case TokenKind::kOperator:
        return fmt::format("'{}'", token.text.substr(0, std::min<size_t>(token.text.find('\n'), 40)));
    }
    return "";
  }
  void report(Token at, const std::string& message) {
    if (lexer_.broken(at.line)) return;
    // The line ends at its last token, since comments may follow.
    const Token* before = next_ > 0 ? &tokens_[next_ - 1] : nullptr;
    if (at.kind == TokenKind::kNewline && before && before->line == at.line)
      at.column = before->column + static_cast<uint32_t>(before->text.size());
    diagnostics_.error(source_.span(at), "{}", message);
  }
  template <class... Args>
  [[noreturn]] void fail(const Token& at, fmt::format_string<Args...> format, Args&&... args) {
    report(at, fmt::format(format, std::forward<Args>(args)...));
    throw SyntaxError();
  }
  struct Nesting {
    Nesting(SyntaxParser& p, int& c, int limit, const char* what) : count(c) {
      if (++count > limit) {
        --count;
        p.fail(p.peek(), "{} are nested deeper than {} levels", what, limit);
      }
    }
    ~Nesting() { --count; }
    int& count;
  };

  // ---- syntax.cc: statements
  void statement(Lines& out);
  void recover(size_t start, Lines& out);
  void skip_line();
  void broken_block(Lines& out);
  std::vector<std::string_view> names_assigned(size_t from, size_t to) const;
  void statement_or_throw(Lines& out);
  Line& new_line(LineKind kind, const Token& at);
  void simple_statements(Lines& out);
  void simple_statement(Lines& out);
  const Line* import();
  void block(Lines& out, const Token& head, std::string_view what);
  void decorated(Lines& out, bool outermost);
  void function(Lines& out, std::vector<const Syntax*> decorators);
  void class_definition(Lines& out, std::vector<const Syntax*> decorators, bool outermost);
  void for_loop(Lines& out);
  void while_loop(Lines& out);
  void if_statement(Lines& out);
  void with_statement(Lines& out);

  // ---- syntax_expr.cc: expressions
  Syntax& node(SyntaxKind kind, const Token& at);
  Syntax& node_from(SyntaxKind kind, const Syntax& first);
  void adopt(Syntax& parent, const Syntax* child);
  const Syntax* close(Syntax& parent);
  bool starts_expression();
  const Syntax* expression_list();
  const Syntax* target_list();
  const Syntax* target();
  const Syntax* starred_or_expression();
  const Syntax* expression();
  const Syntax* lambda();
  const Syntax* or_expression();
  const Syntax* and_expression();
  const Syntax* not_expression();
  const Syntax* comparison();
  const Syntax* binary(int least);
  const Syntax* unary();
  const Syntax* postfix();
  const Syntax* call(const Syntax* callee);
  const Syntax* subscript(const Syntax* object);
  const Syntax* slice();
  const Syntax* atom();
  const Syntax* parenthesized();
  const Syntax* list();
  const Syntax* dictionary();

  const Source source_;
  SyntaxTree* tree_ = nullptr;
  Diagnostics& diagnostics_;
  SyntaxLimits limits_;
  Lexer lexer_;
  std::vector<Token> tokens_;  // those that were not forgotten, and some that come
  size_t next_ = 0;
  int statement_depth_ = 0, expression_depth_ = 0;
  bool at_definition_ = false, in_class_ = false, was_in_class_ = false;
  std::string_view class_name_;
};

}  // namespace relaxc::text
