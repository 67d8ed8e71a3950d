// The grammar of the Python subset that TVMScript uses, to a syntax tree: statements, then expressions by precedence,
// then recovery. One recursive descent, kept in one file although it is above 600 lines.
#include "ir/text/syntax.h"

#include <algorithm>

#include "ir/text/names.h"

namespace relaxc::text {

namespace {

// Thrown after a syntax error was reported; caught where statements are separated.
struct SyntaxError {};

constexpr std::string_view kKeywords[] = {
    "and",      "as",     "assert",  "async", "await", "break",  "class", "continue", "def",  "del",  "elif",
    "else",     "except", "finally", "for",   "from",  "global", "if",    "import",   "in",   "is",   "lambda",
    "nonlocal", "not",    "or",      "pass",  "raise", "return", "try",   "while",    "with", "yield"};

// Names outnumber keywords by far.
bool is_keyword(std::string_view word) {
  return word.size() >= 2 && word.size() <= 8 &&
         std::find(std::begin(kKeywords), std::end(kKeywords), word) != std::end(kKeywords);
}

// How tight a binary operator binds; 0: it is none. ** is unary()'s.
int binary_level(const Token& token) {
  if (token.kind != TokenKind::kOperator || token.text.size() > 2) return 0;
  char first = token.text[0];
  if (token.text.size() == 2) return token.text == "//" ? 6 : token.text == "<<" || token.text == ">>" ? 4 : 0;
  constexpr std::string_view kOps = "|^&+-*/%@", kLevels = "123556666";
  size_t at = kOps.find(first);
  return at == std::string_view::npos ? 0 : kLevels[at] - '0';
}
bool may_compare(const Token& token) {
  return !token.text.empty() && std::string_view("=!<>i").find(token.text[0]) != std::string_view::npos;
}

}  // namespace

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
    // What was read is forgotten, but for the token that an underline may end at.
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
  // By value: reading ahead moves the tokens.
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
    // The end of a line is that of its last token: comments may follow.
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

  // ---- Statements

  // One statement (or several on one line) appended; after an error one of kind kBroken.
  void statement(Lines& out) {
    size_t start = next_, before = out.size();
    try {
      statement_or_throw(out);
    } catch (const SyntaxError&) {
      out.resize(before);
      recover(start, out);
    }
  }

  // Goes on after the line; the block below it is read, so that its errors are told and its names known.
  void recover(size_t start, Lines& out) {
    if (next_ == start) ++next_;
    const Token first = tokens_[start];
    Line& line = new_line(LineKind::kBroken, first);
    skip_line();
    // What a decorator stands before, and what belongs to the `if` or the `try`.
    while (first.is("@") && (peek().is("@") || peek().is("def") || peek().is("class"))) skip_line();
    line.names = names_assigned(start, next_);
    broken_block(line.body);
    while (peek().is("elif") || peek().is("else") || peek().is("except") || peek().is("finally")) {
      skip_line();
      broken_block(line.body);
    }
    out.push_back(&line);
  }
  void skip_line() {
    while (peek().kind < TokenKind::kNewline) ++next_;
    if (peek().kind == TokenKind::kNewline) ++next_;
  }
  void broken_block(Lines& out) {
    if (peek().kind != TokenKind::kIndent) return;
    ++next_;
    bool readable = statement_depth_ < limits_.statement_depth;
    ++statement_depth_;
    for (int depth = 1; peek().kind != TokenKind::kEnd;) {
      if (readable && peek().kind != TokenKind::kDedent) {
        statement(out);
        continue;
      }
      if (peek().kind == TokenKind::kIndent) ++depth;
      if (peek().kind == TokenKind::kDedent) --depth;
      ++next_;
      if (depth == 0) break;
    }
    --statement_depth_;
  }
  // Names at the beginnings of lines, and after `for`, `as` and `def`, where they are defined; `y R.exp(x)` lacks a
  // '='.
  std::vector<std::string_view> names_assigned(size_t from, size_t to) const {
    std::vector<std::string_view> names;
    bool target = true;
    for (size_t i = from; i < to; ++i) {
      const Token& token = tokens_[i];
      if (i > from && token.line != tokens_[i - 1].line) target = true;
      bool is_def = token.is("def") || token.is("class");
      if (is_def && i + 1 < to) names.push_back(tokens_[i + 1].text);
      if (token.is("for") || token.is("as")) {
        target = true;
      } else if (!token.is(",") && !token.is("(")) {
        bool assigned = i + 1 < to && (tokens_[i + 1].is("=") || tokens_[i + 1].is(":") || tokens_[i + 1].is(",") ||
                                       tokens_[i + 1].is(")") || tokens_[i + 1].kind == TokenKind::kName);
        target = target && assigned && token.kind == TokenKind::kName && !is_keyword(token.text);
        if (target) names.push_back(token.text);
      }
    }
    return names;
  }

