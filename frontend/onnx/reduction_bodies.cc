// Edits of a model that becomes smaller, for the branches and bodies of its nodes.
#include <algorithm>

#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/reduction_model.h"
#include "support/diagnostic.h"

namespace relaxc::onnx_import {

namespace {

const onnx::AttributeProto* attribute_of(const onnx::NodeProto& node, std::string_view name) {
  auto found = std::ranges::find(node.attribute(), name, &onnx::AttributeProto::name);
  return found == node.attribute().end() ? nullptr : &*found;
}

onnx::NodeProto node_of(const char* op_type, const std::vector<std::string>& inputs, const std::string& output) {
  onnx::NodeProto node;
  node.set_op_type(op_type);
  for (const std::string& name : inputs) node.add_input(name);
  node.add_output(output);
  return node;
}

// The nodes of one iteration in place of a node with a body.
class BodyOnce {
 public:
  // Adds to these nodes and constants.
  BodyOnce(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
           google::protobuf::RepeatedPtrField<onnx::TensorProto>& constants)
      : nodes_(nodes), constants_(constants) {}

  void branch(const onnx::GraphProto& body) { add(body); }

  void loop(const onnx::NodeProto& node, const onnx::GraphProto& body) {
    for (int k = 0; k < body.input_size(); ++k) {
      const std::string& name = body.input(k).name();
      if (k == 0) add_constant(name, onnx::TensorProto::INT64, 0);
      if (k == 1) add_constant(name, onnx::TensorProto::BOOL, 1);
      if (k > 1 && k < node.input_size()) *nodes_.Add() = node_of("Identity", {node.input(k)}, name);
    }
    add(body);
  }

  void scan(const onnx::NodeProto& node, const onnx::GraphProto& body) {
    const auto* count = attribute_of(node, "num_scan_inputs");
    const auto* axes = attribute_of(node, "scan_input_axes");
    const int carried = node.input_size() - static_cast<int>(count ? count->i() : 0);
    const std::string first = body.name() + "_first";
    add_constant(first, onnx::TensorProto::INT64, 0);
    for (int k = 0; k < std::min(body.input_size(), node.input_size()); ++k) {
      const std::string& name = body.input(k).name();
      onnx::NodeProto& input = *nodes_.Add();
      if (k < carried) {
        input = node_of("Identity", {node.input(k)}, name);
        continue;
      }
      input = node_of("Gather", {node.input(k), first}, name);
      onnx::AttributeProto& axis = *input.add_attribute();
      axis.set_name("axis"), axis.set_type(onnx::AttributeProto::INT);
      axis.set_i(axes && axes->ints_size() > k - carried ? axes->ints(k - carried) : 0);
    }
    add(body);
  }

 private:
  void add(const onnx::GraphProto& body) {
    nodes_.MergeFrom(body.node());
    constants_.MergeFrom(body.initializer());
  }
  void add_constant(const std::string& name, onnx::TensorProto::DataType dtype, int32_t number) {
    onnx::TensorProto& tensor = *constants_.Add();
    tensor.set_name(name);
    tensor.set_data_type(dtype);
    if (dtype == onnx::TensorProto::INT64) tensor.add_int64_data(number);
    if (dtype == onnx::TensorProto::BOOL) tensor.add_int32_data(number);
  }

  google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes_;
  google::protobuf::RepeatedPtrField<onnx::TensorProto>& constants_;
};

}  // namespace

void ReductionModel::run_bodies_once(const std::map<std::string, vm::Value>& values) {
  auto flag_of = [&](const std::string& name) -> std::optional<bool> {
    const onnx::TensorProto* constant = find_initializer(name);
    if (constant) return decode_tensor(*constant, {}).as_int(0) != 0;
    for (const auto* known : {&values, &std::as_const(inputs_)}) {
      auto it = known->find(name);
      if (it != known->end() && it->second.get_if<Tensor>() && it->second.tensor().size() == 1)
        return it->second.tensor().as_int(0) != 0;
    }
    return std::nullopt;
  };
  google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
  std::vector<std::string> replaced;
  BodyOnce once(nodes, *main().mutable_initializer());
  for (const auto& node : main().node()) {
    const std::string& type = node.op_type();
    std::optional<bool> taken = type == "If" ? flag_of(node.input(0)) : std::nullopt;
    const auto* body = attribute_of(node, taken ? (*taken ? "then_branch" : "else_branch") : "body");
    const bool is_loop = type == "Loop", is_scan = type == "Scan" && attribute_of(node, "num_scan_inputs");
    if (!body || !(taken || is_loop || is_scan)) {
      *nodes.Add() = node;
      continue;
    }
    if (taken) once.branch(body->g());
    if (is_loop) once.loop(node, body->g());
    if (is_scan) once.scan(node, body->g());
    replaced.insert(replaced.end(), node.output().begin(), node.output().end());
  }
  if (replaced.empty()) fail({}, "no body can run once");
  main().mutable_node()->Swap(&nodes);
  for (const std::string& name : replaced) {
    if (!name.empty()) add_recorded_input(name, values, NewDims::kNumbers, name);
  }
}

void ReductionModel::drop_inner_nodes(size_t index, size_t begin, size_t end,
                                      const std::map<std::string, vm::Value>& values, NewDims dims) {
  onnx::GraphProto& body = graph(index);
  auto& nodes = *body.mutable_node();
  std::set<std::string> dropped, read;
  bool computes = false;
  for (size_t i = begin; i < end; ++i) {
    const onnx::NodeProto& node = nodes[static_cast<int>(i)];
    dropped.insert(node.output().begin(), node.output().end());
    computes = computes || node.op_type() != "Identity";
  }
  if (!computes) fail({}, "only values that are passed on");
  nodes.DeleteSubrange(static_cast<int>(begin), static_cast<int>(end - begin));
  // An output of a body is a result of a node in it.
  for (const auto& output : body.output()) {
    if (!dropped.contains(output.name())) continue;
    const std::string input = output.name() + "_recorded";
    add_recorded_input(output.name(), values, dims, input);
    *nodes.Add() = node_of("Identity", {input}, output.name());
    std::rotate(nodes.begin(), nodes.end() - 1, nodes.end());
    dropped.erase(output.name());
  }
  for (const auto& node : nodes) {
    for (const std::string& name : names_read(node)) read.insert(name);
  }
  for (const std::string& name : dropped) {
    if (!name.empty() && read.contains(name)) add_recorded_input(name, values, dims, name);
  }
}

}  // namespace relaxc::onnx_import
