// Evaluates shape arithmetic at import time, so that Shape -> Gather -> Concat -> Reshape becomes a symbolic shape.
#include <algorithm>
#include <cmath>

#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/join.h"

namespace relaxc::onnx_import {

namespace {

constexpr size_t kMostElements = 64;
using Elements = std::vector<Expr>;
using Folded = std::optional<Contents>;

std::optional<double> float_value(const Expr& e) {
  if (const FloatImm* imm = e.as<FloatImm>()) return imm->value;
  return std::nullopt;
}
// n where e is Cast(n) from int64 to a float.
std::optional<Expr> cast_from_int(const Expr& e) {
  const Cast* cast = e.as<Cast>();
  return cast && dtype_of(cast->value) == kInt64 ? std::optional(cast->value) : std::nullopt;
}
// The integer expression that a float expression equals exactly.
std::optional<Expr> as_integer(const Expr& e) {
  if (auto n = cast_from_int(e)) return n;
  auto value = float_value(e);
  if (value && std::abs(*value) < 9e15 && *value == std::trunc(*value)) return int_imm(static_cast<int64_t>(*value));
  return std::nullopt;
}
Expr float_of(const Expr& n, DType dtype) {
  if (auto known = as_int(n)) return float_imm(static_cast<double>(*known), dtype);
  return cast_to(n, dtype);
}

// One element of a binary operation; nullopt when it is not known.
std::optional<Expr> fold_binary(const Node& node, const std::string& op, const Expr& a, const Expr& b) {
  DType dtype = dtype_of(a);
  if (dtype != dtype_of(b)) return std::nullopt;
  if (dtype.is_float()) {
    auto x = float_value(a), y = float_value(b);
    if (x && y) {
      if (op == "Add") return float_imm(*x + *y, dtype);
      if (op == "Sub") return float_imm(*x - *y, dtype);
      if (op == "Mul") return float_imm(*x * *y, dtype);
      if (op == "Div") return float_imm(*x / *y, dtype);
      return std::nullopt;
    }
    auto m = as_integer(a), n = as_integer(b);
    if (!m || !n) return std::nullopt;
    if (op == "Add") return float_of(*m + *n, dtype);
    if (op == "Sub") return float_of(*m - *n, dtype);
    if (op == "Mul") return float_of(*m * *n, dtype);
    return std::nullopt;
  }
  if (dtype.is_bool()) {
    if (op == "And") return a && b;
    if (op == "Or") return a || b;
    if (op == "Equal" || op == "Xor") {
      Expr differ = (a && !b) || (!a && b);
      return op == "Xor" ? differ : !differ;
    }
    return std::nullopt;
  }
  auto divisor = as_int(b);
  if (op == "Add") return a + b;
  if (op == "Sub") return a - b;
  if (op == "Mul") return a * b;
  if (op == "Div") {
    if (divisor && (*divisor == 0 || *divisor == -1)) return std::nullopt;
    auto dividend = as_int(a);
    if (dividend && divisor) return int_imm(*dividend / *divisor);
    const Analyzer& facts = const_cast<Node&>(node).graph().context().analyzer;
    if (facts.bounds(a).min >= 0 && facts.bounds(b).min >= 0) return floor_div(a, b);
    return binary(BinaryOp::kDiv, a, b);
  }
  if (op == "Mod") return divisor && (*divisor == 0 || *divisor == -1) ? std::nullopt : std::optional(floor_mod(a, b));
  if (op == "Min") return min(a, b);
  if (op == "Max") return max(a, b);
  if (op == "Equal") {
    if (node.provably_equal(a, b)) return bool_imm(true);
    const Analyzer& facts = const_cast<Node&>(node).graph().context().analyzer;
    return facts.simplify(equal(a, b));
  }
  if (op == "Less") return a < b;
  if (op == "LessOrEqual") return a <= b;
  if (op == "Greater") return a > b;
  if (op == "GreaterOrEqual") return a >= b;
  return std::nullopt;
}

Folded elementwise(const Node& node, const std::string& op, const std::vector<const Contents*>& in) {
  size_t size = 1;
  bool scalar = true;
  for (const Contents* c : in) {
    scalar = scalar && c->scalar;
    if (c->elements.size() != 1) size = c->elements.size();
  }
  for (const Contents* c : in) {
    if (c->elements.size() != 1 && c->elements.size() != size) return std::nullopt;
    if (c->dtype != in[0]->dtype) return std::nullopt;
  }
  Contents result{in[0]->dtype, scalar, {}};
  for (size_t i = 0; i < size; ++i) {
    Expr value = in[0]->elements[in[0]->elements.size() == 1 ? 0 : i];
    for (size_t k = 1; k < in.size(); ++k) {
      auto next = fold_binary(node, op, value, in[k]->elements[in[k]->elements.size() == 1 ? 0 : i]);
      if (!next) return std::nullopt;
      value = *next;
    }
    result.elements.push_back(value);
  }
  if (!result.elements.empty() && dtype_of(result.elements[0]).is_bool()) result.dtype = kBool;
  return result;
}

Folded fold_unary(const std::string& op, const Contents& x) {
  Contents result{x.dtype, x.scalar, {}};
  for (const Expr& e : x.elements) {
    DType dtype = dtype_of(e);
    if (dtype.is_bool()) {
      if (op != "Not") return std::nullopt;
      result.elements.push_back(!e);
      continue;
    }
    if (!dtype.is_float()) {
      if (op != "Neg") return std::nullopt;
      result.elements.push_back(int_imm(0) - e);
      continue;
    }
    auto value = float_value(e);
    bool rounds = op == "Floor" || op == "Ceil" || op == "Round";
    if (rounds && cast_from_int(e)) {
      result.elements.push_back(e);
      continue;
    }
    if (!value) return std::nullopt;
    if (op == "Neg") {
      value = -*value;
    } else if (op == "Floor") {
      value = std::floor(*value);
    } else if (op == "Ceil") {
      value = std::ceil(*value);
    } else if (op == "Round") {
      value = std::nearbyint(*value);
    } else {
      return std::nullopt;
    }
    result.elements.push_back(float_imm(*value, dtype));
  }
  return result;
}

Folded fold_cast(Node& node, const Contents& x) {
  DType to = node.attr_dtype("to", kInt64);
  node.ignore({"saturate", "round_mode"});  // of floats with 8 bits
  Contents result{to, x.scalar, {}};
  bool integer = to == kInt64 || to == kInt32, real = to == kFloat32 || to == kFloat64;
  if (!integer && !real && !to.is_bool()) return std::nullopt;
  for (const Expr& e : x.elements) {
    DType from = dtype_of(e);
    std::optional<Expr> n;  // as an integer
    if (from.is_bool()) {
      if (to.is_bool()) {
        result.elements.push_back(e);
        continue;
      }
      n = as_int(e) ? int_imm(*as_int(e)) : select(e, int_imm(1), int_imm(0));
    } else if (from.is_float()) {
      n = as_integer(e);
      if (!n && float_value(e) && integer && std::abs(*float_value(e)) < 9e15)
        n = int_imm(static_cast<int64_t>(*float_value(e)));
      if (!n && float_value(e) && real) {
        result.elements.push_back(float_imm(*float_value(e), to));
        continue;
      }
    } else {
      n = e;
    }
    if (!n) return std::nullopt;
    if (to == kInt32 && as_int(*n) && *as_int(*n) != static_cast<int32_t>(*as_int(*n))) return std::nullopt;
    result.elements.push_back(integer ? *n : real ? float_of(*n, to) : not_equal(*n, int_imm(0)));
  }
  return result;
}

Folded fold_gather(Node& node, const Contents& x) {
  auto indices = node.constant_ints(1);
  const Contents* index = node.contents(1);
  int64_t axis = node.attr_int("axis", 0), n = static_cast<int64_t>(x.elements.size());
  if (x.scalar || !indices || !index || (axis != 0 && axis != -1)) return std::nullopt;
  Contents result{x.dtype, index->scalar, {}};
  for (int64_t i : *indices) {
    if (i < -n || i >= n) return std::nullopt;  // the operator decides: an error, or with --gather=clamp the last one
    result.elements.push_back(x.elements[static_cast<size_t>(i < 0 ? i + n : i)]);
  }
  return result;
}

Folded fold_concat(Node& node, const std::vector<const Contents*>& in) {
  int64_t axis = node.opset() < 4 ? node.attr_int("axis", 1) : node.required_int("axis");
  if (axis != 0 && axis != -1) return std::nullopt;
  Contents result{in[0]->dtype, false, {}};
  for (const Contents* c : in) {
    if (c->scalar || c->dtype != result.dtype) return std::nullopt;
    result.elements.insert(result.elements.end(), c->elements.begin(), c->elements.end());
  }
  return result;
}

Folded fold_reduce(Node& node, const std::string& op, const Contents& x) {
  if (x.scalar || x.elements.empty() || !dtype_of(x.elements[0]).is_int()) return std::nullopt;
  if (node.has(1)) {
    auto axes = node.constant_ints(1);
    if (!axes || axes->size() > 1) return std::nullopt;
  }
  node.ignore({"axes", "noop_with_empty_axes"});
  if (node.attr_int("noop_with_empty_axes", 0)) return std::nullopt;
  Expr value = x.elements[0];
  for (size_t i = 1; i < x.elements.size(); ++i) {
    const Expr& e = x.elements[i];
    value = op == "ReduceProd"  ? value * e
            : op == "ReduceSum" ? value + e
            : op == "ReduceMax" ? max(value, e)
                                : min(value, e);
  }
  return Contents{x.dtype, node.attr_int("keepdims", 1) == 0, {value}};
}

Folded fold_shape(Node& node) {
  const Value& x = node.value(0);
  if (!x->tensor && !x->contents) return std::nullopt;
  std::vector<Expr> dims = node.shape(0);
  int64_t rank = static_cast<int64_t>(dims.size());
  if (node.op_type() == "Size") {
    Expr size = int_imm(1);
    for (const Expr& dim : dims) size = size * dim;
    return Contents{kInt64, true, {size}};
  }
  auto clamp = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
  int64_t start = clamp(node.attr_int("start", 0)), end = clamp(node.attr_int("end", rank));
  Contents result{kInt64, false, {}};
  for (int64_t d = start; d < end; ++d) result.elements.push_back(dims[static_cast<size_t>(d)]);
  return result;
}

Folded fold_with(Node& node, const std::vector<const Contents*>& in) {
  const std::string& op = node.op_type();
  const Contents& x = *in[0];
  auto is = [&](std::initializer_list<const char*> names) {
    return std::any_of(names.begin(), names.end(), [&](const char* name) { return op == name; });
  };
  if (is({"Add", "Sub", "Mul", "Div", "Mod", "Min", "Max", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual",
          "And", "Or", "Xor"})) {
    if (node.opset() < 7 || (op == "Mod" && node.attr_int("fmod", 0))) return std::nullopt;
    return in.size() > 1 ? elementwise(node, op, in) : std::nullopt;
  }
  if (is({"Neg", "Floor", "Ceil", "Round", "Not"})) return fold_unary(op, x);
  if (op == "Cast") return fold_cast(node, x);
  if (op == "Gather") return fold_gather(node, x);
  if (op == "Concat") return fold_concat(node, in);
  if (is({"ReduceProd", "ReduceSum", "ReduceMax", "ReduceMin"})) return fold_reduce(node, op, x);
  if (op == "Range") {
    auto a = x.only_int(), b = in[1]->only_int(), s = in[2]->only_int();
    if (!a || !b || !s || *s == 0 || !dtype_of(x.elements[0]).is_int()) return std::nullopt;
    double count = std::ceil((static_cast<double>(*b) - static_cast<double>(*a)) / static_cast<double>(*s));
    if (count > static_cast<double>(kMostElements)) return std::nullopt;
    Contents result{x.dtype, false, {}};
    for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) result.elements.push_back(int_imm(*a + i * *s));
    return result;
  }
  if (op == "Where") {
    if (x.dtype != kBool || in[1]->dtype != in[2]->dtype) return std::nullopt;
    size_t size = std::max({x.elements.size(), in[1]->elements.size(), in[2]->elements.size()});
    Contents result{in[1]->dtype, x.scalar && in[1]->scalar && in[2]->scalar, {}};
    for (size_t i = 0; i < size; ++i) {
      auto pick = [&](const Contents& c) -> std::optional<Expr> {
        if (c.elements.size() != 1 && c.elements.size() != size) return std::nullopt;
        return c.elements[c.elements.size() == 1 ? 0 : i];
      };
      auto c = pick(x), a = pick(*in[1]), b = pick(*in[2]);
      if (!c || !a || !b) return std::nullopt;
      auto known = as_int(*c);
      if (!known && dtype_of(*a).is_float()) return std::nullopt;
      result.elements.push_back(known ? (*known ? *a : *b) : select(*c, *a, *b));
    }
    return result;
  }
  if (op == "ConstantOfShape" || op == "Expand") {
    const Contents& shape = op == "Expand" ? *in[1] : x;
    if (shape.scalar || shape.elements.size() > 1) return std::nullopt;
    int64_t count = shape.elements.empty() ? 1 : as_int(shape.elements[0]).value_or(-1);
    if (count < 0 || count > static_cast<int64_t>(kMostElements)) return std::nullopt;
    if (op == "Expand") {
      if (x.elements.size() != 1 || (shape.elements.empty() && !x.scalar)) return std::nullopt;
      return Contents{x.dtype, shape.elements.empty(), Elements(static_cast<size_t>(count), x.elements[0])};
    }
    std::optional<Tensor> value = node.attr_tensor("value");
    std::optional<Contents> fill = value ? contents_of_tensor(*value) : Contents{kFloat32, false, {float_imm(0)}};
    if (!fill || fill->elements.size() != 1) return std::nullopt;
    return Contents{fill->dtype, shape.elements.empty(), Elements(static_cast<size_t>(count), fill->elements[0])};
  }
  return std::nullopt;
}

}  // namespace

