#include "builtins/containers.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "support/checked_math.h"
#include "support/joined.h"
#include "support/lists.h"
#include "vm/error.h"

namespace relaxc::vm::containers {

namespace {

// ---- The test of a value's form

// The value that a message names: an argument, or an item of a sequence.
struct Place {
  std::string_view name;
  const Place* sequence = nullptr;
  int64_t item = 0;

  std::string text() const { return sequence ? formatted("item {} of {}", item, sequence->text()) : std::string(name); }
};

// A form is a letter for each optional (O) and sequence (S), then the words of what these hold.
class FormCheck {
 public:
  FormCheck(std::string_view form, Arguments dims)
      : form_(form),
        words_(parts_of(form.substr(std::min(form.find_first_not_of("OS"), form.size())), ' ')),
        dims_(dims) {
    holds_tensors_ = words_[0] == "tensor";
    if (holds_tensors_ || words_[0] == "map") dtype_ = dtype_of(words_.at(1));
    if (holds_tensors_) rank_ = number(words_.at(2));
  }

  void check(const Value& value, const Place& place, size_t depth = 0) const {  // NOLINT: bounded
    const char letter = depth < form_.size() ? form_[depth] : ' ';
    if (letter == 'O') {
      if (!value.is_none()) check(value, place, depth + 1);
    } else if (letter == 'S') {
      const auto* sequence = value.get_if<Sequence>();
      if (sequence == nullptr) fail(place.text(), value, "a sequence");
      Place item{{}, &place};
      for (const Value& part : sequence->items.fields()) {
        check(part, item, depth + 1);
        ++item.item;
      }
    } else if (words_[0] == "map") {
      const auto* map = value.get_if<Map>();
      if (map == nullptr) fail(place.text(), value, "a map");
      tensor(map->keys(), dtype_, 1, {}, "the keys of ", place);
      tensor(map->values(), dtype_of(words_.at(2)), number(words_.at(3)) + 1, {}, "the values of ", place);
    } else if (holds_tensors_) {
      const auto* part = value.get_if<Tensor>();
      if (part == nullptr) fail(place.text(), value, "a tensor");
      tensor(*part, dtype_, rank_, dims_, "", place);
    }
  }

 private:
  static std::optional<DType> dtype_of(std::string_view text) {  // null: any
    const std::optional<DType> dtype = parse_dtype(text);
    if (!dtype && text != "any") throw_runtime_error("'{}' is not a dtype", text);
    return dtype;
  }
  static int number(std::string_view text) {
    int result = -1;
    std::from_chars(text.data(), text.data() + text.size(), result);
    return result;
  }
  [[noreturn]] static void fail(const std::string& where, const Value& value, std::string_view wanted) {
    throw FormError(
        formatted("{} {} {}, expected {}", where, where.starts_with("the ") ? "are" : "is", describe(value), wanted));
  }
  static void tensor(const Tensor& value, std::optional<DType> dtype, int rank, Arguments dims, const char* part,
                     const Place& place) {
    auto no = [&](std::string_view wanted) { fail(part + place.text(), value, wanted); };
    if (dtype && value.dtype() != *dtype) no(to_string(*dtype));
    if (rank >= 0 && value.ndim() != rank) no(formatted("{} dims", rank));
    for (size_t d = 0; d < dims.size() && d < value.shape().size(); ++d) {
      int64_t wanted = dims[d].integer();
      if (wanted >= 0 && value.shape()[d] != wanted) no(formatted("dim {} to be {}", d, wanted));
    }
  }

