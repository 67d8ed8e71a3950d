#include "tests/onnx_graphs/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "frontend/onnx/model_file.h"
#include "frontend/onnx/test_data.h"

namespace relaxc::test::onnx_graphs {

namespace {

constexpr int64_t kMostElements = 3000;  // of one value: the interpreter computes them one by one

onnx::AttributeProto named(const std::string& name, onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto attr;
  attr.set_name(name);
  attr.set_type(type);
  return attr;
}

// Multiples of the step in the interval.
Tensor random_tensor(const Value& value, int binding, uint64_t seed) {
  std::vector<int64_t> shape;
  for (const Dim& dim : value.shape) shape.push_back(dim.sizes[static_cast<size_t>(binding)]);
  Tensor tensor = Tensor::empty(std::move(shape), value.dtype);
  std::seed_seq mixed{seed, static_cast<uint64_t>(std::hash<std::string>()(value.name)), uint64_t(binding)};
  std::mt19937_64 random(mixed);
  auto first = static_cast<int64_t>(std::ceil(value.range.low / value.range.step));
  auto last = static_cast<int64_t>(std::floor(value.range.high / value.range.step));
  for (int64_t i = 0; i < tensor.size(); ++i) {
    int64_t steps = first + static_cast<int64_t>(random() % static_cast<uint64_t>(last - first + 1));
    if (value.dtype.is_float()) {
      tensor.set_double(i, static_cast<double>(steps) * value.range.step);
    } else {
      tensor.set_int(i, steps);
    }
  }
  return tensor;
}

// As raw bytes, or in the field of the type.
onnx::TensorProto tensor_proto(const Tensor& tensor, const std::string& name, bool raw) {
  onnx::TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(onnx_import::element_type_of_dtype(tensor.dtype()));
  for (int64_t dim : tensor.shape()) proto.add_dims(dim);
  bool wide = tensor.dtype() == kFloat32 || tensor.dtype() == kInt64 || tensor.dtype() == kFloat64;
  bool narrow = tensor.dtype().is_bool() || tensor.dtype() == kInt32 || tensor.dtype().bytes() == 1;
  if (raw || !(wide || narrow)) {
    proto.set_raw_data(tensor.raw(), static_cast<size_t>(tensor.bytes()));
    return proto;
  }
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (tensor.dtype() == kFloat32) proto.add_float_data(static_cast<float>(tensor.as_double(i)));
    if (tensor.dtype() == kFloat64) proto.add_double_data(tensor.as_double(i));
    if (tensor.dtype() == kInt64) proto.add_int64_data(tensor.as_int(i));
    if (narrow) proto.add_int32_data(static_cast<int32_t>(tensor.as_int(i)));
  }
  return proto;
}

void declare(onnx::ValueInfoProto& info, const Value& value, bool with_dims) {
  info.set_name(value.name);
  auto* type = info.mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx_import::element_type_of_dtype(value.dtype));
  if (!with_dims) return;
  type->mutable_shape();
  for (size_t i = 0; i < value.shape.size(); ++i) {
    auto* dim = type->mutable_shape()->add_dim();
    const Dim& known = value.shape[i];
    if (known.is_static) {
      dim->set_dim_value(known.sizes[0]);
    } else {
      dim->set_dim_param(known.symbol.empty() ? fmt::format("{}_{}", value.name, i) : known.symbol);
    }
  }
}

std::string print_attribute(const onnx::AttributeProto& attr) {
  std::string text = attr.name() + "=";
  if (attr.type() == onnx::AttributeProto::INT) return text + std::to_string(attr.i());
  if (attr.type() == onnx::AttributeProto::FLOAT) return text + fmt::format("{}", attr.f());
  if (attr.type() == onnx::AttributeProto::STRING) return text + attr.s();
  for (int64_t number : attr.ints()) text += fmt::format("{},", number);
  if (attr.type() == onnx::AttributeProto::GRAPH) text += "{" + attr.g().node(0).op_type() + "}";
  return text;
}

std::string print_shape(const Value& value) {
  std::string text = to_string(value.dtype) + "[";
  for (const Dim& dim : value.shape) {
    if (dim.is_static) {
      text += fmt::format("{},", dim.sizes[0]);
    } else {
      text += fmt::format("{}({}|{}|{}),", dim.symbol, dim.sizes[0], dim.sizes[1], dim.sizes[2]);
    }
  }
  if (text.back() == ',') text.pop_back();
  return text + "]";
}

