#include "frontend/onnx/quantization_graph.h"

#include <cmath>

#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/model_file.h"
#include "support/diagnostic.h"
#include "support/lists.h"
#include "support/version.h"

namespace relaxc::onnx_import {

namespace {

const onnx::AttributeProto* find_attribute(const onnx::NodeProto& node, const std::string& name) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

bool is_float_type(int element_type) {
  return element_type == onnx::TensorProto::FLOAT || element_type == onnx::TensorProto::FLOAT16 ||
         element_type == onnx::TensorProto::DOUBLE || element_type == onnx::TensorProto::BFLOAT16;
}

// Returns whether the node gives floats, where its inputs do not tell; nullopt where they do.
std::optional<bool> gives_floats(const onnx::NodeProto& node) {
  static const std::set<std::string> kIntegers = {"Shape", "Size", "NonZero", "ArgMax",  "ArgMin",
                                                  "Equal", "Less", "Not",     "Greater", "LessOrEqual",
                                                  "And",   "Or",   "IsNaN"};
  if (kIntegers.contains(node.op_type())) return false;
  const onnx::AttributeProto* type = find_attribute(node, node.op_type() == "Cast" ? "to" : "dtype");
  if (type) return is_float_type(static_cast<int>(type->i()));
  if (node.op_type() != "ConstantOfShape") return std::nullopt;
  const onnx::AttributeProto* value = find_attribute(node, "value");
  return !value || is_float_type(value->t().data_type());
}

// Returns whether a Transpose of a matrix exchanges its axes.
bool exchanges_axes(const onnx::NodeProto& node) {
  const onnx::AttributeProto* order = find_attribute(node, "perm");
  return !order || (order->ints_size() == 2 && order->ints(0) == 1);
}
Tensor transposed(const Tensor& matrix) {
  const int64_t rows = matrix.shape()[0], columns = matrix.shape()[1];
  Tensor result = Tensor::empty({columns, rows}, kFloat32);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) result.data<float>()[j * rows + i] = matrix.data<float>()[i * columns + j];
  }
  return result;
}

}  // namespace

int64_t int_attribute(const onnx::NodeProto& node, const std::string& name, int64_t otherwise) {
  const onnx::AttributeProto* attribute = find_attribute(node, name);
  return attribute ? attribute->i() : otherwise;
}
double float_attribute(const onnx::NodeProto& node, const std::string& name, double otherwise) {
  const onnx::AttributeProto* attribute = find_attribute(node, name);
  return attribute ? attribute->f() : otherwise;
}

QuantizationGraph::QuantizationGraph(const std::string& model) {
  if (!proto_.ParseFromString(model) || !proto_.has_graph()) fail({}, "not an ONNX model");
  nodes_.assign(proto_.graph().node().begin(), proto_.graph().node().end());
  for (const onnx::TensorProto& tensor : proto_.graph().initializer()) constants_[tensor.name()] = tensor;
  proto_.mutable_graph()->clear_node();
  proto_.mutable_graph()->clear_initializer();
  hoist_constants();
  index();
  fold_copies_of_constants();
  index();
  fold_batch_normalizations();
  index();
  index_floats();
}

void QuantizationGraph::hoist_constants() {
  std::erase_if(nodes_, [&](const onnx::NodeProto& node) {
    const onnx::AttributeProto* value = find_attribute(node, "value");
    if (node.op_type() != "Constant" || !is_standard(node) || !value) return false;
    onnx::TensorProto& tensor = constants_[node.output(0)];
    tensor = value->t();
    tensor.set_name(node.output(0));
    return true;
  });
}

