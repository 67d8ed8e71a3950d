// Operators that move elements: exact for every dtype, so the range stays.
#include <numeric>

#include "tests/onnx_graphs/generator.h"

namespace relaxc::test::onnx_graphs {

namespace {

using G = Generator;

Value moved(G& g, const char* name, const std::vector<std::string>& inputs, Attrs attrs, const Value& x, Shape shape) {
  return g.emit(name, inputs, std::move(attrs), x.dtype, std::move(shape), x.range);
}

void transpose(G& g, const char* name) {
  Value x = g.any_value(0, 5);
  std::vector<int64_t> perm(x.shape.size());
  std::iota(perm.begin(), perm.end(), 0);
  bool given = g.chance(0.85);
  if (!given) std::reverse(perm.begin(), perm.end());
  for (size_t i = perm.size(); given && i > 1; --i)
    std::swap(perm[i - 1], perm[static_cast<size_t>(g.draw(0, static_cast<int64_t>(i) - 1))]);
  Shape shape;
  for (int64_t axis : perm) shape.push_back(x.shape[static_cast<size_t>(axis)]);
  moved(g, name, {x.name}, given ? Attrs{attribute("perm", perm)} : Attrs{}, x, shape);
}

// Merges neighbouring dims and splits known ones; written with numbers, 0 and -1, or computed from shapes.
void reshape(G& g, const char* name) {
  Value x = g.any_value(0, 5);
  Shape shape;
  std::vector<int64_t> kept;  // per dim: the dim of x at the same place that it is, or -1
  for (size_t i = 0; i < x.shape.size();) {
    size_t count = std::min(x.shape.size() - i, static_cast<size_t>(g.chance(0.4) ? g.draw(2, 3) : 1));
    Dim dim = product(x.shape, i, i + count);
    int64_t size = dim.sizes[0];
    if (dim.is_static && size > 1 && g.chance(0.4)) {
      int64_t factor = size % 2 == 0 ? 2 : size % 3 == 0 ? 3 : 1;
      shape.insert(shape.end(), {Dim(factor), Dim(size / factor)});
      kept.insert(kept.end(), {-1, -1});
    } else {
      kept.push_back(count == 1 && shape.size() == i ? static_cast<int64_t>(i) : -1);
      shape.push_back(dim);
    }
    i += count;
    if (g.chance(0.1)) shape.push_back(1), kept.push_back(-1);
  }
  std::vector<size_t> unknown;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!shape[i].is_static && kept[i] < 0) unknown.push_back(i);
  }
  std::vector<int64_t> numbers;
  bool minus = g.chance(0.5) && !has_zero(shape);
  for (size_t i = 0; i < shape.size(); ++i) numbers.push_back(shape[i].is_static ? shape[i].sizes[0] : 0);
  std::string target;
  bool plain = unknown.size() <= 1 && !has_zero(shape) && g.chance(0.6);
  if (plain) {
    if (!unknown.empty()) {
      numbers[unknown[0]] = -1;
    } else if (minus && !shape.empty()) {
      numbers[static_cast<size_t>(g.draw(0, static_cast<int64_t>(shape.size()) - 1))] = -1;
    }
    target = g.ints(numbers);
  } else {
    target = g.dims(shape);
  }
  // A computed 0 means the dim of x at that place, unless allowzero says that it is the number.
  Attrs attrs;
  if (!plain && has_zero(shape)) {
    G::need(g.opset() >= 14);
    attrs.push_back(attribute("allowzero", 1));
  }
  moved(g, name, {x.name, target}, attrs, x, shape);
}

void flatten(G& g, const char* name) {
  Value x = g.any_value(0, 4);
  int64_t axis = g.draw(0, static_cast<int64_t>(x.shape.size()));
  auto at = static_cast<size_t>(axis);
  Shape shape = {product(x.shape, 0, at), product(x.shape, at, x.shape.size())};
  int64_t given = axis < static_cast<int64_t>(x.shape.size()) ? g.written(axis, x) : axis;
  moved(g, name, {x.name}, {attribute("axis", given)}, x, shape);
}

