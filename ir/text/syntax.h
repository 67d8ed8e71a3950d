// The syntax tree of the text format: the subset of Python's grammar in which modules are written, without meaning.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory_resource>
#include <set>
#include <span>

#include "ir/text/lexer.h"
#include "support/check.h"
#include "support/temporarily.h"

namespace relaxc::text {

enum class SyntaxKind : uint8_t {
  kName,
  kInt,
  kFloat,
  kString,
  kConstant,  // True, False, None, ...
  kTuple,
  kList,
  kDict,         // children: key, value, key, value, ...
  kAttribute,    // children: object; text: the name
  kSubscript,    // children: object, then the indices, at least one
  kSlice,        // children: start, stop, step; null where absent
  kCall,         // children: callee, then the positional arguments; keywords
  kUnary,        // text: - + ~ not
  kBinary,       // text: + - * / // % ** << >> & | ^ @, in Python also :=
  kCompare,      // text: the operator, also `in` and `is not`; children: two
  kBool,         // text: and, or; children: two
  kConditional,  // children: value, condition, otherwise
  kStarred,
  kLambda,  // children: params (names, starred names), then the body
  // Of Python around a module. Children: the item, the value of a dictionary's item or null, and for each `for` its
  // target, its iterable and its condition or null; text: the bracket.
  kComprehension,
};

struct Syntax;
// The children of a node. The text decides how many there are, so every access is checked.
class SyntaxChildren : public std::pmr::vector<const Syntax*> {
 public:
  using std::pmr::vector<const Syntax*>::vector;
  const Syntax* operator[](size_t i) const {
    RELAXC_CHECK(i < size(), "item {} of {} in the syntax tree", i, size());
    return std::pmr::vector<const Syntax*>::operator[](i);
  }
};

// The place is the whole expression when it is on one line.
struct Syntax : Place {
  explicit Syntax(std::pmr::memory_resource* memory) : children(memory), keywords(memory) {}
  // Makes a node that the text does not have, such as the subscript that A.vload(i) means.
  Syntax(SyntaxKind k, const Place& at) : Place(at), kind(k) {}
  SyntaxKind kind{};
  int32_t depth = 1;      // the height of the tree; its limit bounds recursion
  uint32_t computed = 0;  // of a name that only Python knows: the line that gives it its value
  std::string_view text;
  SyntaxChildren children;
  struct Keyword : Place {
    std::string_view name;
    const Syntax* value;
  };
  std::pmr::vector<Keyword> keywords;

