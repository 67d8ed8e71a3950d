// What `relaxc debug` leaves behind: a folder with the smallest case that shows the fault, and the command to run.
#pragma once
#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "frontend/onnx/reduce.h"
#include "tools/compare.h"
#include "tools/tool.h"

namespace relaxc::tools {

class Reproducer {
 public:
  explicit Reproducer(std::string folder) : folder_(std::move(folder)) {}

  // Prints a line of the finding, and keeps it for the folder.
  template <class... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) {
    add_line(fmt::format(format, std::forward<Args>(args)...));
  }

  // Makes the folder when it is first asked for. Where that is not possible, it is a new one for temporary files.
  const std::string& folder();

  // Writes model.onnx; its inputs, and its results where `results` has them, become test data in test_data_set_0.
  void write_case(const ModelCase& model, const std::map<std::string, vm::Value>& results);
  // Writes a tensor program as a text, and the tensors that it reads, in the order of its buffers, as .npy files.
  void write_kernel(const std::string& name, const PrimFuncRef& program, const std::vector<Tensor>& tensors,
                    const std::string& flags);
  // Shrinks a model whose machine code and whose operators in the interpreter have different results under these
  // settings (onnx/reduce.h), for a minute at most, and writes it. Writes nothing where they do not differ.
  void write_reduced(const ModelCase& model, const CompileSettings& settings, const Closeness& closeness,
                     const std::string& flags);
  // Writes all lines to report.txt.
  void write();

 private:
  void add_line(const std::string& line);

  std::string folder_, lines_;
  bool is_made_ = false;
};

// Returns whether machine code and the operators in the interpreter have different results; false where one of them
// does not run.
bool differs_from_operators(const ModelCase& model, const CompileSettings& settings, const Closeness& closeness);

// Returns the results of the operators in the interpreter by name; none where they do not run.
std::map<std::string, vm::Value> results_of_operators(const ModelCase& model, const CompileSettings& settings);

}  // namespace relaxc::tools
