// Operators that make tensors from shapes, scalars and attributes.
#include <algorithm>
#include <cmath>

#include "frontend/onnx/graph_importer.h"
#include "ops/attributes.h"

namespace relaxc::onnx_import {

namespace {

Outputs shape(Node& n) {
  std::vector<Expr> dims = n.shape(0);
  int64_t rank = n.rank(0);
  auto position = [&](const char* name, int64_t otherwise) {
    int64_t at = n.attr_int(name, otherwise);
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  int64_t start = position("start", 0), end = std::max(start, position("end", rank));
  return {n.of(KnownTensor{kInt64, {end - start}, {dims.begin() + start, dims.begin() + end}})};
}
Outputs size(Node& n) { return {n.of(KnownTensor{kInt64, {}, {product(n.shape(0))}})}; }

Outputs constant_node(Node& n) {
  const char* first = nullptr;
  for (const char* name : {"sparse_value", "value", "value_float", "value_floats", "value_int", "value_ints",
                           "value_string", "value_strings"}) {
    if (!n.has_attr(name)) continue;
    if (first) n.fail("attributes '{}' and '{}' are both given, expected one value", first, name);
    first = name;
  }
  std::optional<Tensor> data = n.attr_tensor("value");
  if (!data) data = n.attr_sparse_tensor("sparse_value");
  if (!data && n.has_attr("value_int")) data = Tensor::of<int64_t>({}, kInt64, {n.attr_int("value_int", 0)});
  if (!data && n.has_attr("value_float"))
    data = float_list({n.attr_float("value_float", 0)}).reshaped(std::vector<int64_t>{});
  if (!data && n.has_attr("value_floats")) data = float_list(n.attr_floats("value_floats"));
  if (!data && n.has_attr("value_ints")) {
    std::vector<int64_t> values = n.required_ints("value_ints");
    data = Tensor::of<int64_t>({std::ssize(values)}, kInt64, values);
  }
  if (!data && n.has_attr("value_string")) data = Tensor::strings({}, {n.attr_string("value_string", "")});
  if (!data && n.has_attr("value_strings")) {
    std::vector<std::string> texts = n.attr_strings("value_strings");
    data = Tensor::strings({std::ssize(texts)}, texts);
  }
  if (!data) n.fail("expected a value in one of the attributes");
  return {n.of(constant(*data, n.span()))};
}

Expr constant_of_shape(Node& n) {
  Expr fill = n.scalar(0, kFloat32);
  if (auto value = n.attr_tensor("value")) {
    if (value->size() != 1) n.fail("value has {} elements, expected 1", value->size());
    fill = constant(value->reshaped(std::vector<int64_t>{}), n.span());
  }
  std::vector<Expr> dims = n.ints(0, n.output_rank(0));
  for (size_t d = 0; d < dims.size(); ++d) {
    if (auto known = as_int(dims[d]); known && *known < 0) n.fail("shape[{}] is {}", d, *known);
  }
  return n.op("full", {shape_expr(dims), fill});
}

Expr positions_up_to(Node& n, const Expr& count) {
  return n.op("arange", {int_imm(0), count, int_imm(1)}, DTypeAttrs{kInt64});
}
constexpr const char* kZeroDelta = "a delta of 0";
Expr range(Node& n) {
  DType dtype = n.dtype(0);
  if (dtype != n.dtype(1) || dtype != n.dtype(2))
    n.fail("inputs have dtypes {}, {} and {}", to_string(dtype), to_string(n.dtype(1)), to_string(n.dtype(2)));
  if (dtype.is_integral()) {
    Expr start = n.scalar_int(0), end = n.scalar_int(1), step = n.scalar_int(2);
    n.require_nonzero(step, kZeroDelta);
    return n.op("arange", {start, end, step}, DTypeAttrs{dtype});
  }
  for (size_t i = 0; i < 3; ++i) {
    for (const Expr& dim : n.shape(i)) n.require_equal(dim, int_imm(1), "elements of an input of Range and 1");
  }
  // The count of floats is ceil((end - start) / step), and never below 0.
  Expr start = n.tensor(0), step = n.tensor(2);
  auto a = n.constant(0), b = n.constant(1), s = n.constant(2);
  Expr count = int_imm(0);
  if (s && s->as_double(0) == 0) n.fail("{}: expected another number", kZeroDelta);
  if (a && b && s) {
    double exact = std::ceil((b->as_double(0) - a->as_double(0)) / s->as_double(0));
    if (!(std::abs(exact) < 1e12))
      n.fail("start is {}, limit {} and delta {}: {} elements", a->as_double(0), b->as_double(0), s->as_double(0),
             exact);
    count = int_imm(std::max<int64_t>(0, static_cast<int64_t>(exact)));
  } else {
    const Expr is_step = n.cast(n.op("not_equal", {step, n.scalar_like(0, step)}), kInt64);
    n.require_nonzero(n.ints_of(n.of(is_step)).at(0), kZeroDelta);
    Expr steps = n.op("ceil", {n.div(n.sub(n.tensor(1), start), step)});
    count = n.ints_of(n.of(n.cast(n.binary("maximum", steps, n.scalar_like(0, steps)), kInt64))).at(0);
  }
  return n.add(start, n.mul(n.cast(positions_up_to(n, count), dtype), step));
}

Expr eye_like(Node& n) {
  FillAttrs attrs{n.attr_dtype("dtype", n.dtype(0))};
  return n.op("eye", {n.dim(0, 0), n.dim(0, 1), int_imm(n.attr_int("k", 0))}, attrs);
}

Expr trilu(Node& n) {
  Expr k = n.has(1) ? n.scalar_int(1) : int_imm(0);
  return n.op(n.attr_int("upper", 1) ? "triu" : "tril", {n.tensor(0), k});
}

}  // namespace

std::vector<ConverterRow> create_converters() {
  return {
      {"Shape", 1, 1, 1, shape, "end start"},
      {"Size", 1, 1, 1, size},
      {"Constant", 1, 0, 0, constant_node,
       "sparse_value value value_float value_floats value_int value_ints value_string value_strings"},
      {"ConstantOfShape", 9, 1, 1, constant_of_shape, "value"},
      {"Range", 11, 3, 3, range},
      {"EyeLike", 9, 1, 1, eye_like, "dtype k"},
      {"Trilu", 14, 1, 2, trilu, "upper"},
  };
}

}  // namespace relaxc::onnx_import