  void statement_or_throw(Lines& out) {
    bool outermost = at_definition_ && !in_class_;
    at_definition_ = false;
    if (peek().kind == TokenKind::kIndent) {
      diagnostics_.error(source_.span(peek(1)), "unexpected indentation");
      ++next_;
      // The lines below belong to the block that stands before them.
      while (peek().kind != TokenKind::kDedent && peek().kind != TokenKind::kEnd) statement(out);
      if (peek().kind == TokenKind::kDedent) ++next_;
      return;
    }
    if (peek().kind == TokenKind::kDedent || peek().kind == TokenKind::kNewline) {
      ++next_;
      return;
    }
    Token first = peek();
    if (first.kind == TokenKind::kOperator && first.text == "@") return decorated(out, outermost);
    if (first.kind == TokenKind::kName) {
      if (first.text == "def") return function(out, {});
      if (first.text == "class") return class_definition(out, {}, outermost);
      if (first.text == "for") return for_loop(out);
      if (first.text == "while") return while_loop(out);
      if (first.text == "if") return if_statement(out);
      if (first.text == "with") return with_statement(out);
      if (first.text == "elif" || first.text == "else") fail(first, "'{}' without an 'if' before it", first.text);
      constexpr std::string_view kRefused[] = {"try", "async", "del", "global", "nonlocal", "raise", "yield"};
      for (std::string_view word : kRefused) {
        if (first.text == word) fail(first, "'{}' has no meaning in a module", word);
      }
    }
    simple_statements(out);
  }

  Line& new_line(LineKind kind, const Token& at) {
    Line& line = tree_->line();
    line.kind = kind;
    line.line = at.line;
    line.column = at.column;
    line.length = static_cast<uint32_t>(std::max<size_t>(1, at.text.size()));
    return line;
  }

  void simple_statements(Lines& out) {
    const uint32_t line = peek().line;
    while (true) {
      simple_statement(out);
      if (!accept(";")) break;
      if (peek().kind == TokenKind::kNewline) break;
    }
    if (peek().kind != TokenKind::kNewline && peek().kind != TokenKind::kEnd)
      fail(peek(), "expected the end of the statement, got {}", describe(peek()));
    // Tokens with errors have no meaning.
    if (lexer_.broken(line)) throw SyntaxError();
    if (peek().kind == TokenKind::kNewline) ++next_;
  }