std::vector<std::string> reads(const onnx::NodeProto& node) {
  std::vector<std::string> names(node.input().begin(), node.input().end());
  for (const onnx::AttributeProto& attr : node.attribute()) {
    if (!attr.has_g()) continue;
    for (const onnx::NodeProto& inner : attr.g().node())
      names.insert(names.end(), inner.input().begin(), inner.input().end());
    for (const auto& output : attr.g().output()) names.push_back(output.name());
  }
  return names;
}

}  // namespace

onnx::AttributeProto attribute(const std::string& name, int64_t value) {
  auto attr = named(name, onnx::AttributeProto::INT);
  attr.set_i(value);
  return attr;
}
onnx::AttributeProto attribute(const std::string& name, int value) { return attribute(name, int64_t{value}); }
onnx::AttributeProto attribute(const std::string& name, double value) {
  auto attr = named(name, onnx::AttributeProto::FLOAT);
  attr.set_f(static_cast<float>(value));
  return attr;
}
onnx::AttributeProto attribute(const std::string& name, const char* value) {
  auto attr = named(name, onnx::AttributeProto::STRING);
  attr.set_s(value);
  return attr;
}
onnx::AttributeProto attribute(const std::string& name, const std::vector<int64_t>& values) {
  auto attr = named(name, onnx::AttributeProto::INTS);
  for (int64_t value : values) attr.add_ints(value);
  return attr;
}

int64_t most_elements(const Shape& shape) {
  int64_t most = 0;
  for (size_t k = 0; k < kBindings; ++k) {
    int64_t count = 1;
    for (const Dim& dim : shape) count *= dim.sizes[k];
    most = std::max(most, count);
  }
  return most;
}

bool has_zero(const Shape& shape) {
  return std::any_of(shape.begin(), shape.end(), [](const Dim& dim) { return dim.least() == 0; });
}

Dim combine(const Dim& a, const Dim& b, const std::function<int64_t(int64_t, int64_t)>& f) {
  Dim result = a;
  for (size_t k = 0; k < kBindings; ++k) result.sizes[k] = f(a.sizes[k], b.sizes[k]);
  result.is_static = a.is_static && b.is_static;
  result.symbol.clear();
  return result;
}

Dim product(const Shape& shape, size_t begin, size_t end) {
  if (begin + 1 == end) return shape[begin];
  Dim result = 1;
  for (size_t i = begin; i < end; ++i) result = combine(result, shape[i], std::multiplies<>());
  return result;
}

Shape broadcast(const Shape& a, const Shape& b) {
  if (a.size() < b.size()) return broadcast(b, a);
  Shape result = a;
  for (size_t i = 0; i < b.size(); ++i) {
    Dim& left = result[i + a.size() - b.size()];
    if (left.is(1)) {
      left = b[i];
    } else {
      Generator::need(b[i].is(1) || left == b[i]);
    }
  }
  return result;
}

Range joined(const Range& a, const Range& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high), std::min(a.step, b.step), std::max(a.error, b.error)};
}

const std::vector<Operator>& operators() {
  static const std::vector<Operator> kOperators = [] {
    std::vector<Operator> all;
    for (auto* group : {elementwise_operators, reduction_operators, layout_operators, index_operators,
                        network_operators, control_operators, newer_operators}) {
      for (Operator& row : group()) all.push_back(std::move(row));
    }
    return all;
  }();
  return kOperators;
}

Generator::Generator(uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15u + 1) {
  graph_.seed = seed;
  opset_ = one_of<int>({13, 14, 17, 18, 20, 21, 23});
  graph_.model.set_ir_version(8);
  graph_.model.set_producer_name(fmt::format("relaxc random graph {}", seed));
  graph_.model.add_opset_import()->set_version(opset_);
  proto().set_name("graph");
  for (const char* name : {"n", "m", "k"}) {
    Dim dim = 1;
    dim.is_static = false;
    dim.symbol = name;
    // Not one size for all, so that no symbolic dim looks like a number.
    do {
      for (int64_t& size : dim.sizes) size = chance(0.04) ? 0 : chance(0.1) ? draw(9, 33) : draw(1, 8);
    } while (dim.least() == dim.most());
    symbols_.push_back(dim);
  }
}

DType Generator::float_dtype() { return chance(0.85) ? kFloat32 : chance(0.6) ? DType::float_(16) : kFloat64; }
DType Generator::any_dtype() {
  if (chance(0.6)) return float_dtype();
  return one_of<DType>({kInt64, kInt32, kBool, DType::int_(8), DType::uint(8), kInt64});
}

