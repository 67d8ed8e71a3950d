// Values of all kinds in the C interface.
#include "api/handles.h"
#include "vm/dlpack.h"

using namespace relaxc::api;
using relaxc::Tensor;
using relaxc::vm::Value;

namespace {

// Makes a value from what `make` returns. `name` is that of the pointer in the interface.
template <class Make>
relaxc_status make_value(relaxc_any** value, const Make& make, const char* name = "value") {
  return call([&] {
    given(value, name) = nullptr;
    *value = new relaxc_any{make()};
  });
}

// Returns "; read it by relaxc_any_get_int" for a value that another function reads.
std::string reader_of(const Value& value) {
  const char* reader = value.kind() == relaxc::vm::ValueKind::kTensor   ? "get_tensor"
                       : value.kind() == relaxc::vm::ValueKind::kShape  ? "get_shape"
                       : value.kind() == relaxc::vm::ValueKind::kInt    ? "get_int"
                       : value.kind() == relaxc::vm::ValueKind::kDouble ? "get_double"
                       : value.kind() == relaxc::vm::ValueKind::kString ? "get_string"
                                                                        : nullptr;
  return reader ? relaxc::formatted("; read it by relaxc_any_{}", reader) : "";
}

// Gives a member of a value of the kind T.
template <class T, class Read>
relaxc_status read_value(const relaxc_any* value, const char* expected, const Read& read) {
  return call([&] {
    const T* found = given(value, "value").value.get_if<T>();
    if (!found)
      throw_usage_error("the value is {} ({}), expected {}{}", describe(value->value),
                        relaxc::vm::to_string(value->value.kind()), expected, reader_of(value->value));
    read(*found);
  });
}

// Returns the parts of a tuple, sequence or map.
std::span<const Value> items_of(const relaxc_any& any) {
  if (const auto* tuple = any.value.get_if<relaxc::vm::Tuple>()) return tuple->fields();
  if (const auto* sequence = any.value.get_if<relaxc::vm::Sequence>()) return sequence->items.fields();
  if (const auto* map = any.value.get_if<relaxc::vm::Map>()) return map->entries.fields();
  throw_usage_error("the value is {}, which has no items", describe(any.value));
}

}  // namespace

void relaxc_any_release(relaxc_any* value) { delete value; }

relaxc_status relaxc_any_none(relaxc_any** value) {
  return make_value(value, [] { return Value(); });
}
relaxc_status relaxc_any_tensor(const DLTensor* tensor, relaxc_any** value) {
  return make_value(value, [&]() -> Value {
    Tensor own = tensor_of(given(tensor, "tensor"), "the tensor");
    return own.owner() ? own : Tensor::copy_of(own.shape(), own.dtype(), own.raw());
  });
}
relaxc_status relaxc_any_dlpack(DLManagedTensor* tensor, relaxc_any** value) {
  std::shared_ptr<DLManagedTensor> owner(tensor, [](DLManagedTensor* managed) {
    if (managed && managed->deleter) managed->deleter(managed);
  });
  bool is_copy = false;
  const relaxc_status status = make_value(value, [&]() -> Value {
    given(tensor, "tensor");
    Tensor own = tensor_of(tensor->dl_tensor, "the tensor");
    is_copy = own.owner() != nullptr;
    return is_copy ? own : Tensor::view(own.shape(), own.dtype(), own.raw(), owner);
  });
  if (status == RELAXC_OK) (*value)->is_copy_of_lent = is_copy;
  return status;
}
relaxc_status relaxc_any_strings(const char* const* strings, const size_t* lengths, const int64_t* shape, int32_t rank,
                                 relaxc_any** value) {
  return make_value(value, [&]() -> Value {
    if (rank < 0 || (rank > 0 && shape == nullptr))
      throw_usage_error("rank is {}{}", rank, shape ? "" : ", with a null pointer as the shape");
    std::vector<int64_t> dims(shape, shape + rank);
    std::optional<int64_t> count = relaxc::element_count(dims);
    if (!count) throw_usage_error("a dim of the shape is negative, or there are too many elements");
    if (*count > 0) given(strings, "strings");
    std::vector<std::string_view> texts;
    for (int64_t i = 0; i < *count; ++i) {
      const char* text = &given(strings[i], "a string");
      texts.emplace_back(text, lengths ? lengths[i] : std::strlen(text));
    }
    return Tensor::strings(std::move(dims), texts);
  });
}
relaxc_status relaxc_any_int(int64_t number, relaxc_any** value) {
  return make_value(value, [&] { return Value(number); });
}
relaxc_status relaxc_any_double(double number, relaxc_any** value) {
  return make_value(value, [&] { return Value(number); });
}
relaxc_status relaxc_any_shape(const int64_t* dims, int32_t num_dims, relaxc_any** value) {
  return make_value(value, [&] {
    check_count(num_dims, dims, "dims");
    return Value(relaxc::vm::Shape(dims, dims + num_dims));
  });
}
relaxc_status relaxc_any_string(const char* text, size_t length, relaxc_any** value) {
  return make_value(value,
                    [&] { return Value(length == 0 ? std::string() : std::string(&given(text, "text"), length)); });
}
relaxc_status relaxc_any_of(relaxc_kind kind, const relaxc_any* const* items, int32_t num_items, relaxc_any** value) {
  return make_value(value, [&]() -> Value {
    check_count(num_items, items, "items");
    std::vector<Value> values;
    for (int32_t i = 0; i < num_items; ++i) values.push_back(given(items[i], "an item").value);
    if (kind == RELAXC_TUPLE) return relaxc::vm::Tuple(std::move(values));
    if (kind == RELAXC_SEQUENCE) return relaxc::vm::Sequence{relaxc::vm::Tuple(std::move(values))};
    if (kind != RELAXC_MAP) throw_usage_error("kind {} has no items", static_cast<int>(kind));
    if (values.size() != 2) throw_usage_error("a map has two items, keys and values, got {}", values.size());
    const Tensor *keys = values[0].get_if<Tensor>(), *entries = values[1].get_if<Tensor>();
    if (!keys || !entries)
      throw_usage_error("keys and values of a map are tensors, got {} and {}", describe(values[0]),
                        describe(values[1]));
    return relaxc::vm::Map::of(*keys, *entries);
  });
}