void unsqueeze(G& g, const char* name) {
  Value x = g.any_value(0, 3);
  std::vector<int64_t> axes;
  Shape shape = x.shape;
  auto rank = static_cast<int64_t>(x.shape.size()) + g.draw(1, 2);
  while (static_cast<int64_t>(shape.size()) < rank) {
    int64_t axis = axes.empty() ? g.draw(0, rank - 1 - (rank - static_cast<int64_t>(shape.size()) - 1))
                                : g.draw(axes.back() + 1, rank - 1);
    G::need(axis <= static_cast<int64_t>(shape.size()) && (axes.empty() || axis > axes.back()));
    shape.insert(shape.begin() + axis, Dim(1));
    axes.push_back(axis);
    if (axis == rank - 1) break;
  }
  G::need(static_cast<int64_t>(shape.size()) == rank);
  if (g.chance(0.3)) {
    for (int64_t& axis : axes) axis -= rank;
  }
  moved(g, name, {x.name, g.ints(axes)}, {}, x, shape);
}

void squeeze(G& g, const char* name) {
  Value x = g.value(
      [](const Value& v) { return std::any_of(v.shape.begin(), v.shape.end(), [](const Dim& d) { return d.is(1); }); },
      kFloat32, 1, 4);
  std::vector<int64_t> axes;
  Shape shape;
  bool symbolic = std::any_of(x.shape.begin(), x.shape.end(), [](const Dim& d) { return !d.is_static; });
  bool all = !symbolic && g.chance(0.3);
  for (size_t i = 0; i < x.shape.size(); ++i) {
    if (x.shape[i].is(1) && (all || g.chance(0.7))) {
      axes.push_back(g.written(static_cast<int64_t>(i), x));
    } else {
      shape.push_back(x.shape[i]);
    }
  }
  G::need(!axes.empty());
  moved(g, name, all ? std::vector<std::string>{x.name} : std::vector<std::string>{x.name, g.ints(axes)}, {}, x, shape);
}

void concat(G& g, const char* name) {
  Value x = g.any_value(1, 4);
  int64_t axis = g.axis_of(x);
  auto at = static_cast<size_t>(axis);
  std::vector<std::string> inputs = {x.name};
  Shape shape = x.shape;
  Range range = x.range;
  for (int64_t i = g.draw(0, 3); i > 0; --i) {
    Value next = x;
    if (g.chance(0.6)) {
      Shape wanted = x.shape;
      wanted[at] = g.new_dim();
      next = g.tensor(x.dtype, wanted);
    }
    inputs.insert(g.chance(0.5) ? inputs.begin() : inputs.end(), next.name);
    shape[at] = combine(shape[at], next.shape[at], std::plus<>());
    range = joined(range, next.range);
  }
  g.emit(name, inputs, {attribute("axis", g.written(axis, x))}, x.dtype, shape, range);
}

// A value beside its gate, and another tensor: the end of blocks of detectors.
void gated_concat(G& g, const char* name) {
  Value x = g.float_value(2, 4);
  Value gate = g.emit("Sigmoid", {x.name}, {}, x.dtype, x.shape, {0, 1, 1, x.range.error + 1e-5});
  const double most = x.range.magnitude();
  const Range range = {-most, most, 1, x.range.error * (1 + most) + 1e-5 * (most + 1)};
  Value y = g.emit("Mul", {x.name, gate.name}, {}, x.dtype, x.shape, range);
  Shape wanted = x.shape;
  wanted[1] = g.new_dim();
  Value other = g.tensor(x.dtype, wanted);
  Shape shape = x.shape;
  shape[1] = combine(x.shape[1], wanted[1], std::plus<>());
  const bool is_first = g.chance(0.5);
  g.emit(name, {is_first ? y.name : other.name, is_first ? other.name : y.name}, {attribute("axis", 1)}, x.dtype, shape,
         joined(range, other.range));
}