  // Returns the children after the first: the arguments of a call, the indices of a subscript.
  std::span<const Syntax* const> operands() const { return std::span(children).subspan(1); }
};

inline bool is_list(const Syntax& at) { return at.kind == SyntaxKind::kTuple || at.kind == SyntaxKind::kList; }
inline bool is_call(const Syntax& at) { return at.kind == SyntaxKind::kCall; }
inline bool is_name(const Syntax& at) { return at.kind == SyntaxKind::kName; }
// Returns the callee of a call and the object of a subscript; other syntax itself.
inline const Syntax& head_of(const Syntax& at) {
  return is_call(at) || at.kind == SyntaxKind::kSubscript ? *at.children[0] : at;
}
// Returns whether an argument is left out, or is None.
inline bool is_none(const Syntax* at) { return !at || at->text == "None"; }

enum class LineKind : uint8_t {
  kExpression,
  kAssign,     // targets (names or subscripts), annotation, value
  kAugmented,  // text: the operator
  kFor,        // targets in `target`, value: the iterable
  kWhile,
  kIf,
  kWith,
  kAssert,  // value, extra: the message
  kReturn,
  kPass,
  kBreak,
  kContinue,
  kFunction,
  kClass,
  kImport,
  kTry,     // otherwise: its clauses
  kClause,  // of `try`, text: except, else or finally; value: the exceptions; target: the name of the exception
  kGlobal,  // text: global or nonlocal; names
  kRaise,   // value: the exception, if any
  kDelete,  // target
  kBroken,  // reported; names: those that it may define; body: the lines below it; text: from its first line
};

struct Line;
using Lines = std::vector<const Line*>;

struct Param : Place {
  std::string_view name;
  const Syntax* annotation = nullptr;
  const Syntax* otherwise = nullptr;  // the default, of functions of Python
  std::string_view stars = {};        // of *args and **kwargs, of functions of Python
};

struct Line : Place {
  LineKind kind;
  std::string_view text;           // operator, "=" for a further target, or the name of a function or class
  const Syntax* target = nullptr;  // assignments and loops: a name, subscript, attribute or tuple
  const Syntax* annotation = nullptr;
  const Syntax* value = nullptr;
  const Syntax* extra = nullptr;  // a message; the last base of a class
  Lines body, otherwise;
  std::vector<std::pair<const Syntax*, const Syntax*>> items;  // with: expression, name or null
  std::vector<const Syntax*> decorators;
  std::vector<Param> params;
  std::vector<std::string_view> type_params;  // def f[n, m](...)
  std::vector<std::string_view> names;
  std::vector<std::pair<std::string, std::string>> imports;  // module path, local name
};

// Returns the names of the objects that a statement of Python changes: x.append(1), x[0] = 1, x += y.
std::set<std::string_view> changed_names(const Line& line);
// Returns whether the statement is `with target:` or `if __name__ == "__main__":`, whose body always runs.
bool runs_body(const Line& line);
// Returns the functions to which the statement gives names: {"f": add} of tvm.IRModule({"f": add}), mod["f"] = add and
// add.with_attr("global_symbol", "f"). Another name of Python for the function is its alias.
struct NamedFunction {
  std::string_view function;
  std::string name;
  std::string_view alias = {};
};
std::vector<NamedFunction> named_functions(const Line& line);
// Returns whether the line is a class with @R.rewriter.
inline bool is_rewriter(const Line& line) {
  return line.kind == LineKind::kClass && std::ranges::any_of(line.decorators, [](const Syntax* decorator) {
           const Syntax& head = head_of(*decorator);
           return head.kind == SyntaxKind::kAttribute && head.text == "rewriter";
         });
}

// Owns the nodes until it is cleared or destroyed. Clearing keeps memory for the next definition, which saves time.
class SyntaxTree {
 public:
  Syntax& node() { return *new (memory_.allocate(sizeof(Syntax), alignof(Syntax))) Syntax(&memory_); }
  Line& line() { return lines_.emplace_back(); }
  // Keeps a text that the source does not have.
  std::string_view text(std::string_view made) {
    char* copy = static_cast<char*>(memory_.allocate(made.size(), 1));
    return {copy, made.copy(copy, made.size())};
  }
  // Remembers, and returns, the name that the text has for one that is made: "x" for "x_1".
  void made(std::string_view name, std::string_view of) { made_.emplace(name, of); }
  std::string_view written(std::string_view name) const {
    auto found = made_.find(name);
    return found == made_.end() ? name : written(found->second);
  }
  void clear() {
    lines_.clear();
    memory_.release();
    names_module = false;
  }
  bool names_module = false;  // it has a `cls.f` or a similar reference, which may be defined further down

 private:
  std::unique_ptr<std::byte[]> first_ = std::make_unique_for_overwrite<std::byte[]>(kFirst);
  static constexpr size_t kFirst = 1 << 18;
  std::pmr::monotonic_buffer_resource memory_{first_.get(), kFirst};
  std::deque<Line> lines_;
  std::map<std::string, std::string, std::less<>> made_;
};

// Python's operators from the loosest to the tightest.
enum Precedence : int {
  kLowest,  // also that of text which is not an operator
  kOrLevel,
  kAndLevel,
  kNotLevel,
  kCompareLevel,
  kBitOrLevel,
  kBitXorLevel,
  kBitAndLevel,
  kShiftLevel,
  kSumLevel,
  kProductLevel,
  kUnaryLevel,
  kAtomLevel,
};
// Returns the precedence of a binary operator other than `**`.
Precedence precedence(std::string_view op);

// Thrown after a syntax error was reported; caught where statements are separated.
struct SyntaxError {};

// A recursive-descent parser. It reports every error and goes on with the next statement; a bad one has kind kBroken.
class SyntaxReader {
 public:
  SyntaxReader(const Source& source, Diagnostics& diagnostics)
      : source_(source), diagnostics_(diagnostics), lexer_(source, diagnostics) {}