  void simple_statement(Lines& out) {
    Token first = peek();
    if (first.is("pass")) return out.push_back(&new_line(LineKind::kPass, take()));
    if (first.is("break")) return out.push_back(&new_line(LineKind::kBreak, take()));
    if (first.is("continue")) return out.push_back(&new_line(LineKind::kContinue, take()));
    if (first.is("import") || first.is("from")) return out.push_back(import());
    if (first.is("return")) {
      Line& line = new_line(LineKind::kReturn, take());
      if (peek().kind != TokenKind::kNewline && !peek().is(";")) line.value = expression_list();
      return out.push_back(&line);
    }
    if (first.is("assert")) {
      Line& line = new_line(LineKind::kAssert, take());
      line.value = expression();
      if (accept(",")) line.extra = expression();
      return out.push_back(&line);
    }
    const Syntax* head = expression_list();
    if (accept(":")) {
      Line& line = new_line(LineKind::kAssign, first);
      line.target = head;
      line.annotation = expression();
      if (accept("=")) line.value = expression_list();
      return out.push_back(&line);
    }
    if (accept("=")) {
      Line& line = new_line(LineKind::kAssign, first);
      line.target = head;
      line.value = expression_list();
      if (peek().is("=")) fail(peek(), "one target per assignment");
      return out.push_back(&line);
    }
    constexpr std::string_view kAugmented[] = {"+=", "-=", "*=", "/=", "//=", "%=", "&=", "|=", "^=", ">>=", "<<="};
    for (std::string_view op : kAugmented) {
      if (!peek().is(op)) continue;
      Line& line = new_line(LineKind::kAugmented, first);
      line.text = take().text;
      line.text.remove_suffix(1);
      line.target = head;
      line.value = expression_list();
      return out.push_back(&line);
    }
    Line& line = new_line(LineKind::kExpression, first);
    line.value = head;
    out.push_back(&line);
  }

  const Line* import() {
    Line& line = new_line(LineKind::kImport, peek());
    bool from = take().is("from");
    auto dotted = [&] {
      std::string path;
      do {
        if (peek().kind != TokenKind::kName) fail(peek(), "expected a name, got {}", describe(peek()));
        path += (path.empty() ? "" : ".") + std::string(take().text);
      } while (accept("."));
      return path;
    };
    std::string package;
    if (from) {
      package = dotted() + ".";
      expect("import", "after the package");
    }
    do {
      std::string path = package + dotted(), local = path.substr(path.rfind('.') + 1);
      if (accept("as")) local = std::string(take().text);
      line.imports.emplace_back(path, local);
    } while (accept(","));
    return &line;
  }

  void block(Lines& out, const Token& head, std::string_view what) {
    if (peek().kind == TokenKind::kNewline && peek(1).kind == TokenKind::kIndent) {
      report(peek(), fmt::format("expected ':' after the head of the {}, got the end of the line", what));
    } else {
      expect(":", fmt::format("after the head of the {}", what));
    }
    if (peek().kind != TokenKind::kNewline) return simple_statements(out);
    if (peek(1).kind != TokenKind::kIndent) fail(head, "expected an indented block below this line");
    next_ += 2;
    Nesting nesting(*this, statement_depth_, limits_.statement_depth, "blocks");
    while (peek().kind != TokenKind::kDedent && peek().kind != TokenKind::kEnd) statement(out);
    if (peek().kind == TokenKind::kDedent) ++next_;
  }

  void decorated(Lines& out, bool outermost) {
    std::vector<const Syntax*> decorators;
    while (accept("@")) {
      decorators.push_back(expression());
      if (peek().kind != TokenKind::kNewline) fail(peek(), "expected the end of the line, got {}", describe(peek()));
      ++next_;
    }
    if (peek().is("def")) return function(out, std::move(decorators));
    if (peek().is("class")) return class_definition(out, std::move(decorators), outermost);
    fail(peek(), "expected 'def' or 'class' after a decorator, got {}", describe(peek()));
  }

  void function(Lines& out, std::vector<const Syntax*> decorators) {
    Token head = take();
    if (peek().kind != TokenKind::kName || is_keyword(peek().text))
      fail(peek(), "expected the function's name, got {}", describe(peek()));
    Line& line = new_line(LineKind::kFunction, take());
    line.text = tokens_[next_ - 1].text;
    line.decorators = std::move(decorators);
    if (accept("[")) {
      while (!peek().is("]")) {
        if (peek().kind != TokenKind::kName) fail(peek(), "expected a name, got {}", describe(peek()));
        line.type_params.push_back(take().text);
        if (accept(":")) expression();
        if (!accept(",")) break;
      }
      expect("]", "after the names");
    }
    expect("(", "after the function's name");
    while (!peek().is(")")) {
      if (peek().kind != TokenKind::kName) fail(peek(), "expected a parameter, got {}", describe(peek()));
      Token name = take();
      Param param{name.text, nullptr, name.line, name.column};
      if (accept(":")) param.annotation = expression();
      if (peek().is("=")) fail(peek(), "parameters have no defaults");
      line.params.push_back(param);
      if (!accept(",")) break;
    }
    expect(")", "after the parameters");
    if (accept("->")) line.annotation = expression();
    block(line.body, head, "function");
    out.push_back(&line);
  }

