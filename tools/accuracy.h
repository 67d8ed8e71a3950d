// How far the results of a model in fewer bits are from those of the model that it was made from.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "tools/calibration.h"
#include "tools/result_error.h"
#include "tools/results.h"
#include "tools/tool.h"
#include "vm/program.h"

namespace relaxc::tools {

// A model that runs in this process, on the bytes of a file of this name.
class RunningModel {
 public:
  RunningModel(const std::string& name, const std::string& bytes, CompileSettings settings, int threads);
  const std::vector<vm::ValueInfo>& inputs() const { return program_.inputs(); }
  std::vector<NamedValue> run(const CalibrationSample& sample);

 private:
  Program program_;
  Session session_;
};

// The errors of all results that are floats, and of the parts of those that are complex.
class ResultErrors {
 public:
  // Takes the results of a run; further ones of the second list are passed over.
  void add(const std::vector<NamedValue>& exact, const std::vector<NamedValue>& actual);
  // Returns a line about each.
  std::string text(size_t num_samples) const;
  // Returns the results with the greatest errors, the worst first.
  std::vector<std::pair<std::string, double>> worst(size_t count) const;

 private:
  std::vector<std::pair<std::string, ResultError>> errors_;  // in the order of the results
};

// Compares the model at the precision of the compiler's options with the one in float32: prints the error of each
// output, and the convolutions and products of an ONNX model whose values are the furthest from those in float32.
// `samples` makes the inputs of the runs.
using MakeSamples = std::function<std::vector<CalibrationSample>(const std::vector<vm::ValueInfo>& inputs)>;
void report_accuracy(const std::string& model, const CompilerOptions& compiler, int threads,
                     const MakeSamples& samples);

}  // namespace relaxc::tools
