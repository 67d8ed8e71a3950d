#include "vm/builtins.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <random>

#include "support/joined.h"
#include "support/lists.h"
#include "support/printable.h"
#include "vm/containers.h"
#include "vm/dlpack.h"
#include "vm/error.h"
#include "vm/lowered_modules.h"
#include "vm/output_file.h"
#include "vm/strings.h"

namespace relaxc::vm {

Tensor BuiltinContext::empty(std::vector<int64_t> shape, DType dtype) {
  if (dtype.is_string()) throw_runtime_error("a tensor of strings is made of its strings");
  std::shared_ptr<void> block = memory.allocate(checked_tensor_bytes(shape, dtype));
  void* data = block.get();
  return Tensor::view(std::move(shape), dtype, data, std::move(block));
}

namespace {

using Arguments = std::span<const Value>;

// Calls the function with as many arguments as it takes.
template <size_t kCount, Value (*kFunction)(BuiltinContext&, Arguments)>
Value counted(BuiltinContext& context, Arguments arguments) {
  if (arguments.size() != kCount) throw_runtime_error("got {} arguments, expected {}", arguments.size(), kCount);
  return kFunction(context, arguments);
}

bool is_integer(const Tensor& tensor) { return tensor.dtype().is_integral() || tensor.dtype().is_bool(); }

Value shape_of(BuiltinContext&, Arguments arguments) { return arguments[0].tensor().shape(); }
Value tensor_to_shape(BuiltinContext&, Arguments arguments) {
  const Tensor& tensor = arguments[0].tensor();
  if (!is_integer(tensor) || tensor.ndim() > 1)
    throw_runtime_error("shape comes from {}, expected a vector of integers", describe(tensor));
  Shape shape(static_cast<size_t>(tensor.size()));
  for (int64_t i = 0; i < tensor.size(); ++i) shape[static_cast<size_t>(i)] = tensor.as_int(i);
  return shape;
}

Value shape_to_tensor(BuiltinContext& context, Arguments arguments) {
  const Shape& shape = arguments[0].shape();
  Tensor tensor = context.empty({std::ssize(shape)}, kInt64);
  std::copy(shape.begin(), shape.end(), tensor.data<int64_t>());
  return tensor;
}

Value tensor_size(BuiltinContext&, Arguments arguments) { return arguments[0].tensor().size(); }
Value tensor_ndim(BuiltinContext&, Arguments arguments) { return int64_t{arguments[0].tensor().ndim()}; }
Value shape_size(BuiltinContext&, Arguments arguments) { return std::ssize(arguments[0].shape()); }
Value shape_dim(BuiltinContext&, Arguments arguments) {
  const Shape& shape = arguments[0].shape();
  int64_t index = arguments[1].integer();
  if (index < 0 || index >= std::ssize(shape))
    throw_runtime_error("dim {} of {} is out of range", index, describe(arguments[0]));
  return shape[static_cast<size_t>(index)];
}

Value copy(BuiltinContext& context, Arguments arguments) {
  const Tensor& source = arguments[0].tensor();
  if (source.dtype().is_string()) return Tensor::copy_of(source.shape(), source.dtype(), source.raw());
  Tensor result = context.empty(source.shape(), source.dtype());
  if (source.bytes() > 0) std::memcpy(result.raw(), source.raw(), static_cast<size_t>(source.bytes()));
  return result;
}

// Returns the bytes of the tensor from an offset on as a tensor of this shape and dtype. It shares the memory.
Value view(BuiltinContext&, Arguments arguments) {
  const Tensor& source = arguments[0].tensor();
  const Shape& shape = arguments[1].shape();
  auto dtype = parse_dtype(arguments[2].string());
  if (!dtype || dtype->lanes != 1) throw_runtime_error("'{}' is not a dtype", arguments[2].string());
  if (dtype->is_string() || source.dtype().is_string()) throw_runtime_error("strings have no views");
  int64_t offset = arguments[3].integer(), bytes = checked_tensor_bytes(shape, *dtype);
  if (offset < 0 || offset > source.bytes() || bytes > source.bytes() - offset)
    throw_runtime_error("a view of {} bytes at offset {} ends behind {}, which has {} bytes", bytes, offset,
                        describe(source), source.bytes());
  return Tensor::view(shape, *dtype, static_cast<char*>(source.raw()) + offset, source.owner());
}

// ---- Properties of tensors. They are dense and begin where their memory does.

Value dtype_code(BuiltinContext&, Arguments arguments) { return dlpack_code(arguments[0].tensor().dtype()); }
Value dtype_bits(BuiltinContext&, Arguments arguments) { return int64_t{arguments[0].tensor().dtype().bits}; }
Value dtype_lanes(BuiltinContext&, Arguments arguments) { return int64_t{arguments[0].tensor().dtype().lanes}; }
Value no_offset(BuiltinContext&, Arguments arguments) { return arguments[0].tensor().size() * 0; }
std::span<const int64_t> dims_from(Arguments arguments) {
  const Tensor& tensor = arguments[0].tensor();
  int64_t axis = arguments[1].integer();
  if (axis < 0 || axis >= tensor.ndim()) throw_runtime_error("{} has no axis {}", describe(tensor), axis);
  return std::span(tensor.shape()).subspan(static_cast<size_t>(axis));
}
Value tensor_dim(BuiltinContext&, Arguments arguments) { return dims_from(arguments).front(); }
Value tensor_stride(BuiltinContext&, Arguments arguments) {
  return element_count(dims_from(arguments).subspan(1)).value_or(0);
}

Value reshape(BuiltinContext&, Arguments arguments) { return arguments[0].tensor().reshaped(arguments[1].shape()); }
Value alloc_tensor(BuiltinContext& context, Arguments arguments) {
  auto dtype = parse_dtype(arguments[1].string());
  if (!dtype || dtype->lanes != 1) throw_runtime_error("'{}' is not a dtype", arguments[1].string());
  return context.empty(arguments[0].shape(), *dtype);
}

Value zeros(BuiltinContext& context, Arguments arguments) {
  Value result = alloc_tensor(context, arguments);
  const Tensor& tensor = result.tensor();
  if (tensor.bytes() > 0) std::memset(tensor.raw(), 0, static_cast<size_t>(tensor.bytes()));
  return result;
}
Value value(BuiltinContext&, Arguments arguments) { return arguments[0]; }
Value check_scalar(BuiltinContext&, Arguments arguments) {
  const auto* tensor = arguments[0].get_if<Tensor>();
  bool is_scalar = tensor != nullptr && tensor->size() == 1 && is_integer(*tensor);
  int64_t number = is_scalar ? tensor->as_int(0) : arguments[0].integer();
  auto dtype = parse_dtype(arguments[1].string());
  if (!dtype || dtype->lanes != 1) throw_runtime_error("'{}' is not a dtype", arguments[1].string());
  Tensor rounded = Tensor::empty({}, *dtype);
  rounded.set_int(0, number);
  if (rounded.as_int(0) != number)
    throw_runtime_error("{}: {} is not a value of {}", arguments[2].string(), number, arguments[1].string());
  return number;
}
Value float_bits(BuiltinContext&, Arguments arguments) {
  const auto* integer = arguments[0].get_if<int64_t>();
  const auto* tensor = arguments[0].get_if<Tensor>();
  if (tensor != nullptr && tensor->size() != 1) throw_runtime_error("expected a scalar, got {}", describe(*tensor));
  double number = integer != nullptr  ? static_cast<double>(*integer)
                  : tensor != nullptr ? tensor->as_double(0)
                                      : arguments[0].number();
  return std::bit_cast<int64_t>(number);
}
Value float_from_bits(BuiltinContext&, Arguments arguments) { return std::bit_cast<double>(arguments[0].integer()); }

Value make_tuple(BuiltinContext&, Arguments arguments) {
  return Tuple(std::vector<Value>(arguments.begin(), arguments.end()));
}
Value tuple_size(BuiltinContext&, Arguments arguments) { return std::ssize(arguments[0].tuple()); }

// Each call gives another one, of what the system offers as chance.
Value random_seed(BuiltinContext&, Arguments) {
  std::random_device device;
  return static_cast<int64_t>(uint64_t{device()} << 32 | device());
}

// Returns "[1, 2, 3, ...]" with only the first elements.
std::string elements(const Tensor& tensor) {
  constexpr int64_t kShown = 16;
  std::vector<std::string> texts;
  for (int64_t i = 0; i < std::min(tensor.size(), kShown); ++i)
    texts.push_back(tensor.dtype().is_string() ? fmt::format("'{}'", tensor.string(i))
                    : is_integer(tensor)       ? std::to_string(tensor.as_int(i))
                                               : fmt::format("{:g}", tensor.as_double(i)));
  return fmt::format("[{}{}]", joined(texts), tensor.size() > kShown ? ", ..." : "");
}

// The texts may be names from a model.
std::string text_of(Arguments arguments, const char* separator) {
  auto text_of_one = [](const Value& argument) {
    if (const auto* text = argument.get_if<std::string>()) return *text;
    const auto* tensor = argument.get_if<Tensor>();
    return tensor ? fmt::format("{} {}", describe(*tensor), elements(*tensor)) : describe(argument);
  };
  return printable_lines(joined(arguments, text_of_one, separator));
}
Value print_line(BuiltinContext& context, const std::string& line) {
  print_to(context.output != nullptr ? context.output : stdout, line + "\n");
  return {};
}
Value print(BuiltinContext& context, Arguments arguments) { return print_line(context, text_of(arguments, " ")); }
Value print_parts(BuiltinContext& context, Arguments arguments) { return print_line(context, text_of(arguments, "")); }

Value check(BuiltinContext&, Arguments arguments) {
  if (arguments.empty()) throw_runtime_error("got no condition");
  const auto* tensor = arguments[0].get_if<Tensor>();
  if (tensor && (!is_integer(*tensor) || tensor->size() != 1))
    throw_runtime_error("the condition is {}, expected one bool", describe(*tensor));
  if ((tensor ? tensor->as_int(0) : arguments[0].integer()) != 0) return {};
  std::string message = text_of(arguments.subspan(1), "");
  throw_runtime_error("assertion failed{}{}", message.empty() ? "" : ": ", message);
}

// Those of sequences, optionals, maps and strings.
constexpr auto kContainerBuiltins = std::array{
    Builtin{"vm.builtin.check_form", containers::check_form, "(value, context, form, dims...) -> none, or an error",
            false},
    Builtin{"vm.builtin.sequence_make", containers::sequence_make, "(values...) -> sequence"},
    Builtin{"vm.builtin.sequence_length", counted<1, containers::sequence_length>, "(sequence) -> number of items"},
    Builtin{"vm.builtin.sequence_at", counted<2, containers::sequence_at>, "(sequence, position) -> item"},
    Builtin{"vm.builtin.sequence_insert", counted<3, containers::sequence_insert>,
            "(sequence, item, position) -> sequence"},
    Builtin{"vm.builtin.sequence_erase", counted<2, containers::sequence_erase>, "(sequence, position) -> sequence"},
    Builtin{"vm.builtin.sequence_concat", counted<3, containers::sequence_concat>,
            "(sequence, axis, 1 for a new axis) -> tensor"},
    Builtin{"vm.builtin.sequence_split", counted<4, containers::sequence_split>,
            "(tensor, length or vector of lengths, axis, 1 to keep it) -> sequence"},
    Builtin{"vm.builtin.optional_none", counted<0, containers::optional_none>, "() -> none"},
    Builtin{"vm.builtin.optional_has", counted<1, containers::optional_has>, "(value) -> 0 for none, else 1"},
    Builtin{"vm.builtin.optional_get", counted<1, containers::optional_get>, "(value) -> the value, none is an error"},
    Builtin{"vm.builtin.map_make", counted<2, containers::map_make>, "(keys, values) -> map"},
    Builtin{"vm.builtin.map_keys", counted<1, containers::map_keys>, "(map) -> vector of keys"},
    Builtin{"vm.builtin.map_values", counted<1, containers::map_values>, "(map) -> tensor, a row for each key"},
    Builtin{"vm.builtin.map_rows", counted<2, containers::map_rows>,
            "(keys, matrix) -> sequence of a map for each row"},
    Builtin{"vm.builtin.string_take", counted<2, strings::take>, "(pool, positions) -> strings"},
    Builtin{"vm.builtin.string_join", strings::join, "(pools...) -> vector of their strings"},
    Builtin{"vm.builtin.string_sort", counted<1, strings::sort>, "(pool) -> (different strings, sorted; places)"},
    Builtin{"vm.builtin.string_find", counted<2, strings::find>, "(strings, keys) -> places among the keys, or -1"},
    Builtin{"vm.builtin.string_concat", counted<2, strings::concat>, "(strings, strings) -> strings"},
    Builtin{"vm.builtin.string_split", counted<3, strings::split>,
            "(strings, delimiter, most splits or -1) -> (parts, numbers)"},
    Builtin{"vm.builtin.string_full_match", counted<2, strings::full_match>, "(strings, pattern) -> bools"},
    Builtin{"vm.builtin.string_hash", counted<2, strings::hash>, "(strings, seed) -> uint32 hashes of their bytes"},
    Builtin{"vm.builtin.string_normalize", counted<5, strings::normalize>,
            "(strings, action, 1 for the same case, stop words, locale) -> strings"},
    Builtin{"vm.builtin.string_tokenize", counted<6, strings::tokenize>,
            "(strings, patterns, 1 if of tokens, least characters, 1 for marks, padding) -> strings"},
    Builtin{"vm.builtin.string_from_numbers", counted<1, strings::from_numbers>, "(tensor) -> strings"},
    Builtin{"vm.builtin.string_to_numbers", counted<2, strings::to_numbers>, "(strings, dtype name) -> tensor"},
};

constexpr auto kPlainBuiltins = std::array{
    Builtin{"vm.builtin.shape_of", counted<1, shape_of>, "(tensor) -> shape"},
    Builtin{"vm.builtin.tensor_to_shape", counted<1, tensor_to_shape>, "(vector of integers) -> shape"},
    Builtin{"vm.builtin.shape_to_tensor", counted<1, shape_to_tensor>, "(shape) -> int64 vector"},
    Builtin{"vm.builtin.tensor_size", counted<1, tensor_size>, "(tensor) -> number of elements"},
    Builtin{"vm.builtin.tensor_ndim", counted<1, tensor_ndim>, "(tensor) -> number of dims"},
    Builtin{"vm.builtin.shape_size", counted<1, shape_size>, "(shape) -> number of dims"},
    Builtin{"vm.builtin.shape_dim", counted<2, shape_dim>, "(shape, index) -> dim"},
    Builtin{"vm.builtin.copy", counted<1, copy>, "(tensor) -> tensor with elements of its own"},
    Builtin{"vm.builtin.reshape", counted<2, reshape>, "(tensor, shape) -> the same elements under another shape"},
    Builtin{"vm.builtin.alloc_tensor", counted<2, alloc_tensor>, "(shape, dtype name) -> uninitialised tensor"},
    Builtin{"vm.builtin.view", counted<4, view>, "(tensor, shape, dtype name, offset in bytes) -> view of its memory"},
    Builtin{"vm.builtin.tensor_dtype_code", counted<1, dtype_code>, "(tensor) -> DLPack's code of its dtype"},
    Builtin{"vm.builtin.tensor_dtype_bits", counted<1, dtype_bits>, "(tensor) -> bits of an element"},
    Builtin{"vm.builtin.tensor_dtype_lanes", counted<1, dtype_lanes>, "(tensor) -> lanes of an element"},
    Builtin{"vm.builtin.tensor_shape_i", counted<2, tensor_dim>, "(tensor, axis) -> dim"},
    Builtin{"vm.builtin.tensor_stride_i", counted<2, tensor_stride>, "(tensor, axis) -> elements to the next index"},
    Builtin{"vm.builtin.tensor_byte_offset", counted<1, no_offset>, "(tensor) -> 0"},
    Builtin{"vm.builtin.tensor_elem_offset", counted<1, no_offset>, "(tensor) -> 0"},
    Builtin{"vm.builtin.zeros", counted<2, zeros>, "(shape, dtype name) -> tensor of zeros", false},
    Builtin{"vm.builtin.value", counted<1, value>, "(value) -> the value"},
    Builtin{"vm.builtin.check_scalar", counted<3, check_scalar>, "(int, dtype name, context) -> the int"},
    Builtin{"vm.builtin.float_bits", counted<1, float_bits>, "(number) -> the bits of the double, as an int"},
    Builtin{"vm.builtin.float_from_bits", counted<1, float_from_bits>, "(int) -> the double with these bits"},
    Builtin{"vm.builtin.random_seed", counted<1, random_seed>, "(number) -> int, another one in each call"},
    Builtin{"vm.builtin.make_tuple", make_tuple, "(values...) -> tuple"},
    Builtin{"vm.builtin.tuple_size", counted<1, tuple_size>, "(tuple) -> number of fields"},
    // Those of modules that TVM has lowered. They read the shape heap, so that none is pure.
    Builtin{"vm.builtin.alloc_shape_heap", lowered::alloc_shape_heap, "(size) -> int64 vector for dims", false},
    Builtin{"vm.builtin.match_shape", lowered::match_shape,
            "(value, heap, n, n times code and number, context): 0 equal to the number, 1 store, 2 nothing, 3 equal to "
            "the one stored",
            false},
    Builtin{"vm.builtin.make_shape", lowered::make_shape,
            "(heap, n, n times code and number) -> shape; 0 the number, 1 the one stored", false},
    Builtin{"vm.builtin.match_prim_value", lowered::match_prim_value, "(int, heap, code, number, context)", false},
    Builtin{"vm.builtin.make_prim_value", lowered::make_prim_value, "(heap, code, number) -> int", false},
    Builtin{"vm.builtin.check_tensor_info", lowered::check_tensor_info, "(value, ndim or -1, dtype, context)", false},
    Builtin{"vm.builtin.check_shape_info", lowered::check_shape_info, "(value, ndim or -1, context)", false},
    Builtin{"vm.builtin.check_prim_value_info", lowered::check_prim_value_info, "(value, dtype, context)", false},
    Builtin{"vm.builtin.check_tuple_info", lowered::check_tuple_info, "(value, number of items, context)", false},
    Builtin{"vm.builtin.check_func_info", lowered::check_func_info, "(value, context)", false},
    Builtin{"vm.builtin.tuple_getitem", lowered::tuple_getitem, "(tuple, index) -> item", false},
    Builtin{"vm.builtin.read_if_cond", lowered::read_if_cond, "(int or tensor) -> 0 or 1", false},
    Builtin{"vm.builtin.print", print, "(values...) -> none; a line with the values, tensors abridged", false},
    Builtin{"vm.builtin.print_parts", print_parts, "(values...) -> none; the same without spaces between them", false},
    Builtin{"vm.builtin.assert", check, "(condition, values...) -> none; an error with the values where it is 0",
            false},
};

constexpr auto kBuiltins = []<size_t... I, size_t... J>(std::index_sequence<I...>, std::index_sequence<J...>) {
  return std::array{kPlainBuiltins[I]..., kContainerBuiltins[J]...};
}(std::make_index_sequence<kPlainBuiltins.size()>(), std::make_index_sequence<kContainerBuiltins.size()>());

}  // namespace

std::span<const Builtin> builtins() { return kBuiltins; }
const Builtin* find_builtin(std::string_view name) { return find_item(kBuiltins, name, &Builtin::name); }

Registry& Registry::add_function(std::string name, BuiltinFunction function) {
  if (find_builtin(name)) throw_runtime_error("function '{}' is a builtin and cannot be redefined", name);
  if (!function) throw_runtime_error("function '{}' is empty", name);
  functions_[std::move(name)] = std::move(function);
  return *this;
}

Registry& Registry::add_kernel(std::string name, relaxc_kernel kernel) {
  if (kernel == nullptr) throw_runtime_error("kernel '{}' is null", name);
  kernels_[std::move(name)] = kernel;
  return *this;
}

namespace {

struct DLPackDeleter {
  void operator()(DLManagedTensor* tensor) const { tensor->deleter(tensor); }
};

// Calls the function on tensors of DLPack; `result` is null where none is asked for.
int32_t call_on_dlpack(relaxc_packed_function function, std::span<const Tensor* const> tensors,
                       DLManagedTensor** result, relaxc_kernel_context* context) {
  std::vector<std::unique_ptr<DLManagedTensor, DLPackDeleter>> exported;
  std::vector<const DLTensor*> pointers;
  for (const Tensor* tensor : tensors) pointers.push_back(&exported.emplace_back(tensor->to_dlpack())->dl_tensor);
  context->error = nullptr;
  return function(pointers.data(), static_cast<int32_t>(pointers.size()), result, context);
}

}  // namespace

Registry& Registry::add_packed(std::string name, relaxc_packed_function function) {
  if (function == nullptr) throw_runtime_error("function '{}' is null", name);
  tensor_kernels_[name] = [function](std::span<const Tensor* const> tensors, relaxc_kernel_context* context) {
    return call_on_dlpack(function, tensors, nullptr, context);
  };
  return add_function(std::move(name), [function](BuiltinContext& context, std::span<const Value> arguments) -> Value {
    std::vector<const Tensor*> tensors = map_each(arguments, [](const Value& value) { return &value.tensor(); });
    DLManagedTensor* result = nullptr;
    int32_t status = call_on_dlpack(function, tensors, &result, context.kernels);
    if (status != 0) {
      const char* error = context.kernels->error;
      throw_runtime_error("failed with status {}{}", status, error ? fmt::format(": {}", error) : "");
    }
    return result ? Value(Tensor::from_dlpack(result)) : Value();
  });
}

const TensorKernel* Registry::find_tensor_kernel(std::string_view name) const {
  return find_value(tensor_kernels_, name);
}
bool Registry::has(std::string_view name) const {
  return find_kernel(name) || find_tensor_kernel(name) || find_function(name);
}
const BuiltinFunction* Registry::find_function(std::string_view name) const { return find_value(functions_, name); }
relaxc_kernel Registry::find_kernel(std::string_view name) const {
  return copy_value(kernels_, name).value_or(nullptr);
}

}  // namespace relaxc::vm
