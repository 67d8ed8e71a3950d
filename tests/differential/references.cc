#include "tests/differential/references.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "ir/visit.h"
#include "ops/attributes.h"
#include "tests/ops/harness.h"
#include "tests/patterns.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

using Tensors = std::vector<Tensor>;

// The tensor whose element at each index is value(index).
Tensor filled(const Shape& shape, DType dtype, const std::function<double(const Shape&)>& value) {
  Tensor result = Tensor::empty(shape, dtype);
  int64_t i = 0;
  for_each_index(shape, [&](const Shape& index) { result.set_double(i++, value(index)); });
  return result;
}
Tensor filled_with_ints(const Shape& shape, DType dtype, const std::function<int64_t(const Shape&)>& value) {
  Tensor result = Tensor::empty(shape, dtype);
  int64_t i = 0;
  for_each_index(shape, [&](const Shape& index) { result.set_int(i++, value(index)); });
  return result;
}
// The position in `shape` that numpy's broadcasting gives an index of the result.
Shape broadcast_index(const Shape& index, const Shape& shape) {
  Shape result(index.end() - static_cast<int64_t>(shape.size()), index.end());
  for (size_t d = 0; d < shape.size(); ++d) result[d] = shape[d] == 1 ? 0 : result[d];
  return result;
}
Shape broadcast_shape(const Tensors& x) {
  Shape result;
  for (const Tensor& tensor : x) {
    const Shape& shape = tensor.shape();
    if (shape.size() > result.size()) result.insert(result.begin(), shape.size() - result.size(), 1);
    for (size_t d = 0; d < shape.size(); ++d) {
      int64_t& dim = result[result.size() - shape.size() + d];
      if (dim == 1) dim = shape[d];
    }
  }
  return result;
}

// ---- Elementwise operators: one function of the operands' elements

Reference of_floats(const std::function<double(const std::vector<double>&)>& fn) {
  return [fn](const ReferenceCall& c) -> Tensors {
    return {filled(broadcast_shape(c.x), c.x[0].dtype(), [&](const Shape& i) {
      std::vector<double> values;
      for (const Tensor& x : c.x) values.push_back(element(x, broadcast_index(i, x.shape())));
      return fn(values);
    })};
  };
}
Reference unary(double (*fn)(double)) {
  return of_floats([fn](const std::vector<double>& x) { return fn(x[0]); });
}
Reference of_ints(int64_t (*fn)(int64_t a, int64_t b)) {
  return [fn](const ReferenceCall& c) -> Tensors {
    return {filled_with_ints(broadcast_shape(c.x), c.x[0].dtype(), [&](const Shape& i) {
      auto value = [&](const Tensor& x) { return x.as_int(flat(broadcast_index(i, x.shape()), x.shape())); };
      return fn(value(c.x.front()), value(c.x.back()));
    })};
  };
}
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double gelu_tanh(double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * std::pow(x, 3)))); }
double selu(double x) { return 1.05070098735548 * (x > 0 ? x : 1.67326324235438 * (std::exp(x) - 1)); }
// Compares a and b; a NaN differs from everything.
Tensors not_equal_elements(const ReferenceCall& c) {
  return {filled_with_ints(broadcast_shape(c.x), kBool, [&](const Shape& i) -> int64_t {
    return element(c.x[0], broadcast_index(i, c.x[0].shape())) != element(c.x[1], broadcast_index(i, c.x[1].shape()));
  })};
}

// ---- Reductions to a shape: dims of 1 are folded

Reference to_shape(double start, const std::function<double(double, double)>& combine, bool is_mean = false) {
  return [=](const ReferenceCall& c) -> Tensors {
    const Tensor& x = c.x[0];
    Shape shape = c.dims(1);
    Tensor result = filled(shape, kFloat64, [&](const Shape&) { return start; });
    for_each_index(x.shape(), [&](const Shape& i) {
      int64_t at = flat(broadcast_index(i, shape), shape);
      result.set_double(at, combine(result.as_double(at), element(x, i)));
    });
    double count = is_mean ? static_cast<double>(x.size()) / static_cast<double>(result.size()) : 1;
    return {filled(shape, x.dtype(), [&](const Shape& i) { return element(result, i) / count; })};
  };
}
double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }
double smaller(double a, double b) { return std::isnan(a) || a < b ? a : b; }

// ---- Operators that move elements: x[source(index)]

