// A model as it was read, before any pass: its nodes, and what its operators compute, each by itself in the
// interpreter.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/compile.h"
#include "frontend/onnx/model_parts.h"
#include "tools/observed.h"
#include "tools/values.h"

namespace relaxc::tools {

class PlainModel {
 public:
  PlainModel(std::string path, CompileSettings settings);
  // Gives it the inputs of the function, and reads the nodes of a model of ONNX, which a text does not have. This comes
  // before all questions below.
  void set_inputs(const std::string& function, const std::vector<vm::ValueInfo>& infos,
                  const std::vector<vm::Value>& inputs);

  // The model with its inputs; nullopt for a text, and where nodes cannot be run one by one.
  const std::optional<ModelCase>& onnx() const { return case_; }
  const std::vector<OnnxGraphNode>& nodes() const { return nodes_; }
  // Returns its place in nodes().
  std::optional<size_t> find_node(std::string_view name) const;
  // Returns the node of this name with its operator, else all nodes of a kernel, or the kernel of a text.
  std::string place_of(const std::string& nodes, const std::string& kernel = "") const;
  // Returns a line for each initializer with a NaN, else for each constant of the module that was made of the model:
  // "initializer 'w' has a NaN at [0, 3]". Infinities do not count: masks have them.
  std::vector<std::string> constants_with_nan(const IRModule& module) const;
  // Returns the node as a model; nullopt where that is not possible.
  std::optional<ModelCase> single(size_t node, const std::map<std::string, vm::Value>& values) const;

  // The operators run when one of these is called first.
  const ObservedRun& run();
  // Returns a value by its name in the model, or null.
  const vm::Value* find(const std::string& name);
  // Returns what a result of the model, the one at this place, should be.
  vm::Value result(const NamedValue& named, size_t place);
  // Returns the inputs and all known values by name, with these in place of its own.
  std::map<std::string, vm::Value> values_with(const std::map<std::string, Tensor>& others);

 private:
  void interpret(const CompileSettings& settings);

  std::string path_, function_;
  CompileSettings settings_;
  std::optional<ModelCase> case_;
  std::vector<OnnxGraphNode> nodes_;
  std::vector<vm::ValueInfo> infos_;
  std::vector<vm::Value> inputs_;
  std::map<std::string, vm::Value> named_inputs_;
  bool has_told_ = false;  // that a run of the operators takes long
  std::optional<ObservedRun> run_;
  std::vector<NamedValue> values_;  // the results of the run: of a model of ONNX those of all nodes
};

}  // namespace relaxc::tools
