// Operators with indices, all of them in range under every binding, and those whose shape depends on the data.
#include "tests/onnx_graphs/generator.h"

namespace relaxc::test::onnx_graphs {

namespace {

using G = Generator;

// Indices into a dim, some counted from the end.
Value indices(G& g, Shape shape, const Dim& extent) {
  G::need(extent.least() > 0);
  auto least = static_cast<double>(extent.least());
  return g.tensor(g.chance(0.7) ? kInt64 : kInt32, std::move(shape), {g.chance(0.5) ? -least : 0, least - 1, 1, 0});
}

void gather(G& g, const char* name) {
  Value x = g.any_value(1, 4);
  int64_t axis = g.axis_of(x);
  auto at = static_cast<size_t>(axis);
  Value index = indices(g, g.new_shape(g.draw(0, 2)), x.shape[at]);
  Shape shape(x.shape.begin(), x.shape.begin() + axis);
  shape.insert(shape.end(), index.shape.begin(), index.shape.end());
  shape.insert(shape.end(), x.shape.begin() + axis + 1, x.shape.end());
  g.emit(name, {x.name, index.name},
         g.chance(0.8) || axis != 0 ? Attrs{attribute("axis", g.written(axis, x))} : Attrs{}, x.dtype, shape, x.range);
}

// The dims of an operand of the same rank that is at most as large as x.
Shape within(G& g, const Value& x) {
  Shape shape;
  for (const Dim& dim : x.shape) {
    if (dim.is_static || dim.symbol.empty() || g.chance(0.3)) {
      shape.push_back(dim.least() > 0 ? g.draw(1, dim.least()) : 0);
    } else {
      shape.push_back(dim);
    }
  }
  return shape;
}

void gather_elements(G& g, const char* name) {
  Value x = g.any_value(1, 4);
  int64_t axis = g.axis_of(x);
  Shape shape = within(g, x);
  if (g.chance(0.5)) shape[static_cast<size_t>(axis)] = g.new_dim();
  Value index = indices(g, shape, x.shape[static_cast<size_t>(axis)]);
  g.emit(name, {x.name, index.name}, {attribute("axis", g.written(axis, x))}, x.dtype, shape, x.range);
}

void gather_nd(G& g, const char* name) {
  Value x = g.any_value(1, 4);
  int64_t depth = g.draw(1, static_cast<int64_t>(x.shape.size()));
  Dim least = x.shape[0];
  for (int64_t i = 0; i < depth; ++i)
    least = combine(least, x.shape[static_cast<size_t>(i)], [](int64_t a, int64_t b) { return std::min(a, b); });
  Shape shape = g.new_shape(g.draw(0, 2)), index_shape = shape;
  index_shape.push_back(depth);
  G::need(least.least() > 0);
  auto extent = static_cast<double>(least.least());
  Value index = g.tensor(kInt64, index_shape, {g.chance(0.5) ? -extent : 0, extent - 1, 1, 0});
  shape.insert(shape.end(), x.shape.begin() + depth, x.shape.end());
  g.emit(name, {x.name, index.name}, {}, x.dtype, shape, x.range);
}

// Sums and the like do not depend on the order of equal indices; a plain scatter gets one index a line.
void scatter_elements(G& g, const char* name) {
  Value x = g.value([](const Value& v) { return v.dtype.bits >= 32 && G::fits(v, 1, 3); }, kFloat32, 1, 3);
  int64_t axis = g.axis_of(x);
  Shape shape = within(g, x);
  auto at = static_cast<size_t>(axis);
  auto reduction = g.opset() < 18 ? "none" : g.one_of<std::string>({"none", "add", "min", "max"});
  if (reduction == "none") shape[at] = 1;
  Value index = indices(g, shape, x.shape[at]);
  Value updates = g.tensor(x.dtype, shape, {-2, 2, x.dtype.is_float() ? 0.125 : 1, 0});
  Attrs attrs = {attribute("axis", g.written(axis, x))};
  if (g.opset() >= 18 && reduction != "none") attrs.push_back(attribute("reduction", reduction.c_str()));
  Range range = joined(x.range, updates.range);
  if (reduction == "add") {
    auto count = static_cast<double>(shape[at].most());
    range = {x.range.low - 2 * count, x.range.high + 2 * count, range.step, range.error};
  }
  g.emit(name, {x.name, index.name, updates.name}, attrs, x.dtype, x.shape, range);
}

void scatter_nd(G& g, const char* name) {
  Value x = g.value([](const Value& v) { return v.dtype.bits >= 32 && G::fits(v, 1, 3); }, kFloat32, 1, 3);
  G::need(x.shape[0].least() > 0);
  auto reduction = g.opset() < 18 ? "none" : g.one_of<std::string>({"none", "add", "min", "max"});
  Dim count = reduction == "none" ? Dim(1) : g.new_dim();
  Shape shape = {count};
  shape.insert(shape.end(), x.shape.begin() + 1, x.shape.end());
  auto extent = static_cast<double>(x.shape[0].least());
  Value index = g.tensor(kInt64, {count, 1}, {g.chance(0.5) ? -extent : 0, extent - 1, 1, 0});
  Value updates = g.tensor(x.dtype, shape, {-2, 2, x.dtype.is_float() ? 0.125 : 1, 0});
  Range range = joined(x.range, updates.range);
  auto most = static_cast<double>(count.most());
  if (reduction == "add") range = {x.range.low - 2 * most, x.range.high + 2 * most, range.step, range.error};
  Attrs attrs;
  if (reduction != "none") attrs.push_back(attribute("reduction", reduction.c_str()));
  g.emit(name, {x.name, index.name, updates.name}, attrs, x.dtype, x.shape, range);
}

void one_hot(G& g, const char* name) {
  int64_t depth = g.draw(1, 6);
  auto extent = static_cast<double>(depth);
  Value index = g.value(
      [&](const Value& v) {
        return v.dtype == kInt64 && v.range.low >= -extent && v.range.high < extent && v.shape.size() < 4;
      },
      kInt64, 0, 3, {-extent, extent - 1, 1, 0});
  Value values = g.tensor(g.chance(0.7) ? kFloat32 : kInt64, {2});
  int64_t axis = g.draw(0, static_cast<int64_t>(index.shape.size()));
  Shape shape = index.shape;
  shape.insert(shape.begin() + axis, Dim(depth));
  int64_t given = g.chance(0.4) ? axis - static_cast<int64_t>(shape.size()) : axis;
  g.emit(name, {index.name, g.scalar(kInt64, extent), values.name}, {attribute("axis", given)}, values.dtype, shape,
         values.range);
}

void topk(G& g, const char* name) {
  Value x = g.value(
      [](const Value& v) { return v.dtype.is_float() && v.dtype.bits >= 32 && v.range.exact() && G::fits(v, 1, 4); },
      kFloat32, 1, 4);
  int64_t axis = g.axis_of(x);
  auto at = static_cast<size_t>(axis);
  int64_t count = g.draw(0, x.shape[at].least());
  Shape shape = x.shape;
  shape[at] = count;
  Attrs attrs = {attribute("axis", g.written(axis, x))};
  if (g.chance(0.5)) attrs.push_back(attribute("largest", g.draw(0, 1)));
  g.emit_many(name, {x.name, g.ints({count})}, attrs,
              {{x.dtype, shape, x.range},
               {kInt64, shape, {0, static_cast<double>(std::max<int64_t>(x.shape[at].most() - 1, 0)), 1, 0}}});
}

void reverse_sequence(G& g, const char* name) {
  Value x = g.any_value(2, 4);
  bool time_first = g.chance(0.5);
  Dim time = x.shape[time_first ? 0 : 1], batch = x.shape[time_first ? 1 : 0];
  G::need(time.least() > 0);
  Value lengths = g.tensor(kInt64, {batch}, {1, static_cast<double>(time.least()), 1, 0});
  Attrs attrs = {attribute("time_axis", time_first ? 0 : 1), attribute("batch_axis", time_first ? 1 : 0)};
  g.emit(name, {x.name, lengths.name}, attrs, x.dtype, x.shape, x.range);
}

}  // namespace

std::vector<Operator> index_operators() {
  return {{"Gather", 13, gather},
          {"Gather", 13, gather},
          {"GatherElements", 13, gather_elements},
          {"GatherND", 13, gather_nd},
          {"ScatterElements", 13, scatter_elements},
          {"ScatterND", 13, scatter_nd},
          {"OneHot", 13, one_hot},
          {"TopK", 13, topk},
          {"ReverseSequence", 13, reverse_sequence}};
}

}  // namespace relaxc::test::onnx_graphs