Tensor moved(const Tensor& x, const Shape& shape, const std::function<Shape(const Shape&)>& source) {
  return filled(shape, x.dtype(), [&](const Shape& i) { return element(x, source(i)); });
}
Tensors identity(const ReferenceCall& c) { return {c.x[0]}; }
Tensors flatten(const ReferenceCall& c) { return {c.x[0].reshaped(Shape{c.x[0].size()})}; }
Tensors flip(const ReferenceCall& c) {
  int64_t axis = c.attrs<AxisAttrs>().axis;
  return {moved(c.x[0], c.x[0].shape(), [&](Shape i) {
    i[axis] = c.x[0].shape()[axis] - 1 - i[axis];
    return i;
  })};
}
Tensors tile(const ReferenceCall& c) {
  Shape repeats = c.attrs<TileAttrs>().repeats, from = c.x[0].shape();
  while (repeats.size() < from.size()) repeats.insert(repeats.begin(), 1);
  Shape shape = repeats;
  for (size_t d = 0; d < from.size(); ++d) shape[shape.size() - from.size() + d] *= from[d];
  return {moved(c.x[0], shape, [&](Shape i) {
    i.erase(i.begin(), i.end() - static_cast<int64_t>(from.size()));
    for (size_t d = 0; d < from.size(); ++d) i[d] %= from[d];
    return i;
  })};
}
Tensors repeat(const ReferenceCall& c) {
  RepeatAttrs attrs = c.attrs<RepeatAttrs>();
  Tensor x = attrs.axis ? c.x[0] : c.x[0].reshaped(Shape{c.x[0].size()});
  int64_t axis = attrs.axis.value_or(0);
  Shape shape = x.shape();
  shape[axis] *= attrs.repeats;
  return {moved(x, shape, [&](Shape i) {
    i[axis] /= attrs.repeats;
    return i;
  })};
}
Tensors stack(const ReferenceCall& c) {
  int64_t axis = c.attrs<AxisAttrs>().axis;
  Shape shape = c.x[0].shape();
  shape.insert(shape.begin() + axis, static_cast<int64_t>(c.x.size()));
  return {filled(shape, c.x[0].dtype(), [&](Shape i) {
    const Tensor& x = c.x[static_cast<size_t>(i[axis])];
    i.erase(i.begin() + axis);
    return element(x, i);
  })};
}
// The parts of a number of sections are of equal size, but for the last ones.
Tensors split_parts(const ReferenceCall& c) {
  SplitAttrs attrs = c.attrs<SplitAttrs>();
  const Tensor& x = c.x[0];
  int64_t dim = x.shape()[attrs.axis];
  Shape bounds = {0};
  if (const int64_t* sections = attrs.indices_or_sections.as<int64_t>()) {
    for (int64_t k = 1; k < *sections; ++k) bounds.push_back(std::min(dim, k * ((dim + *sections - 1) / *sections)));
  } else {
    for (const AttrValue& index : *attrs.indices_or_sections.as<AttrList>())
      bounds.push_back(std::min(dim, *index.as<int64_t>()));
  }
  bounds.push_back(dim);
  Tensors parts;
  for (size_t k = 0; k + 1 < bounds.size(); ++k) {
    Shape shape = x.shape();
    shape[attrs.axis] = bounds[k + 1] - bounds[k];
    parts.push_back(moved(x, shape, [&](Shape i) {
      i[attrs.axis] += bounds[k];
      return i;
    }));
  }
  return parts;
}
// The position that one beyond a border stands for: pads of "reflect" do not repeat the border, those of "wrap" go on
// at the other end.
int64_t padded_position(const std::string& mode, int64_t i, int64_t dim) {
  while (mode == "reflect" && dim > 1 && (i < 0 || i >= dim)) i = i < 0 ? -i : 2 * (dim - 1) - i;
  while (mode == "wrap" && (i < 0 || i >= dim)) i += i < 0 ? dim : -dim;
  return std::clamp<int64_t>(i, 0, dim - 1);
}
Tensors pad(const ReferenceCall& c) {
  PadAttrs attrs = c.attrs<PadAttrs>();
  const Shape& from = c.x[0].shape();
  Shape shape = from;
  for (size_t d = 0; d < from.size(); ++d) shape[d] += attrs.pad_width[2 * d] + attrs.pad_width[2 * d + 1];
  return {filled(shape, c.x[0].dtype(), [&](Shape i) {
    bool is_inside = true;
    for (size_t d = 0; d < from.size(); ++d) {
      i[d] -= attrs.pad_width[2 * d];
      is_inside = is_inside && i[d] >= 0 && i[d] < from[d];
      if (attrs.pad_mode != "constant") i[d] = padded_position(attrs.pad_mode, i[d], from[d]);
    }
    return is_inside || attrs.pad_mode != "constant" ? element(c.x[0], i) : attrs.pad_value;
  })};
}
Tensors outer(const ReferenceCall& c) {
  return {filled({c.x[0].size(), c.x[1].size()}, c.x[0].dtype(),
                 [&](const Shape& i) { return c.x[0].as_double(i[0]) * c.x[1].as_double(i[1]); })};
}

// ---- Sorts. A NaN is the largest value, and equal elements keep their order.

