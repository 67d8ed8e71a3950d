// Reads expressions of the Python subset that TVMScript uses, by precedence.
#include "ir/text/names.h"
#include "ir/text/syntax.h"

namespace relaxc::text {

Precedence precedence(std::string_view op) {
  static constexpr std::pair<std::string_view, Precedence> kLevels[] = {
      {"+", kSumLevel},      {"-", kSumLevel},      {"*", kProductLevel},  {"/", kProductLevel}, {"//", kProductLevel},
      {"%", kProductLevel},  {"@", kProductLevel},  {"<<", kShiftLevel},   {">>", kShiftLevel},  {"&", kBitAndLevel},
      {"^", kBitXorLevel},   {"|", kBitOrLevel},    {"<", kCompareLevel},  {">", kCompareLevel}, {"<=", kCompareLevel},
      {">=", kCompareLevel}, {"==", kCompareLevel}, {"!=", kCompareLevel}, {"and", kAndLevel},   {"or", kOrLevel}};
  // Most tokens that follow an operand are not operators.
  if (op.empty() || std::string_view(",)]:").find(op[0]) != std::string_view::npos) return kLowest;
  const Precedence* level = row_of(kLevels, op);
  return level ? *level : kLowest;
}

Syntax& SyntaxReader::node(const Place& begin, SyntaxKind kind, std::string_view text) {
  Syntax& result = tree_->node();
  static_cast<Place&>(result) = begin;
  result.kind = kind;
  result.text = text;
  return result;
}

void SyntaxReader::adopt(Syntax& parent, const Syntax* child) {
  if (child) {
    parent.depth = std::max(parent.depth, child->depth + 1);
    if (parent.depth > kDeepestExpression)
      fail(peek(), "expressions are nested deeper than {} levels", kDeepestExpression);
  }
  parent.children.push_back(child);
}

// Extends the underline to the end of the last token, when that is on the same line.
const Syntax* SyntaxReader::close(Syntax& parent) {
  const Token& last = tokens_[next_ - 1];
  if (last.line == parent.line && last.text.find('\n') == std::string_view::npos)
    parent.length = last.end_column() - parent.column;
  return &parent;
}

const Syntax* SyntaxReader::joined(const Place& begin, SyntaxKind kind, std::string_view text,
                                   std::initializer_list<const Syntax*> children) {
  Syntax& result = node(begin, kind, text);
  for (const Syntax* child : children) adopt(result, child);
  return close(result);
}

bool SyntaxReader::starts_expression() {
  Token token = peek();
  if (token.kind == TokenKind::kName) return !is_keyword(token.text) || token.text == "not" || token.text == "lambda";
  if (token.kind != TokenKind::kOperator) return token.kind <= TokenKind::kString;
  return token.is("...") || (token.text.size() == 1 && std::string_view("([{-+~*").find(token.text) != token.text.npos);
}

const Syntax* SyntaxReader::bare_tuple(const Syntax* (SyntaxReader::*item)()) {
  const Syntax* first = (this->*item)();
  if (!peek().is(",")) return first;
  Syntax& result = node(*first, SyntaxKind::kTuple);
  adopt(result, first);
  while (accept(",") && starts_expression()) adopt(result, (this->*item)());
  return close(result);
}

const Syntax* SyntaxReader::starred(const Syntax* (SyntaxReader::*item)()) {
  Token star = peek();
  return accept("*") ? joined(star.place(), SyntaxKind::kStarred, {}, {(this->*item)()}) : (this->*item)();
}

const Syntax* SyntaxReader::expression() {
  auto nesting = nested_expression();
  if (peek().is("lambda")) return lambda();
  if (at(TokenKind::kName) && peek(1).is(":=")) {
    if (in_script()) fail(peek(1), "':=' has no meaning in a module");
    const Syntax* name = atom();
    ++next_;
    return joined(*name, SyntaxKind::kBinary, ":=", {name, expression()});
  }
  const Syntax* value = bool_chain("or");
  if (!accept("if")) return value;
  const Syntax* condition = bool_chain("or");
  expect("else", "in a conditional expression");
  return joined(*value, SyntaxKind::kConditional, {}, {value, condition, expression()});
}

const Syntax* SyntaxReader::lambda() {
  Syntax& result = node(take().place(), SyntaxKind::kLambda);
  read_until(":", "the parameters of a lambda", [&] { adopt(result, target()); });
  adopt(result, expression());
  return close(result);
}

// Reads `a or b or c`, or `a and b and c`.
const Syntax* SyntaxReader::bool_chain(std::string_view op) {
  auto operand = [&] { return op == "or" ? bool_chain("and") : not_expression(); };
  const Syntax* left = operand();
  while (accept(op)) left = joined(*left, SyntaxKind::kBool, op, {left, operand()});
  return left;
}

const Syntax* SyntaxReader::not_expression() {
  Token first = peek();
  if (!first.is("not")) return comparison();
  auto nesting = nested_expression();
  ++next_;
  return joined(first.place(), SyntaxKind::kUnary, "not", {not_expression()});
}

// Reads comparisons: a < b < c means a < b and b < c.
const Syntax* SyntaxReader::comparison() {
  const Syntax* left = binary(kBitOrLevel);
  const Syntax* chain = nullptr;
  while (true) {
    Token op = peek();
    bool is_outside = op.is("not") && peek(1).is("in"), is_member = op.is("in") || is_outside;
    if (is_member && in_script()) fail(op, "'{}' has no meaning in a module", op.text);
    bool is_same = op.is("is");
    if (precedence(op.text) != kCompareLevel && !is_same && !is_member) return chain ? chain : left;
    next_ += is_outside ? 2 : 1;
    std::string_view text = is_outside ? "not in" : is_same && accept("not") ? "is not" : op.text;
    const Syntax* right = binary(kBitOrLevel);
    const Syntax* pair = joined(*left, SyntaxKind::kCompare, text, {left, right});
    chain = chain ? joined(*chain, SyntaxKind::kBool, "and", {chain, pair}) : pair;
    left = right;
  }
}

// Reads left-associative operators of at least this precedence, by precedence climbing.
const Syntax* SyntaxReader::binary(int least) {
  const Syntax* left = unary();
  for (int level; (level = precedence(peek().text)) >= least;) {
    std::string_view op = take().text;
    left = joined(*left, SyntaxKind::kBinary, op, {left, binary(level + 1)});
  }
  return left;
}

const Syntax* SyntaxReader::unary() {
  Token op = peek();
  if (op.is("-") || op.is("+") || op.is("~")) {
    auto nesting = nested_expression();
    ++next_;
    return joined(op.place(), SyntaxKind::kUnary, op.text, {unary()});
  }
  const Syntax* base = postfix();
  if (!peek().is("**")) return base;
  auto nesting = nested_expression();
  ++next_;
  return joined(*base, SyntaxKind::kBinary, "**", {base, unary()});
}

const Syntax* SyntaxReader::postfix() {
  const Syntax* base = atom();
  while (true) {
    if (accept(".")) {
      std::string_view name = expect_name("a name after '.'").text;
      base = joined(*base, SyntaxKind::kAttribute, name, {base});
    } else if (accept("(")) {
      base = call(base);
    } else if (accept("[")) {
      base = subscript(base);
    } else {
      return base;
    }
  }
}

// Reads the arguments after the '('.
const Syntax* SyntaxReader::call(const Syntax* callee) {
  Syntax& result = node(*callee, SyntaxKind::kCall);
  adopt(result, callee);
  read_until(")", "a call", [&] {
    Token first = peek();
    if (first.kind == TokenKind::kName && peek(1).is("=")) {
      next_ += 2;
      bool twice = std::ranges::find(result.keywords, first.text, &Syntax::Keyword::name) != result.keywords.end();
      if (twice) fail(first, "argument '{}' is given twice", first.text);
      const Syntax* value = expression();
      result.depth = std::max(result.depth, value->depth + 1);
      result.keywords.push_back({first.place(), first.text, value});
      return;
    }
    if (first.is("**") && in_script()) fail(first, "'**' arguments have no meaning in a module");
    if (accept("**")) {
      const Syntax* value = expression();
      result.depth = std::max(result.depth, value->depth + 1);
      result.keywords.push_back({first.place(), "**", value});
      return;
    }
    const Syntax* value = starred_or_expression();
    if (peek().is("for")) value = comprehension(node(*value, SyntaxKind::kComprehension, "("), value);
    if (!result.keywords.empty()) fail(first, "a positional argument after a keyword argument");
    adopt(result, value);
  });
  return close(result);
}

// Reads the indices after the '['. There is at least one, as in Python; code that reads a subscript relies on it.
const Syntax* SyntaxReader::subscript(const Syntax* object) {
  Syntax& result = node(*object, SyntaxKind::kSubscript);
  adopt(result, object);
  if (peek().is("]"))
    fail(peek(), "expected an index between the brackets; A[()] is the element of a buffer without dims");
  read_until("]", "an index", [&] { adopt(result, slice()); });
  return close(result);
}

const Syntax* SyntaxReader::slice() {
  Token first = peek();
  const Syntax* start = first.is(":") ? nullptr : starred_or_expression();
  if (!accept(":")) return start;
  auto part = [&]() -> const Syntax* {
    return peek().is(":") || peek().is(",") || peek().is("]") ? nullptr : expression();
  };
  const Syntax *stop = part(), *step = accept(":") ? part() : nullptr;
  const Place begin = start ? Place(*start) : first.place();
  return joined(begin, SyntaxKind::kSlice, {}, {start, stop, step});
}

const Syntax* SyntaxReader::atom() {
  Token token = peek();
  auto leaf = [&](SyntaxKind kind) { return &node(take().place(), kind, token.text); };
  if (token.is("(")) return parenthesized();
  if (token.is("[")) return list();
  if (token.is("{")) return dictionary();
  if (token.is("...")) return leaf(SyntaxKind::kConstant);
  if (token.kind == TokenKind::kInt) return leaf(SyntaxKind::kInt);
  if (token.kind == TokenKind::kFloat) return leaf(SyntaxKind::kFloat);
  if (token.kind == TokenKind::kString) {
    const Syntax* result = leaf(SyntaxKind::kString);
    while (at(TokenKind::kString)) result = joined_strings(result);
    return result;
  }
  if (token.kind != TokenKind::kName) fail(token, "expected an expression, got {}", describe(token));
  if (token.text == "lambda") fail(token, "'lambda' has no meaning here");
  if (is_keyword(token.text)) fail(token, "expected an expression, got '{}'", token.text);
  if (token.text == "cls" || token.text == "Module" || token.text == class_name_) tree_->names_module = true;
  bool constant = token.text == "True" || token.text == "False" || token.text == "None";
  return leaf(constant ? SyntaxKind::kConstant : SyntaxKind::kName);
}

// Returns the string with the next one behind it; where one of them is computed, f"{n}", as the sum of both.
const Syntax* SyntaxReader::joined_strings(const Syntax* left) {
  const Place begin = *left;
  const Syntax* right = &node(peek().place(), SyntaxKind::kString, peek().text);
  ++next_;
  auto is_plain = [](const Syntax& part) {
    std::string_view prefix = part.text.substr(0, part.text.find_first_of("\"'"));
    return part.kind == SyntaxKind::kString && prefix.find_first_of("fFbB") == prefix.npos;
  };
  if (!is_plain(*left) || !is_plain(*right)) return joined(begin, SyntaxKind::kBinary, "+", {left, right});
  std::string error, text = unquote(left->text, error) + unquote(right->text, error);
  if (!error.empty()) return left;
  return close(node(begin, SyntaxKind::kString, tree_->text(string_literal(text))));
}

const Syntax* SyntaxReader::parenthesized() {
  Token open = take();
  if (accept(")")) return close(node(open.place(), SyntaxKind::kTuple));
  const Syntax* first = starred_or_expression();
  if (accept(")")) return first;
  if (peek().is("for")) {
    const Syntax* result = comprehension(node(open.place(), SyntaxKind::kComprehension, "("), first);
    expect(")", "after a comprehension");
    return result;
  }
  Syntax& result = node(open.place(), SyntaxKind::kTuple);
  adopt(result, first);
  while (accept(",") && !peek().is(")")) adopt(result, starred_or_expression());
  expect(")", "after the items of a tuple");
  return close(result);
}

const Syntax* SyntaxReader::list() {
  Syntax& result = node(take().place(), SyntaxKind::kList);
  const Syntax* made = nullptr;
  read_until("]", "a list", [&] {
    const Syntax* item = starred_or_expression();
    if (peek().is("for") && result.children.empty())
      made = comprehension(node(result, SyntaxKind::kComprehension, "["), item);
    adopt(result, item);
  });
  return made ? made : close(result);
}

const Syntax* SyntaxReader::dictionary() {
  Syntax& result = node(take().place(), SyntaxKind::kDict);
  const Syntax* made = nullptr;
  bool is_set = false;  // {1, 2}: its items are those of a list
  read_until("}", "a dictionary", [&] {
    if (Token stars = peek(); stars.is("**")) {  // {**entries}: the key is starred
      if (in_script()) fail(stars, "'**' has no meaning in a module");
      ++next_;
      const Syntax* entries = expression();
      adopt(result, joined(stars.place(), SyntaxKind::kStarred, "**", {entries}));
      return adopt(result, entries);
    }
    const Syntax* key = starred_or_expression();
    is_set = is_set || (result.children.empty() && !peek().is(":") && !in_script());
    if (is_set) return adopt(result, key);
    expect(":", "after a key");
    const Syntax* value = expression();
    if (peek().is("for") && result.children.empty())
      made = comprehension(node(result, SyntaxKind::kComprehension, "{"), key, value);
    adopt(result, key);
    adopt(result, value);
  });
  if (is_set) result.kind = SyntaxKind::kList;
  return made ? made : close(result);
}

// Reads the clauses of a comprehension, up to its bracket.
const Syntax* SyntaxReader::comprehension(Syntax& result, const Syntax* item, const Syntax* value) {
  if (in_script()) fail(peek(), "comprehensions have no meaning in a module");
  adopt(result, item);
  adopt(result, value);
  while (accept("for")) {
    adopt(result, bare_tuple(&SyntaxReader::target));
    expect("in", "after the variables of a comprehension");
    adopt(result, bool_chain("or"));
    const Syntax* condition = nullptr;
    while (accept("if")) {
      const Syntax* next = bool_chain("or");
      condition = condition ? joined(*condition, SyntaxKind::kBool, "and", {condition, next}) : next;
    }
    adopt(result, condition);
  }
  return close(result);
}

}  // namespace relaxc::text