  void class_definition(Lines& out, std::vector<const Syntax*> decorators, bool outermost) {
    Token head = take();
    Line& line = new_line(LineKind::kClass, take());
    line.text = tokens_[next_ - 1].text;
    line.decorators = std::move(decorators);
    if (accept("(")) {
      while (!peek().is(")")) {
        expression();
        if (!accept(",")) break;
      }
      expect(")", "after the base classes");
    }
    if (outermost) class_name_ = line.text;
    bool body_follows =
        outermost && peek().is(":") && peek(1).kind == TokenKind::kNewline && peek(2).kind == TokenKind::kIndent;
    if (body_follows) {
      next_ += 3;
      in_class_ = true;
    } else {
      block(line.body, head, "class");
    }
    out.push_back(&line);
  }

  void for_loop(Lines& out) {
    Token head = take();
    Line& line = new_line(LineKind::kFor, head);
    line.target = target_list();
    expect("in", "after the loop variables");
    line.value = expression_list();
    block(line.body, head, "loop");
    if (peek().is("else")) fail(peek(), "loops have no 'else'");
    out.push_back(&line);
  }

  void while_loop(Lines& out) {
    Token head = take();
    Line& line = new_line(LineKind::kWhile, head);
    line.value = expression();
    block(line.body, head, "loop");
    out.push_back(&line);
  }

  void if_statement(Lines& out) {
    Token head = take();
    Line& line = new_line(LineKind::kIf, head);
    line.value = expression();
    block(line.body, head, "branch");
    out.push_back(&line);
    if (peek().is("elif")) {
      Nesting nesting(*this, statement_depth_, limits_.statement_depth, "branches");
      return if_statement(line.otherwise);
    }
    if (peek().is("else")) {
      Token otherwise = take();
      block(line.otherwise, otherwise, "branch");
    }
  }

  void with_statement(Lines& out) {
    Token head = take();
    Line& line = new_line(LineKind::kWith, head);
    do {
      const Syntax* value = expression();
      const Syntax* name = accept("as") ? target() : nullptr;
      line.items.emplace_back(value, name);
    } while (accept(","));
    block(line.body, head, "with statement");
    out.push_back(&line);
  }

  // ---- Expressions

  Syntax& node(SyntaxKind kind, const Token& at) {
    Syntax& result = tree_->node();
    result.kind = kind;
    result.line = at.line;
    result.column = at.column;
    result.length = static_cast<uint32_t>(std::max<size_t>(1, std::min(at.text.size(), at.text.find('\n'))));
    return result;
  }
  Syntax& node_from(SyntaxKind kind, const Syntax& first) {
    Syntax& result = tree_->node();
    result.kind = kind;
    result.line = first.line;
    result.column = first.column;
    result.length = first.length;
    return result;
  }
  void adopt(Syntax& parent, const Syntax* child) {
    if (child) {
      parent.depth = std::max(parent.depth, child->depth + 1);
      if (parent.depth > limits_.expression_depth)
        fail(peek(), "expressions are nested deeper than {} levels", limits_.expression_depth);
    }
    parent.children.push_back(child);
  }
  // The underline goes to the end of the last token, when that is on the same line.
  const Syntax* close(Syntax& parent) {
    const Token& last = tokens_[next_ - 1];
    if (last.line == parent.line && last.text.find('\n') == std::string_view::npos) {
      parent.length = last.column + static_cast<uint32_t>(last.text.size()) - parent.column;
    }
    return &parent;
  }

