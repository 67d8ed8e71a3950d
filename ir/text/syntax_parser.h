// The recursive-descent parser behind syntax.h: statements and recovery in syntax.cc, expressions in syntax_expr.cc.
// Internal to those two.
#pragma once
#include <algorithm>

#include "ir/text/syntax.h"

namespace relaxc::text {

// Thrown after a syntax error was reported; caught where statements are separated.
struct SyntaxError {};

class SyntaxParser {
 public:
  SyntaxParser(const Source& source, Diagnostics& diagnostics)
      : source_(source), diagnostics_(diagnostics), lexer_(source, diagnostics) {}

  bool next_definition(SyntaxTree& tree, Lines& out);
  bool in_class() const { return was_in_class_; }
  const Syntax* single_expression(SyntaxTree& tree);

 private:
  static constexpr int kDeepestExpression = 400, kDeepestBlock = 100;

  // The token is returned by value, since reading ahead moves the tokens.
  Token peek(size_t ahead = 0) {
    while (next_ + ahead >= tokens_.size() && (tokens_.empty() || tokens_.back().kind != TokenKind::kEnd)) {
      lexer_.read_line(tokens_);
    }
    return tokens_[std::min(next_ + ahead, tokens_.size() - 1)];
  }
  bool at(TokenKind kind) { return peek().kind == kind; }
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
  bool accept(TokenKind kind) {
    if (!at(kind)) return false;
    ++next_;
    return true;
  }
  void expect(std::string_view op, std::string_view where) {
    if (!accept(op)) fail(peek(), "expected '{}' {}, got {}", op, where, describe(peek()));
  }
  Token expect_name(std::string_view what) {
    if (!at(TokenKind::kName)) fail(peek(), "expected {}, got {}", what, describe(peek()));
    return take();
  }
  static std::string describe(const Token& token);
  void report(Token at, const std::string& message);
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
    explicit Nesting(SyntaxParser& p) : Nesting(p, p.expression_depth_, kDeepestExpression, "expressions") {}
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
  // Appends a line that begins with this token. statement() drops the lines of a statement with an error.
  Line& add_line(Lines& out, LineKind kind, const Token& at);
  void simple_statements(Lines& out);
  void simple_statement(Lines& out);
  void import(Lines& out);
  void block(Lines& out, const Token& head, std::string_view what);
  void decorated(Lines& out, bool outermost);
  void function(Lines& out, std::vector<const Syntax*> decorators);
  void class_definition(Lines& out, std::vector<const Syntax*> decorators, bool outermost);
  void for_loop(Lines& out);
  void while_loop(Lines& out);
  void if_statement(Lines& out);
  void with_statement(Lines& out);

  // ---- syntax_expr.cc: expressions
  Syntax& node(const Place& begin, SyntaxKind kind, std::string_view text = {});
  void adopt(Syntax& parent, const Syntax* child);
  const Syntax* close(Syntax& parent);
  // Makes a node of these children, which ends at the last token that was read.
  const Syntax* joined(const Place& begin, SyntaxKind kind, std::string_view text,
                       std::initializer_list<const Syntax*> children);
  // Reads items with commas between them up to the closing bracket, which is consumed too.
  template <class Read>
  void read_until(std::string_view bracket, std::string_view where, Read&& read) {
    while (!accept(bracket)) {
      read();
      if (!accept(",") && !peek().is(bracket))
        fail(peek(), "expected ',' or '{}' in {}, got {}", bracket, where, describe(peek()));
    }
  }
  bool starts_expression();
  // Reads `a, b, c` without parentheses as a tuple; one item is returned as it is.
  const Syntax* bare_tuple(const Syntax* (SyntaxParser::*item)());
  const Syntax* expression_list() { return bare_tuple(&SyntaxParser::starred_or_expression); }
  const Syntax* target();
  const Syntax* starred_or_expression();
  const Syntax* expression();
  const Syntax* lambda();
  const Syntax* bool_chain(std::string_view op);
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
  Lexer lexer_;
  std::vector<Token> tokens_;  // those that were not forgotten, and some that come
  size_t next_ = 0;
  int statement_depth_ = 0, expression_depth_ = 0;
  bool at_definition_ = false, in_class_ = false, was_in_class_ = false;
  std::string_view class_name_;
};

}  // namespace relaxc::text
