// What functions of topi ask of their calls.
#include "ir/text/topi_call.h"

#include <fmt/format.h>

#include <ranges>

namespace relaxc::text {

bool TopiCall::flag(std::string_view name, bool otherwise) {
  AttrValue given = value(name);
  if (const int64_t* number = given.as<int64_t>()) return *number != 0;
  return given.as<bool>() ? *given.as<bool>() : otherwise;
}
int64_t TopiCall::whole(std::string_view name, int64_t otherwise) {
  if (!has(name)) return otherwise;
  std::vector<int64_t> numbers = wholes(name);
  if (numbers.size() != 1) fail(fmt::format("argument '{}' is not an integer", name));
  return numbers[0];
}
double TopiCall::real(std::string_view name, double otherwise) {
  if (!has(name)) return otherwise;
  double number = 0;
  if (!from_attr(value(name), number)) fail(fmt::format("argument '{}' is not a number", name));
  return number;
}
std::string TopiCall::text(std::string_view name, std::string otherwise) {
  AttrValue given = value(name);
  return given.as<std::string>() ? *given.as<std::string>() : otherwise;
}
std::vector<int64_t> TopiCall::wholes(std::string_view name, std::vector<int64_t> otherwise) {
  if (!has(name)) return otherwise;
  AttrValue given = value(name);
  const AttrList* list = given.as<AttrList>();
  std::vector<int64_t> result;
  for (const AttrValue& item : list ? *list : AttrList{given}) {
    int64_t number = 0;
    if (!from_attr(item, number)) fail(fmt::format("argument '{}' is not made of integers", name));
    result.push_back(number);
  }
  return result;
}
std::vector<int64_t> TopiCall::sizes(std::string_view name, size_t count, int64_t otherwise) {
  std::vector<int64_t> given = wholes(name, {otherwise});
  if (given.size() == 1) given.resize(count, given[0]);
  if (given.size() != count) fail(fmt::format("argument '{}' has {} items, expected {}", name, given.size(), count));
  return given;
}
Attrs TopiCall::attrs(std::string_view names) {
  Attrs result;
  for (auto part : names | std::views::split(' ')) {
    std::string_view name(part.begin(), part.end());
    size_t arrow = name.find('>');
    std::string_view own = arrow == name.npos ? name : name.substr(arrow + 1);
    name = name.substr(0, arrow);
    if (own == "out_dtype") {
      if (has(name)) result.set(std::string(own), dtype(name, kFloat32));
    } else if (has(name)) {
      result.set(std::string(own), value(name));
    }
  }
  return result;
}

const std::vector<Expr>& TopiCall::shape(const Expr& tensor) {
  const std::vector<Expr>* known = known_shape(tensor.type());
  if (!known) fail("the shape of an argument is not known");
  return *known;
}
int64_t TopiCall::dim(const Expr& tensor, int64_t axis) {
  const std::vector<Expr>& dims = shape(tensor);
  const IntImm* number = dims.at(static_cast<size_t>(axis)).as<IntImm>();
  if (!number) fail("a dim is symbolic that has to be a number here");
  return number->value;
}
DType TopiCall::dtype_of(const Expr& tensor) {
  std::optional<DType> known = tensor_dtype(tensor.type());
  if (!known) fail("the dtype of an argument is not known");
  return *known;
}
int64_t TopiCall::axis(std::string_view name, int64_t otherwise, const Expr& tensor) {
  int64_t given = whole(name, otherwise), count = rank(tensor);
  if (given < -count || given >= count) fail(fmt::format("axis {} of a tensor of rank {}", given, count));
  return given < 0 ? given + count : given;
}
Expr TopiCall::reshape(const Expr& tensor, std::vector<Expr> dims) {
  return op("reshape", {tensor, shape_expr(std::move(dims))});
}
Expr TopiCall::permute(const Expr& tensor, const std::vector<int64_t>& axes) {
  return op("permute_dims", {tensor}, {{"axes", axes}});
}
Expr TopiCall::expand(const Expr& tensor, const std::vector<int64_t>& axes) {
  return axes.empty() ? tensor : op("expand_dims", {tensor}, {{"axis", axes}});
}
Expr TopiCall::astype(const Expr& tensor, DType dtype) {
  return dtype_of(tensor) == dtype ? tensor : op("astype", {tensor}, {{"dtype", dtype}});
}
Expr TopiCall::number(double value, DType dtype) {
  Tensor data = Tensor::empty({}, dtype);
  dtype.is_float() ? data.set_double(0, value) : data.set_int(0, static_cast<int64_t>(value));
  return constant(data);
}
Expr TopiCall::along(const Expr& vector, int64_t axis, int64_t rank) {
  std::vector<int64_t> axes;
  for (int64_t d = 0; d < rank; ++d) {
    if (d != axis) axes.push_back(d);
  }
  return expand(vector, axes);
}

}  // namespace relaxc::text