// Exporters write one of several equal weights, and an Identity for each of the others; some leave a Transpose there.
void QuantizationGraph::fold_copies_of_constants() {
  std::map<std::string, std::string> originals;  // of copies
  std::set<std::string> folded;
  for (onnx::NodeProto& node : nodes_) {
    for (std::string& input : *node.mutable_input()) {
      if (const std::string* original = find_value(originals, input)) input = *original;
    }
    const bool is_of_constant = is_standard(node) && node.input_size() == 1 && constants_.contains(node.input(0));
    if (!is_of_constant || is_output(node.output(0))) continue;
    if (node.op_type() == "Identity") {
      originals.emplace(node.output(0), node.input(0));
      folded.insert(node.output(0));
    } else if (node.op_type() == "Transpose" && exchanges_axes(node)) {
      const Tensor* matrix = constant(node.input(0));
      if (!matrix || matrix->ndim() != 2 || matrix->dtype() != kFloat32) continue;
      onnx::TensorProto& proto = constants_[node.output(0)];
      proto = proto_of_tensor(transposed(*matrix), {});
      proto.set_name(node.output(0));
      folded.insert(node.output(0));
    }
  }
  index();
  // A graph within a node may read a copy by its name.
  std::erase_if(nodes_, [&](const onnx::NodeProto& node) {
    return folded.contains(node.output(0)) && (node.op_type() == "Transpose" || readers(node.output(0)).empty());
  });
}

void QuantizationGraph::index() {
  readers_.clear(), outputs_.clear();
  for (const auto& output : proto_.graph().output()) outputs_.insert(output.name());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (const std::string& name : names_read(nodes_[i])) {
      readers_[name].push_back(i);
      names_.insert(name);
    }
    names_.insert(nodes_[i].output().begin(), nodes_[i].output().end());
  }
  for (const auto& input : proto_.graph().input()) names_.insert(input.name());
  for (const auto& [name, tensor] : constants_) names_.insert(name);
}

void QuantizationGraph::index_floats() {
  for (const auto& input : proto_.graph().input()) {
    if (is_float_type(input.type().tensor_type().elem_type())) floats_.insert(input.name());
  }
  for (const auto& [name, tensor] : constants_) {
    if (is_float_type(tensor.data_type())) floats_.insert(name);
  }
  for (const onnx::NodeProto& node : nodes_) {
    const bool gives = gives_floats(node).value_or(
        std::ranges::any_of(names_read(node), [&](const auto& name) { return is_float(name); }));
    if (gives) floats_.insert(node.output().begin(), node.output().end());
  }
}

std::string QuantizationGraph::name_of(size_t node) const {
  return name_of_node(nodes_[node], static_cast<int64_t>(node), "");
}

bool QuantizationGraph::is_standard(const onnx::NodeProto& node) { return domain_of(node.domain()).empty(); }

const Tensor* QuantizationGraph::constant(const std::string& name) const {
  if (const Tensor* tensor = find_value(decoded_, name)) return tensor;
  const onnx::TensorProto* proto = find_value(constants_, name);
  if (!proto) return nullptr;
  return &decoded_.emplace(name, decode_tensor(*proto, {})).first->second;
}

const std::vector<size_t>& QuantizationGraph::readers(const std::string& name) const {
  static const std::vector<size_t> kNone;
  const auto* found = find_value(readers_, name);
  return found ? *found : kNone;
}

std::optional<size_t> QuantizationGraph::only_reader(const std::string& name) const {
  if (is_output(name) || readers(name).size() != 1) return std::nullopt;
  return readers(name)[0];
}

// ---- Batch normalization

// Puts the affine map of each channel, with the running mean and variance, into the weight and bias of the convolution.
bool QuantizationGraph::fold(const onnx::NodeProto& normalization, onnx::NodeProto& convolution) {
  if (convolution.op_type() != "Conv" || normalization.input_size() < 5 || normalization.output_size() > 1 ||
      int_attribute(normalization, "training_mode", 0) != 0)
    return false;
  const Tensor* weight = constant(convolution.input(1));
  const bool has_bias = convolution.input_size() > 2 && !convolution.input(2).empty();
  const Tensor* bias = has_bias ? constant(convolution.input(2)) : nullptr;
  if (!weight || weight->dtype() != kFloat32 || weight->ndim() < 1 || (has_bias && !bias)) return false;
  std::vector<const Tensor*> params;
  for (int i = 1; i < 5; ++i) params.push_back(constant(normalization.input(i)));
  const int64_t channels = weight->shape()[0];
  if (has_bias) params.push_back(bias);
  auto fits = [&](const Tensor* param) { return param && param->dtype() == kFloat32 && param->size() == channels; };
  if (!std::ranges::all_of(params, fits)) return false;
  const double epsilon = float_attribute(normalization, "epsilon", 1e-5);
  Tensor folded = Tensor::copy_of(weight->shape(), kFloat32, weight->raw());
  Tensor folded_bias = Tensor::empty({channels}, kFloat32);
  const int64_t each = channels == 0 ? 0 : weight->size() / channels;
  for (int64_t c = 0; c < channels; ++c) {
    const double scale = params[0]->as_double(c) / std::sqrt(params[3]->as_double(c) + epsilon);
    for (int64_t i = c * each; i < (c + 1) * each; ++i) folded.set_double(i, weight->as_double(i) * scale);
    const double before = (has_bias ? bias->as_double(c) : 0) - params[2]->as_double(c);
    folded_bias.set_double(c, params[1]->as_double(c) + before * scale);
  }
  convolution.set_input(1, add_constant(convolution.input(1) + "_folded", folded));
  while (convolution.input_size() < 3) convolution.add_input("");
  convolution.set_input(2, add_constant(normalization.input(2) + "_folded", folded_bias));
  convolution.set_output(0, normalization.output(0));
  return true;
}

