// A model in memory that becomes smaller by edits, for onnx/reduce.h. An edit that is not possible throws a
// CompileError and may leave the model half changed: it is made on a copy.
#pragma once
#include <onnx/onnx_pb.h>

#include <set>

#include "frontend/onnx/reduce.h"

namespace relaxc::onnx_import {

// The dims of an input that stands for nodes, where no other input has a symbolic dim of that size: their numbers, or
// symbolic dims, for a failure that numbers hide.
enum class NewDims { kNumbers, kSymbols };

class ReductionModel {
 public:
  explicit ReductionModel(ModelCase model);
  static ReductionModel read(const std::string& path);
  ModelCase to_case() const;
  std::string print() const;
  size_t bytes() const { return proto_.ByteSizeLong(); }
  bool same_as(const ReductionModel& other) const;

  // Graph 0 is the main one, the others are branches and bodies within nodes.
  size_t num_graphs() const { return graphs().size(); }
  size_t num_nodes(size_t graph = 0) const;
  size_t num_operands(size_t graph, size_t node) const;
  std::vector<std::string> attributes(size_t graph, size_t node) const;
  std::vector<std::string> outputs() const;
  std::vector<vm::ValueInfo> input_infos() const;
  std::vector<std::string> tensors() const;  // inputs and constants that hold floats
  std::set<int64_t> sizes() const;           // of their dims, those above 1
  bool has_symbols() const;

  // Takes away what does not change the meaning: texts for people, and types of inner values.
  void strip();
  // Takes away what the outputs do not need.
  void prune();
  void set_outputs(const std::vector<std::string>& names);
  // Keeps the first nodes, so many. Their results that the other nodes read become the outputs.
  void keep_first(size_t count);
  // Keeps so many nodes, and makes all of their results that can be tensors outputs.
  void show_results(size_t count);
  // Takes nodes away; the values of their results become inputs.
  void drop_nodes(size_t begin, size_t end, const std::map<std::string, vm::Value>& values, NewDims dims);
  // Takes nodes of a branch or body away; values of the first iteration, which become inputs of the model, stand for
  // their results in each.
  void drop_inner_nodes(size_t graph, size_t begin, size_t end, const std::map<std::string, vm::Value>& values,
                        NewDims dims);
  // Puts the branches that are taken and the first iterations of loops in the place of their nodes, so that a run shows
  // the values within. `values` are those of the results of the main graph's nodes.
  void run_bodies_once(const std::map<std::string, vm::Value>& values);
  // Puts the operand in the place of the node's first result.
  void bypass(size_t graph, size_t node, size_t operand);
  void drop_attribute(size_t graph, size_t node, const std::string& name);
  // Declares the inputs with the dims of their values, or those dims that have this name.
  void fix_symbols();
  void fix_symbol(const std::string& symbol);
  std::set<std::string> symbols() const;
  // Cuts every dim of this size, and numbers of this size in small lists of integers.
  void shrink_dim(int64_t size, int64_t smaller);
  // Sets all elements of an input or a constant.
  void fill(const std::string& name, double number);
  // Declares the types of outputs, whose values these are.
  void declare_outputs(const std::map<std::string, vm::Value>& values);

 private:
  std::vector<const onnx::GraphProto*> graphs() const;
  onnx::GraphProto& graph(size_t index);
  onnx::GraphProto& main() { return *proto_.mutable_graph(); }
  onnx::TensorProto* find_initializer(const std::string& name);
  void set_tensor(const std::string& name, const Tensor& tensor);
  void add_input(const std::string& name, const vm::Value& value, NewDims dims);
  void add_recorded_input(const std::string& name, const std::map<std::string, vm::Value>& values, NewDims dims,
                          const std::string& input);

  onnx::ModelProto proto_;
  std::map<std::string, vm::Value> inputs_;
  int edits_ = 0;  // of the inputs' values
};

}  // namespace relaxc::onnx_import
