// The value in a register of the VM.
#pragma once
#include <variant>

#include "vm/tensor.h"

namespace relaxc::vm {

using Shape = std::vector<int64_t>;

// A block of 64-byte aligned memory from which tensors are allocated. Copies share the block.
struct Storage {
  std::shared_ptr<void> block;
  int64_t bytes = 0;
};

class Value;

// Fields are shared and immutable. Nesting is limited (kMaxTupleDepth), so that freeing one never exhausts the stack.
class Tuple {
 public:
  // Throws RuntimeError when nested too deeply.
  explicit Tuple(std::vector<Value> fields);
  std::span<const Value> fields() const;
  size_t size() const { return fields().size(); }

 private:
  friend class Value;
  struct Box;
  std::shared_ptr<const Box> box_;
};
inline constexpr int kMaxTupleDepth = 64;

struct Function;  // executable.h

// Values of a sequence type, any number of them. Nesting counts as that of tuples does.
struct Sequence {
  Tuple items;
};
// Keys (a vector of integers or strings) and the values, whose dim 0 counts the keys.
struct Map {
  Tuple entries;
  const Tensor& keys() const;
  const Tensor& values() const;
  // Throws RuntimeError where the two do not belong together.
  static Map of(Tensor keys, Tensor values);
};

// A function of a program together with the values of its last parameters. Shares the ownership of the program.
struct Closure {
  std::shared_ptr<const Function> function;
  Tuple captured;
};

// The order equals that of the alternatives of Value.
enum class ValueKind : uint8_t {
  kNone,
  kTensor,
  kShape,
  kInt,
  kDouble,
  kString,
  kTuple,
  kStorage,
  kClosure,
  kSequence,
  kMap
};
inline constexpr int kNumValueKinds = 11;
std::string_view to_string(ValueKind kind);

// Booleans are ints 0 and 1. An optional is its value, or none.
class Value {
 public:
  Value() = default;
  Value(Tensor tensor) : data_(std::move(tensor)) {}
  Value(Shape shape) : data_(std::move(shape)) {}
  Value(int64_t number) : data_(number) {}
  Value(double number) : data_(number) {}
  Value(std::string text) : data_(std::move(text)) {}
  Value(Tuple tuple) : data_(std::move(tuple)) {}
  Value(Storage storage) : data_(std::move(storage)) {}
  Value(Closure closure) : data_(std::move(closure)) {}
  Value(Sequence sequence) : data_(std::move(sequence)) {}
  Value(Map map) : data_(std::move(map)) {}

  ValueKind kind() const { return static_cast<ValueKind>(data_.index()); }
  bool is_none() const { return data_.index() == 0; }
  // Returns null when the value is of another kind.
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&data_);
  }
  // These throw a RuntimeError "expected a tensor, got a shape" when the value is of another kind.
  const Tensor& tensor() const { return get<Tensor>(ValueKind::kTensor); }
  const Shape& shape() const { return get<Shape>(ValueKind::kShape); }
  int64_t integer() const { return get<int64_t>(ValueKind::kInt); }
  double number() const { return get<double>(ValueKind::kDouble); }
  const std::string& string() const { return get<std::string>(ValueKind::kString); }
  const Tuple& tuple() const { return get<Tuple>(ValueKind::kTuple); }
  const Storage& storage() const { return get<Storage>(ValueKind::kStorage); }
  const Sequence& sequence() const { return get<Sequence>(ValueKind::kSequence); }
  const Map& map() const { return get<Map>(ValueKind::kMap); }
  const Closure& closure() const { return get<Closure>(ValueKind::kClosure); }

 private:
  template <class T>
  const T& get(ValueKind expected) const {
    if (const T* value = std::get_if<T>(&data_)) [[likely]]
      return *value;
    wrong_kind(expected);
  }
  [[noreturn]] void wrong_kind(ValueKind expected) const;

  std::variant<std::monostate, Tensor, Shape, int64_t, double, std::string, Tuple, Storage, Closure, Sequence, Map>
      data_;
};

// Returns "float32[2, 3]", "shape[4, 5]", "7", "'text'", "(a, b)", "sequence of 2: [a, b]" or "function 'f'"; never the
// elements of a tensor.
std::string describe(const Value& value);

}  // namespace relaxc::vm
