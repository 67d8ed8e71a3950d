// Loops, sequences and optionals, operators whose result's shape depends on the data, and recurrent layers.
#include <cmath>

#include "tests/onnx_graphs/generator.h"

namespace relaxc::test::onnx_graphs {

namespace {

using G = Generator;

onnx::AttributeProto graph_attribute(const std::string& name) {
  onnx::AttributeProto attr;
  attr.set_name(name);
  attr.set_type(onnx::AttributeProto::GRAPH);
  attr.mutable_g()->set_name(name);
  return attr;
}
void declare(onnx::ValueInfoProto& info, const std::string& name, int element_type, bool is_scalar) {
  info.set_name(name);
  info.mutable_type()->mutable_tensor_type()->set_elem_type(element_type);
  if (is_scalar) info.mutable_type()->mutable_tensor_type()->mutable_shape();
}
void add(onnx::GraphProto& graph, const std::string& op, const std::vector<std::string>& inputs,
         const std::string& output) {
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type(op);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
}

bool is_float32(const Value& v) { return v.dtype == kFloat32; }
Value small_floats(G& g, int64_t least_rank, int64_t most_rank) {
  return g.value(
      [&](const Value& v) { return is_float32(v) && v.range.magnitude() <= 16 && G::fits(v, least_rank, most_rank); },
      kFloat32, least_rank, most_rank);
}

// state + x in each step, and the sums of all steps when they are asked for.
void loop(G& g, const char* name) {
  Value x = small_floats(g, 0, 3);
  int64_t trips = g.draw(0, 4);
  bool is_stopped = g.chance(0.4);  // by the condition, not by the count
  bool scans = g.chance(0.5);
  onnx::AttributeProto body = graph_attribute("body");
  onnx::GraphProto& graph = *body.mutable_g();
  declare(*graph.add_input(), "step", onnx::TensorProto::INT64, true);
  declare(*graph.add_input(), "before", onnx::TensorProto::BOOL, true);
  declare(*graph.add_input(), "state", onnx::TensorProto::FLOAT, false);
  std::string bound = g.scalar(kInt64, static_cast<double>(trips - 1));
  is_stopped ? add(graph, "Less", {"step", bound}, "after") : add(graph, "Identity", {"before"}, "after");
  add(graph, "Add", {"state", x.name}, "sum");
  declare(*graph.add_output(), "after", onnx::TensorProto::BOOL, true);
  declare(*graph.add_output(), "sum", onnx::TensorProto::FLOAT, false);
  if (scans) {
    add(graph, "Neg", {"sum"}, "part");
    declare(*graph.add_output(), "part", onnx::TensorProto::FLOAT, false);
  }
  int64_t steps = is_stopped ? std::max<int64_t>(trips, 1) : trips;
  std::string count = is_stopped ? (g.chance(0.5) ? "" : g.scalar(kInt64, 100)) : g.scalar(kInt64, double(trips));
  auto times = static_cast<double>(steps + 1);
  Range range = {std::min(x.range.low, x.range.low * times), std::max(x.range.high, x.range.high * times), x.range.step,
                 x.range.error * times};
  std::vector<G::Result> results = {{kFloat32, x.shape, range}};
  if (scans) {
    Shape shape = x.shape;
    shape.insert(shape.begin(), Dim(steps));
    results.push_back({kFloat32, shape, {-range.high, -range.low, range.step, range.error}});
  }
  g.emit_many(name, {count, g.scalar(kBool, 1), x.name}, {body}, results);
}

// Sums along the first dim, one row in each step.
void scan(G& g, const char* name) {
  Value x = small_floats(g, 2, 3);
  Dim steps = x.shape[0];
  G::need(steps.least() > 0 && steps.most() <= 12);
  Shape row(x.shape.begin() + 1, x.shape.end());
  Value first = g.tensor(kFloat32, row, {-2, 2, 0.125, 0});
  onnx::AttributeProto body = graph_attribute("body");
  onnx::GraphProto& graph = *body.mutable_g();
  declare(*graph.add_input(), "state", onnx::TensorProto::FLOAT, false);
  declare(*graph.add_input(), "item", onnx::TensorProto::FLOAT, false);
  add(graph, "Add", {"state", "item"}, "sum");
  add(graph, "Identity", {"sum"}, "part");
  declare(*graph.add_output(), "sum", onnx::TensorProto::FLOAT, false);
  declare(*graph.add_output(), "part", onnx::TensorProto::FLOAT, false);
  auto times = static_cast<double>(steps.most());
  double most = 2 + x.range.magnitude() * times;
  Range range = {-most, most, std::min(x.range.step, 0.125), x.range.error * times};
  Attrs attrs = {body, attribute("num_scan_inputs", 1)};
  if (g.chance(0.4)) attrs.push_back(attribute("scan_input_directions", std::vector<int64_t>{1}));
  if (g.chance(0.4)) attrs.push_back(attribute("scan_output_directions", std::vector<int64_t>{1}));
  g.emit_many(name, {first.name, x.name}, attrs, {{kFloat32, row, range}, {kFloat32, x.shape, range}});
}

// A sequence of values, of which one is taken, or which are joined again.
void sequence(G& g, const char*) {
  Value x = g.any_value(1, 3);
  Value y = g.tensor(x.dtype, x.shape);
  std::string items = g.fresh("q");
  onnx::GraphProto& proto = *g.graph().model.mutable_graph();
  add(proto, "SequenceConstruct", {x.name, y.name}, items);
  if (g.chance(0.4)) {
    std::string longer = g.fresh("q");
    add(proto, "SequenceInsert", {items, x.name, g.scalar(kInt64, double(g.draw(-2, 2)))}, longer);
    std::string shorter = g.fresh("q");
    add(proto, "SequenceErase", {longer, g.scalar(kInt64, 0)}, shorter);
    g.emit("SequenceLength", {shorter}, {}, kInt64, {}, {2, 2, 1, 0});
    return;
  }
  Range range = joined(x.range, y.range);
  if (g.chance(0.5)) {
    g.emit("SequenceAt", {items, g.scalar(kInt64, double(g.draw(-2, 1)))}, {}, x.dtype, x.shape, range);
    return;
  }
  Shape shape = x.shape;
  shape[0] = map_dim(shape[0], [](int64_t size) { return 2 * size; });
  g.emit("ConcatFromSequence", {items}, {attribute("axis", 0)}, x.dtype, shape, range);
}

void split_to_sequence(G& g, const char* name) {
  Value x = g.any_value(2, 3);
  G::need(x.shape[0].least() > 0);
  std::string items = g.fresh("q");
  onnx::NodeProto& node = *g.graph().model.mutable_graph()->add_node();
  node.set_op_type(name);
  node.add_input(x.name);
  node.add_output(items);
  *node.add_attribute() = attribute("keepdims", 0);
  int64_t at = g.draw(-x.shape[0].least(), x.shape[0].least() - 1);
  G::need(at >= 0 || x.shape[0].is_static);
  g.emit("SequenceAt", {items, g.scalar(kInt64, static_cast<double>(at))}, {}, x.dtype,
         Shape(x.shape.begin() + 1, x.shape.end()), x.range);
}

void optional(G& g, const char* name) {
  Value x = g.any_value(0, 3);
  std::string maybe = g.fresh("o");
  onnx::GraphProto& proto = *g.graph().model.mutable_graph();
  add(proto, name, {x.name}, maybe);
  g.emit("OptionalHasElement", {maybe}, {}, kBool, {}, kFlags);
  g.emit("OptionalGetElement", {maybe}, {}, x.dtype, x.shape, x.range);
}

// ---- Shapes that depend on the data: their sum, or their count, has a shape that is known.

void sum_of_rows(G& g, const std::string& rows, DType dtype, const Range& range, const Shape& shape) {
  g.emit("ReduceSum", {rows, g.ints({0})}, {attribute("keepdims", 0)}, dtype, shape, range);
}

void non_zero(G& g, const char* name) {
  Value x = g.value([](const Value& v) { return v.range.exact() && v.shape.size() == 2; }, kBool, 2, 2);
  G::need(x.dtype == kFloat32 || x.dtype == kInt64 || x.dtype.is_bool());
  std::string places = g.fresh("d");
  add(*g.graph().model.mutable_graph(), name, {x.name}, places);
  double most = std::pow(static_cast<double>(most_elements(x.shape)), 2);
  if (g.chance(0.5)) {
    std::string counted = g.fresh("d");
    add(*g.graph().model.mutable_graph(), "Shape", {places}, counted);
    g.emit("ReduceMax", {counted}, {attribute("keepdims", 0)}, kInt64, {}, {0, std::max(most, 2.0), 1, 0});
    return;
  }
  g.emit("ReduceSum", {places, g.ints({1})}, {attribute("keepdims", 0)}, kInt64, {2}, {0, most + 1, 1, 0});
}

void compress(G& g, const char* name) {
  Value x = small_floats(g, 2, 3);
  G::need(x.range.exact());
  Dim dim = x.shape[0];
  G::need(dim.is_static || !dim.symbol.empty());
  Value flags = g.tensor(kBool, {dim}, kFlags);
  std::string kept = g.fresh("d");
  onnx::NodeProto& node = *g.graph().model.mutable_graph()->add_node();
  node.set_op_type(name);
  node.add_input(x.name);
  node.add_input(flags.name);
  node.add_output(kept);
  *node.add_attribute() = attribute("axis", 0);
  double most = x.range.magnitude() * static_cast<double>(dim.most());
  sum_of_rows(g, kept, kFloat32, {-most, most, x.range.step, 0}, Shape(x.shape.begin() + 1, x.shape.end()));
}

void unique(G& g, const char* name) {
  Value x = g.tensor(g.chance(0.5) ? kFloat32 : kInt64, g.new_shape(1), {-3, 3, 1, 0});
  std::string found = g.fresh("d"), counts = g.fresh("d");
  onnx::NodeProto& node = *g.graph().model.mutable_graph()->add_node();
  node.set_op_type(name);
  node.add_input(x.name);
  for (const std::string& output : {found, std::string(), std::string(), counts}) node.add_output(output);
  double most = 3 * static_cast<double>(std::max<int64_t>(x.shape[0].most(), 1));
  sum_of_rows(g, found, x.dtype, {-most, most, 1, 0}, {});
  sum_of_rows(g, counts, kInt64, {0, most, 1, 0}, {});
}

void suppression(G& g, const char* name) {
  int64_t count = g.draw(1, 6);
  Value corners = g.tensor(kFloat32, {1, count, 2}, {0, 4, 0.5, 0}),
        sizes = g.tensor(kFloat32, {1, count, 2}, {1, 5, 0.5, 0});
  std::string boxes = g.fresh("d"), ends = g.fresh("d"), chosen = g.fresh("d");
  onnx::GraphProto& proto = *g.graph().model.mutable_graph();
  add(proto, "Add", {corners.name, sizes.name}, ends);
  add(proto, "Concat", {corners.name, ends}, boxes);
  *proto.mutable_node()->rbegin()->add_attribute() = attribute("axis", 2);
  Value scores = g.tensor(kFloat32, {1, g.draw(1, 3), count}, {0, 1, 1.0 / 1024, 0});
  add(proto, name, {boxes, scores.name, g.ints({g.draw(0, 4)}), g.scalar(kFloat32, 0.25), g.scalar(kFloat32, 0.5)},
      chosen);
  sum_of_rows(g, chosen, kInt64, {0, 1e3, 1, 0}, {3});
}

// ---- Recurrent layers

void recurrent(G& g, const char* name) {
  const std::string op = name;
  const int64_t gates = op == "LSTM" ? 4 : op == "GRU" ? 3 : 1, hidden = g.draw(1, 4);
  Value x = small_floats(g, 3, 3);
  const int64_t width = x.shape[2].sizes[0];
  G::need(x.shape[2].is_static && width > 0 && x.shape[0].least() > 0 && x.shape[1].least() > 0);
  auto direction = g.one_of<std::string>({"forward", "reverse", "bidirectional"});
  const int64_t ways = direction == "bidirectional" ? 2 : 1;
  const Range weights = {-0.5, 0.5, 0.125, 0};
  auto part = [&](Shape shape) { return g.tensor(kFloat32, std::move(shape), weights).name; };
  std::vector<std::string> inputs = {x.name, part({ways, gates * hidden, width}), part({ways, gates * hidden, hidden})};
  if (g.chance(0.6)) inputs.push_back(part({ways, 2 * gates * hidden}));
  Attrs attrs = {attribute("hidden_size", hidden), attribute("direction", direction.c_str())};
  if (op == "GRU") attrs.push_back(attribute("linear_before_reset", g.draw(0, 1)));
  Shape last = {ways, x.shape[1], hidden}, all = {x.shape[0], ways, x.shape[1], hidden};
  // Each step bounds what it hands on; the cell of an LSTM grows by 1 a step.
  double steps = static_cast<double>(x.shape[0].most());
  Range state = {-1, 1, 1,
                 (x.range.error + 1e-6) * static_cast<double>(width + hidden) * (op == "LSTM" ? steps : 4) + 1e-5};
  std::vector<G::Result> results = {{kFloat32, all, state}, {kFloat32, last, state}};
  if (op == "LSTM") results.push_back({kFloat32, last, {-steps, steps, 1, state.error * steps}});
  g.emit_many(name, inputs, attrs, results);
}

// ---- Quantized values between floats

void quantized(G& g, const char* name) {
  Value x = small_floats(g, 1, 4);
  G::need(x.range.exact());
  bool is_signed = g.chance(0.5);
  DType dtype = is_signed ? DType::int_(8) : DType::uint(8);
  std::string scale = g.scalar(kFloat32, g.one_of<double>({0.25, 0.5, 1}));
  std::string zero = g.scalar(dtype, static_cast<double>(is_signed ? g.draw(-5, 5) : g.draw(100, 140)));
  std::string narrow = g.fresh("d");
  add(*g.graph().model.mutable_graph(), "QuantizeLinear", {x.name, scale, zero}, narrow);
  g.emit(name, {narrow, scale, zero}, {}, kFloat32, x.shape,
         {x.range.low - 1, x.range.high + 1, std::min(x.range.step, 0.25), 0});
}

// ---- Attention

void attention(G& g, const char* name) {
  int64_t heads = g.draw(1, 2), width = 2 * g.draw(1, 3);
  Dim batch = g.new_dim(), queries = g.new_dim(), keys = g.new_dim();
  G::need(batch.least() > 0 && queries.least() > 0 && keys.least() > 0);
  auto part = [&](const Dim& length) { return g.tensor(kFloat32, {batch, heads, length, width}); };
  Value query = part(queries), key = part(keys), value = part(keys);
  std::vector<std::string> inputs = {query.name, key.name, value.name};
  if (g.chance(0.4)) inputs.push_back(g.tensor(kFloat32, {queries, keys}).name);
  Attrs attrs;
  if (g.chance(0.4)) attrs.push_back(attribute("scale", 0.5));
  if (g.chance(0.3)) attrs.push_back(attribute("softcap", 2.0));
  g.emit(name, inputs, attrs, kFloat32, query.shape, {-2, 2, 1, 2e-5});
}

}  // namespace

std::vector<Operator> control_operators() {
  return {{"Loop", 13, loop},
          {"Scan", 13, scan},
          {"SequenceConstruct", 13, sequence},
          {"SplitToSequence", 13, split_to_sequence},
          {"Optional", 18, optional},
          {"NonZero", 13, non_zero},
          {"Compress", 13, compress},
          {"Unique", 13, unique},
          {"NonMaxSuppression", 13, suppression},
          {"RNN", 14, recurrent},
          {"GRU", 14, recurrent},
          {"LSTM", 14, recurrent},
          {"DequantizeLinear", 13, quantized},
          {"Attention", 23, attention}};
}

}  // namespace relaxc::test::onnx_graphs