Dim Generator::new_dim() {
  if (chance(0.5)) return one_of(symbols_);
  return chance(0.03) ? 0 : chance(0.2) ? 1 : draw(2, 8);
}
Shape Generator::new_shape(int64_t rank) {
  Shape shape;
  for (int64_t i = 0; i < rank; ++i) shape.push_back(new_dim());
  return shape;
}

Value Generator::tensor(DType dtype, Shape shape, const Range& range) {
  need(most_elements(shape) <= kMostElements);
  bool is_static = std::all_of(shape.begin(), shape.end(), [](const Dim& dim) { return dim.is_static; });
  for (Dim& dim : shape) need(dim.is_static || !dim.symbol.empty());
  Range inside = range;
  if (dtype.is_bool()) inside = kFlags;
  if (dtype.is_integral()) inside = {std::ceil(range.low), std::floor(range.high), 1, 0};
  if (dtype.is_uint()) inside.low = std::max(inside.low, 0.0);
  Value value = {fresh(is_static ? "c" : "x"), dtype, std::move(shape), rounded(inside, dtype)};
  value.is_constant = is_static && chance(0.6);
  if (value.is_constant) {
    Tensor contents = random_tensor(value, 0, graph_.seed);
    *proto().add_initializer() = tensor_proto(contents, value.name, chance(0.7));
  } else {
    graph_.inputs.push_back(value.name);
  }
  graph_.values[value.name] = value;
  order_.push_back(value.name);
  return value;
}

Value Generator::value(const std::function<bool(const Value&)>& condition, DType dtype, int64_t least_rank,
                       int64_t most_rank, const Range& range) {
  std::vector<std::string> fitting;
  for (const std::string& name : order_) {
    if (!condition(graph_.values.at(name))) continue;
    fitting.push_back(name);
    // Results that nothing reads yet come first.
    if (results_.contains(name) && !used_.contains(name)) fitting.insert(fitting.end(), 4, name);
  }
  if (!fitting.empty() && chance(0.9)) return graph_.values.at(one_of(fitting));
  return tensor(dtype, new_shape(draw(least_rank, most_rank)), range);
}

Value Generator::any_value(int64_t least_rank, int64_t most_rank) {
  return value([&](const Value& v) { return fits(v, least_rank, most_rank); }, any_dtype(), least_rank, most_rank);
}

Value Generator::partner(const Value& other, const Range& range) {
  auto fitting = [&](const Value& v) {
    if (v.dtype != other.dtype || v.range.low < range.low || v.range.high > range.high) return false;
    try {
      return most_elements(broadcast(v.shape, other.shape)) <= kMostElements;
    } catch (const Unfit&) {
      return false;
    }
  };
  std::vector<std::string> names;
  for (const std::string& name : order_) {
    if (fitting(graph_.values.at(name))) names.push_back(name);
  }
  if (!names.empty() && chance(0.6)) return graph_.values.at(one_of(names));
  Shape shape = other.shape;
  if (chance(0.5) && !shape.empty())
    shape.erase(shape.begin(), shape.begin() + draw(0, static_cast<int64_t>(shape.size())));
  for (Dim& dim : shape) {
    if (chance(0.2) || (!dim.is_static && dim.symbol.empty())) dim = 1;
  }
  return tensor(other.dtype, shape, {std::max(range.low, -4.0), std::min(range.high, 4.0)});
}

std::string Generator::scalar(DType dtype, double number) {
  std::string name = fresh("s");
  Tensor tensor = Tensor::empty({}, dtype);
  if (dtype.is_float()) {
    tensor.set_double(0, number);
  } else {
    tensor.set_int(0, static_cast<int64_t>(number));
  }
  *proto().add_initializer() = tensor_proto(tensor, name, chance(0.7));
  return name;
}

std::string Generator::ints(const std::vector<int64_t>& numbers) {
  std::string name = fresh("i");
  if (chance(0.3)) {
    onnx::NodeProto& node = *proto().add_node();
    node.set_op_type("Constant");
    node.add_output(name);
    *node.add_attribute() = attribute("value_ints", numbers);
    return name;
  }
  Tensor tensor = Tensor::of({static_cast<int64_t>(numbers.size())}, kInt64, numbers);
  *proto().add_initializer() = tensor_proto(tensor, name, chance(0.7));
  return name;
}

