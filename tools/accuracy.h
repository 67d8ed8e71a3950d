// How far the results of a model in fewer bits are from those of the model that it was made from.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "tools/calibration.h"
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

// How far a result is from that of the exact model, over all samples.
class ResultError {
 public:
  void add(const std::string& name, const Tensor& exact, const Tensor& actual);
  // The root mean square of the difference, relative to that of the exact result, over the elements that are finite in
  // both; infinity where an element is finite in one of them alone, or a NaN in one and an infinity in the other.
  double relative() const;
  std::string text() const;

 private:
  // How many elements are a NaN or an infinity.
  struct NotFinite {
    int64_t nans = 0, infinities = 0;
    void add(double value);
    std::string text() const;
  };
  double relative_of_finite() const;
  std::string not_finite_text() const;
  void add_classes(const Tensor& exact, const Tensor& actual);
  double squares_ = 0, actual_squares_ = 0, products_ = 0, error_ = 0, largest_ = 0;
  int64_t elements_ = 0, compared_ = 0, parted_ = 0;  // parted: not finite, and not the same in both
  NotFinite exact_not_finite_, actual_not_finite_;
  int64_t rows_ = 0, same_ = 0;
};

// The errors of all results that are floats.
class ResultErrors {
 public:
  // Takes the results of a run; further ones of the second list are passed over.
  void add(const std::vector<NamedValue>& exact, const std::vector<NamedValue>& actual);
  void print(size_t num_samples) const;
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
