// R.const: a tensor from numbers, lists of them, or the hexadecimal bytes that the printer writes.
#include <functional>
#include <limits>

#include "ir/text/parsing.h"
#include "support/checked_math.h"

namespace relaxc::text {

namespace {

// Shape of nested lists from their first elements.
void list_shape(const Syntax& at, std::vector<int64_t>& shape) {
  if (at.kind != SyntaxKind::kList && at.kind != SyntaxKind::kTuple) return;
  shape.push_back(static_cast<int64_t>(at.children.size()));
  if (!at.children.empty()) list_shape(*at.children[0], shape);
}

}  // namespace

Value Parser::constant(const Syntax& at) {
  const Syntax& value = required(at, 0, "value");
  const Syntax* stated = arg(at, 1, "dtype");
  std::optional<DType> wanted = stated ? std::optional(dtype(*stated)) : std::nullopt;
  std::vector<int64_t> shape;
  list_shape(value, shape);
  const Syntax* stated_shape = keyword(at, "shape");
  if (stated_shape) {
    std::vector<int64_t> dims;
    for (const Syntax* item : items(*stated_shape)) dims.push_back(constant_int(*item));
    shape = dims;
  }
  std::optional<int64_t> count = element_count(shape);
  if (!count) fail(at, "the shape has no size of 64 bits");
  if (const Syntax* encoding = keyword(at, "encoding")) {
    if (string(*encoding) != "hex" || !wanted || !stated_shape)
      fail(at, "expected a dtype, a shape and encoding=\"hex\"");
    std::string hex = string(value);
    auto bytes = checked_mul(*count, wanted->bytes());
    if (!bytes || static_cast<size_t>(*bytes) * 2 != hex.size())
      fail(value, "expected {} bytes, got {} hexadecimal digits", bytes.value_or(0), hex.size());
    Tensor data = Tensor::empty(shape, *wanted);
    unsigned char* out = static_cast<unsigned char*>(data.raw());
    for (size_t i = 0; i < hex.size(); i += 2) {
      auto digit = [&](char c) {
        if (c >= '0' && c <= '9') return c - '0';
        if (c >= 'a' && c <= 'f') return c - 'a' + 10;
        fail(value, "'{}' is no hexadecimal digit", c);
      };
      out[i / 2] = static_cast<unsigned char>(digit(hex[i]) * 16 + digit(hex[i + 1]));
    }
    return {relaxc::constant(data, span(at))};
  }
  // The elements in order; every list of a level has the same length.
  std::vector<AttrValue> elements;
  std::function<void(const Syntax&, size_t)> visit = [&](const Syntax& node, size_t depth) {
    bool is_list = node.kind == SyntaxKind::kList || node.kind == SyntaxKind::kTuple;
    if (depth == shape.size()) {
      if (is_list) fail(node, "the lists are nested unevenly");
      elements.push_back(attr_value(node));
      return;
    }
    if (!is_list || static_cast<int64_t>(node.children.size()) != shape[depth])
      fail(node, "the lists are nested unevenly: expected {} items", shape[depth]);
    for (const Syntax* item : node.children) visit(*item, depth + 1);
  };
  if (stated_shape) {
    if (*count != 0 || !items(value).empty())
      fail(at, "a shape is given for empty constants only; got {} elements", *count);
  } else {
    visit(value, 0);
  }
  if (!wanted) {
    bool real = false, truth = !elements.empty();
    for (const AttrValue& element : elements) {
      real = real || element.as<double>();
      truth = truth && element.as<bool>();
    }
    wanted = truth ? kBool : real || elements.empty() ? kFloat32 : kInt32;
  }
  if (wanted->is_handle() || wanted->lanes != 1) fail(at, "a constant of {}", to_string(*wanted));
  Tensor data = Tensor::empty(shape, *wanted);
  for (size_t i = 0; i < elements.size(); ++i) {
    int64_t whole = 0;
    double real = 0;
    if (const std::string* text = elements[i].as<std::string>(); text && wanted->is_float()) {
      double infinity = std::numeric_limits<double>::infinity();
      elements[i] = *text == "inf"    ? AttrValue(infinity)
                    : *text == "-inf" ? AttrValue(-infinity)
                    : *text == "nan"  ? AttrValue(std::numeric_limits<double>::quiet_NaN())
                                      : elements[i];
    }
    if (wanted->is_float()) {
      if (!from_attr(elements[i], real)) fail(value, "expected numbers, got {}", to_string(elements[i]));
      data.set_double(static_cast<int64_t>(i), real);
    } else {
      if (from_attr(elements[i], whole) && !fits(whole, *wanted))
        fail(value, "{} does not fit in {}", whole, to_string(*wanted));
      if (!from_attr(elements[i], whole))
        fail(value, "expected elements of {}, got {}", to_string(*wanted), to_string(elements[i]));
      data.set_int(static_cast<int64_t>(i), whole);
    }
  }
  return {relaxc::constant(data, span(at))};
}

}  // namespace relaxc::text