  bool starts_expression() {
    Token token = peek();
    if (token.kind == TokenKind::kName) return !is_keyword(token.text) || token.text == "not" || token.text == "lambda";
    if (token.kind != TokenKind::kOperator) return token.kind <= TokenKind::kString;
    return token.is("(") || token.is("[") || token.is("{") || token.is("-") || token.is("+") || token.is("~") ||
           token.is("*") || token.is("...");
  }

  // a, b, c without parentheses is a tuple.
  const Syntax* expression_list() {
    const Syntax* first = starred_or_expression();
    if (!peek().is(",")) return first;
    Syntax& result = node_from(SyntaxKind::kTuple, *first);
    adopt(result, first);
    while (accept(",")) {
      if (!starts_expression()) break;
      adopt(result, starred_or_expression());
    }
    return close(result);
  }

  // Loop and assignment targets: no operators, so that `in` is not taken for one.
  const Syntax* target_list() {
    const Syntax* first = target();
    if (!peek().is(",")) return first;
    Syntax& result = node_from(SyntaxKind::kTuple, *first);
    adopt(result, first);
    while (accept(",")) {
      if (!starts_expression()) break;
      adopt(result, target());
    }
    return close(result);
  }
  const Syntax* target() {
    if (peek().is("*")) {
      Syntax& result = node(SyntaxKind::kStarred, take());
      adopt(result, postfix());
      return close(result);
    }
    return postfix();
  }

  const Syntax* starred_or_expression() {
    if (!peek().is("*")) return expression();
    Syntax& result = node(SyntaxKind::kStarred, take());
    adopt(result, expression());
    return close(result);
  }

  const Syntax* expression() {
    Nesting nesting(*this, expression_depth_, limits_.expression_depth, "expressions");
    if (peek().is("lambda")) return lambda();
    const Syntax* value = or_expression();
    if (!peek().is("if")) return value;
    ++next_;
    Syntax& result = node_from(SyntaxKind::kConditional, *value);
    adopt(result, value);
    adopt(result, or_expression());
    expect("else", "in a conditional expression");
    adopt(result, expression());
    return close(result);
  }

  const Syntax* lambda() {
    Syntax& result = node(SyntaxKind::kLambda, take());
    while (!peek().is(":")) {
      adopt(result, target());
      if (!peek().is(":")) expect(",", "between the parameters of a lambda");
    }
    ++next_;
    adopt(result, expression());
    return close(result);
  }

  const Syntax* or_expression() {
    const Syntax* left = and_expression();
    while (peek().is("or")) {
      Syntax& result = node_from(SyntaxKind::kBool, *left);
      result.text = take().text;
      adopt(result, left);
      adopt(result, and_expression());
      left = close(result);
    }
    return left;
  }
  const Syntax* and_expression() {
    const Syntax* left = not_expression();
    while (peek().is("and")) {
      Syntax& result = node_from(SyntaxKind::kBool, *left);
      result.text = take().text;
      adopt(result, left);
      adopt(result, not_expression());
      left = close(result);
    }
    return left;
  }
  const Syntax* not_expression() {
    if (!peek().is("not")) return comparison();
    Nesting nesting(*this, expression_depth_, limits_.expression_depth, "expressions");
    Syntax& result = node(SyntaxKind::kUnary, take());
    result.text = "not";
    adopt(result, not_expression());
    return close(result);
  }

  // a < b < c means a < b and b < c.
  const Syntax* comparison() {
    const Syntax* left = binary(1);
    const Syntax* chain = nullptr;
    while (true) {
      if (!may_compare(peek())) return chain ? chain : left;
      constexpr std::string_view kCompare[] = {"==", "!=", "<=", ">=", "<", ">", "in", "is"};
      auto op = std::find_if(std::begin(kCompare), std::end(kCompare), [&](auto o) { return peek().is(o); });
      if (op == std::end(kCompare)) return chain ? chain : left;
      if (*op == "in" || *op == "is") fail(peek(), "'{}' has no meaning in a module", *op);
      ++next_;
      const Syntax* right = binary(1);
      Syntax& pair = node_from(SyntaxKind::kCompare, *left);
      pair.text = *op;
      adopt(pair, left);
      adopt(pair, right);
      close(pair);
      if (chain) {
        Syntax& both = node_from(SyntaxKind::kBool, *chain);
        both.text = "and";
        adopt(both, chain);
        adopt(both, &pair);
        chain = close(both);
      } else {
        chain = &pair;
      }
      left = right;
    }
  }

