#include "tools/calibration.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "support/diagnostic.h"
#include "support/file_kind.h"
#include "tools/tool.h"
#include "vm/npy.h"

namespace relaxc::tools {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostRandom = 10'000;
constexpr int64_t kRowsOfRun = 32;  // of a file with many samples, where the model takes any number

void add_samples(std::vector<CalibrationSample>& samples, std::vector<CalibrationSample> more) {
  std::ranges::move(more, std::back_inserter(samples));
}

Tensor cut_rows(const Tensor& tensor, int64_t begin, int64_t end) {
  std::vector<int64_t> shape = tensor.shape();
  const int64_t row = shape[0] == 0 ? 0 : tensor.bytes() / shape[0];
  shape[0] = end - begin;
  return Tensor::copy_of(std::move(shape), tensor.dtype(), static_cast<const char*>(tensor.raw()) + begin * row);
}

// Cuts the rows of a tensor for the only input of a model.
std::vector<Tensor> runs_of(const Tensor& tensor, const vm::ValueInfo& input) {
  const bool has_rows = tensor.ndim() > 0 && input.dims && std::ssize(*input.dims) == tensor.ndim();
  if (!has_rows || tensor.dtype().is_packed() || tensor.dtype().is_string()) return {tensor};
  const int64_t declared = (*input.dims)[0].value, rows = tensor.shape()[0];
  const int64_t each = declared > 0 ? declared : kRowsOfRun;
  if (rows <= each || (declared > 0 && rows % declared != 0)) return {tensor};
  std::vector<Tensor> runs;
  for (int64_t begin = 0; begin < rows; begin += each)
    runs.push_back(cut_rows(tensor, begin, std::min(rows, begin + each)));
  return runs;
}

// Reads the samples in files and folders.
class SampleReader {
 public:
  SampleReader(const char* flag, const std::vector<vm::ValueInfo>& inputs, const InputOptions& flags)
      : flag_(flag), inputs_(inputs), flags_(flags) {}

  std::vector<CalibrationSample> read(const std::string& path) const {
    if (fs::is_directory(path)) return read_folder(path);
    if (!fs::exists(path)) fail({}, "{} '{}': there is no such file or folder", flag_, path);
    check_kind(path);
    try {
      return read_file(path);
    } catch (const CompileError& error) {
      const std::string& message = error.diagnostics().front().message;
      if (message.find(path) != std::string::npos) throw;
      fail({}, "{} '{}': {}", flag_, path, message);
    }
  }

 private:
  void check_kind(const std::string& path) const {
    const auto content = content_of_file(path);
    if (content && content->kind != ContentKind::kArray && !is_picture(path))
      fail({}, "{} '{}': expected samples (.npz, .npy, an image or a folder of them); it is {}", flag_, path,
           content->what);
  }

  std::vector<CalibrationSample> read_file(const std::string& path) const {
    if (path.ends_with(".npy") && inputs_.size() == 1) return read_rows(path);
    InputOptions flags = flags_;
    flags.named.push_back(path);
    if (!is_picture(path)) flags.picture = {};  // other samples may be images
    return {flags.make(inputs_)};
  }

  std::vector<CalibrationSample> read_folder(const std::string& path) const {
    if (fs::exists(path + "/input_0.pb")) {
      CalibrationSample sample = read_inputs(path, inputs_);
      if (sample.size() != inputs_.size())
        fail({}, "{} '{}': the folder has {} inputs, the model {}", flag_, path, sample.size(), inputs_.size());
      return {std::move(sample)};
    }
    std::vector<std::string> entries;
    for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
      const bool is_data_set = entry.is_directory() && fs::exists(entry.path() / "input_0.pb");
      const std::string extension = entry.path().extension().string();
      const bool is_sample = extension == ".npy" || extension == ".npz" || is_picture(entry.path().string());
      if (is_data_set || is_sample) entries.push_back(entry.path().string());
    }
    std::ranges::sort(entries);
    if (entries.empty())
      fail({}, "{} '{}': the folder has no samples: expected input_0.pb, folders with it, .npz, .npy or images", flag_,
           path);
    std::vector<CalibrationSample> samples;
    for (const std::string& entry : entries) add_samples(samples, read(entry));
    return samples;
  }

  std::vector<CalibrationSample> read_rows(const std::string& path) const {
    std::vector<std::string> notes;
    const vm::ValueInfo& input = inputs_[0];
    Tensor tensor = with_compile_errors({}, [&] { return read_npy(path, input.dtype, &notes); });
    if (input.dtype) tensor = with_dtype(tensor, *input.dtype, input.name, notes);
    std::vector<CalibrationSample> samples;
    std::vector<std::string> more;  // of the values that the command line gives
    for (const Tensor& run : runs_of(tensor, input))
      samples.push_back(flags_.make(inputs_, {written_value(vm::Value(run))}, samples.empty() ? &more : nullptr));
    std::ranges::move(more, std::back_inserter(notes));
    for (const std::string& note : notes) print_note("note: {}\n", note);
    return samples;
  }

  const char* flag_;
  const std::vector<vm::ValueInfo>& inputs_;
  const InputOptions& flags_;
};

// Returns the range of all elements but those beyond the percentile.
ValueRange range_of(const Tensor& tensor, double percentile) {
  const auto* begin = tensor.data<float>();
  const auto* end = begin + tensor.size();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (std::any_of(begin, end, [](float value) { return !std::isfinite(value); })) return {-kInfinity, kInfinity};
  if (percentile >= 100) {
    const auto [low, high] = std::minmax_element(begin, end);
    return {*low, *high};
  }
  std::vector<float> elements(begin, end);
  const double beyond = (100 - percentile) / 200 * static_cast<double>(elements.size());
  const auto cut = std::min(static_cast<int64_t>(beyond), std::ssize(elements) - 1);
  const auto low = elements.begin() + cut, high = elements.end() - 1 - cut;
  std::nth_element(elements.begin(), low, elements.end());
  const float least = *low;
  std::nth_element(elements.begin(), high, elements.end());
  return {least, *high};
}

}  // namespace

void CalibrationOptions::add_to(CLI::App& app) {
  app.add_option("--calibrate", paths, "inputs: .npz, .npy, images, folders of them or of input_0.pb ..., repeatable");
  app.add_option("--random", random, "calibrate with that many random samples, in the sizes of --dim")
      ->check(whole_number_in(1, kMostRandom));
  app.add_option("--percentile", percentile, "the percentage of elements that a range holds in each run")
      ->check(number_in(50, 100))
      ->capture_default_str();
}

std::vector<CalibrationSample> CalibrationOptions::samples(const std::vector<vm::ValueInfo>& inputs,
                                                           const InputOptions& flags) const {
  std::vector<CalibrationSample> samples;
  for (const std::string& path : paths) add_samples(samples, SampleReader(flag, inputs, flags).read(path));
  InputOptions drawn = flags;
  drawn.picture = {};
  for (int64_t i = 0; i < random; ++i, ++drawn.seed) samples.push_back(drawn.make(inputs));
  return samples;
}

void RangeMeter::add(const std::string& name, const vm::Value& value) {
  const Tensor* tensor = value.get_if<Tensor>();
  if (!tensor || tensor->dtype() != kFloat32 || tensor->size() == 0) return;
  const ValueRange range = range_of(*tensor, percentile_);
  const auto [found, is_new] = ranges_.emplace(name, range);
  if (is_new) return;
  found->second.low = std::min(found->second.low, range.low);
  found->second.high = std::max(found->second.high, range.high);
}

}  // namespace relaxc::tools
