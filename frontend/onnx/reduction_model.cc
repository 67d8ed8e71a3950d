#include "frontend/onnx/reduction_model.h"

#include <algorithm>
#include <cstring>

#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/model_file.h"
#include "support/diagnostic.h"
#include "support/joined.h"

namespace relaxc::onnx_import {

namespace {

constexpr int64_t kShownElements = 8;  // of a tensor in a print

template <class Graph, class Found>
void collect_graphs(Graph& graph, Found& found) {  // NOLINT: bounded, protobuf bounds the depth
  found.push_back(&graph);
  for (int i = 0; i < graph.node_size(); ++i) {
    for (int k = 0; k < graph.node(i).attribute_size(); ++k) {
      if (!graph.node(i).attribute(k).has_g()) continue;
      if constexpr (std::is_const_v<Graph>) {
        collect_graphs(graph.node(i).attribute(k).g(), found);
      } else {
        collect_graphs(*graph.mutable_node(i)->mutable_attribute(k)->mutable_g(), found);
      }
    }
  }
}

template <class Items, class Condition>
void erase_if(Items& items, Condition condition) {
  for (int i = items.size(); i-- > 0;) {
    if (condition(items[i])) items.DeleteSubrange(i, 1);
  }
}

// Results of these are sequences or optionals.
bool gives_tensors(const onnx::NodeProto& node) {
  static const std::set<std::string> kOthers = {"SequenceConstruct", "SequenceInsert", "SequenceErase", "SequenceEmpty",
                                                "SplitToSequence",   "SequenceMap",    "Optional",      "ZipMap"};
  if (kOthers.contains(node.op_type())) return false;
  for (const auto& attribute : node.attribute()) {
    for (const auto& output : attribute.g().output()) {
      if (output.has_type() && !output.type().has_tensor_type()) return false;
    }
    for (const auto& inner : attribute.g().node()) {
      if (kOthers.contains(inner.op_type())) return false;
    }
  }
  return true;
}

void declare_shape(onnx::TypeProto::Tensor& type, const std::vector<int64_t>& shape) {
  type.clear_shape();
  type.mutable_shape();
  for (int64_t dim : shape) type.mutable_shape()->add_dim()->set_dim_value(dim);
}

// The leading part of the tensor: its elements at the positions below these dims.
std::optional<Tensor> leading_part(const Tensor& tensor, const std::vector<int64_t>& dims) {
  if (tensor.dtype().is_string() || tensor.dtype().bits % 8 != 0) return std::nullopt;
  Tensor result = Tensor::empty(dims, tensor.dtype());
  const auto* from = static_cast<const std::byte*>(tensor.raw());
  auto* to = static_cast<std::byte*>(result.raw());
  auto item = static_cast<size_t>(tensor.dtype().bytes());
  std::vector<int64_t> index(dims.size(), 0);
  for (int64_t i = 0; i < result.size(); ++i) {
    int64_t flat = 0;
    for (size_t d = 0; d < dims.size(); ++d) flat = flat * tensor.shape()[d] + index[d];
    std::memcpy(to + static_cast<size_t>(i) * item, from + static_cast<size_t>(flat) * item, item);
    for (size_t d = dims.size(); d-- > 0 && ++index[d] == dims[d];) index[d] = 0;
  }
  return result;
}

// The tensor with its dims of this size cut, or with these numbers changed; nullopt when neither occurs.
std::optional<Tensor> with_smaller(const Tensor& tensor, int64_t size, int64_t smaller) {
  std::vector<int64_t> dims = tensor.shape();
  std::replace(dims.begin(), dims.end(), size, smaller);
  bool is_list = tensor.dtype() == kInt64 && tensor.shape().size() <= 1 && tensor.size() <= 8;
  if (is_list) {
    Tensor result = Tensor::empty(tensor.shape(), kInt64);
    bool changed = false;
    for (int64_t i = 0; i < tensor.size(); ++i) {
      bool is_size = tensor.as_int(i) == size;
      result.set_int(i, is_size ? smaller : tensor.as_int(i));
      changed |= is_size;
    }
    if (changed) return result;
  }
  if (dims == tensor.shape()) return std::nullopt;
  return leading_part(tensor, dims);
}

std::string print_tensor(const Tensor& tensor) {
  std::string text = describe(tensor);
  if (tensor.size() > kShownElements || tensor.size() == 0) return text;
  text += " =";
  const Tensor numbers = parts_of(tensor);
  for (int64_t i = 0; i < numbers.size(); ++i) {
    text += numbers.dtype().is_string()     ? fmt::format(" '{}'", numbers.string(i))
            : numbers.dtype().is_integral() ? fmt::format(" {}", numbers.as_int(i))
                                            : fmt::format(" {:.9g}", numbers.as_double(i));
  }
  return text;
}

std::string print_attribute(const onnx::AttributeProto& attribute) {
  std::string text = attribute.name() + "=";
  switch (attribute.type()) {
    case onnx::AttributeProto::FLOAT:
      return text + fmt::format("{:.9g}", attribute.f());
    case onnx::AttributeProto::INT:
      return text + std::to_string(attribute.i());
    case onnx::AttributeProto::STRING:
      return text + "'" + attribute.s() + "'";
    case onnx::AttributeProto::FLOATS:
      return text + fmt::format("[{}]", fmt::join(attribute.floats(), ", "));
    case onnx::AttributeProto::INTS:
      return text + fmt::format("[{}]", fmt::join(attribute.ints(), ", "));
    case onnx::AttributeProto::TENSOR:
      return text + print_tensor(decode_tensor(attribute.t(), {}));
    case onnx::AttributeProto::GRAPH:
      return text + fmt::format("a graph of {} nodes", attribute.g().node_size());
    default:
      return text + "...";
  }
}

std::string print_node(const onnx::NodeProto& node) {
  std::string text = joined(node.output()) + " = " + node.op_type() + "(" + joined(node.input()) + ")";
  for (const auto& attribute : node.attribute()) text += " " + print_attribute(attribute);
  return text;
}

}  // namespace

ReductionModel::ReductionModel(ModelCase model) : inputs_(std::move(model.inputs)) {
  if (!proto_.ParseFromString(model.model)) fail({}, "not an ONNX model");
}

ReductionModel ReductionModel::read(const std::string& path) {
  auto file = ModelFile::open(path, ImportLimits());
  ReductionModel result({file->proto().SerializeAsString(), {}});
  Span span = span_of_file(path);
  int64_t bytes = 0;
  auto take_in = [&](onnx::TensorProto& tensor) {
    const bool is_outside = tensor.data_location() == onnx::TensorProto::EXTERNAL || index_of_large_data(tensor);
    Tensor contents = ModelFile::tensor(file, tensor, span);
    bytes += contents.bytes();
    if (bytes >= int64_t{1} << 31) fail_unsupported(span, "more than 2 GB of weights: they do not fit into one file");
    if (!is_outside) return;
    std::string name = tensor.name();
    tensor = proto_of_tensor(contents, span);
    tensor.set_name(name);
  };
  std::vector<onnx::GraphProto*> graphs;
  collect_graphs(result.main(), graphs);
  for (onnx::GraphProto* graph : graphs) {
    for (onnx::TensorProto& tensor : *graph->mutable_initializer()) take_in(tensor);
    for (onnx::NodeProto& node : *graph->mutable_node()) {
      for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
        if (attribute.has_t()) take_in(*attribute.mutable_t());
      }
    }
  }
  return result;
}