void split(G& g, const char* name) {
  Value x = g.value(
      [](const Value& v) {
        return !v.shape.empty() &&
               std::any_of(v.shape.begin(), v.shape.end(), [](const Dim& d) { return d.is_static && d.sizes[0] > 1; });
      },
      kFloat32, 1, 4);
  int64_t axis = g.axis_of(x);
  Dim dim = x.shape[static_cast<size_t>(axis)];
  G::need(dim.is_static && dim.sizes[0] > 1);
  int64_t size = dim.sizes[0], count = g.draw(2, std::min<int64_t>(size, 3));
  std::vector<int64_t> parts(static_cast<size_t>(count), size / count);
  Attrs attrs = {attribute("axis", g.written(axis, x))};
  std::vector<std::string> inputs = {x.name};
  if (g.opset() >= 18 && g.chance(0.4)) {
    attrs.push_back(attribute("num_outputs", count));
    std::fill(parts.begin(), parts.end(), (size + count - 1) / count);
    parts.back() = size - parts[0] * (count - 1);
    G::need(parts.back() > 0);
  } else if (g.opset() < 18 && size % count == 0 && g.chance(0.4)) {
    // equal parts by the number of outputs
  } else {
    parts[0] = g.draw(0, size / count);
    parts.back() += size - std::accumulate(parts.begin(), parts.end(), int64_t{0});
    inputs.push_back(g.ints(parts));
  }
  std::vector<G::Result> results;
  for (int64_t part : parts) {
    Shape shape = x.shape;
    shape[static_cast<size_t>(axis)] = part;
    results.push_back({x.dtype, shape, x.range});
  }
  g.emit_many(name, inputs, attrs, results);
}

// As ONNX says: negative bounds count from the end, then bounds are clamped.
int64_t sliced(int64_t size, int64_t start, int64_t end, int64_t step) {
  if (start < 0) start += size;
  if (end < 0 && end > -1'000'000) end += size;
  start = std::clamp<int64_t>(start, 0, step > 0 ? size : size - 1);
  end = std::clamp<int64_t>(end, step > 0 ? 0 : -1, step > 0 ? size : size - 1);
  int64_t count = step > 0 ? (end - start + step - 1) / step : (start - end - step - 1) / -step;
  return size == 0 ? 0 : std::max<int64_t>(count, 0);
}

void slice(G& g, const char* name) {
  Value x = g.any_value(1, 4);
  std::vector<int64_t> starts, ends, axes, steps;
  Shape shape = x.shape;
  bool by_step = g.chance(0.5), all_axes = g.chance(0.2);
  for (size_t i = 0; i < x.shape.size(); ++i) {
    if (!all_axes && g.chance(0.5)) continue;
    int64_t most = x.shape[i].most(), step = by_step ? g.one_of<int64_t>({1, 2, 3, -1, -2}) : 1;
    int64_t start = g.chance(0.3) ? 0 : g.draw(-most, most);
    int64_t end = g.chance(0.4) ? INT64_MAX : g.draw(-most, most);
    if (step < 0) start = g.chance(0.5) ? -1 : start, end = g.chance(0.5) ? INT64_MIN : g.draw(0, most);
    starts.push_back(start), ends.push_back(end), steps.push_back(step);
    axes.push_back(g.written(static_cast<int64_t>(i), x));
    shape[i] = map_dim(x.shape[i], [&](int64_t size) { return sliced(size, start, end, step); });
  }
  G::need(!axes.empty());
  G::need(!has_zero(shape) || g.chance(0.1));
  std::vector<std::string> inputs = {x.name, g.ints(starts), g.ints(ends)};
  if (!all_axes || by_step) inputs.push_back(g.ints(axes));
  if (by_step) inputs.push_back(g.ints(steps));
  moved(g, name, inputs, {}, x, shape);
}