  // Operators of at least this level, to the left: precedence climbing.
  const Syntax* binary(int least) {
    const Syntax* left = unary();
    for (int level; (level = binary_level(peek())) >= least;) {
      Syntax& result = node_from(SyntaxKind::kBinary, *left);
      result.text = take().text;
      adopt(result, left);
      adopt(result, binary(level + 1));
      left = close(result);
    }
    return left;
  }

  const Syntax* unary() {
    if (peek().is("-") || peek().is("+") || peek().is("~")) {
      Nesting nesting(*this, expression_depth_, limits_.expression_depth, "expressions");
      Token op = take();
      Syntax& result = node(SyntaxKind::kUnary, op);
      result.text = op.text;
      adopt(result, unary());
      return close(result);
    }
    const Syntax* base = postfix();
    if (!peek().is("**")) return base;
    Nesting nesting(*this, expression_depth_, limits_.expression_depth, "expressions");
    ++next_;
    Syntax& result = node_from(SyntaxKind::kBinary, *base);
    result.text = "**";
    adopt(result, base);
    adopt(result, unary());
    return close(result);
  }

  const Syntax* postfix() {
    const Syntax* base = atom();
    while (true) {
      if (accept(".")) {
        if (peek().kind != TokenKind::kName) fail(peek(), "expected a name after '.', got {}", describe(peek()));
        Syntax& result = node_from(SyntaxKind::kAttribute, *base);
        adopt(result, base);
        result.text = take().text;
        base = close(result);
      } else if (peek().is("(")) {
        base = call(base);
      } else if (peek().is("[")) {
        base = subscript(base);
      } else {
        return base;
      }
    }
  }

  const Syntax* call(const Syntax* callee) {
    ++next_;
    Syntax& result = node_from(SyntaxKind::kCall, *callee);
    adopt(result, callee);
    while (!peek().is(")")) {
      if (peek().kind == TokenKind::kName && peek(1).is("=")) {
        Token name = take();
        ++next_;
        for (const Syntax::Keyword& other : result.keywords) {
          if (other.name == name.text) fail(name, "argument '{}' is given twice", name.text);
        }
        const Syntax* value = expression();
        result.depth = std::max(result.depth, value->depth + 1);
        result.keywords.push_back({name.text, value, name.line, name.column});
      } else {
        if (peek().is("**")) fail(peek(), "'**' arguments have no meaning in a module");
        Token at = peek();
        const Syntax* value = starred_or_expression();
        if (!result.keywords.empty()) fail(at, "a positional argument after a keyword argument");
        adopt(result, value);
      }
      if (!peek().is(")") && !peek().is(",")) fail(peek(), "expected ',' or ')' in a call, got {}", describe(peek()));
      accept(",");
    }
    ++next_;
    return close(result);
  }

  const Syntax* subscript(const Syntax* object) {
    ++next_;
    Syntax& result = node_from(SyntaxKind::kSubscript, *object);
    adopt(result, object);
    while (!peek().is("]")) {
      adopt(result, slice());
      if (!peek().is("]") && !peek().is(",")) fail(peek(), "expected ',' or ']' in an index, got {}", describe(peek()));
      accept(",");
    }
    ++next_;
    return close(result);
  }

  const Syntax* slice() {
    Token at = peek();
    const Syntax* start = peek().is(":") ? nullptr : starred_or_expression();
    if (!peek().is(":")) return start;
    Syntax& result = start ? node_from(SyntaxKind::kSlice, *start) : node(SyntaxKind::kSlice, at);
    adopt(result, start);
    ++next_;
    auto part = [&]() -> const Syntax* {
      return peek().is(":") || peek().is(",") || peek().is("]") ? nullptr : expression();
    };
    adopt(result, part());
    adopt(result, accept(":") ? part() : nullptr);
    return close(result);
  }

