// The inputs on which a model is calibrated, and the ranges of its values for them.
#pragma once
#include <CLI/CLI.hpp>

#include <map>
#include <string>
#include <vector>

#include "frontend/onnx/quantize_model.h"
#include "tools/inputs.h"

namespace relaxc::tools {

// The inputs of one run.
using CalibrationSample = std::vector<vm::Value>;

struct CalibrationOptions {
  const char* flag = "--calibrate";     // which gives `paths`, for messages
  std::vector<std::string> paths = {};  // files and folders
  int64_t random = 0;                   // so many samples at random
  double percentile = 100;              // of the elements that lie between the limits of a range
  void add_to(CLI::App& app);
  bool has_samples() const { return !paths.empty() || random > 0; }
  // Reads or makes the samples. A folder holds input_0.pb ..., folders of such, or a file for each sample. A .npy file
  // with more rows than one run takes is cut. `flags` give inputs that are the same for all samples.
  std::vector<CalibrationSample> samples(const std::vector<vm::ValueInfo>& inputs, const InputOptions& flags) const;
};

// Collects the ranges of values over several runs.
class RangeMeter {
 public:
  // A run's range leaves out the elements beyond the percentile, half of them at each end.
  explicit RangeMeter(double percentile) : percentile_(percentile) {}
  // Takes a value of a run; what is not float32 is passed over.
  void add(const std::string& name, const vm::Value& value);
  const std::map<std::string, ValueRange>& ranges() const { return ranges_; }

 private:
  double percentile_;
  std::map<std::string, ValueRange> ranges_;
};

}  // namespace relaxc::tools
