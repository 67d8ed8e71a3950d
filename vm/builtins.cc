#include "vm/builtins.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <random>

#include "support/lists.h"
#include "vm/dlpack.h"
#include "vm/error.h"

namespace relaxc::vm {

Tensor BuiltinContext::empty(std::vector<int64_t> shape, DType dtype) {
  if (dtype.is_string()) throw_runtime_error("a tensor of strings is made of its strings");
  std::shared_ptr<void> block = memory.allocate(checked_tensor_bytes(shape, dtype));
  void* data = block.get();
  return Tensor::view(std::move(shape), dtype, data, std::move(block));
}

namespace {

using Arguments = std::span<const Value>;

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

constexpr auto kBuiltins = std::array{
    Builtin{"vm.builtin.shape_of", shape_of, 1, "(tensor) -> shape"},
    Builtin{"vm.builtin.tensor_to_shape", tensor_to_shape, 1, "(vector of integers) -> shape"},
    Builtin{"vm.builtin.shape_to_tensor", shape_to_tensor, 1, "(shape) -> int64 vector"},
    Builtin{"vm.builtin.tensor_size", tensor_size, 1, "(tensor) -> number of elements"},
    Builtin{"vm.builtin.tensor_ndim", tensor_ndim, 1, "(tensor) -> number of dims"},
    Builtin{"vm.builtin.shape_size", shape_size, 1, "(shape) -> number of dims"},
    Builtin{"vm.builtin.shape_dim", shape_dim, 2, "(shape, index) -> dim"},
    Builtin{"vm.builtin.copy", copy, 1, "(tensor) -> tensor with elements of its own"},
    Builtin{"vm.builtin.reshape", reshape, 2, "(tensor, shape) -> the same elements under another shape"},
    Builtin{"vm.builtin.alloc_tensor", alloc_tensor, 2, "(shape, dtype name) -> uninitialised tensor"},
    Builtin{"vm.builtin.zeros", zeros, 2, "(shape, dtype name) -> tensor of zeros", false},
    Builtin{"vm.builtin.value", value, 1, "(value) -> the value"},
    Builtin{"vm.builtin.check_scalar", check_scalar, 3, "(int, dtype name, context) -> the int"},
    Builtin{"vm.builtin.float_bits", float_bits, 1, "(number) -> the bits of the double, as an int"},
    Builtin{"vm.builtin.float_from_bits", float_from_bits, 1, "(int) -> the double with these bits"},
    Builtin{"vm.builtin.random_seed", random_seed, 1, "(number) -> int, another one in each call"},
    Builtin{"vm.builtin.make_tuple", make_tuple, kAnyNumber, "(values...) -> tuple"},
    Builtin{"vm.builtin.tuple_size", tuple_size, 1, "(tuple) -> number of fields"},
};

}  // namespace

std::array<std::span<const Builtin>, 2> builtins() {
  return {kBuiltins, &relaxc_builtins != nullptr ? relaxc_builtins : std::span<const Builtin>()};
}

bool is_outside(std::string_view builtin) {
  return builtin.starts_with("vm.builtin.") && !find_item(kBuiltins, builtin, &Builtin::name);
}

const Builtin* find_builtin(std::string_view name) {
  for (std::span<const Builtin> table : builtins()) {
    if (const Builtin* row = find_item(table, name, &Builtin::name)) return row;
  }
  return nullptr;
}

Value Builtin::operator()(BuiltinContext& context, std::span<const Value> arguments) const {
  if (num_arguments != kAnyNumber && std::ssize(arguments) != num_arguments)
    throw_runtime_error("got {} arguments, expected {}", arguments.size(), num_arguments);
  return function(context, arguments);
}

Registry& Registry::add_function(std::string name, BuiltinFunction function) {
  if (find_builtin(name)) throw_usage_error("function '{}' is a builtin and cannot be redefined", name);
  if (!function) throw_usage_error("function '{}' is empty", name);
  entries_[std::move(name)].function = std::move(function);
  return *this;
}

Registry& Registry::add_kernel(std::string name, relaxc_kernel kernel) {
  if (kernel == nullptr) throw_usage_error("kernel '{}' is null", name);
  entries_[std::move(name)].kernel = kernel;
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
  if (function == nullptr) throw_usage_error("function '{}' is null", name);
  entries_[name].tensor_kernel = [function](std::span<const Tensor* const> tensors, relaxc_kernel_context* context) {
    return call_on_dlpack(function, tensors, nullptr, context);
  };
  return add_function(std::move(name), [function](BuiltinContext& context, std::span<const Value> arguments) -> Value {
    std::vector<const Tensor*> tensors = map_each(arguments, [](const Value& value) { return &value.tensor(); });
    DLManagedTensor* result = nullptr;
    int32_t status = call_on_dlpack(function, tensors, &result, context.kernels);
    if (status != 0) {
      const char* error = context.kernels->error;
      throw_runtime_error("failed with status {}{}", status, error ? formatted(": {}", error) : "");
    }
    return result ? Value(Tensor::from_dlpack(result)) : Value();
  });
}

const Registry::Entry* Registry::find(std::string_view name) const { return find_value(entries_, name); }
bool Registry::has(std::string_view name) const { return find(name) != nullptr; }
const BuiltinFunction* Registry::find_function(std::string_view name) const {
  const Entry* entry = find(name);
  return entry && entry->function ? &entry->function : nullptr;
}
const TensorKernel* Registry::find_tensor_kernel(std::string_view name) const {
  const Entry* entry = find(name);
  return entry && entry->tensor_kernel ? &entry->tensor_kernel : nullptr;
}
relaxc_kernel Registry::find_kernel(std::string_view name) const {
  const Entry* entry = find(name);
  return entry ? entry->kernel : nullptr;
}

}  // namespace relaxc::vm