  const Syntax* atom() {
    Token token = peek();
    switch (token.kind) {
      case TokenKind::kName: {
        if (token.text == "lambda") fail(token, "'lambda' has no meaning here");
        if (is_keyword(token.text)) fail(token, "expected an expression, got '{}'", token.text);
        bool constant = token.text == "True" || token.text == "False" || token.text == "None";
        Syntax& result = node(constant ? SyntaxKind::kConstant : SyntaxKind::kName, token);
        result.text = take().text;
        if (token.text == "cls" || token.text == "Module" || token.text == class_name_) tree_->names_module = true;
        return &result;
      }
      case TokenKind::kInt:
      case TokenKind::kFloat:
      case TokenKind::kString: {
        SyntaxKind kind = token.kind == TokenKind::kInt     ? SyntaxKind::kInt
                          : token.kind == TokenKind::kFloat ? SyntaxKind::kFloat
                                                            : SyntaxKind::kString;
        Syntax& result = node(kind, token);
        result.text = take().text;
        if (kind == SyntaxKind::kString && peek().kind == TokenKind::kString)
          fail(peek(), "strings next to each other are not joined; write one string");
        return &result;
      }
      case TokenKind::kOperator:
        if (token.text == "(") return parenthesized();
        if (token.text == "[") return list();
        if (token.text == "{") return dictionary();
        if (token.text == "...") {
          Syntax& result = node(SyntaxKind::kConstant, token);
          result.text = take().text;
          return &result;
        }
        break;
      case TokenKind::kNewline:
      case TokenKind::kIndent:
      case TokenKind::kDedent:
      case TokenKind::kEnd:
        break;
    }
    fail(token, "expected an expression, got {}", describe(token));
  }

  const Syntax* parenthesized() {
    Token open = take();
    if (accept(")")) return close(node(SyntaxKind::kTuple, open));
    const Syntax* first = starred_or_expression();
    if (accept(")")) return first;
    if (peek().is("for")) fail(peek(), "comprehensions have no meaning in a module");
    Syntax& result = node(SyntaxKind::kTuple, open);
    adopt(result, first);
    while (accept(",")) {
      if (peek().is(")")) break;
      adopt(result, starred_or_expression());
    }
    expect(")", "after the items of a tuple");
    return close(result);
  }

  const Syntax* list() {
    Syntax& result = node(SyntaxKind::kList, take());
    while (!peek().is("]")) {
      adopt(result, starred_or_expression());
      if (peek().is("for")) fail(peek(), "comprehensions have no meaning in a module");
      if (!peek().is("]") && !peek().is(",")) fail(peek(), "expected ',' or ']' in a list, got {}", describe(peek()));
      accept(",");
    }
    ++next_;
    return close(result);
  }

  const Syntax* dictionary() {
    Syntax& result = node(SyntaxKind::kDict, take());
    while (!peek().is("}")) {
      adopt(result, expression());
      expect(":", "after a key");
      adopt(result, expression());
      if (!peek().is("}") && !peek().is(","))
        fail(peek(), "expected ',' or '}}' in a dictionary, got {}", describe(peek()));
      accept(",");
    }
    ++next_;
    return close(result);
  }

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

SyntaxReader::SyntaxReader(const Source& source, Diagnostics& diagnostics, const SyntaxLimits& limits)
    : parser_(std::make_unique<SyntaxParser>(source, diagnostics, limits)) {}
SyntaxReader::~SyntaxReader() = default;
bool SyntaxReader::next(SyntaxTree& tree, Lines& lines) { return parser_->next_definition(tree, lines); }
bool SyntaxReader::in_class() const { return parser_->in_class(); }

const Syntax* parse_expression(const Source& source, SyntaxTree& tree, Diagnostics& diagnostics,
                               const SyntaxLimits& limits) {
  return SyntaxParser(source, tree, diagnostics, limits).single_expression();
}

}  // namespace relaxc::text