  // Reads the next statement of the file or of its class, with its nodes in `tree`; several when they share a line. A
  // class is returned as its head alone, followed by the statements of its body. Returns false at the end.
  bool next(SyntaxTree& tree, Lines& out);
  bool in_class() const { return was_in_class_; }  // the statements that came last
  // Reads the whole source as one expression; returns null after an error.
  const Syntax* expression(SyntaxTree& tree);

 private:
  static constexpr int kDeepestExpression = 400, kDeepestBlock = 100;

  // The token is returned by value, since reading ahead moves the tokens.
  Token peek(size_t ahead = 0) {
    while (next_ + ahead >= tokens_.size() && (tokens_.empty() || tokens_.back().kind != TokenKind::kEnd))
      lexer_.read_line(tokens_);
    return tokens_[std::min(next_ + ahead, tokens_.size() - 1)];
  }
  bool at(TokenKind kind) { return peek().kind == kind; }
  Token take() {
    Token token = peek();
    if (token.kind != TokenKind::kEnd) ++next_;
    return token;
  }
  // Takes the next token if it is this operator or keyword, or of this kind.
  bool accept(auto wanted) {
    bool is_wanted = peek().is(wanted);
    next_ += is_wanted;
    return is_wanted;
  }
  void expect(std::string_view op, std::string_view where) {
    if (!accept(op)) fail(peek(), "expected '{}' {}, got {}", op, where, describe(peek()));
  }
  void expect_line_end(std::string_view what) {
    if (!at(TokenKind::kNewline) && !at(TokenKind::kEnd))
      fail(peek(), "expected the end of {}, got {}", what, describe(peek()));
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
  // Counts one level more until the end of the scope.
  Temporarily<int> nested(int& depth, int limit, const char* what) {
    if (depth >= limit) fail(peek(), "{} are nested deeper than {} levels", what, limit);
    return {depth, depth + 1};
  }
  Temporarily<int> nested_expression() { return nested(expression_depth_, kDeepestExpression, "expressions"); }

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
  void chain(Lines& out, Line& first);
  void block(Lines& out, const Token& head, std::string_view what);
  void decorated(Lines& out, bool outermost);
  void function(Lines& out, std::vector<const Syntax*> decorators);
  void class_definition(Lines& out, std::vector<const Syntax*> decorators, bool outermost);
  void loop(Lines& out);
  void if_statement(Lines& out);
  void with_statement(Lines& out);
  void try_statement(Lines& out);
  bool python_statement(Lines& out);
  bool in_script() const { return (in_class_ && !of_python_) || in_script_; }

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
  const Syntax* bare_tuple(const Syntax* (SyntaxReader::*item)());
  const Syntax* expression_list() { return bare_tuple(&SyntaxReader::starred_or_expression); }
  // Reads the item, or `*` and the item.
  const Syntax* starred(const Syntax* (SyntaxReader::*item)());
  const Syntax* starred_or_expression() { return starred(&SyntaxReader::expression); }
  // Reads a target of a loop or an assignment. It has no operators, so that `in` is not read as one.
  const Syntax* target() { return starred(&SyntaxReader::postfix); }
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
  const Syntax* joined_strings(const Syntax* left);
  const Syntax* parenthesized();
  const Syntax* list();
  const Syntax* dictionary();
  const Syntax* comprehension(Syntax& result, const Syntax* item, const Syntax* value = nullptr);

  const Source source_;
  SyntaxTree* tree_ = nullptr;
  Diagnostics& diagnostics_;
  Lexer lexer_;
  std::vector<Token> tokens_;  // the last one that was read, and some after it
  size_t next_ = 0;
  int statement_depth_ = 0, expression_depth_ = 0;
  bool at_definition_ = false, in_class_ = false, was_in_class_ = false;
  bool in_script_ = false;  // in a program or a module, where less of Python has a meaning
  std::string_view class_name_;
  bool of_python_ = false;  // the class has a base and no decorator of a module, or is a @dataclass
};

// Parses one expression (the content of a string); returns null after an error.
inline const Syntax* parse_expression(const Source& source, SyntaxTree& tree, Diagnostics& diagnostics) {
  return SyntaxReader(source, diagnostics).expression(tree);
}

}  // namespace relaxc::text