ModelCase ReductionModel::to_case() const { return {proto_.SerializeAsString(), inputs_}; }

bool ReductionModel::same_as(const ReductionModel& other) const {
  return edits_ == other.edits_ && proto_.SerializeAsString() == other.proto_.SerializeAsString();
}

std::vector<const onnx::GraphProto*> ReductionModel::graphs() const {
  std::vector<const onnx::GraphProto*> found;
  collect_graphs(proto_.graph(), found);
  return found;
}

onnx::GraphProto& ReductionModel::graph(size_t index) {
  std::vector<onnx::GraphProto*> found;
  collect_graphs(main(), found);
  return *found.at(index);
}

size_t ReductionModel::num_nodes(size_t graph) const {
  return graph < num_graphs() ? static_cast<size_t>(graphs()[graph]->node_size()) : 0;
}

size_t ReductionModel::num_operands(size_t graph, size_t node) const {
  return node < num_nodes(graph) ? static_cast<size_t>(graphs()[graph]->node(static_cast<int>(node)).input_size()) : 0;
}

std::vector<std::string> ReductionModel::attributes(size_t graph, size_t node) const {
  std::vector<std::string> names;
  if (node >= num_nodes(graph)) return names;
  for (const auto& attribute : graphs()[graph]->node(static_cast<int>(node)).attribute())
    names.push_back(attribute.name());
  return names;
}

