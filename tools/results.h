// What a run prints and writes of its results. It needs the runtime only.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "tools/values.h"

namespace relaxc::tools {

struct ResultOptions {
  std::string output_dir, format = "npy";  // "-": the only result to standard output, which then has nothing else
  int64_t top = 0;                         // 0: none
  std::string labels;                      // a file
  // Write messages of ONNX, where the program can.
  std::function<void(const std::string& path, const Tensor& tensor, const std::string& name)> tensor_pb = nullptr;
  std::function<void(const std::string& path, const NamedValue& value)> value_pb = nullptr;
  void add_to(CLI::App& app);
  // Throws where a result cannot be written, or would replace one of these files. Lines for a person go to standard
  // error from then on where standard output is to have the result.
  void check(const std::vector<std::string>& inputs) const;
};

// Prints a summary of each result of the function, and writes them to the folder. Throws a UsageError where there is
// not one result for the file.
void show_results(const std::vector<NamedValue>& results, const std::string& function, const ResultOptions& options);

}  // namespace relaxc::tools