  std::string_view form_;
  std::vector<std::string_view> words_;
  Arguments dims_;
  bool holds_tensors_ = false;
  std::optional<DType> dtype_ = {};  // null: any
  int rank_ = -1;
};

// ---- Sequences

std::span<const Value> items_of(const Value& value) { return value.sequence().items.fields(); }
Value sequence_of(std::vector<Value> items) { return Sequence{Tuple(std::move(items))}; }

// Returns the place from 0 on; a negative position counts from the end. The position `last` is allowed.
size_t place(const Value& position, size_t size, size_t last) {
  int64_t at = position.integer(), count = static_cast<int64_t>(size);
  if (at < -count || at > static_cast<int64_t>(last))
    throw_runtime_error("position {} is out of range for a sequence of {}", at, size);
  return static_cast<size_t>(at < 0 ? at + count : at);
}
std::vector<Value> as_list(std::span<const Value> items) { return {items.begin(), items.end()}; }

int64_t product(std::span<const int64_t> dims) { return element_count(dims).value_or(0); }

// Makes a tensor out of runs of the elements of others.
class RunCopier {
 public:
  RunCopier(BuiltinContext& context, Shape shape, DType dtype) : context_(context), shape_(std::move(shape)) {
    if (!dtype.is_string()) result_ = context.empty(shape_, dtype);
  }
  void add(const Tensor& from, int64_t begin, int64_t count) {
    if (!result_) {
      for (int64_t i = 0; i < count; ++i) texts_.push_back(from.string(begin + i));
      return;
    }
    int64_t size = result_->dtype().bytes();
    if (count > 0)
      std::memcpy(static_cast<char*>(result_->raw()) + done_ * size,
                  static_cast<const char*>(from.raw()) + begin * size, static_cast<size_t>(count * size));
    done_ += count;
  }
  Tensor finish() {
    if (result_) return *result_;
    return Tensor::strings(std::move(shape_), texts_, [&](int64_t bytes) { return context_.memory.allocate(bytes); });
  }