std::vector<std::string> ReductionModel::outputs() const {
  std::vector<std::string> names;
  for (const auto& output : proto_.graph().output()) names.push_back(output.name());
  return names;
}

std::vector<vm::ValueInfo> ReductionModel::input_infos() const {
  std::set<std::string> constants;
  for (const auto& tensor : proto_.graph().initializer()) constants.insert(tensor.name());
  std::vector<vm::ValueInfo> infos;
  for (const auto& input : proto_.graph().input()) {
    if (constants.contains(input.name())) continue;
    vm::ValueInfo info;
    info.name = input.name();
    const auto& type = input.type().tensor_type();
    if (!input.type().has_tensor_type()) info.kind = vm::ValueKind::kNone;
    if (type.elem_type() != 0) info.dtype = dtype_of_element_type(type.elem_type(), {});
    if (type.has_shape()) {
      info.dims.emplace();
      for (const auto& dim : type.shape().dim()) {
        bool is_number = dim.has_dim_value();
        std::string symbol = dim.dim_param();
        if (symbol.empty()) symbol = fmt::format("{}_{}", input.name(), info.dims->size());
        info.dims->push_back(is_number ? vm::DimInfo{dim.dim_value(), ""} : vm::DimInfo{-1, symbol});
      }
    }
    infos.push_back(std::move(info));
  }
  return infos;
}

std::vector<std::string> ReductionModel::tensors() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : inputs_) {
    if (value.get_if<Tensor>() && value.tensor().dtype().is_float()) names.push_back(name);
  }
  for (const auto& tensor : proto_.graph().initializer()) {
    if (decode_tensor(tensor, {}).dtype().is_float()) names.push_back(tensor.name());
  }
  return names;
}

std::set<int64_t> ReductionModel::sizes() const {
  std::set<int64_t> result;
  auto add = [&](const auto& dims) {
    for (int64_t dim : dims) {
      if (dim > 1) result.insert(dim);
    }
  };
  for (const auto& [name, value] : inputs_) {
    if (value.get_if<Tensor>()) add(value.tensor().shape());
  }
  for (const auto& tensor : proto_.graph().initializer()) add(tensor.dims());
  return result;
}

void ReductionModel::strip() {
  proto_.clear_doc_string();
  proto_.clear_metadata_props();
  proto_.clear_training_info();
  proto_.clear_producer_version();
  main().clear_doc_string();
  main().clear_value_info();
  main().clear_quantization_annotation();
  for (auto& node : *main().mutable_node()) node.clear_doc_string();
  for (auto& output : *main().mutable_output()) output.clear_type();
}

