#include "frontend/onnx/model_parts.h"

#include <algorithm>

#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/model_file.h"
#include "frontend/onnx/reduction_model.h"
#include "support/diagnostic.h"

namespace relaxc {

namespace {

onnx::ModelProto parse_onnx(const std::string& model) {
  onnx::ModelProto proto;
  if (!proto.ParseFromString(model)) fail({}, "not an ONNX model");
  return proto;
}

}  // namespace

std::vector<OnnxGraphNode> nodes_of_onnx(const std::string& model) {
  const onnx::ModelProto proto = parse_onnx(model);
  std::vector<OnnxGraphNode> nodes;
  for (const onnx::NodeProto& node : proto.graph().node()) {
    OnnxGraphNode added{.name = onnx_import::name_of_node(node, std::ssize(nodes), ""),
                        .op_type = onnx_import::operator_of_node(node),
                        .inputs = onnx_import::names_read(node),
                        .outputs = {}};
    std::ranges::copy_if(node.output(), std::back_inserter(added.outputs),
                         [](const std::string& name) { return !name.empty(); });
    nodes.push_back(std::move(added));
  }
  return nodes;
}

std::map<std::string, Tensor> initializers_of_onnx(const std::string& model) {
  const onnx::ModelProto proto = parse_onnx(model);
  std::map<std::string, Tensor> result;
  for (const onnx::TensorProto& tensor : proto.graph().initializer())
    result.emplace(tensor.name(), onnx_import::decode_tensor(tensor, {}));
  return result;
}

std::string with_all_results(const std::string& model) {
  onnx_import::ReductionModel shown(ModelCase{model, {}});
  shown.show_results(shown.num_nodes());
  return shown.to_case().model;
}

std::string with_results(const std::string& model, const std::vector<std::string>& names) {
  onnx_import::ReductionModel shown(ModelCase{model, {}});
  std::vector<std::string> all = shown.outputs();
  all.insert(all.end(), names.begin(), names.end());
  shown.set_outputs(all);
  return shown.to_case().model;
}

ModelCase single_node(const ModelCase& model, size_t node, const std::map<std::string, vm::Value>& values) {
  onnx_import::ReductionModel part(model);
  part.strip();
  const std::vector<std::string> outputs = nodes_of_onnx(model.model).at(node).outputs;
  part.set_outputs(outputs);
  part.keep_first(node + 1);  // which makes outputs of what later nodes read
  part.set_outputs(outputs);
  part.drop_nodes(0, node, values, onnx_import::NewDims::kNumbers);
  part.declare_outputs(values);
  return part.to_case();
}

}  // namespace relaxc
