// The syntax tree of the text format: the subset of Python's grammar in which modules are written, without meaning.
#pragma once
#include <deque>
#include <memory>
#include <memory_resource>
#include <span>

#include "ir/text/lexer.h"
#include "support/check.h"

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
  kBinary,       // text: + - * / // % ** << >> & | ^ @
  kCompare,      // text: the operator; children: two
  kBool,         // text: and, or; children: two
  kConditional,  // children: value, condition, otherwise
  kStarred,
  kLambda,  // children: params (names, starred names), then the body
};

struct Syntax;
// The children of a node. The text decides how many there are, so an access beyond the last one is a bug of the parser;
// it is an error and not an access to other memory.
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
  // One made up by the parser, such as the subscript that A.vload(i) means.
  Syntax(SyntaxKind k, const Place& at) : Place(at), kind(k) {}
  SyntaxKind kind{};
  int32_t depth = 1;  // of the tree; bounded, so that recursion over it is
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
  kBroken,  // reported; names: what it may define; body: what stands below it
};

struct Line;
using Lines = std::vector<const Line*>;

struct Param : Place {
  std::string_view name;
  const Syntax* annotation = nullptr;
};

struct Line : Place {
  LineKind kind;
  std::string_view text;           // operator, or the name of a function or class
  const Syntax* target = nullptr;  // assignments and loops: a name, subscript, attribute or tuple
  const Syntax* annotation = nullptr;
  const Syntax* value = nullptr;
  const Syntax* extra = nullptr;
  Lines body, otherwise;
  std::vector<std::pair<const Syntax*, const Syntax*>> items;  // with: expression, name or null
  std::vector<const Syntax*> decorators;
  std::vector<Param> params;
  std::vector<std::string_view> type_params;  // def f[n, m](...)
  std::vector<std::string_view> names;
  std::vector<std::pair<std::string, std::string>> imports;  // module path, local name
};

// Owns the nodes. They live until the tree is destroyed or cleared; clearing keeps the memory for the next definition,
// which makes reading definitions one after the other fast.
class SyntaxTree {
 public:
  Syntax& node() { return *new (memory_.allocate(sizeof(Syntax), alignof(Syntax))) Syntax(&memory_); }
  Line& line() { return lines_.emplace_back(); }
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

// Reads a source definition by definition, reports every error, and goes on with the next statement. A statement that
// cannot be read becomes one of kind kBroken.
class SyntaxReader {
 public:
  SyntaxReader(const Source& source, Diagnostics& diagnostics);
  ~SyntaxReader();
  // Reads the next statement of the file or of its class, with its nodes in `tree`; several when they share a line. A
  // class is returned as its head alone, followed by the statements of its body. Returns false at the end.
  bool next(SyntaxTree& tree, Lines& lines);
  bool in_class() const;  // the statements that came last

 private:
  std::unique_ptr<class SyntaxParser> parser_;
};
// Parses one expression (the content of a string); returns null after an error.
const Syntax* parse_expression(const Source& source, SyntaxTree& tree, Diagnostics& diagnostics);

}  // namespace relaxc::text