// Takes away nodes and constants that the graph's outputs do not need, in its branches and bodies, too. Returns the
// names that are needed.
static std::set<std::string> prune_graph(onnx::GraphProto& graph) {  // NOLINT: protobuf bounds the depth
  std::set<std::string> needed;
  for (const auto& output : graph.output()) needed.insert(output.name());
  auto& nodes = *graph.mutable_node();
  for (int i = nodes.size(); i-- > 0;) {
    onnx::NodeProto& node = nodes[i];
    bool is_needed = std::any_of(node.output().begin(), node.output().end(),
                                 [&](const std::string& name) { return !name.empty() && needed.contains(name); });
    if (!is_needed) {
      nodes.DeleteSubrange(i, 1);
      continue;
    }
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) prune_graph(*attribute.mutable_g());
    }
    for (const std::string& name : names_read(node)) needed.insert(name);
  }
  erase_if(*graph.mutable_initializer(), [&](const auto& item) { return !needed.contains(item.name()); });
  return needed;
}

void ReductionModel::prune() {
  const std::set<std::string> needed = prune_graph(main());
  erase_if(*main().mutable_input(), [&](const auto& item) { return !needed.contains(item.name()); });
  std::erase_if(inputs_, [&](const auto& item) { return !needed.contains(item.first); });
  if (main().node_size() == 0) fail({}, "nothing is left");
}

void ReductionModel::set_outputs(const std::vector<std::string>& names) {
  std::map<std::string, onnx::ValueInfoProto> known;
  for (const auto& output : main().output()) known[output.name()] = output;
  main().clear_output();
  for (const std::string& name : names) {
    onnx::ValueInfoProto& output = *main().add_output();
    output = known[name];
    output.set_name(name);
  }
}

void ReductionModel::keep_first(size_t count) {
  std::set<std::string> read;
  for (const std::string& name : outputs()) read.insert(name);
  auto& nodes = *main().mutable_node();
  for (int i = static_cast<int>(count); i < nodes.size(); ++i) {
    for (const std::string& name : names_read(nodes[i])) read.insert(name);
  }
  nodes.DeleteSubrange(static_cast<int>(count), nodes.size() - static_cast<int>(count));
  std::vector<std::string> names;
  for (const auto& node : nodes) {
    for (const std::string& name : node.output()) {
      if (!name.empty() && read.contains(name)) names.push_back(name);
    }
  }
  if (names.empty()) fail({}, "no value is left");
  set_outputs(names);
}

void ReductionModel::show_results(size_t count) {
  auto& nodes = *main().mutable_node();
  nodes.DeleteSubrange(static_cast<int>(count), nodes.size() - static_cast<int>(count));
  std::vector<std::string> names;
  for (const auto& node : nodes) {
    if (!gives_tensors(node)) continue;
    std::copy_if(node.output().begin(), node.output().end(), std::back_inserter(names),
                 [](const std::string& name) { return !name.empty(); });
  }
  set_outputs(names);
}

void ReductionModel::drop_nodes(size_t begin, size_t end, const std::map<std::string, vm::Value>& values,
                                NewDims dims) {
  auto& nodes = *main().mutable_node();
  std::set<std::string> dropped;
  for (size_t i = begin; i < end; ++i) {
    const auto& outputs = nodes[static_cast<int>(i)].output();
    dropped.insert(outputs.begin(), outputs.end());
  }
  nodes.DeleteSubrange(static_cast<int>(begin), static_cast<int>(end - begin));
  erase_if(*main().mutable_output(), [&](const auto& output) { return dropped.contains(output.name()); });
  if (main().output_size() == 0) fail({}, "no output is left");
  prune();
  std::set<std::string> read;
  for (const auto& node : nodes) {
    for (const std::string& name : names_read(node)) read.insert(name);
  }
  for (const std::string& name : dropped) {
    if (!name.empty() && read.contains(name)) add_recorded_input(name, values, dims, name);
  }
}

void ReductionModel::add_recorded_input(const std::string& name, const std::map<std::string, vm::Value>& values,
                                        NewDims dims, const std::string& input) {
  auto it = values.find(name);
  if (it == values.end() || !it->second.get_if<Tensor>()) fail({}, "'{}' has no recorded value", name);
  add_input(input, it->second, dims);
}

