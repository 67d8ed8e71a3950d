// Reads expressions of the Python subset that TVMScript uses, by precedence.
#include "ir/text/syntax_parser.h"

namespace relaxc::text {

namespace {

constexpr std::string_view kKeywords[] = {
    "and",      "as",     "assert",  "async", "await", "break",  "class", "continue", "def",  "del",  "elif",
    "else",     "except", "finally", "for",   "from",  "global", "if",    "import",   "in",   "is",   "lambda",
    "nonlocal", "not",    "or",      "pass",  "raise", "return", "try",   "while",    "with", "yield"};

// Returns the precedence of a binary operator; 0 for other tokens. unary() reads **.
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

// Names are far more frequent than keywords.
bool is_keyword(std::string_view word) {
  return word.size() >= 2 && word.size() <= 8 &&
         std::find(std::begin(kKeywords), std::end(kKeywords), word) != std::end(kKeywords);
}

Syntax& SyntaxParser::node(SyntaxKind kind, const Token& at) {
  Syntax& result = tree_->node();
  result.kind = kind;
  result.line = at.line;
  result.column = at.column;
  result.length = static_cast<uint32_t>(std::max<size_t>(1, std::min(at.text.size(), at.text.find('\n'))));
  return result;
}

Syntax& SyntaxParser::node_from(SyntaxKind kind, const Syntax& first) {
  Syntax& result = tree_->node();
  result.kind = kind;
  result.line = first.line;
  result.column = first.column;
  result.length = first.length;
  return result;
}

void SyntaxParser::adopt(Syntax& parent, const Syntax* child) {
  if (child) {
    parent.depth = std::max(parent.depth, child->depth + 1);
    if (parent.depth > limits_.expression_depth)
      fail(peek(), "expressions are nested deeper than {} levels", limits_.expression_depth);
  }
  parent.children.push_back(child);
}

// Extends the underline to the end of the last token, when that is on the same line.
const Syntax* SyntaxParser::close(Syntax& parent) {
  const Token& last = tokens_[next_ - 1];
  if (last.line == parent.line && last.text.find('\n') == std::string_view::npos) {
    parent.length = last.column + static_cast<uint32_t>(last.text.size()) - parent.column;
  }
  return &parent;
}

bool SyntaxParser::starts_expression() {
  Token token = peek();
  if (token.kind == TokenKind::kName) return !is_keyword(token.text) || token.text == "not" || token.text == "lambda";
  if (token.kind != TokenKind::kOperator) return token.kind <= TokenKind::kString;
  return token.is("(") || token.is("[") || token.is("{") || token.is("-") || token.is("+") || token.is("~") ||
         token.is("*") || token.is("...");
}

// Reads a, b, c without parentheses as a tuple.
const Syntax* SyntaxParser::expression_list() {
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

// Reads loop and assignment targets. They have no operators, so that `in` is not read as one.
const Syntax* SyntaxParser::target_list() {
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

const Syntax* SyntaxParser::target() {
  if (peek().is("*")) {
    Syntax& result = node(SyntaxKind::kStarred, take());
    adopt(result, postfix());
    return close(result);
  }
  return postfix();
}

const Syntax* SyntaxParser::starred_or_expression() {
  if (!peek().is("*")) return expression();
  Syntax& result = node(SyntaxKind::kStarred, take());
  adopt(result, expression());
  return close(result);
}

const Syntax* SyntaxParser::expression() {
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

const Syntax* SyntaxParser::lambda() {
  Syntax& result = node(SyntaxKind::kLambda, take());
  while (!peek().is(":")) {
    adopt(result, target());
    if (!peek().is(":")) expect(",", "between the parameters of a lambda");
  }
  ++next_;
  adopt(result, expression());
  return close(result);
}

const Syntax* SyntaxParser::or_expression() {
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

const Syntax* SyntaxParser::and_expression() {
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

const Syntax* SyntaxParser::not_expression() {
  if (!peek().is("not")) return comparison();
  Nesting nesting(*this, expression_depth_, limits_.expression_depth, "expressions");
  Syntax& result = node(SyntaxKind::kUnary, take());
  result.text = "not";
  adopt(result, not_expression());
  return close(result);
}

// Reads comparisons: a < b < c means a < b and b < c.
const Syntax* SyntaxParser::comparison() {
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

// Reads left-associative operators of at least this precedence, by precedence climbing.
const Syntax* SyntaxParser::binary(int least) {
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

const Syntax* SyntaxParser::unary() {
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

const Syntax* SyntaxParser::postfix() {
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

const Syntax* SyntaxParser::call(const Syntax* callee) {
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

const Syntax* SyntaxParser::subscript(const Syntax* object) {
  ++next_;
  Syntax& result = node_from(SyntaxKind::kSubscript, *object);
  adopt(result, object);
  while (!peek().is("]")) {
    adopt(result, slice());
    if (!peek().is("]") && !peek().is(",")) fail(peek(), "expected ',' or ']' in an index, got {}", describe(peek()));
    accept(",");
  }
  // A subscript has at least one index, as in Python; code that reads one relies on it.
  if (result.children.size() == 1)
    fail(peek(), "expected an index between the brackets; A[()] is the element of a buffer without dims");
  ++next_;
  return close(result);
}

const Syntax* SyntaxParser::slice() {
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

const Syntax* SyntaxParser::atom() {
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

const Syntax* SyntaxParser::parenthesized() {
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

const Syntax* SyntaxParser::list() {
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

const Syntax* SyntaxParser::dictionary() {
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

}  // namespace relaxc::text