// A prefix whose length is another value's dim.
void slice_to_dim(G& g, const char* name) {
  Value x = g.any_value(1, 3);
  int64_t axis = g.axis_of(x);
  auto at = static_cast<size_t>(axis);
  Dim length = g.new_dim();
  Shape shape = x.shape;
  shape[at] = combine(x.shape[at], length, [](int64_t a, int64_t b) { return std::min(a, b); });
  moved(g, name, {x.name, g.ints({0}), g.dims({length}), g.ints({axis})}, {}, x, shape);
}

void pad(G& g, const char* name) {
  Value x = g.value([](const Value& v) { return v.dtype.is_float() && G::fits(v, 1, 4); }, g.float_dtype(), 1, 4);
  auto mode = g.one_of<std::string>({"constant", "constant", "reflect", "edge"});
  std::vector<int64_t> begins, ends;
  Shape shape = x.shape;
  for (Dim& dim : shape) {
    int64_t most = mode == "constant" ? 3
                   : mode == "edge"   ? (dim.least() > 0 ? 2 : 0)
                                      : std::min<int64_t>(dim.least() - 1, 2);
    int64_t begin = g.chance(0.5) && most > 0 ? g.draw(0, most) : 0,
            end = g.chance(0.5) && most > 0 ? g.draw(0, most) : 0;
    begins.push_back(begin), ends.push_back(end);
    dim = map_dim(dim, [&](int64_t size) { return size + begin + end; });
  }
  G::need(mode == "constant" || !has_zero(shape));
  begins.insert(begins.end(), ends.begin(), ends.end());
  std::vector<std::string> inputs = {x.name, g.ints(begins)};
  if (mode == "constant" && g.chance(0.5)) inputs.push_back(g.scalar(x.dtype, 1.5));
  Range range = joined(x.range, {0, 1.5, 0.5, 0});
  g.emit(name, inputs, {attribute("mode", mode.c_str())}, x.dtype, shape, range);
}

void tile(G& g, const char* name) {
  Value x = g.any_value(1, 3);
  Shape repeats, shape;
  for (const Dim& dim : x.shape) {
    repeats.push_back(g.chance(0.15) ? g.new_dim() : Dim(g.draw(1, 3)));
    shape.push_back(combine(dim, repeats.back(), std::multiplies<>()));
  }
  moved(g, name, {x.name, g.dims(repeats)}, {}, x, shape);
}

void expand(G& g, const char* name) {
  Value x = g.any_value(0, 3);
  Shape target = x.shape;
  for (Dim& dim : target) {
    if (dim.is(1)) dim = g.new_dim();
  }
  if (g.chance(0.5)) target.insert(target.begin(), g.new_dim());
  Shape shape = broadcast(x.shape, target);
  for (Dim& dim : target) {
    if (g.chance(0.15)) dim = 1;
  }
  shape = broadcast(x.shape, target);
  moved(g, name, {x.name, g.dims(target)}, {}, x, shape);
}

void depth_space(G& g, const char* name) {
  bool to_space = std::string(name) == "DepthToSpace";
  int64_t block = g.draw(1, 2), channels = g.draw(1, 2);
  Shape shape = {g.new_dim(), channels * (to_space ? block * block : 1), 1, 1};
  Dim height = g.new_dim(), width = g.new_dim();
  G::need(to_space || (height.is_static && width.is_static));
  shape[2] = to_space ? height : Dim(height.sizes[0] * block);
  shape[3] = to_space ? width : Dim(width.sizes[0] * block);
  Value x;
  for (const auto& [known, value] : g.graph().values) {
    bool fits = value.shape.size() == 4 && value.dtype == kFloat32 && value.shape[1].is_static;
    fits = fits && (to_space ? value.shape[1].sizes[0] % (block * block) == 0
                             : value.shape[2].is_static && value.shape[3].is_static &&
                                   value.shape[2].sizes[0] % block == 0 && value.shape[3].sizes[0] % block == 0);
    if (fits) x = value;
  }
  if (x.name.empty()) x = g.tensor(kFloat32, shape);
  auto by = [&](const Dim& dim, bool larger) {
    return map_dim(dim, [&](int64_t size) { return larger ? size * block : size / block; });
  };
  Shape result = {
      x.shape[0],
      map_dim(x.shape[1], [&](int64_t size) { return to_space ? size / block / block : size * block * block; }),
      by(x.shape[2], to_space), by(x.shape[3], to_space)};
  Attrs attrs = {attribute("blocksize", block)};
  if (to_space && g.chance(0.6)) attrs.push_back(attribute("mode", g.chance(0.5) ? "CRD" : "DCR"));
  moved(g, name, {x.name}, attrs, x, result);
}