// Dims of the size of a symbol of another input get it, too: where symbols could go, fix_symbols has taken them away.
void ReductionModel::add_input(const std::string& name, const vm::Value& value, NewDims dims) {
  std::map<int64_t, std::string> symbols;
  for (const auto& input : main().input()) {
    auto it = inputs_.find(input.name());
    if (it == inputs_.end() || !it->second.get_if<Tensor>()) continue;
    const auto& shape = input.type().tensor_type().shape();
    for (int i = 0; i < shape.dim_size() && i < static_cast<int>(it->second.tensor().shape().size()); ++i) {
      if (!shape.dim(i).dim_param().empty())
        symbols[it->second.tensor().shape()[static_cast<size_t>(i)]] = shape.dim(i).dim_param();
    }
  }
  onnx::ValueInfoProto& input = *main().add_input();
  input.set_name(name);
  auto& type = *input.mutable_type()->mutable_tensor_type();
  type.set_elem_type(element_type_of_dtype(value.tensor().dtype()));
  declare_shape(type, value.tensor().shape());
  for (auto& dim : *type.mutable_shape()->mutable_dim()) {
    auto it = symbols.find(dim.dim_value());
    if (it == symbols.end() && dims == NewDims::kSymbols)
      it = symbols.emplace(dim.dim_value(), fmt::format("{}_d{}", name, symbols.size())).first;
    if (it != symbols.end()) dim.set_dim_param(it->second);
  }
  inputs_[name] = value;
}

void ReductionModel::bypass(size_t graph, size_t node, size_t operand) {
  const onnx::NodeProto& cut = this->graph(graph).node(static_cast<int>(node));
  if (cut.output_size() == 0 || cut.output(0).empty()) fail({}, "no result");
  const std::string from = cut.output(0), to = cut.input(static_cast<int>(operand));
  if (to.empty() || from == to) fail({}, "no operand");
  std::vector<onnx::GraphProto*> all;
  collect_graphs(main(), all);
  this->graph(graph).mutable_node()->DeleteSubrange(static_cast<int>(node), 1);
  all.clear();
  collect_graphs(main(), all);
  for (onnx::GraphProto* found : all) {
    for (auto& other : *found->mutable_node()) {
      for (std::string& name : *other.mutable_input()) {
        if (name == from) name = to;
      }
    }
    for (auto& output : *found->mutable_output()) {
      if (output.name() == from) output.set_name(to);
    }
  }
  // An output is a result of a node.
  std::set<std::string> results;
  for (const auto& other : main().node()) results.insert(other.output().begin(), other.output().end());
  for (const std::string& name : outputs()) {
    if (!results.contains(name)) fail({}, "'{}' is no result", name);
  }
}

void ReductionModel::drop_attribute(size_t graph, size_t node, const std::string& name) {
  if (node >= num_nodes(graph)) fail({}, "no such node");
  auto& attributes = *this->graph(graph).mutable_node(static_cast<int>(node))->mutable_attribute();
  erase_if(attributes, [&](const auto& attribute) { return attribute.name() == name; });
}

void ReductionModel::fix_symbols() {
  for (auto& input : *main().mutable_input()) {
    auto it = inputs_.find(input.name());
    if (it == inputs_.end() || !it->second.get_if<Tensor>()) continue;
    declare_shape(*input.mutable_type()->mutable_tensor_type(), it->second.tensor().shape());
  }
}

void ReductionModel::fix_symbol(const std::string& symbol) {
  for (auto& input : *main().mutable_input()) {
    auto it = inputs_.find(input.name());
    if (it == inputs_.end() || !it->second.get_if<Tensor>()) continue;
    const std::vector<int64_t>& shape = it->second.tensor().shape();
    auto& dims = *input.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim();
    for (int d = 0; d < dims.size() && d < static_cast<int>(shape.size()); ++d) {
      if (dims[d].dim_param() == symbol) dims[d].set_dim_value(shape[static_cast<size_t>(d)]);
    }
  }
}

