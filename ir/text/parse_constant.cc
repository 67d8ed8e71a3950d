// Reads R.const: a tensor from numbers, lists of them, or the hexadecimal bytes that the printer writes.
#include "ir/text/parsing.h"
#include "support/checked_math.h"

namespace relaxc::text {

namespace {

// Finds the shape of nested lists from their first elements.
void list_shape(const Syntax& at, std::vector<int64_t>& shape) {
  if (!is_list(at)) return;
  shape.push_back(static_cast<int64_t>(at.children.size()));
  if (!at.children.empty()) list_shape(*at.children[0], shape);
}

// Returns the dtype of elements that state none.
DType common_dtype(const std::vector<AttrValue>& elements) {
  bool real = false, truth = !elements.empty();
  for (const AttrValue& element : elements) {
    real = real || element.as<double>();
    truth = truth && element.as<bool>();
  }
  return truth ? kBool : real || elements.empty() ? kFloat32 : kInt32;
}

}  // namespace

Value Parser::constant(const Syntax& at) {
  const Syntax& value = required(at, 0, "value");
  const Syntax* stated = arg(at, 1, "dtype");
  std::optional<DType> wanted = stated ? std::optional(dtype(*stated)) : std::nullopt;
  const Syntax* stated_shape = keyword(at, "shape");
  std::vector<int64_t> shape;
  if (stated_shape) {
    for (const Syntax* item : items(*stated_shape)) shape.push_back(constant_int(*item));
  } else {
    list_shape(value, shape);
  }
  std::optional<int64_t> count = element_count(shape);
  if (!count) fail(at, "the shape has no size of 64 bits");
  if (const Syntax* encoding = keyword(at, "encoding")) {
    if (string(*encoding) != "hex" || !wanted || !stated_shape)
      fail(at, "expected a dtype, a shape and encoding=\"hex\"");
    return {relaxc::constant(hex_tensor(value, shape, *wanted), span(at))};
  }
  std::vector<AttrValue> elements;
  if (!stated_shape) {
    constant_elements(value, shape, 0, elements);
  } else if (*count != 0 || !items(value).empty()) {
    fail(at, "a shape is given for empty constants only; got {} elements", *count);
  }
  DType dtype = wanted.value_or(common_dtype(elements));
  if (dtype.is_handle() || dtype.lanes != 1) fail(at, "a constant of {}", to_string(dtype));
  Tensor data = Tensor::empty(shape, dtype);
  for (size_t i = 0; i < elements.size(); ++i) set_element(data, static_cast<int64_t>(i), elements[i], value);
  return {relaxc::constant(data, span(at))};
}

Tensor Parser::hex_tensor(const Syntax& at, const std::vector<int64_t>& shape, DType dtype) {
  std::string hex = string(at);
  // The size is checked before memory is allocated: the shape may be hostile.
  std::optional<int64_t> bytes = checked_mul(element_count(shape).value_or(0), dtype.bytes());
  if (!bytes || static_cast<size_t>(*bytes) * 2 != hex.size())
    fail(at, "expected {} bytes, got {} hexadecimal digits", bytes.value_or(0), hex.size());
  Tensor data = Tensor::empty(shape, dtype);
  unsigned char* out = static_cast<unsigned char*>(data.raw());
  for (size_t i = 0; i < hex.size(); i += 2) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    size_t high = kDigits.find(hex[i]), low = kDigits.find(hex[i + 1]);
    bool right = high < 16 && low < 16;
    if (!right) fail(at, "'{}' is not a hexadecimal digit", high < 16 ? hex[i + 1] : hex[i]);
    out[i / 2] = static_cast<unsigned char>(high * 16 + low);
  }
  return data;
}

// Reads the elements in row-major order; every list of a level has the same length.
void Parser::constant_elements(const Syntax& at, const std::vector<int64_t>& shape, size_t depth,
                               std::vector<AttrValue>& out) {
  if (depth == shape.size()) {
    if (is_list(at)) fail(at, "the lists are nested unevenly");
    out.push_back(attr_value(at));
    return;
  }
  if (!is_list(at) || static_cast<int64_t>(at.children.size()) != shape[depth])
    fail(at, "the lists are nested unevenly: expected {} items", shape[depth]);
  for (const Syntax* item : at.children) constant_elements(*item, shape, depth + 1, out);
}

void Parser::set_element(Tensor& data, int64_t index, const AttrValue& element, const Syntax& at) {
  DType dtype = data.dtype();
  if (dtype.is_float()) {
    const std::string* text = element.as<std::string>();
    std::optional<double> number = text ? special_float(*text) : std::nullopt;
    double real = 0;
    if (!number && from_attr(element, real)) number = real;
    if (!number) fail(at, "expected numbers, got {}", to_string(element));
    data.set_double(index, *number);
    return;
  }
  int64_t whole = 0;
  if (!from_attr(element, whole)) fail(at, "expected elements of {}, got {}", to_string(dtype), to_string(element));
  if (!fits(whole, dtype)) fail(at, "{} does not fit in {}", whole, to_string(dtype));
  data.set_int(index, whole);
}

}  // namespace relaxc::text
