// The main graph of a model that is being quantized: who makes and who reads its values, its constants, and new nodes
// and constants.
#pragma once
#include <onnx/onnx_pb.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "vm/tensor.h"

namespace relaxc::onnx_import {

// Returns an integer attribute of a node.
int64_t int_attribute(const onnx::NodeProto& node, const std::string& name, int64_t otherwise);
double float_attribute(const onnx::NodeProto& node, const std::string& name, double otherwise);

class QuantizationGraph {
 public:
  // Parses the model; Constant nodes become initializers, as do copies of initializers and transposed ones, and a
  // BatchNormalization becomes part of the convolution before it. Throws a CompileError for bytes that are not a model.
  explicit QuantizationGraph(const std::string& model);

  // ---- The model as it is

  const onnx::ModelProto& proto() const { return proto_; }
  const std::vector<onnx::NodeProto>& nodes() const { return nodes_; }
  // Returns what messages call the node at this place.
  std::string name_of(size_t node) const;
  // Returns whether the domain of the node is ONNX's.
  static bool is_standard(const onnx::NodeProto& node);
  // Returns the value of a constant; null for other values, and for a constant that cannot be read.
  const Tensor* constant(const std::string& name) const;
  bool is_output(const std::string& name) const { return outputs_.contains(name); }
  // Returns whether it may hold floats: what is computed from shapes and indices does not.
  bool is_float(const std::string& name) const { return floats_.contains(name); }
  // Returns the places of the nodes that read a value. A graph within a node may read it, too.
  const std::vector<size_t>& readers(const std::string& name) const;
  // Returns the place of the only reader of a value that is not a result of the graph.
  std::optional<size_t> only_reader(const std::string& name) const;

  // ---- The new model

  // Returns the name, with a number if it is taken, and takes it.
  std::string new_name(const std::string& wanted);
  std::string add_constant(const std::string& wanted, const Tensor& tensor);
  onnx::NodeProto& add_node(const std::string& op_type, const std::vector<std::string>& inputs,
                            const std::string& output);
  onnx::NodeProto& add_copy(const onnx::NodeProto& node);
  // Returns the model of the added nodes, with the constants that they read.
  onnx::ModelProto finished() &&;

 private:
  void hoist_constants();
  void fold_copies_of_constants();
  void fold_batch_normalizations();
  bool fold(const onnx::NodeProto& normalization, onnx::NodeProto& convolution);
  void index();
  void index_floats();

  onnx::ModelProto proto_;
  std::vector<onnx::NodeProto> nodes_;
  std::map<std::string, onnx::TensorProto> constants_;
  mutable std::map<std::string, Tensor> decoded_;
  std::set<std::string> outputs_, names_, floats_;
  std::map<std::string, std::vector<size_t>> readers_;
  std::vector<onnx::NodeProto> added_;
};

}  // namespace relaxc::onnx_import