// A tensor of one element that holds the dim.
std::string Generator::of_shape(const Dim& dim) {
  if (dim.is_static) return ints({dim.sizes[0]});
  auto gather = [&](const std::string& value, int64_t axis) {
    std::string shape = fresh("h"), item = fresh("h");
    onnx::NodeProto& first = *proto().add_node();
    first.set_op_type("Shape");
    first.add_input(value);
    first.add_output(shape);
    std::string index = ints({axis});
    onnx::NodeProto& second = *proto().add_node();
    second.set_op_type("Gather");
    second.add_input(shape);
    second.add_input(index);
    second.add_output(item);
    return item;
  };
  struct Place {
    std::string value;
    int64_t axis;
    Dim dim;
  };
  std::vector<Place> places, factors;
  for (const std::string& name : order_) {
    const Value& value = graph_.values.at(name);
    for (size_t i = 0; i < value.shape.size(); ++i) {
      if (value.shape[i] == dim) places.push_back({name, static_cast<int64_t>(i), dim});
      if (!value.shape[i].is_static) factors.push_back({name, static_cast<int64_t>(i), value.shape[i]});
    }
  }
  if (!places.empty()) {
    Place place = one_of(places);
    return gather(place.value, place.axis);
  }
  for (const Place& a : factors) {
    for (const Place& b : factors) {
      if (!(combine(a.dim, b.dim, std::multiplies<>()) == dim)) continue;
      std::string left = gather(a.value, a.axis), right = gather(b.value, b.axis), result = fresh("h");
      onnx::NodeProto& node = *proto().add_node();
      node.set_op_type("Mul");
      node.add_input(left);
      node.add_input(right);
      node.add_output(result);
      return result;
    }
  }
  throw Unfit{};
}

std::string Generator::dims(const Shape& shape) {
  bool is_static = std::all_of(shape.begin(), shape.end(), [](const Dim& dim) { return dim.is_static; });
  if (is_static) {
    std::vector<int64_t> numbers;
    for (const Dim& dim : shape) numbers.push_back(dim.sizes[0]);
    return ints(numbers);
  }
  std::vector<std::string> parts;
  for (const Dim& dim : shape) parts.push_back(of_shape(dim));
  std::string name = fresh("h");
  onnx::NodeProto& node = *proto().add_node();
  node.set_op_type("Concat");
  for (const std::string& part : parts) node.add_input(part);
  node.add_output(name);
  *node.add_attribute() = attribute("axis", 0);
  return name;
}

Range Generator::rounded(Range range, DType dtype) {
  double magnitude = range.magnitude();
  if (dtype.is_bool()) return kFlags;
  if (dtype.is_integral()) {
    int bits = dtype.bits - (dtype.is_int() ? 1 : 0);
    need(magnitude < std::min(std::ldexp(1.0, bits), 1e9) && (dtype.is_int() || range.low >= 0));
    return {range.low, range.high, 1, 0};
  }
  int digits = dtype.bits == 16 ? 11 : dtype.bits == 32 ? 24 : 53;
  need(magnitude < (dtype.bits == 16 ? 2e3 : 1e6));
  double unit = std::ldexp(1.0, -digits) * std::max(magnitude, 1e-3);
  if (!range.exact() || magnitude / range.step > std::ldexp(1.0, digits)) range.error += unit;
  need(range.error <= (dtype.bits == 16 ? 0.05 : 0.003) * (1 + magnitude));
  return range;
}

std::vector<Value> Generator::emit_many(const std::string& op, const std::vector<std::string>& inputs, Attrs attrs,
                                        std::vector<Result> results) {
  onnx::NodeProto& node = *proto().add_node();
  node.set_op_type(op);
  node.set_name(fmt::format("{}_{}", op, proto().node_size()));
  for (const std::string& input : inputs) {
    node.add_input(input);
    used_.insert(input);
  }
  for (onnx::AttributeProto& attr : attrs) *node.add_attribute() = std::move(attr);
  std::vector<Value> values;
  for (Result& result : results) {
    need(most_elements(result.shape) <= kMostElements && result.shape.size() <= 6);
    Value value = {fresh("v"), result.dtype, std::move(result.shape), rounded(result.range, result.dtype)};
    node.add_output(value.name);
    graph_.values[value.name] = value;
    order_.push_back(value.name);
    results_.insert(value.name);
    values.push_back(std::move(value));
  }
  return values;
}

bool Generator::add_node() {
  const Operator& row = operators()[random_() % operators().size()];
  if (row.since > opset_) return false;
  Graph before = graph_;
  auto order = order_;
  auto used = used_, of_nodes = results_;
  try {
    row.draw(*this, row.name);
    return true;
  } catch (const Unfit&) {
    graph_ = std::move(before);
    order_ = std::move(order);
    used_ = std::move(used);
    results_ = std::move(of_nodes);
    return false;
  }
}