 private:
  BuiltinContext& context_;
  Shape shape_;
  std::optional<Tensor> result_;  // null for strings
  std::vector<std::string_view> texts_;
  int64_t done_ = 0;
};

size_t axis_of(const Value& axis, int64_t rank) {
  int64_t at = axis.integer();
  if (at < -rank || at >= rank) throw_runtime_error("axis {} is out of range for a tensor of rank {}", at, rank);
  return static_cast<size_t>(at < 0 ? at + rank : at);
}
// Returns the lengths of the parts: those that a list gives, or equal ones, of which the last may be shorter.
std::vector<int64_t> part_lengths(const Value& given, int64_t dim) {
  std::vector<int64_t> lengths;
  if (const auto* part = given.get_if<int64_t>()) {
    if (*part < 1) throw_runtime_error("the length of a part is {}", *part);
    for (int64_t begin = 0; begin < dim; begin += *part) lengths.push_back(std::min(*part, dim - begin));
    return lengths;
  }
  const Tensor& list = given.tensor();
  int64_t sum = 0;
  for (int64_t i = 0; i < list.size(); ++i) {
    lengths.push_back(list.as_int(i));
    if (lengths.back() < 0) throw_runtime_error("the length of part {} is {}", i, lengths.back());
    sum = checked_add(sum, lengths.back()).value_or(-1);
  }
  if (sum != dim) throw_runtime_error("the lengths of the parts make {}, the axis has {}", sum, dim);
  return lengths;
}

}  // namespace

Value check_form(BuiltinContext&, Arguments arguments) {
  if (arguments.size() < 3) throw_runtime_error("got {} arguments, expected at least 3", arguments.size());
  FormCheck(arguments[2].string(), arguments.subspan(3)).check(arguments[0], {arguments[1].string()});
  return {};
}

Value sequence_make(BuiltinContext&, Arguments arguments) { return sequence_of(as_list(arguments)); }
Value sequence_length(BuiltinContext&, Arguments arguments) { return std::ssize(items_of(arguments[0])); }
Value sequence_at(BuiltinContext&, Arguments arguments) {
  std::span<const Value> items = items_of(arguments[0]);
  if (items.empty()) throw_runtime_error("position {} of a sequence that is empty", arguments[1].integer());
  return items[place(arguments[1], items.size(), items.size() - 1)];
}
Value sequence_insert(BuiltinContext&, Arguments arguments) {
  std::span<const Value> items = items_of(arguments[0]);
  std::vector<Value> result;
  result.reserve(items.size() + 1);
  size_t at = place(arguments[2], items.size(), items.size());
  result.insert(result.end(), items.begin(), items.begin() + static_cast<ptrdiff_t>(at));
  result.push_back(arguments[1]);
  result.insert(result.end(), items.begin() + static_cast<ptrdiff_t>(at), items.end());
  return sequence_of(std::move(result));
}
Value sequence_erase(BuiltinContext&, Arguments arguments) {
  std::vector<Value> items = as_list(items_of(arguments[0]));
  if (items.empty()) throw_runtime_error("the sequence is empty");
  items.erase(items.begin() + static_cast<ptrdiff_t>(place(arguments[1], items.size(), items.size() - 1)));
  return sequence_of(std::move(items));
}

// (sequence, axis, 1 for a new axis)
Value sequence_concat(BuiltinContext& context, Arguments arguments) {
  std::span<const Value> items = items_of(arguments[0]);
  if (items.empty()) throw_runtime_error("the sequence is empty");
  bool is_new = arguments[2].integer() != 0;
  const Tensor& first = items[0].tensor();
  size_t axis = axis_of(arguments[1], first.ndim() + (is_new ? 1 : 0));
  Shape shape = first.shape();
  if (is_new) shape.insert(shape.begin() + static_cast<ptrdiff_t>(axis), 0);
  int64_t& total = shape[axis];
  total = 0;
  for (const Value& item : items) {
    const Tensor& part = item.tensor();
    Shape others = part.shape(), wanted = first.shape();
    if (!is_new && others.size() == wanted.size()) others[axis] = wanted[axis] = 0;
    if (part.dtype() != first.dtype() || others != wanted)
      throw_runtime_error("{} and {} are in one sequence and cannot be joined along axis {}", describe(first),
                          describe(part), axis);
    total += is_new ? 1 : part.shape()[axis];
  }
  int64_t outer = product(std::span(shape).first(axis));
  RunCopier result(context, shape, first.dtype());
  for (int64_t o = 0; o < outer; ++o) {
    for (const Value& item : items) {
      const Tensor& part = item.tensor();
      int64_t run = outer == 0 ? 0 : part.size() / outer;
      result.add(part, o * run, run);
    }
  }
  return result.finish();
}

// (tensor, length of a part or a list of lengths, axis, 1 to keep the axis)
Value sequence_split(BuiltinContext& context, Arguments arguments) {
  const Tensor& whole = arguments[0].tensor();
  size_t axis = axis_of(arguments[2], whole.ndim());
  bool keeps = arguments[3].integer() != 0;
  int64_t outer = product(std::span(whole.shape()).first(axis));
  int64_t inner = product(std::span(whole.shape()).subspan(axis + 1)), dim = whole.shape()[axis], begin = 0;
  std::vector<Value> parts;
  for (int64_t length : part_lengths(arguments[1], dim)) {
    Shape shape = whole.shape();
    shape[axis] = length;
    if (!keeps && length != 1) throw_runtime_error("an axis of {} elements cannot be left out", length);
    if (!keeps) shape.erase(shape.begin() + static_cast<ptrdiff_t>(axis));
    RunCopier part(context, std::move(shape), whole.dtype());
    for (int64_t o = 0; o < outer; ++o) part.add(whole, (o * dim + begin) * inner, length * inner);
    parts.emplace_back(part.finish());
    begin += length;
  }
  return sequence_of(std::move(parts));
}

// ---- Optionals and maps

Value optional_none(BuiltinContext&, Arguments) { return {}; }
Value optional_has(BuiltinContext&, Arguments arguments) { return int64_t{!arguments[0].is_none()}; }
Value optional_get(BuiltinContext&, Arguments arguments) {
  if (arguments[0].is_none()) throw_runtime_error("the optional is empty");
  return arguments[0];
}

Value map_make(BuiltinContext&, Arguments arguments) { return Map::of(arguments[0].tensor(), arguments[1].tensor()); }
Value map_keys(BuiltinContext&, Arguments arguments) { return arguments[0].map().keys(); }
Value map_values(BuiltinContext&, Arguments arguments) { return arguments[0].map().values(); }

// (keys, matrix): a map for each row, whose values are the row's. The rows lie in one block of memory, each aligned,
// since a block for each would take most of the time.
Value map_rows(BuiltinContext& context, Arguments arguments) {
  const Tensor &keys = arguments[0].tensor(), &matrix = arguments[1].tensor();
  if (matrix.ndim() != 2 || matrix.dtype().is_string() || matrix.dtype().is_packed())
    throw_runtime_error("expected a matrix of numbers, got {}", describe(matrix));
  const int64_t rows = matrix.shape()[0], columns = matrix.shape()[1], bytes = columns * matrix.dtype().bytes();
  const int64_t stride = round_up(bytes, kAlignment);
  std::shared_ptr<void> block = context.memory.allocate(checked_mul(rows, stride).value_or(-1));
  std::vector<Value> maps;
  maps.reserve(static_cast<size_t>(rows));
  for (int64_t row = 0; row < rows; ++row) {
    char* values = static_cast<char*>(block.get()) + row * stride;
    if (bytes > 0)
      std::memcpy(values, static_cast<const char*>(matrix.raw()) + row * bytes, static_cast<size_t>(bytes));
    maps.emplace_back(Map::of(keys, Tensor::view({columns}, matrix.dtype(), values, block)));
  }
  return sequence_of(std::move(maps));
}

}  // namespace relaxc::vm::containers
