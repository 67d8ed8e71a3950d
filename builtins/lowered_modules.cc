#include "builtins/lowered_modules.h"

#include <cstring>

#include "vm/error.h"

namespace relaxc::vm::lowered {

namespace {

// The codes that say what happens to a dim, as TVM numbers them.
enum class MatchCode : uint8_t { kEqualToNumber, kStore, kNothing, kEqualToStored };
enum class MakeCode : uint8_t { kNumber, kStored };

const Value& argument(Arguments arguments, size_t i) {
  if (i >= arguments.size()) throw_runtime_error("got {} arguments, expected more", arguments.size());
  return arguments[i];
}
// Returns the text before a message; the last argument says where the value comes from.
std::string context_of(Arguments arguments) {
  const auto* text = arguments.back().get_if<std::string>();
  return text == nullptr || text->empty() ? "" : *text + ": ";
}
// Returns a dim in the heap. A module without symbolic dims has none instead of a heap.
int64_t& stored(Arguments arguments, size_t heap, const Value& position) {
  const Tensor& tensor = argument(arguments, heap).tensor();
  int64_t index = position.integer();
  if (tensor.dtype() != kInt64 || index < 0 || index >= tensor.size())
    throw_runtime_error("position {} is not in the shape heap {}", index, describe(tensor));
  return static_cast<int64_t*>(tensor.raw())[index];
}

void match(Arguments arguments, size_t heap, size_t code_at, int64_t value, const std::string& what) {
  const Value& operand = argument(arguments, code_at + 1);
  int64_t code = argument(arguments, code_at).integer();
  std::optional<int64_t> expected;
  switch (static_cast<MatchCode>(code)) {
    case MatchCode::kEqualToNumber:
      expected = operand.integer();
      break;
    case MatchCode::kStore:
      stored(arguments, heap, operand) = value;
      break;
    case MatchCode::kNothing:
      break;
    case MatchCode::kEqualToStored:
      expected = stored(arguments, heap, operand);
      break;
    default:
      throw_runtime_error("{} is not a code, expected 0 to 3", code);
  }
  if (expected && *expected != value)
    throw_runtime_error("{}{} is {}, expected {}", context_of(arguments), what, value, *expected);
}

int64_t made(Arguments arguments, size_t code_at) {
  int64_t code = argument(arguments, code_at).integer();
  const Value& operand = argument(arguments, code_at + 1);
  if (code == static_cast<int64_t>(MakeCode::kNumber)) return operand.integer();
  if (code != static_cast<int64_t>(MakeCode::kStored)) throw_runtime_error("{} is not a code, expected 0 or 1", code);
  return stored(arguments, 0, operand);
}

// Returns the number of codes, which the argument states, where there are arguments for all.
size_t count_of(Arguments arguments, size_t at, size_t first) {
  int64_t count = argument(arguments, at).integer();
  if (count < 0 || static_cast<uint64_t>(count) > (arguments.size() - std::min(arguments.size(), first)) / 2)
    throw_runtime_error("got {} arguments for {} dims", arguments.size(), count);
  return static_cast<size_t>(count);
}

[[noreturn]] void wrong_kind(Arguments arguments, std::string_view expected) {
  throw_runtime_error("{}is {}, expected {}", context_of(arguments), describe(arguments[0]), expected);
}
void check_count(Arguments arguments, std::string_view what, int64_t count, int64_t expected) {
  if (expected != -1 && count != expected)
    throw_runtime_error("{}has {} {}, expected {}", context_of(arguments), count, what, expected);
}

}  // namespace

Value alloc_shape_heap(BuiltinContext& context, Arguments arguments) {
  Tensor heap = context.empty({argument(arguments, 0).integer()}, kInt64);
  if (heap.bytes() > 0) std::memset(heap.raw(), 0, static_cast<size_t>(heap.bytes()));
  return heap;
}

Value match_shape(BuiltinContext&, Arguments arguments) {
  size_t count = count_of(arguments, 2, 3);
  const Value& value = arguments[0];
  const auto* tensor = value.get_if<Tensor>();
  const Shape& shape = tensor != nullptr ? tensor->shape() : value.shape();
  check_count(arguments, "dims", std::ssize(shape), static_cast<int64_t>(count));
  for (size_t i = 0; i < count; ++i) match(arguments, 1, 3 + 2 * i, shape[i], formatted("dim {}", i));
  return {};
}

Value make_shape(BuiltinContext&, Arguments arguments) {
  Shape shape(count_of(arguments, 1, 2));
  for (size_t i = 0; i < shape.size(); ++i) shape[i] = made(arguments, 2 + 2 * i);
  return shape;
}

Value match_prim_value(BuiltinContext&, Arguments arguments) {
  match(arguments, 1, 2, argument(arguments, 0).integer(), "the scalar");
  return {};
}

Value make_prim_value(BuiltinContext&, Arguments arguments) { return made(arguments, 1); }

Value check_tensor_info(BuiltinContext&, Arguments arguments) {
  const auto* tensor = argument(arguments, 0).get_if<Tensor>();
  if (tensor == nullptr) wrong_kind(arguments, "a tensor");
  check_count(arguments, "dims", tensor->ndim(), argument(arguments, 1).integer());
  const auto* dtype = arguments.size() > 3 ? arguments[2].get_if<std::string>() : nullptr;
  bool is_any = dtype == nullptr || dtype->empty() || *dtype == "void";
  if (!is_any && to_string(tensor->dtype()) != *dtype)
    throw_runtime_error("{}dtype is {}, expected {}", context_of(arguments), to_string(tensor->dtype()), *dtype);
  return {};
}

Value check_shape_info(BuiltinContext&, Arguments arguments) {
  const auto* shape = argument(arguments, 0).get_if<Shape>();
  if (shape == nullptr) wrong_kind(arguments, "a shape");
  check_count(arguments, "dims", std::ssize(*shape), argument(arguments, 1).integer());
  return {};
}

Value check_prim_value_info(BuiltinContext&, Arguments arguments) {
  const auto* dtype = argument(arguments, 1).get_if<std::string>();
  bool is_float = dtype != nullptr && dtype->find("float") != std::string::npos;
  if (arguments[0].kind() != (is_float ? ValueKind::kDouble : ValueKind::kInt))
    wrong_kind(arguments, is_float ? "a float" : "an integer");
  return {};
}

Value check_tuple_info(BuiltinContext&, Arguments arguments) {
  const auto* tuple = argument(arguments, 0).get_if<Tuple>();
  if (tuple == nullptr) wrong_kind(arguments, "a tuple");
  check_count(arguments, "items", std::ssize(tuple->fields()), argument(arguments, 1).integer());
  return {};
}

Value check_func_info(BuiltinContext&, Arguments arguments) {
  if (argument(arguments, 0).kind() != ValueKind::kClosure) wrong_kind(arguments, "a function");
  return {};
}

Value tuple_getitem(BuiltinContext&, Arguments arguments) {
  std::span<const Value> fields = argument(arguments, 0).tuple().fields();
  int64_t index = argument(arguments, 1).integer();
  if (index < 0 || index >= std::ssize(fields))
    throw_runtime_error("item {} of a tuple of {} is out of range", index, fields.size());
  return fields[static_cast<size_t>(index)];
}

Value read_if_cond(BuiltinContext&, Arguments arguments) {
  const Value& condition = argument(arguments, 0);
  const auto* tensor = condition.get_if<Tensor>();
  if (tensor != nullptr && (tensor->size() != 1 || tensor->dtype().is_float()))
    throw_runtime_error("the condition is {}, expected one integer or bool", describe(*tensor));
  return int64_t{(tensor != nullptr ? tensor->as_int(0) : condition.integer()) != 0};
}

}  // namespace relaxc::vm::lowered