bool comes_before(double a, double b, bool descending) {
  if (std::isnan(a) || std::isnan(b)) return descending ? std::isnan(a) && !std::isnan(b) : !std::isnan(a);
  return descending ? a > b : a < b;
}
// The positions of x along the axis in their order.
Tensor order_of(const Tensor& x, int64_t axis, bool descending) {
  Tensor order = Tensor::empty(x.shape(), kInt64);
  int64_t length = x.shape()[axis];
  for_each_index(x.shape(), [&](const Shape& i) {
    if (i[axis] != 0) return;
    Shape at = i, positions(static_cast<size_t>(length));
    auto value = [&](int64_t k) {
      at[axis] = k;
      return element(x, at);
    };
    std::iota(positions.begin(), positions.end(), 0);
    std::stable_sort(positions.begin(), positions.end(), [&](int64_t a, int64_t b) {
      double left = value(a);
      return comes_before(left, value(b), descending);
    });
    for (int64_t k = 0; k < length; ++k) {
      at[axis] = k;
      order.set_int(flat(at, x.shape()), positions[static_cast<size_t>(k)]);
    }
  });
  return order;
}
Tensor taken(const Tensor& x, const Tensor& order, int64_t axis) {
  return moved(x, order.shape(), [&](Shape i) {
    i[axis] = static_cast<int64_t>(element(order, i));
    return i;
  });
}
Tensor first_of(const Tensor& x, int64_t count, int64_t axis, DType dtype) {
  Shape shape = x.shape();
  shape[axis] = count;
  return filled(shape, dtype, [&](const Shape& i) { return element(x, i); });
}
int64_t positive_axis(const ReferenceCall& c, int64_t axis) { return axis < 0 ? axis + c.x[0].ndim() : axis; }
Tensors sort(const ReferenceCall& c) {
  SortAttrs attrs = c.attrs<SortAttrs>();
  int64_t axis = positive_axis(c, attrs.axis);
  return {taken(c.x[0], order_of(c.x[0], axis, attrs.descending), axis)};
}
Tensors argsort(const ReferenceCall& c) {
  ArgsortAttrs attrs = c.attrs<ArgsortAttrs>();
  int64_t axis = positive_axis(c, attrs.axis);
  return {first_of(order_of(c.x[0], axis, attrs.descending), c.x[0].shape()[axis], axis, attrs.dtype)};
}
Tensors topk(const ReferenceCall& c) {
  TopKAttrs attrs = c.attrs<TopKAttrs>();
  int64_t axis = positive_axis(c, attrs.axis);
  Tensor order = first_of(order_of(c.x[0], axis, attrs.largest), attrs.k, axis, kInt64);
  return {taken(c.x[0], order, axis), first_of(order, attrs.k, axis, attrs.dtype)};
}

// ---- Creation

Reference constant_of_shape(double value) {
  return [=](const ReferenceCall& c) -> Tensors {
    return {filled(c.dims(0), *c.attrs<FillAttrs>().dtype, [&](const Shape&) { return value; })};
  };
}
Reference constant_like(double value) {
  return [=](const ReferenceCall& c) -> Tensors {
    DType dtype = c.attrs<DTypeAttrs>().dtype.value_or(c.x[0].dtype());
    return {filled(c.x[0].shape(), dtype, [&](const Shape&) { return value; })};
  };
}
Tensors full_like(const ReferenceCall& c) { return constant_like(c.x[1].as_double(0))(c); }
Tensor diagonal(const Shape& shape, DType dtype, int64_t k) {
  return filled(shape, dtype, [&](const Shape& i) { return i[1] - i[0] == k ? 1 : 0; });
}
Tensors eye(const ReferenceCall& c) {
  return {diagonal({c.number(0), c.number(1)}, *c.attrs<FillAttrs>().dtype, c.number(2))};
}
Tensors eye_like(const ReferenceCall& c) {
  return {diagonal(c.x[0].shape(), c.attrs<DTypeAttrs>().dtype.value_or(c.x[0].dtype()), c.number(1))};
}
Tensors one_hot(const ReferenceCall& c) {
  OneHotAttrs attrs = c.attrs<OneHotAttrs>();
  auto value = [&](size_t i) { return c.call.args[i].as<FloatImm>()->value; };
  Shape shape = c.x[0].shape();
  int64_t axis = attrs.axis < 0 ? attrs.axis + c.x[0].ndim() + 1 : attrs.axis;
  shape.insert(shape.begin() + axis, attrs.depth);
  return {filled(shape, kFloat32, [&](Shape i) {
    int64_t position = i[axis];
    i.erase(i.begin() + axis);
    int64_t index = static_cast<int64_t>(element(c.x[0], i));
    return (index < 0 ? index + attrs.depth : index) == position ? value(1) : value(2);
  })};
}
Tensors shape_to_tensor(const ReferenceCall& c) {
  Shape dims = c.dims(0);
  return {Tensor::of<int64_t>({static_cast<int64_t>(dims.size())}, kInt64, dims)};
}

}  // namespace