void trilu(G& g, const char* name) {
  Value x = g.value([](const Value& v) { return G::fits(v, 2, 4) && !v.dtype.is_bool(); }, kFloat32, 2, 4);
  std::vector<std::string> inputs = {x.name};
  if (g.chance(0.6)) inputs.push_back(g.scalar(kInt64, static_cast<double>(g.draw(-3, 3))));
  Range range = joined(x.range, {0, 0, x.range.step, 0});
  g.emit(name, inputs, g.chance(0.6) ? Attrs{attribute("upper", g.draw(0, 1))} : Attrs{}, x.dtype, x.shape, range);
}

void shape_of(G& g, const char* name) {
  Value x = g.any_value(0, 4);
  bool size = std::string(name) == "Size";
  Range range = {0, 4000, 1, 0};
  g.emit(name, {x.name}, {}, kInt64, size ? Shape{} : Shape{static_cast<int64_t>(x.shape.size())}, range);
}

// Arithmetic on a shape that is data in the end: known and unknown dims together, with fractions.
void shape_arithmetic(G& g, const char*) {
  Value x = g.any_value(0, 4);
  DType dtype = g.chance(0.7) ? kFloat32 : kInt64;
  Shape shape = {static_cast<int64_t>(x.shape.size())};
  Range range = {0, 40, 1, 0};
  Value dims = g.emit("Shape", {x.name}, {}, kInt64, shape, range);
  if (g.chance(0.3)) {
    G::need(!x.shape.empty());
    std::string index = g.scalar(kInt64, static_cast<double>(g.draw(0, static_cast<int64_t>(x.shape.size()) - 1)));
    shape.clear();
    dims = g.emit("Gather", {dims.name, index}, {}, kInt64, shape, range);
  }
  if (dtype.is_float()) dims = g.emit("Cast", {dims.name}, {attribute("to", 1)}, dtype, shape, range);
  if (g.chance(0.6)) dims = g.emit("Mul", {dims.name, g.scalar(dtype, 3)}, {}, dtype, shape, range = {0, 120, 1, 0});
  if (g.chance(0.6))
    dims = g.emit("Div", {dims.name, g.scalar(dtype, 2)}, {}, dtype, shape,
                  range = {0, 60, dtype.is_float() ? 0.5 : 1, 0});
  if (dtype.is_float() && g.chance(0.5))
    g.emit(g.one_of<std::string>({"Floor", "Ceil"}), {dims.name}, {}, dtype, shape, {0, range.high, 1, 0});
}

void constant_of_shape(G& g, const char* name) {
  Shape shape = g.new_shape(g.draw(1, 3));
  Attrs attrs;
  DType dtype = kFloat32;
  double number = 0;
  if (g.chance(0.6)) {
    onnx::AttributeProto attr;
    attr.set_name("value");
    attr.set_type(onnx::AttributeProto::TENSOR);
    attr.mutable_t()->add_dims(1);
    number = 3;
    if (g.chance(0.5)) {
      dtype = kInt64;
      attr.mutable_t()->set_data_type(onnx::TensorProto::INT64);
      attr.mutable_t()->add_int64_data(3);
    } else {
      attr.mutable_t()->set_data_type(onnx::TensorProto::FLOAT);
      attr.mutable_t()->add_float_data(3);
    }
    attrs.push_back(attr);
  }
  g.emit(name, {g.dims(shape)}, attrs, dtype, shape, {number, number, 1, 0});
}