Folded fold_contents(Node& node) {
  const std::string& domain = node.proto().domain();
  if (!domain.empty() && domain != "ai.onnx") return std::nullopt;
  if (node.inputs() == 0) return std::nullopt;
  if (node.op_type() == "Shape" || node.op_type() == "Size") return fold_shape(node);
  std::vector<const Contents*> in;
  for (size_t i = 0; i < node.inputs(); ++i) {
    const Contents* known = node.has(i) ? node.contents(i) : nullptr;
    if (node.has(i) && !known) return std::nullopt;
    if (known && known->elements.empty() && i == 0 && node.op_type() != "ConstantOfShape" && node.op_type() != "Concat")
      return std::nullopt;
    if (known) in.push_back(known);
  }
  if (in.empty() || !node.has(0)) return std::nullopt;
  bool has_table = std::any_of(in.begin(), in.end(), [](const Contents* c) { return !c->table.empty(); });
  Folded result = move_contents(node, *in[0]);
  bool has_gaps = in.size() < node.inputs();
  if (!result && !has_table && !has_gaps) result = fold_with(node, in);
  if (!result || result->elements.size() > kMostElements) return std::nullopt;
  // The converter knows what the attribute means, where this function did not look at it.
  std::vector<std::string> unread = node.unread_attributes();
  if (std::any_of(unread.begin(), unread.end(), is_known_attribute)) return std::nullopt;
  for (Expr& element : result->elements) {
    if (element.type().is<PrimType>() && dtype_of(element).is_int()) element = named_if_long(node, element, "dim");
  }
  return result;
}

