// Reads statements of the Python subset that TVMScript uses, and recovers after an error.
#include "ir/text/syntax.h"
#include "ir/text/names.h"
#include "ir/text/python_lines.h"

namespace relaxc::text {

bool SyntaxReader::next(SyntaxTree& tree, Lines& out) {
  tree_ = &tree;
  // Tokens that were read are dropped, except for the last one, at which an underline may end.
  if (next_ > 1) {
    tokens_.erase(tokens_.begin(), tokens_.begin() + static_cast<int64_t>(next_) - 1);
    next_ = 1;
  }
  bool first = next_ == 0;
  while (first && (at(TokenKind::kIndent) || at(TokenKind::kDedent))) ++next_;
  if (in_class_ && accept(TokenKind::kDedent)) in_class_ = false;
  out.clear();
  if (at(TokenKind::kEnd)) return false;
  was_in_class_ = in_class_;
  at_definition_ = true;
  statement(out);
  return true;
}

const Syntax* SyntaxReader::expression(SyntaxTree& tree) {
  tree_ = &tree;
  try {
    while (accept(TokenKind::kIndent)) continue;
    const Syntax* result = expression();
    expect_line_end("the expression");
    return result;
  } catch (const SyntaxError&) {
    return nullptr;
  }
}

std::string SyntaxReader::describe(const Token& token) {
  if (token.kind == TokenKind::kNewline) return "the end of the line";
  if (token.kind == TokenKind::kIndent) return "an indented line";
  if (token.kind == TokenKind::kDedent) return "the end of the block";
  if (token.kind == TokenKind::kEnd) return "the end of the text";
  return fmt::format("'{}'", token.text.substr(0, std::min<size_t>(token.text.find('\n'), 40)));
}

void SyntaxReader::report(Token at, const std::string& message) {
  if (lexer_.broken(at.line)) return;
  // The line ends at its last token, since comments may follow.
  const Token* before = next_ > 0 ? &tokens_[next_ - 1] : nullptr;
  if (at.kind == TokenKind::kNewline && before && before->line == at.line) at.column = before->end_column();
  diagnostics_.error(source_.span(at.place()), "{}", message);
}

// Appends one statement, or several on one line; after an error, one of kind kBroken.
void SyntaxReader::statement(Lines& out) {
  size_t start = next_, before = out.size();
  try {
    statement_or_throw(out);
  } catch (const SyntaxError&) {
    out.resize(before);
    recover(start, out);
  }
}

// Goes on after the line. The block below it is read, so that its errors are reported and its names known.
void SyntaxReader::recover(size_t start, Lines& out) {
  if (next_ == start) ++next_;
  const Token first = tokens_[start];
  Line& line = add_line(out, LineKind::kBroken, first);
  skip_line();
  // A decorator precedes a definition; `elif`, `else` and similar words continue an `if` or a `try`.
  while (first.is("@") && (peek().is("@") || peek().is("def") || peek().is("class"))) skip_line();
  size_t last = next_ - 1;
  while (last > start && (tokens_[last].kind >= TokenKind::kNewline || tokens_[last].is_missing)) --last;
  const char *from = first.text.data(), *to = tokens_[last].text.data() + tokens_[last].text.size();
  bool is_text = first.kind < TokenKind::kNewline && !first.is_missing && from < to;  // other tokens have no text
  if (is_text) line.text = {from, static_cast<size_t>(to - from)};
  line.names = names_assigned(start, next_);
  broken_block(line.body);
  while (peek().is("elif") || peek().is("else") || peek().is("except") || peek().is("finally")) {
    skip_line();
    broken_block(line.body);
  }
}

void SyntaxReader::skip_line() {
  while (peek().kind < TokenKind::kNewline) ++next_;
  accept(TokenKind::kNewline);
}

void SyntaxReader::broken_block(Lines& out) {
  if (!accept(TokenKind::kIndent)) return;
  bool readable = statement_depth_ < kDeepestBlock;
  Temporarily deeper(statement_depth_, statement_depth_ + 1);
  for (int depth = 1; depth > 0 && !at(TokenKind::kEnd);) {
    if (readable && !at(TokenKind::kDedent)) {
      statement(out);
      continue;
    }
    depth += at(TokenKind::kIndent) - at(TokenKind::kDedent);
    ++next_;
  }
}

// Returns the names that the tokens may define: at the beginnings of lines, before `:=`, and after words such as `for`,
// `as` and `def`.
std::vector<std::string_view> SyntaxReader::names_assigned(size_t from, size_t to) const {
  std::vector<std::string_view> names;
  bool target = true;
  for (size_t i = from; i < to; ++i) {
    const Token& token = tokens_[i];
    if (i > from && token.line != tokens_[i - 1].line) target = true;
    bool is_def = token.is("def") || token.is("class");
    bool is_scope = token.is("global") || token.is("nonlocal") || token.is("del");
    if ((is_def || is_scope) && i + 1 < to) names.push_back(tokens_[i + 1].text);
    if (i + 1 < to && tokens_[i + 1].is(":=")) names.push_back(token.text);
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

void SyntaxReader::statement_or_throw(Lines& out) {
  bool outermost = at_definition_ && !in_class_;
  at_definition_ = false;
  if (accept(TokenKind::kIndent)) {
    diagnostics_.error(source_.span(peek().place()), "unexpected indentation");
    // The lines below belong to the block that stands before them.
    while (!at(TokenKind::kDedent) && !at(TokenKind::kEnd)) statement(out);
    accept(TokenKind::kDedent);
    return;
  }
  if (accept(TokenKind::kDedent) || accept(TokenKind::kNewline)) return;
  Token first = peek();
  if (first.is("@")) return decorated(out, outermost);
  if (first.is("def")) return function(out, {});
  if (first.is("class")) return class_definition(out, {}, outermost);
  if (first.is("for") || first.is("while")) return loop(out);
  if (first.is("if")) return if_statement(out);
  if (first.is("with")) return with_statement(out);
  if (first.is("try")) return try_statement(out);
  if (first.is("elif") || first.is("else")) fail(first, "'{}' without an 'if' before it", first.text);
  for (std::string_view word : {"async", "del", "global", "nonlocal", "raise", "yield"})
    if (first.is(word) && (in_script() || word == "async" || word == "yield"))
      fail(first, "'{}' has no meaning in a module", word);
  simple_statements(out);
}

Line& SyntaxReader::add_line(Lines& out, LineKind kind, const Token& at) {
  Line& line = tree_->line();
  static_cast<Place&>(line) = at.place();
  line.kind = kind;
  out.push_back(&line);
  return line;
}

void SyntaxReader::simple_statements(Lines& out) {
  const uint32_t line = peek().line;
  do {
    simple_statement(out);
  } while (accept(";") && !at(TokenKind::kNewline));
  expect_line_end("the statement");
  // Tokens with errors have no meaning.
  if (lexer_.broken(line)) throw SyntaxError();
  accept(TokenKind::kNewline);
}

void SyntaxReader::simple_statement(Lines& out) {
  Token first = peek();
  if (first.is("import") || first.is("from")) return import(out);
  if (!in_script() && python_statement(out)) return;
  constexpr std::pair<std::string_view, LineKind> kWords[] = {{"pass", LineKind::kPass},
                                                              {"break", LineKind::kBreak},
                                                              {"continue", LineKind::kContinue},
                                                              {"return", LineKind::kReturn},
                                                              {"assert", LineKind::kAssert}};
  for (const auto& [word, kind] : kWords) {
    if (!accept(word)) continue;
    Line& line = add_line(out, kind, first);
    if (kind == LineKind::kReturn && !at(TokenKind::kNewline) && !peek().is(";")) line.value = expression_list();
    if (kind != LineKind::kAssert) return;
    line.value = expression();
    if (accept(",")) line.extra = expression();
    return;
  }
  const Syntax* head = expression_list();
  bool is_ellipsis = head->kind == SyntaxKind::kConstant && head->text == "...";
  Line& line = add_line(out, is_ellipsis ? LineKind::kPass : LineKind::kExpression, first);
  if (is_ellipsis) return;
  if (peek().is(":") || peek().is("=")) {
    line.kind = LineKind::kAssign;
    line.target = head;
    if (accept(":")) line.annotation = expression();
    if (accept("=")) line.value = expression_list();
    if (!line.annotation && accept("=")) chain(out, line);
    return;
  }
  for (std::string_view op : {"+=", "-=", "*=", "/=", "//=", "%=", "&=", "|=", "^=", ">>=", "<<="}) {
    if (!accept(op)) continue;
    line.kind = LineKind::kAugmented;
    line.text = op.substr(0, op.size() - 1);
    line.target = head;
    line.value = expression_list();
    return;
  }
  line.value = head;
}

// Reads the rest of a = b = value as two assignments.
void SyntaxReader::chain(Lines& out, Line& first) {
  std::vector<const Syntax*> targets = {first.target, first.value};
  const Syntax* value = expression_list();
  while (accept("=")) targets.push_back(std::exchange(value, expression_list()));
  first.value = value;
  for (size_t i = 1; i < targets.size(); ++i) {
    Line& next = add_line(out, LineKind::kAssign, tokens_[next_ - 1]);
    static_cast<Place&>(next) = *targets[i];
    next.target = targets[i];
    next.value = value;
    next.text = "=";
  }
}

void SyntaxReader::import(Lines& out) {
  Line& line = add_line(out, LineKind::kImport, peek());
  auto dotted = [&] {
    std::string path;
    do {
      path += (path.empty() ? "" : ".") + std::string(expect_name("a name").text);
    } while (accept("."));
    return path;
  };
  std::string package;
  if (take().is("from")) {
    while (accept(".") || accept("...")) continue;  // of this package
    if (!peek().is("import")) package = dotted() + ".";
    expect("import", "after the package");
    if (accept("*")) {
      line.imports.emplace_back(package + "*", "*");
      return;
    }
  }
  bool bracket = accept("(");
  do {
    if (bracket && accept(")")) return;
    std::string path = package + dotted(), local = path.substr(path.rfind('.') + 1);
    if (accept("as")) local = std::string(take().text);
    line.imports.emplace_back(path, local);
  } while (accept(","));
  if (bracket) expect(")", "after the names");
}

void SyntaxReader::block(Lines& out, const Token& head, std::string_view what) {
  if (at(TokenKind::kNewline) && peek(1).kind == TokenKind::kIndent) {
    report(peek(), fmt::format("expected ':' after the head of the {}, got the end of the line", what));
  } else {
    expect(":", fmt::format("after the head of the {}", what));
  }
  if (!at(TokenKind::kNewline)) return simple_statements(out);
  if (peek(1).kind != TokenKind::kIndent) fail(head, "expected an indented block below this line");
  next_ += 2;
  auto nesting = nested(statement_depth_, kDeepestBlock, "blocks");
  while (!at(TokenKind::kDedent) && !at(TokenKind::kEnd)) statement(out);
  accept(TokenKind::kDedent);
}

void SyntaxReader::decorated(Lines& out, bool outermost) {
  std::vector<const Syntax*> decorators;
  while (accept("@")) {
    decorators.push_back(expression());
    expect_line_end("the line");
    accept(TokenKind::kNewline);
  }
  if (peek().is("def")) return function(out, std::move(decorators));
  if (peek().is("class")) return class_definition(out, std::move(decorators), outermost);
  fail(peek(), "expected 'def' or 'class' after a decorator, got {}", describe(peek()));
}

void SyntaxReader::function(Lines& out, std::vector<const Syntax*> decorators) {
  Token head = take();
  if (is_keyword(peek().text)) fail(peek(), "expected the function's name, got {}", describe(peek()));
  Token name = expect_name("the function's name");
  Line& line = add_line(out, LineKind::kFunction, name);
  line.text = name.text;
  line.decorators = std::move(decorators);
  if (accept("["))
    read_until("]", "the type parameters", [&] {
      line.type_params.push_back(expect_name("a name").text);
      if (accept(":")) expression();
    });
  expect("(", "after the function's name");
  read_until(")", "the parameters", [&] {
    std::string_view stars = peek().is("*") || peek().is("**") ? take().text : "";
    if (!stars.empty() && peek().is(",")) return;  // those behind it need names
    if (!in_script() && accept("/")) return;       // those before it have none
    Token param = expect_name("a parameter");
    line.params.push_back({param.place(), param.text, accept(":") ? expression() : nullptr, nullptr, stars});
    if (accept("=")) line.params.back().otherwise = expression();
  });
  if (accept("->")) line.annotation = expression();
  Temporarily script(in_script_, in_script_ || is_script_function(line));
  block(line.body, head, "function");
}

void SyntaxReader::class_definition(Lines& out, std::vector<const Syntax*> decorators, bool outermost) {
  Token head = take(), name = take();
  Line& line = add_line(out, LineKind::kClass, name);
  line.text = name.text;
  line.decorators = std::move(decorators);
  if (accept("("))
    read_until(")", "the base classes", [&] {
      line.extra = expression();
      if (accept("=")) expression();  // metaclass=
    });
  class_name_ = line.text;
  bool body_follows =
      outermost && peek().is(":") && peek(1).kind == TokenKind::kNewline && peek(2).kind == TokenKind::kIndent;
  if (!body_follows) return block(line.body, head, "class");
  bool is_data = std::ranges::any_of(line.decorators,
                                     [](const Syntax* decorator) { return head_of(*decorator).text == "dataclass"; });
  of_python_ = is_data || (line.extra && line.decorators.empty());
  next_ += 3;
  in_class_ = true;
}

void SyntaxReader::loop(Lines& out) {
  Token head = take();
  Line& line = add_line(out, head.is("for") ? LineKind::kFor : LineKind::kWhile, head);
  if (head.is("for")) {
    line.target = bare_tuple(&SyntaxReader::target);
    expect("in", "after the loop variables");
  }
  line.value = head.is("for") ? expression_list() : expression();
  block(line.body, head, "loop");
  Token otherwise = peek();
  if (!otherwise.is("else")) return;
  if (in_script()) fail(otherwise, "loops have no 'else'");
  ++next_;
  block(line.otherwise, otherwise, "loop");
}

void SyntaxReader::if_statement(Lines& out) {
  Token head = take();
  Line& line = add_line(out, LineKind::kIf, head);
  line.value = expression();
  block(line.body, head, "branch");
  Token otherwise = peek();
  if (otherwise.is("elif")) {
    auto nesting = nested(statement_depth_, kDeepestBlock, "branches");
    return if_statement(line.otherwise);
  }
  if (accept("else")) block(line.otherwise, otherwise, "branch");
}

void SyntaxReader::try_statement(Lines& out) {
  Token head = take();
  Line& line = add_line(out, LineKind::kTry, head);
  block(line.body, head, "try statement");
  for (Token next = peek(); next.is("except") || next.is("finally") || next.is("else"); next = peek()) {
    Line& clause = add_line(line.otherwise, LineKind::kClause, take());
    clause.text = next.text;
    if (next.is("except") && !peek().is(":")) clause.value = expression();
    if (clause.value && accept("as")) clause.target = target();
    block(clause.body, next, "try statement");
  }
}

// Reads the statements that only Python around a module has; returns whether the next one is such a statement.
bool SyntaxReader::python_statement(Lines& out) {
  constexpr std::pair<std::string_view, LineKind> kWords[] = {{"global", LineKind::kGlobal},
                                                              {"nonlocal", LineKind::kGlobal},
                                                              {"raise", LineKind::kRaise},
                                                              {"del", LineKind::kDelete}};
  Token first = peek();
  const LineKind* kind = row_of(kWords, first.text);
  if (!kind) return false;
  ++next_;
  Line& line = add_line(out, *kind, first);
  if (line.kind == LineKind::kDelete) line.target = bare_tuple(&SyntaxReader::target);
  if (line.kind == LineKind::kRaise && starts_expression()) line.value = expression();
  if (line.kind == LineKind::kRaise && accept("from")) expression();
  if (line.kind == LineKind::kGlobal) {
    line.text = first.text;
    do {
      line.names.push_back(expect_name("a name").text);
    } while (accept(","));
  }
  return true;
}

void SyntaxReader::with_statement(Lines& out) {
  Token head = take();
  Line& line = add_line(out, LineKind::kWith, head);
  do {
    const Syntax* value = expression();
    line.items.emplace_back(value, accept("as") ? target() : nullptr);
  } while (accept(","));
  block(line.body, head, "with statement");
}

}  // namespace relaxc::text
