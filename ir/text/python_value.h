// Values of the Python around a module, and what Python's operators and functions make of them. Internal to ir/text/.
#pragma once
#include <deque>
#include <map>

#include "ir/text/syntax.h"

namespace relaxc::text {

// The text of a subscript x.shape[0] that means the dim in the type of a tensor.
inline constexpr std::string_view kKnownDim = "dim";

inline bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

// The text of a tuple that is tvm.ir.Array in Python, as A.shape is: lists and tuples can be added to it.
inline constexpr std::string_view kArray = "tvm.ir.Array";

struct PythonFunction;
struct PythonItems;
struct PythonClass;
struct PythonObject;

// Syntax stands for what the reader makes of it later, such as te.placeholder((4,)), or for what only Python knows.
struct PythonValue {
  enum Kind : uint8_t {
    kNone,
    kBool,
    kInt,
    kFloat,
    kString,
    kTuple,
    kList,
    kDict,
    kRange,
    kFunction,
    kClass,
    kObject,
    kSyntax
  };
  Kind kind = kNone;
  int64_t whole = 0;  // of a bool or an integer
  double real = 0;    // of a float
  // Of a string; of syntax: the path of the library that it names, such as math.ceil; of a tuple: kArray.
  std::string_view text = {};
  PythonItems* items = nullptr;  // of a tuple or list; key, value, key, value of a dict; start, stop, step of a range
  PythonFunction* function = nullptr;
  PythonObject* object = nullptr;  // of an object, and of its method
  PythonClass* type = nullptr;     // a class; of super(): the class whose methods count
  const Syntax* syntax = nullptr;
  size_t binders = 0;  // of the programs and lambdas being written, those that it was made in

  bool is(Kind wanted) const { return kind == wanted; }
  bool is_list() const { return kind == kTuple || kind == kList; }
  bool is_number() const { return kind >= kBool && kind <= kFloat; }
  bool is_whole() const { return kind == kBool || kind == kInt; }
  bool can_change() const { return kind == kList || kind == kDict; }
};
struct PythonItems {
  std::vector<PythonValue> values;
  uint32_t computed = 0;  // the line where Python may have changed them; 0: nowhere
};
using PythonMembers = std::vector<std::pair<std::string_view, PythonValue>>;  // in the order of their definitions
struct PythonClass {
  std::string_view name = {};
  PythonClass* base = nullptr;
  bool is_data = false;     // @dataclass
  bool of_library = false;  // python_nn.cc has it
  PythonMembers members = {};
  const PythonValue* find(std::string_view member) const;
  bool is_a(std::string_view wanted) const { return name == wanted || (base && base->is_a(wanted)); }
};
struct PythonObject {
  PythonClass* type = nullptr;
  PythonMembers attributes = {};
  uint32_t computed = 0;  // the line where Python may have changed it
  PythonValue* find(std::string_view attribute);
};

// An exception of Python, by the name of its class.
struct PythonRaised {
  std::string_view type;
};
// What Python does here is not known.
struct PythonUnknown {};

// Owns what values refer to, and limits how much of it there is.
class PythonHeap {
 public:
  explicit PythonHeap(SyntaxTree& tree) : tree_(tree) {}
  // Counts steps and items; at the limit nothing more is known.
  void spend(size_t count) {
    if (count > left_) throw PythonUnknown();
    left_ -= count;
  }
  void allow(size_t count) { left_ += count; }
  size_t hold_back() {
    size_t held = left_ / 2;
    left_ -= held;
    return held;
  }
  PythonValue list(PythonValue::Kind kind, std::vector<PythonValue> values);
  PythonValue string(std::string_view text);
  PythonValue computed(std::string_view name, const Place& at, uint32_t line);
  Syntax& node(SyntaxKind kind, const Place& at, std::string_view text = {});
  // Where syntax stands that functions of a library make: at their call.
  Place place(const Place& at) const { return of_call_ ? *of_call_ : at; }
  std::optional<Place>& of_call() { return of_call_; }
  PythonObject& object(PythonClass& type) { return objects_.emplace_back(PythonObject{.type = &type}); }
  SyntaxTree& tree() { return tree_; }
  void forget_all(uint32_t line);

 private:
  SyntaxTree& tree_;
  std::deque<PythonItems> items_;
  std::deque<PythonObject> objects_;
  std::optional<Place> of_call_;
  size_t left_ = 2'000'000;
};

inline PythonValue python_int(int64_t value) { return {.kind = PythonValue::kInt, .whole = value}; }
inline PythonValue python_bool(bool value) { return {.kind = PythonValue::kBool, .whole = value}; }
inline PythonValue python_float(double value) { return {.kind = PythonValue::kFloat, .real = value}; }

// These return nullopt where the result is not known, and throw PythonRaised where Python does.
using PythonResult = std::optional<PythonValue>;
std::optional<bool> truth_of(const PythonValue& value);
std::optional<bool> equal_values(const PythonValue& a, const PythonValue& b, PythonHeap& heap, int depth = 0);
PythonResult literal_value(const Syntax& at, PythonHeap& heap);
PythonResult arithmetic(std::string_view op, const PythonValue& a, const PythonValue& b, PythonHeap& heap);
PythonResult unary_value(std::string_view op, const PythonValue& a);
std::optional<bool> compare(std::string_view op, const PythonValue& a, const PythonValue& b, PythonHeap& heap);
// The values that a loop takes one after the other.
std::optional<std::vector<PythonValue>> iterate(const PythonValue& value, PythonHeap& heap);
PythonResult item_of(const PythonValue& object, const PythonValue& index);
PythonResult slice_of(const PythonValue& object, const std::vector<PythonValue>& bounds, PythonHeap& heap);
// Sets an item of a list or a dictionary; returns whether it is known.
bool set_item(const PythonValue& object, const PythonValue& index, const PythonValue& value, PythonHeap& heap);
// Calls a function of Python, of math or of numpy by its path, or a method of a value.
PythonResult call_builtin(std::string_view path, const std::vector<PythonValue>& args, PythonHeap& heap);
PythonResult call_method(const PythonValue& object, std::string_view name, const std::vector<PythonValue>& args,
                         PythonHeap& heap);
// Computes "%s_%d" % (name, n).
PythonResult percent_text(std::string_view text, const PythonValue& values, PythonHeap& heap);
// Returns the text that Python prints for a number or a string.
std::optional<std::string> text_of(const PythonValue& value);

}  // namespace relaxc::text