std::optional<Contents> contents_of_tensor(const Tensor& tensor) {
  DType dtype = tensor.dtype();
  bool takes = dtype == kInt64 || dtype == kInt32 || dtype == kBool || dtype == kFloat32 || dtype == kFloat64;
  if (!takes || tensor.ndim() > 1 || tensor.size() > static_cast<int64_t>(kMostElements)) return std::nullopt;
  Contents result{dtype, tensor.ndim() == 0, {}};
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (dtype.is_float()) {
      result.elements.push_back(float_imm(tensor.as_double(i), dtype));
    } else {
      result.elements.push_back(int_imm(tensor.as_int(i), dtype.is_bool() ? kBool : kInt64));
    }
  }
  return result;
}

std::optional<Tensor> tensor_of_contents(const Contents& contents) {
  Tensor tensor = Tensor::empty(contents.dims(), contents.dtype);
  for (size_t i = 0; i < contents.elements.size(); ++i) {
    const Expr& e = contents.elements[i];
    if (const FloatImm* imm = e.as<FloatImm>()) {
      tensor.set_double(static_cast<int64_t>(i), imm->value);
    } else if (auto known = as_int(e)) {
      tensor.set_int(static_cast<int64_t>(i), *known);
    } else {
      return std::nullopt;
    }
  }
  return tensor;
}

}  // namespace relaxc::onnx_import