void QuantizationGraph::fold_batch_normalizations() {
  std::map<std::string, size_t> makers;
  std::set<std::string> gone;  // values that the removed nodes made
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const onnx::NodeProto& node = nodes_[i];
    const bool is_normalization = node.op_type() == "BatchNormalization" && is_standard(node);
    const size_t* maker = is_normalization ? find_value(makers, node.input(0)) : nullptr;
    const bool folds =
        maker && only_reader(node.input(0)) == i && is_standard(nodes_[*maker]) && fold(node, nodes_[*maker]);
    if (folds) gone.insert(node.output(0));
    for (const std::string& output : node.output()) makers[output] = folds ? *maker : i;
  }
  std::erase_if(nodes_, [&](const onnx::NodeProto& node) {
    return node.op_type() == "BatchNormalization" && is_standard(node) && gone.contains(node.output(0));
  });
}

// ---- The new model

std::string QuantizationGraph::new_name(const std::string& wanted) {
  std::string name = wanted;
  for (int i = 1; !names_.insert(name).second; ++i) name = fmt::format("{}_{}", wanted, i);
  return name;
}

std::string QuantizationGraph::add_constant(const std::string& wanted, const Tensor& tensor) {
  const std::string name = new_name(wanted);
  onnx::TensorProto& proto = constants_[name];
  proto = proto_of_tensor(tensor, {});
  proto.set_name(name);
  return name;
}

onnx::NodeProto& QuantizationGraph::add_node(const std::string& op_type, const std::vector<std::string>& inputs,
                                             const std::string& output) {
  onnx::NodeProto& node = added_.emplace_back();
  node.set_op_type(op_type);
  node.set_name(output + "_" + op_type);
  node.mutable_input()->Add(inputs.begin(), inputs.end());
  node.add_output(output);
  return node;
}

onnx::NodeProto& QuantizationGraph::add_copy(const onnx::NodeProto& node) { return added_.emplace_back(node); }

onnx::ModelProto QuantizationGraph::finished() && {
  onnx::GraphProto& graph = *proto_.mutable_graph();
  std::set<std::string> read(outputs_), made;
  for (const onnx::NodeProto& node : added_) {
    for (const std::string& name : names_read(node)) read.insert(name);
    made.insert(node.output().begin(), node.output().end());
    *graph.add_node() = node;
  }
  for (auto& [name, tensor] : constants_) {
    if (read.contains(name)) *graph.add_initializer() = std::move(tensor);
  }
  auto drop = [](auto& values, const auto& is_gone) {
    for (int i = values.size(); i-- > 0;) {
      if (is_gone(values[i].name())) values.DeleteSubrange(i, 1);
    }
  };
  // Old models declare constants as inputs, too.
  drop(*graph.mutable_input(),
       [&](const std::string& name) { return constants_.contains(name) && !read.contains(name); });
  drop(*graph.mutable_value_info(), [&](const std::string& name) { return !made.contains(name); });
  proto_.set_producer_name("relaxc");
  proto_.set_producer_version(kVersion);
  return std::move(proto_);
}

}  // namespace relaxc::onnx_import
