#include "tools/accuracy.h"

#include <algorithm>
#include <cmath>

#include "frontend/onnx/quantize_model.h"
#include "frontend/onnx/reduce.h"
#include "passes/precision.h"
#include "support/diagnostic.h"
#include "support/joined.h"
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

}  // namespace

RunningModel::RunningModel(const std::string& name, const std::string& bytes, CompileSettings settings, int threads)
    : program_(load_bytes(name, bytes, std::move(settings))), session_(program_, {.threads = threads}) {}

std::vector<NamedValue> RunningModel::run(const CalibrationSample& sample) {
  return flat_results(session_.run_values(sample), program_.outputs());
}

void ResultError::add(const std::string& name, const Tensor& exact, const Tensor& actual) {
  if (exact.shape() != actual.shape())
    fail({}, "the result '{}' is {}, that of the original model {}", name, describe(actual), describe(exact));
  for (int64_t i = 0; i < exact.size(); ++i) {
    const double expected = exact.as_double(i), value = actual.as_double(i), difference = value - expected;
    if (!std::isfinite(expected)) continue;
    squares_ += expected * expected;
    actual_squares_ += value * value;
    products_ += expected * value;
    error_ += difference * difference;
    if (!(std::abs(difference) <= largest_)) largest_ = std::abs(difference);
  }
  if (exact.ndim() == 2 && exact.shape()[1] > 1) add_classes(exact, actual);
}

double ResultError::relative() const { return squares_ > 0 ? std::sqrt(error_ / squares_) : 0.0; }

std::string ResultError::text() const {
  std::string text = fmt::format("relative RMS error {:.3g}", relative());
  if (rows_ > 0) text += fmt::format(", the largest element of {} of {} rows is the same", same_, rows_);
  text += fmt::format("; largest difference {:.3g}", largest_);
  if (error_ > 0 && squares_ > 0) text += fmt::format(", signal to noise {:.1f} dB", -20 * std::log10(relative()));
  const double norms = std::sqrt(squares_) * std::sqrt(actual_squares_);
  if (norms > 0) text += fmt::format(", cosine {:.6f}", products_ / norms);
  return text;
}

void ResultError::add_classes(const Tensor& exact, const Tensor& actual) {
  const int64_t columns = exact.shape()[1];
  auto largest = [&](const Tensor& tensor, int64_t row) {
    int64_t best = 0;
    for (int64_t k = 1; k < columns; ++k) {
      if (tensor.as_double(row * columns + k) > tensor.as_double(row * columns + best)) best = k;
    }
    return best;
  };
  for (int64_t row = 0; row < exact.shape()[0]; ++row) same_ += largest(exact, row) == largest(actual, row);
  rows_ += exact.shape()[0];
}

void ResultErrors::add(const std::vector<NamedValue>& exact, const std::vector<NamedValue>& actual) {
  for (size_t i = 0; i < std::min(exact.size(), actual.size()); ++i) {
    const Tensor *expected = exact[i].value.get_if<Tensor>(), *value = actual[i].value.get_if<Tensor>();
    if (!expected || !value || !expected->dtype().is_float()) continue;
    auto* known = find_item(errors_, actual[i].name, &std::pair<std::string, ResultError>::first);
    ResultError& error = known ? known->second : errors_.emplace_back(actual[i].name, ResultError()).second;
    error.add(actual[i].name, *expected, *value);
  }
}

void ResultErrors::print(size_t num_samples) const {
  for (const auto& [name, error] : errors_)
    print_message("'{}' in {} {}: {}\n", printable(name), num_samples, num_samples == 1 ? "run" : "runs", error.text());
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
  if (model.ends_with(".so"))
    throw CLI::ValidationError("'" + model + "' is machine code; give the model that it was made from");
  std::string bytes;
  size_t num_outputs = SIZE_MAX;
  if (model.ends_with(".onnx")) {
    bytes = read_model_case(model).model;
    num_outputs = outputs_of_onnx(bytes).size();
    bytes = with_outputs(bytes, values_of_products(bytes));
  }
  CompileSettings exact_settings = settings;
  exact_settings.precision = Precision::kFloat32;
  RunningModel exact(model, bytes, exact_settings, threads), narrow(model, bytes, settings, threads);
  const std::vector<CalibrationSample> samples = make_samples(exact.inputs());
  ResultErrors outputs, layers;
  for (const CalibrationSample& sample : samples) {
    std::vector<NamedValue> expected = exact.run(sample), actual = narrow.run(sample);
    const auto end = static_cast<std::ptrdiff_t>(std::min(expected.size(), num_outputs));
    layers.add({expected.begin() + end, expected.end()}, {actual.begin() + end, actual.end()});
    expected.resize(static_cast<size_t>(end));
    outputs.add(expected, actual);
  }
  print_message("error of --precision {} against fp32:\n", name);
  outputs.print(samples.size());
  if (const auto worst = layers.worst(kLayersShown); !worst.empty())
    print_message("layers with the largest relative RMS errors: {}\n", joined(worst, [](const auto& layer) {
                    return fmt::format("'{}' {:.3g}", printable(layer.first), layer.second);
                  }));
}

}  // namespace relaxc::tools