void range(G& g, const char* name) {
  Dim limit = g.new_dim();
  std::string count = g.dims({limit}), last = g.fresh("h");
  onnx::NodeProto& node = *g.graph().model.mutable_graph()->add_node();
  node.set_op_type("Squeeze");
  node.add_input(count);
  node.add_output(last);
  int64_t start = g.draw(0, 1), step = g.draw(1, 3);
  Dim size = map_dim(limit, [&](int64_t end) { return std::max<int64_t>((end - start + step - 1) / step, 0); });
  g.emit(name, {g.scalar(kInt64, static_cast<double>(start)), last, g.scalar(kInt64, static_cast<double>(step))}, {},
         kInt64, {size}, {0, 40, 1, 0});
}

void eye_like(G& g, const char* name) {
  Value x = g.value([](const Value& v) { return G::fits(v, 2, 2) && (v.dtype == kFloat32 || v.dtype == kInt64); },
                    kFloat32, 2, 2);
  g.emit(name, {x.name}, g.chance(0.5) ? Attrs{attribute("k", g.draw(-2, 2))} : Attrs{}, x.dtype, x.shape, kFlags);
}

// Both branches apply one operator to values of the graph around them.
void if_node(G& g, const char* name) {
  Value x = g.value([](const Value& v) { return v.dtype == kFloat32 && v.range.magnitude() < 1e5; }, kFloat32, 0, 4);
  Value condition = g.tensor(kBool, g.chance(0.5) ? Shape{} : Shape{1}, kFlags);
  Attrs attrs;
  for (const char* branch : {"then_branch", "else_branch"}) {
    onnx::AttributeProto attr;
    attr.set_name(branch);
    attr.set_type(onnx::AttributeProto::GRAPH);
    onnx::GraphProto& inner = *attr.mutable_g();
    inner.set_name(branch);
    onnx::NodeProto& node = *inner.add_node();
    node.set_op_type(g.one_of<std::string>({"Neg", "Abs", "Relu", "Identity", "Add"}));
    node.add_input(x.name);
    if (node.op_type() == "Add") node.add_input(x.name);
    node.add_output(g.fresh("b"));
    auto& output = *inner.add_output();
    output.set_name(node.output(0));
    output.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
    attrs.push_back(attr);
  }
  double most = 2 * x.range.magnitude();
  g.emit(name, {condition.name}, attrs, kFloat32, x.shape, {-most, most, x.range.step, 2 * x.range.error});
}

}  // namespace

std::vector<Operator> layout_operators() {
  return {{"Transpose", 13, transpose},
          {"Transpose", 13, transpose},
          {"Reshape", 13, reshape},
          {"Reshape", 13, reshape},
          {"Flatten", 13, flatten},
          {"Unsqueeze", 13, unsqueeze},
          {"Squeeze", 13, squeeze},
          {"Concat", 13, concat},
          {"Concat", 13, gated_concat},
          {"Concat", 13, concat},
          {"Split", 13, split},
          {"Slice", 13, slice},
          {"Slice", 13, slice},
          {"Slice", 13, slice_to_dim},
          {"Pad", 13, pad},
          {"Tile", 13, tile},
          {"Expand", 13, expand},
          {"DepthToSpace", 13, depth_space},
          {"SpaceToDepth", 13, depth_space},
          {"Trilu", 14, trilu},
          {"Shape", 13, shape_of},
          {"Size", 13, shape_of},
          {"Shape", 13, shape_arithmetic},
          {"ConstantOfShape", 13, constant_of_shape},
          {"Range", 13, range},
          {"EyeLike", 13, eye_like},
          {"If", 13, if_node}};
}

}  // namespace relaxc::test::onnx_graphs