relaxc_kind relaxc_any_kind(const relaxc_any* value) {
  return value ? static_cast<relaxc_kind>(value->value.kind()) : RELAXC_NONE;
}
static_assert(static_cast<int>(relaxc::vm::ValueKind::kTuple) == RELAXC_TUPLE &&
              static_cast<int>(relaxc::vm::ValueKind::kSequence) == RELAXC_SEQUENCE &&
              static_cast<int>(relaxc::vm::ValueKind::kMap) == RELAXC_MAP &&
              static_cast<int>(relaxc::vm::ValueKind::kString) == RELAXC_STRING);

const char* relaxc_any_describe(relaxc_any* value) {
  if (!value) return "";
  relaxc_status status = call([&] {
    if (value->description.empty()) value->description = describe(value->value);
  });
  return status == RELAXC_OK ? value->description.c_str() : "";
}
relaxc_status relaxc_any_get_tensor(const relaxc_any* value, DLManagedTensor** tensor) {
  return read_value<Tensor>(value, "a tensor", [&](const Tensor& own) {
    given(tensor, "tensor") = nullptr;
    if (own.dtype().is_string())
      throw_usage_error("the value is {}; read strings by relaxc_any_get_string", describe(own));
    *tensor = own.to_dlpack();
  });
}
relaxc_status relaxc_any_get_shape(const relaxc_any* value, const int64_t** dims, int32_t* num_dims,
                                   DLDataType* dtype) {
  return call([&] {
    const Value& own = given(value, "value").value;
    const Tensor* tensor = own.get_if<Tensor>();
    if (!tensor && own.kind() != relaxc::vm::ValueKind::kShape)
      throw_usage_error("the value is {}, expected a tensor or a shape", describe(own));
    const relaxc::vm::Shape& shape = tensor ? tensor->shape() : own.shape();
    if (dims) *dims = shape.data();
    if (num_dims) *num_dims = static_cast<int32_t>(shape.size());
    if (dtype) *dtype = tensor ? dlpack_dtype(tensor->dtype()) : DLDataType{kDLInt, 64, 1};
  });
}
relaxc_status relaxc_any_get_string(const relaxc_any* value, int64_t index, const char** text, size_t* length) {
  return call([&] {
    const Value& own = given(value, "value").value;
    const Tensor* tensor = own.get_if<Tensor>();
    std::string_view found;
    if (const auto* string = own.get_if<std::string>(); string && index == 0) {
      found = *string;
    } else if (tensor && tensor->dtype().is_string() && index >= 0 && index < tensor->size()) {
      found = tensor->string(index);
    } else {
      throw_usage_error("the value is {}, which has no string {}", describe(own), index);
    }
    given(text, "text") = found.data();
    given(length, "length") = found.size();
  });
}
relaxc_status relaxc_any_get_int(const relaxc_any* value, int64_t* number) {
  return read_value<int64_t>(value, "an integer", [&](int64_t own) { given(number, "number") = own; });
}
relaxc_status relaxc_any_get_double(const relaxc_any* value, double* number) {
  return read_value<double>(value, "a double", [&](double own) { given(number, "number") = own; });
}
relaxc_status relaxc_any_num_items(const relaxc_any* value, int32_t* count) {
  return call([&] { given(count, "count") = static_cast<int32_t>(items_of(given(value, "value")).size()); });
}
relaxc_status relaxc_any_item(const relaxc_any* value, int32_t index, relaxc_any** item) {
  auto find = [&]() -> Value {
    std::span<const Value> items = items_of(given(value, "value"));
    if (index < 0 || index >= std::ssize(items))
      throw_usage_error("item {} does not exist: there are {}", index, items.size());
    return items[static_cast<size_t>(index)];
  };
  return make_value(item, find, "item");
}