std::set<std::string> ReductionModel::symbols() const {
  std::set<std::string> result;
  for (const auto& input : proto_.graph().input()) {
    for (const auto& dim : input.type().tensor_type().shape().dim()) {
      if (!dim.dim_param().empty()) result.insert(dim.dim_param());
    }
  }
  return result;
}

bool ReductionModel::has_symbols() const {
  for (const vm::ValueInfo& info : input_infos()) {
    if (!info.dims) return true;
    for (const vm::DimInfo& dim : *info.dims) {
      if (!dim.text.empty()) return true;
    }
  }
  return false;
}

onnx::TensorProto* ReductionModel::find_initializer(const std::string& name) {
  for (auto& tensor : *main().mutable_initializer()) {
    if (tensor.name() == name) return &tensor;
  }
  return nullptr;
}

void ReductionModel::set_tensor(const std::string& name, const Tensor& tensor) {
  if (onnx::TensorProto* constant = find_initializer(name)) {
    *constant = proto_of_tensor(tensor, {});
    constant->set_name(name);
  } else {
    inputs_[name] = tensor;
    ++edits_;
  }
}

void ReductionModel::shrink_dim(int64_t size, int64_t smaller) {
  std::vector<std::pair<std::string, Tensor>> changed;
  for (const auto& tensor : main().initializer()) {
    if (auto part = with_smaller(decode_tensor(tensor, {}), size, smaller)) changed.emplace_back(tensor.name(), *part);
  }
  for (const auto& [name, value] : inputs_) {
    if (!value.get_if<Tensor>()) continue;
    if (auto part = with_smaller(value.tensor(), size, smaller)) changed.emplace_back(name, *part);
  }
  for (const auto& [name, tensor] : changed) set_tensor(name, tensor);
  for (auto& input : *main().mutable_input()) {
    for (auto& dim : *input.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim()) {
      if (dim.dim_value() == size) dim.set_dim_value(smaller);
    }
  }
  strip();  // the declared types of inner values are no longer true
}

void ReductionModel::fill(const std::string& name, double number) {
  const onnx::TensorProto* constant = find_initializer(name);
  if (!constant && !inputs_.contains(name)) fail({}, "'{}' is gone", name);
  Tensor old = constant ? decode_tensor(*constant, {}) : inputs_.at(name).tensor();
  auto filled_with = [&](double value) {
    Tensor tensor = Tensor::empty(old.shape(), old.dtype());
    for (int64_t i = 0; i < tensor.size(); ++i) tensor.set_double(i, value);
    return tensor;
  };
  if (same_contents(old, filled_with(0)) || same_contents(old, filled_with(1))) fail({}, "'{}' is plain already", name);
  set_tensor(name, filled_with(number));
}

void ReductionModel::declare_outputs(const std::map<std::string, vm::Value>& values) {
  for (auto& output : *main().mutable_output()) {
    auto it = values.find(output.name());
    if (it == values.end() || !it->second.get_if<Tensor>()) continue;
    auto& type = *output.mutable_type()->mutable_tensor_type();
    type.set_elem_type(element_type_of_dtype(it->second.tensor().dtype()));
    if (!has_symbols()) declare_shape(type, it->second.tensor().shape());
  }
}

std::string ReductionModel::print() const {
  std::string text;
  for (const vm::ValueInfo& info : input_infos()) {
    text += "  input " + vm::to_string(info);
    auto it = inputs_.find(info.name);
    if (it != inputs_.end())
      text += ", given " + (it->second.get_if<Tensor>() ? print_tensor(it->second.tensor()) : describe(it->second));
    text += "\n";
  }
  for (const auto& tensor : proto_.graph().initializer())
    text += fmt::format("  constant {}: {}\n", tensor.name(), print_tensor(decode_tensor(tensor, {})));
  for (const auto& node : proto_.graph().node()) text += "  " + print_node(node) + "\n";
  return text + "  outputs " + joined(outputs()) + "\n";
}

}  // namespace relaxc::onnx_import
