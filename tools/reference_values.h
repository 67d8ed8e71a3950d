// Values that another program computed, for `relaxc debug`: inputs and results by position, and values of a model by
// name.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "tools/tool.h"

namespace relaxc::tools {

struct ReferenceValues {
  std::string folder;                            // with input_N.pb and output_N.pb; "": none
  std::map<std::string, Tensor> named;           // by the name of the value in the model
  bool has_inputs = false, has_outputs = false;  // by position

  bool empty() const { return named.empty() && !has_outputs; }
  // Returns the inputs: those by position, else those by name, and what the flags give for the others.
  std::vector<vm::Value> inputs(const std::vector<vm::ValueInfo>& infos, const InputOptions& flags) const;
  // Returns the inputs that no flag gives: without a reference they get random values.
  std::vector<vm::ValueInfo> drawn(const std::vector<vm::ValueInfo>& infos, const InputOptions& flags) const;
  // Throws a CompileError where none of the named values is one of these of the model, and notes single ones.
  void check_names(const std::vector<vm::ValueInfo>& infos, const std::vector<std::string>& values) const;
  // Returns a value for each of the results that has one: by position (the first `num_own`), else by name.
  std::vector<std::optional<vm::Value>> outputs(const std::vector<NamedValue>& results, size_t num_own) const;
  // Converts the value of this name to the dtype of what was computed, where both are floats, and notes it.
  void fit_floats(const std::string& name, const vm::Value& actual);
};
// Reads archives (.npz), and folders: input_N.pb and output_N.pb of test data, and NAME.npy, where a name with '/' is a
// file in folders of it. Throws a CompileError for a path without any value.
ReferenceValues read_reference_values(const std::vector<std::string>& paths);

}  // namespace relaxc::tools