std::vector<int64_t> ReferenceCall::dims(size_t i) const {
  std::vector<int64_t> result;
  for (const Expr& dim : call.args.at(i).as<ShapeExpr>()->values) result.push_back(as_int(simplify(dim)).value());
  return result;
}

const std::map<std::string, Reference>& references() {
  using Values = const std::vector<double>&;
  static const std::map<std::string, Reference> kReferences = {
      {"relax.atan2", of_floats([](Values x) { return std::atan2(x[0], x[1]); })},
      {"relax.bitwise_and", of_ints([](int64_t a, int64_t b) { return a & b; })},
      {"relax.bitwise_or", of_ints([](int64_t a, int64_t b) { return a | b; })},
      {"relax.bitwise_xor", of_ints([](int64_t a, int64_t b) { return a ^ b; })},
      {"relax.bitwise_not", of_ints([](int64_t a, int64_t) { return ~a; })},
      {"relax.ewise_fma", of_floats([](Values x) { return x[0] * x[1] + x[2]; })},
      {"relax.floor_divide", of_floats([](Values x) { return std::floor(x[0] / x[1]); })},
      {"relax.log_add_exp", of_floats([](Values x) { return std::log(std::exp(x[0]) + std::exp(x[1])); })},
      {"relax.not_equal", not_equal_elements},
      {"relax.trunc", unary([](double x) { return std::trunc(x); })},
      {"relax.nn.gelu", unary([](double x) { return x * (1 + std::erf(x / std::sqrt(2))) / 2; })},
      {"relax.nn.gelu_tanh", unary(gelu_tanh)},
      {"relax.nn.relu6", unary([](double x) { return std::isnan(x) ? x : std::clamp(x, 0.0, 6.0); })},
      {"relax.nn.selu", unary(selu)},
      {"relax.nn.silu", unary([](double x) { return x * sigmoid(x); })},
      {"relax.grad.no_grad", identity},
      {"relax.grad.start_checkpoint", identity},
      {"relax.grad.end_checkpoint", identity},
      {"relax.dyn.max", to_shape(-INFINITY, larger)},
      {"relax.dyn.min", to_shape(INFINITY, smaller)},
      {"relax.dyn.prod", to_shape(1, std::multiplies<>())},
      {"relax.dyn.mean", to_shape(0, std::plus<>(), true)},
      {"relax.flatten", flatten},
      {"relax.flip", flip},
      {"relax.tile", tile},
      {"relax.repeat", repeat},
      {"relax.stack", stack},
      {"relax.split", split_parts},
      {"relax.nn.pad", pad},
      {"relax.outer", outer},
      {"relax.sort", sort},
      {"relax.argsort", argsort},
      {"relax.topk", topk},
      {"relax.zeros", constant_of_shape(0)},
      {"relax.ones", constant_of_shape(1)},
      {"relax.zeros_like", constant_like(0)},
      {"relax.ones_like", constant_like(1)},
      {"relax.full_like", full_like},
      {"relax.eye", eye},
      {"relax.eye_like", eye_like},
      {"relax.one_hot", one_hot},
      {"relax.shape_to_tensor", shape_to_tensor},
  };
  return kReferences;
}

std::set<std::string> ops_of_run_texts() {
  std::set<std::string> result;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(RELAXC_SOURCE_DIR "/tests/modules")) {
    std::ifstream file(entry.path());
    std::string line;
    if (entry.path().extension() != ".test" || !std::getline(file, line) || line != "# test: run") continue;
    while (std::getline(file, line)) {
      for (const std::vector<std::string>& called : matches(line, "\\bR\\.([a-z0-9_.]+)\\("))
        result.insert("relax." + called[1]);
    }
  }
  return result;
}

std::optional<std::vector<Tensor>> run_reference(const IRModule& module, const std::vector<Tensor>& inputs) {
  const Function& main = *module.functions.at("main").as<Function>();
  const Call* call = nullptr;
  walk(main.body, [&](const Call& found) { call = &found; });
  auto reference = call ? references().find(call->callee.as<OpRef>()->name) : references().end();
  if (reference == references().end()) return std::nullopt;
  ReferenceCall view{*call, {}};
  auto add = [&](const Expr& arg) {
    for (size_t i = 0; i < main.params.size(); ++i) {
      if (same_node(arg, main.params[i])) view.x.push_back(inputs.at(i));
    }
  };
  for (const Expr& arg : call->args) {
    add(arg);
    if (const Tuple* several = arg.as<Tuple>()) std::for_each(several->items.begin(), several->items.end(), add);
  }
  return reference->second(view);
}

}  // namespace relaxc::test
