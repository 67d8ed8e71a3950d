// An ONNX model node by node, for a search of the first one that is wrong: the values of all nodes, and one by itself.
#pragma once
#include "frontend/onnx/reduce.h"

namespace relaxc {

// A node of the main graph.
struct OnnxGraphNode {
  std::string name, op_type;         // as messages and kernels name it (Span)
  std::vector<std::string> inputs;   // the values that it and the graphs in it read
  std::vector<std::string> outputs;  // without those that are left out
};
// Returns the nodes in the model's order, which is one in which they can run.
std::vector<OnnxGraphNode> nodes_of_onnx(const std::string& model);
// Returns the initializers of the main graph by name.
std::map<std::string, Tensor> initializers_of_onnx(const std::string& model);

// Returns the model with the result of each node that can be a tensor as an output, and no others.
std::string with_all_results(const std::string& model);
// Returns the model with these values of nodes as outputs behind its own.
std::string with_results(const std::string& model, const std::vector<std::string>& names);
// Returns the model of this node by itself (its place in nodes_of_onnx). The values that other nodes compute for it
// become inputs. Throws a CompileError where one of them has no value among `values`.
ModelCase single_node(const ModelCase& model, size_t node, const std::map<std::string, vm::Value>& values);

}  // namespace relaxc
