// Shrinks an ONNX model that fails to a small one that fails in the same way. The idea is delta debugging (Zeller and
// Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002), with steps that know what a graph is: a value
// that was recorded in a run can stand for the nodes that compute it.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "vm/executable.h"

namespace relaxc {

// A model with values for its inputs.
struct ModelCase {
  std::string model;  // the bytes of the message
  std::map<std::string, vm::Value> inputs;
};

// Reads a model with its external data. Throws a CompileError when it is not one, or exceeds protobuf's limit of 2 GB.
ModelCase read_model_case(const std::string& path);
// Returns the inputs that a run needs, in order, as far as the model declares them, and the outputs' names.
std::vector<vm::ValueInfo> inputs_of_onnx(const std::string& model);
std::vector<std::string> outputs_of_onnx(const std::string& model);
// Returns a line for each input, constant, node and output.
std::string print_onnx(const ModelCase& model);

// The questions of a reduction. A candidate may be an invalid model: it then fails in another way than the original.
struct ReductionJudge {
  std::function<bool(const ModelCase&)> fails;  // as the original does
  // Returns the values of outputs by name; none where the model does not run. Null: nothing can be recorded.
  std::function<std::map<std::string, vm::Value>(const ModelCase&)> record;
  std::function<void(const std::string&)> report = [](const std::string&) {};  // is called for each step that helped
  bool keeps_outputs = false;  // only these have expected values: no step may change what is right for them
};

// Cuts outputs, nodes, inputs, weights, attributes, dims and numbers away while the model fails. The original must.
ModelCase reduce_onnx(ModelCase original, const ReductionJudge& judge);

}  // namespace relaxc
