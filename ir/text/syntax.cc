// Reads statements of the Python subset that TVMScript uses, and recovers after an error.
#include "ir/text/names.h"
#include "ir/text/syntax_parser.h"

namespace relaxc::text {

// Appends one statement, or several on one line; after an error, one of kind kBroken.
void SyntaxParser::statement(Lines& out) {
  size_t start = next_, before = out.size();
  try {
    statement_or_throw(out);
  } catch (const SyntaxError&) {
    out.resize(before);
    recover(start, out);
  }
}

// Goes on after the line. The block below it is read, so that its errors are reported and its names known.
void SyntaxParser::recover(size_t start, Lines& out) {
  if (next_ == start) ++next_;
  const Token first = tokens_[start];
  Line& line = new_line(LineKind::kBroken, first);
  skip_line();
  // A decorator precedes a definition; `elif`, `else` and similar words continue an `if` or a `try`.
  while (first.is("@") && (peek().is("@") || peek().is("def") || peek().is("class"))) skip_line();
  line.names = names_assigned(start, next_);
  broken_block(line.body);
  while (peek().is("elif") || peek().is("else") || peek().is("except") || peek().is("finally")) {
    skip_line();
    broken_block(line.body);
  }
  out.push_back(&line);
}

void SyntaxParser::skip_line() {
  while (peek().kind < TokenKind::kNewline) ++next_;
  if (peek().kind == TokenKind::kNewline) ++next_;
}

void SyntaxParser::broken_block(Lines& out) {
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

// Returns the names at the beginnings of lines, and after `for`, `as` and `def`, where they are defined; `y R.exp(x)`
// lacks a '='.
std::vector<std::string_view> SyntaxParser::names_assigned(size_t from, size_t to) const {
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

void SyntaxParser::statement_or_throw(Lines& out) {
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

Line& SyntaxParser::new_line(LineKind kind, const Token& at) {
  Line& line = tree_->line();
  line.kind = kind;
  line.line = at.line;
  line.column = at.column;
  line.length = static_cast<uint32_t>(std::max<size_t>(1, at.text.size()));
  return line;
}

void SyntaxParser::simple_statements(Lines& out) {
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

void SyntaxParser::simple_statement(Lines& out) {
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

const Line* SyntaxParser::import() {
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

void SyntaxParser::block(Lines& out, const Token& head, std::string_view what) {
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

void SyntaxParser::decorated(Lines& out, bool outermost) {
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

void SyntaxParser::function(Lines& out, std::vector<const Syntax*> decorators) {
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

void SyntaxParser::class_definition(Lines& out, std::vector<const Syntax*> decorators, bool outermost) {
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

void SyntaxParser::for_loop(Lines& out) {
  Token head = take();
  Line& line = new_line(LineKind::kFor, head);
  line.target = target_list();
  expect("in", "after the loop variables");
  line.value = expression_list();
  block(line.body, head, "loop");
  if (peek().is("else")) fail(peek(), "loops have no 'else'");
  out.push_back(&line);
}

void SyntaxParser::while_loop(Lines& out) {
  Token head = take();
  Line& line = new_line(LineKind::kWhile, head);
  line.value = expression();
  block(line.body, head, "loop");
  out.push_back(&line);
}

void SyntaxParser::if_statement(Lines& out) {
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

void SyntaxParser::with_statement(Lines& out) {
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