Graph Generator::generate() {
  int64_t wanted = draw(3, 12);
  for (int64_t added = 0, attempts = 0; added < wanted && attempts < 400; ++attempts) {
    if (add_node()) ++added;
  }
  for (const std::string& name : order_) {
    if (results_.contains(name) && (!used_.contains(name) || chance(0.05))) graph_.outputs.push_back(name);
  }
  finish(graph_);
  return graph_;
}

Graph make_graph(uint64_t seed) { return Generator(seed).generate(); }

void finish(Graph& graph) {
  std::set<std::string> needed(graph.outputs.begin(), graph.outputs.end());
  onnx::GraphProto& proto = *graph.model.mutable_graph();
  std::vector<onnx::NodeProto> nodes;
  std::set<std::string> inputs(graph.inputs.begin(), graph.inputs.end());
  for (int i = proto.node_size(); i-- > 0;) {
    const onnx::NodeProto& node = proto.node(i);
    bool wanted = std::any_of(node.output().begin(), node.output().end(),
                              [&](const std::string& name) { return needed.contains(name) && !inputs.contains(name); });
    if (!wanted) continue;
    for (const std::string& name : reads(node)) needed.insert(name);
    nodes.push_back(node);
  }
  proto.clear_node();
  for (size_t i = nodes.size(); i-- > 0;) *proto.add_node() = nodes[i];
  auto* initializers = proto.mutable_initializer();
  for (int i = initializers->size(); i-- > 0;) {
    if (!needed.contains(initializers->Get(i).name())) initializers->DeleteSubrange(i, 1);
  }
  std::erase_if(graph.inputs, [&](const std::string& name) { return !needed.contains(name); });
  proto.clear_input();
  proto.clear_output();
  for (const std::string& name : graph.inputs) declare(*proto.add_input(), graph.values.at(name), true);
  for (const std::string& name : graph.outputs) {
    // Sometimes with dims, known and unknown, and sometimes with nothing but the dtype.
    declare(*proto.add_output(), graph.values.at(name), (graph.seed + proto.output_size()) % 3 == 0);
  }
}

std::vector<Tensor> Graph::make_inputs(int binding) const {
  std::vector<Tensor> tensors;
  for (const std::string& name : inputs) {
    auto it = given.find(name);
    tensors.push_back(it != given.end() ? it->second : random_tensor(values.at(name), binding, seed));
  }
  return tensors;
}

void Graph::write(const std::string& folder) const {
  std::filesystem::remove_all(folder);
  for (int binding = 0; binding < bindings(); ++binding) {
    std::string data = fmt::format("{}/test_data_set_{}", folder, binding);
    std::filesystem::create_directories(data);
    std::vector<Tensor> tensors = make_inputs(binding);
    for (size_t i = 0; i < tensors.size(); ++i)
      write_tensor_pb(fmt::format("{}/input_{}.pb", data, i), tensors[i], inputs[i]);
  }
  std::ofstream out(folder + "/model.onnx", std::ios::binary);
  model.SerializeToOstream(&out);
}

std::string Graph::print() const {
  std::string text = fmt::format("  opset {}\n", model.opset_import(0).version());
  for (const std::string& name : inputs) {
    const Value& value = values.at(name);
    text += fmt::format("  input {}: {} in {}..{}\n", name, print_shape(value), value.range.low, value.range.high);
  }
  for (const onnx::NodeProto& node : model.graph().node()) {
    std::string line;
    for (const std::string& output : node.output()) line += (line.empty() ? "" : ", ") + output;
    line += " = " + node.op_type() + "(";
    for (const std::string& input : node.input()) line += (line.back() == '(' ? "" : ", ") + input;
    for (const onnx::AttributeProto& attr : node.attribute()) line += " " + print_attribute(attr);
    line += ")";
    for (const std::string& output : node.output()) {
      auto it = values.find(output);
      if (it != values.end()) line += "  " + print_shape(it->second);
    }
    text += "  " + line + "\n";
  }
  for (const onnx::TensorProto& constant : model.graph().initializer()) {
    Tensor contents = onnx_import::decode_tensor(constant, {});
    text += fmt::format("  constant {}: {}", constant.name(), describe(contents));
    for (int64_t i = 0; i < std::min<int64_t>(contents.size(), 8); ++i)
      text += fmt::format(" {}", contents.as_double(i));
    text += "\n";
  }
  text += "  outputs:";
  for (const std::string& name : outputs)
    text += fmt::format(" {} (tolerance {:.3g})", name, values.at(name).range.error);
  return text + "\n";
}

}  // namespace relaxc::test::onnx_graphs
