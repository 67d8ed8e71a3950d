#include "tools/accuracy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "codegen/text_file.h"
#include "frontend/onnx/quantize_model.h"
#include "frontend/onnx/reduce.h"
#include "passes/precision.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/library_file.h"
#include "support/lists.h"
#include "tools/progress_line.h"

namespace relaxc::tools {

namespace {

constexpr size_t kLayersShown = 5;

Program load_bytes(const std::string& name, const std::string& bytes, CompileSettings settings) {
  if (!bytes.empty()) settings.contents = std::as_bytes(std::span(bytes));
  Program program = compile(read_module(name, settings), settings).load();
  progress_line().end();
  return program;
}

// Returns the real and imaginary parts of complex numbers, which have neither rows nor classes.
Tensor numbers_of(const Tensor& tensor) {
  if (!tensor.dtype().is_complex()) return tensor;
  const Tensor parts = parts_of(tensor);
  return Tensor::view({parts.size()}, parts.dtype(), parts.raw(), parts.owner());
}

}  // namespace

RunningModel::RunningModel(const std::string& name, const std::string& bytes, CompileSettings settings, int threads)
    : program_(load_bytes(name, bytes, std::move(settings))), session_(program_, {.threads = threads}) {}

std::vector<NamedValue> RunningModel::run(const CalibrationSample& sample) {
  return flat_results(session_.run_values(sample), program_.outputs());
}

void ResultErrors::add(const std::vector<NamedValue>& exact, const std::vector<NamedValue>& actual) {
  for (size_t i = 0; i < std::min(exact.size(), actual.size()); ++i) {
    const Tensor *expected = exact[i].value.get_if<Tensor>(), *value = actual[i].value.get_if<Tensor>();
    if (!expected || !value || !(expected->dtype().is_float() || expected->dtype().is_complex())) continue;
    auto* known = find_item(errors_, actual[i].name, &std::pair<std::string, ResultError>::first);
    ResultError& error = known ? known->second : errors_.emplace_back(actual[i].name, ResultError()).second;
    error.add(actual[i].name, numbers_of(*expected), numbers_of(*value));
  }
}

std::string ResultErrors::text(size_t num_samples) const {
  return joined(
      errors_,
      [&](const auto& row) {
        return fmt::format("'{}' in {}: {}\n", printable(row.first), counted(num_samples, "run"), row.second.text());
      },
      "");
}

std::vector<std::pair<std::string, double>> ResultErrors::worst(size_t count) const {
  auto result = map_each(errors_, [](const auto& row) { return std::pair(row.first, row.second.relative()); });
  std::ranges::stable_sort(result, std::greater(), &std::pair<std::string, double>::second);
  result.resize(std::min(result.size(), count));
  return result;
}

void report_accuracy(const std::string& model, const CompilerOptions& compiler, int threads,
                     const MakeSamples& make_samples) {
  const CompileSettings settings = compiler.get(model);
  const char* name = describe(settings.precision).name;
  if (settings.precision == Precision::kFloat32)
    throw CLI::ValidationError("the error against float32 is that of another --precision: " + precision_list());
  if (is_library_file(model))
    throw CLI::ValidationError("'" + model + "' is machine code; give the model that it was made from");
  std::string bytes;
  size_t num_outputs = SIZE_MAX;
  if (!is_text_file(split_text_path(model).file)) {
    bytes = read_model_case(model).model;
    num_outputs = outputs_of_onnx(bytes).size();
    bytes = with_outputs(bytes, values_of_products(bytes));
  }
  CompileSettings exact_settings = settings;
  exact_settings.precision = Precision::kFloat32;
  RunningModel exact(model, bytes, exact_settings, threads), narrow(model, bytes, settings, threads);
  const std::vector<CalibrationSample> samples = make_samples(exact.inputs());
  ResultErrors outputs, layers;
  for (size_t i = 0; i < samples.size(); ++i) {
    const CalibrationSample& sample = samples[i];
    progress_line().show(fmt::format("{} of {} samples run in float32 and in {}", i, samples.size(), name));
    std::vector<NamedValue> expected = exact.run(sample), actual = narrow.run(sample);
    const auto end = static_cast<std::ptrdiff_t>(std::min(expected.size(), num_outputs));
    layers.add({expected.begin() + end, expected.end()}, {actual.begin() + end, actual.end()});
    expected.resize(static_cast<size_t>(end));
    outputs.add(expected, actual);
  }
  progress_line().end();
  print_message("error of --precision {} against fp32:\n", name);
  print_message("{}", outputs.text(samples.size()));
  if (const auto worst = layers.worst(kLayersShown); !worst.empty())
    print_message("layers with the largest relative RMS errors: {}\n", joined(worst, [](const auto& layer) {
                    const std::string error =
                        std::isfinite(layer.second) ? fmt::format("{:.3g}", layer.second) : "(not finite)";
                    return fmt::format("'{}' {}", printable(layer.first), error);
                  }));
}

}  // namespace relaxc::tools
