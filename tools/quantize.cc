// relaxc quantize: writes an ONNX model with integers in place of floats, and says what that costs in accuracy.
#include <filesystem>
#include <map>
#include <memory>

#include "frontend/onnx/quantize_model.h"
#include "frontend/onnx/reduce.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/lists.h"
#include "tools/accuracy.h"
#include "tools/calibration.h"
#include "tools/progress_line.h"
#include "tools/tool.h"

namespace relaxc::tools {

namespace {

constexpr int64_t kDefaultBlock = 32;  // of int4 weights
constexpr int64_t kMostBlock = 1 << 20;
constexpr size_t kNamesShown = 3;  // of nodes with the same reason

struct QuantizeOptions {
  std::string model, output, weights, activations = "uint8";
  bool is_dynamic = false, is_per_tensor = false;
  std::optional<int64_t> block;
  std::vector<std::string> skipped;
  CalibrationOptions calibration;
  CompilerOptions compiler;
  InputOptions inputs;
  int threads = 0;

  QuantizeSettings settings() const {
    QuantizeSettings settings{.skipped = skipped};
    if (is_dynamic) settings.kind = Quantization::kDynamic;
    if (!weights.empty()) settings.kind = Quantization::kWeights;
    if (activations == "int8") settings.activations = DType::int_(8);
    if (weights == "int4") settings.weight_bits = 4, settings.block = kDefaultBlock;
    settings.block = block.value_or(settings.block);
    settings.has_channels = !is_per_tensor;
    return settings;
  }
};

void check(const QuantizeOptions& options) {
  check_outputs({options.output}, options.compiler.files(options.model));
  if (options.block && options.weights.empty())
    throw CLI::ValidationError("--block is for --weights: activations and their products have no blocks");
  if (options.is_dynamic || !options.weights.empty() || options.calibration.has_samples()) return;
  throw CLI::ValidationError(
      "the ranges of activations are needed: give inputs with --calibrate FILE, or try --random 8; --dynamic and "
      "--weights int8 do without");
}

// Names the model in the errors of work().
template <class Work>
auto with_place_of(const std::string& model, Work&& work) {
  try {
    return work();
  } catch (const CompileError& error) {
    throw CompileError(with_place(error.diagnostics(), span_of_file(model)));
  }
}

class Quantizer {
 public:
  explicit Quantizer(const QuantizeOptions& options) : options_(options), settings_(options.settings()) {}

  int run() {
    model_ = read_model_case(options_.model).model;
    if (options_.calibration.has_samples()) run_floats();
    progress_line().show("quantizing the weights");
    result_ = with_place_of(options_.model, [&] { return quantize_model(model_, settings_, meter_.ranges()); });
    write_text(options_.output, result_.model);
    print_nodes();
    print_sizes();
    print_errors();
    return kRight;
  }

 private:
  RunningModel running(const std::string& name, const std::string& bytes) const {
    return RunningModel(name, bytes, options_.compiler.get(name), options_.threads);
  }
  // Runs the model; an error names the files of the samples.
  std::vector<NamedValue> results_of(RunningModel& model, const CalibrationSample& sample) const {
    const CalibrationOptions& from = options_.calibration;
    try {
      return model.run(sample);
    } catch (const RuntimeError& error) {
      if (from.paths.empty()) throw;
      fail({}, "{} {}: a sample does not fit the model: {}", from.flag, joined(from.paths), error.what());
    }
  }

  // Runs the float model on all samples: for the ranges of its values, and for its results.
  void run_floats() {
    std::vector<std::string> values;
    if (settings_.kind == Quantization::kStatic)
      values = with_place_of(options_.model, [&] { return values_to_measure(model_, settings_); });
    RunningModel floats = running(options_.model, with_outputs(model_, values));
    const size_t count = outputs_of_onnx(model_).size();
    samples_ = options_.calibration.samples(floats.inputs(), options_.inputs);
    const std::set<std::string> measured(values.begin(), values.end());
    for (const CalibrationSample& sample : samples_) {
      show_sample(expected_.size(), "in floats");
      for (size_t i = 0; i < sample.size(); ++i) measure(measured, floats.inputs()[i].name, sample[i]);
      std::vector<NamedValue> results = results_of(floats, sample);
      for (const NamedValue& result : results) measure(measured, result.name, result.value);
      results.resize(std::min(results.size(), count));
      expected_.push_back(std::move(results));
    }
  }
  void show_sample(size_t done, const char* how) const {
    progress_line().show(fmt::format("{} of {} samples run {}", done, samples_.size(), how));
  }
  void measure(const std::set<std::string>& measured, const std::string& name, const vm::Value& value) {
    if (measured.contains(name)) meter_.add(name, value);
  }

  // Prints the report to standard output, unless the model goes there.
  template <class... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) const {
    const std::string text = fmt::format(format, std::forward<Args>(args)...);
    options_.output == "-" ? print_note("{}", text) : print_message("{}", text);
  }

  void print_nodes() const {
    say("quantized: {}\n",
        joined(result_.made, [](const auto& row) { return fmt::format("{} {}", row.second, row.first); }));
    std::map<std::string, std::vector<std::string>> reasons;
    for (const FloatNode& node : result_.left)
      reasons[node.why].push_back(fmt::format("{} '{}'", node.op_type, node.node));
    for (auto& [why, nodes] : reasons) {
      const size_t count = nodes.size();
      if (count > kNamesShown) nodes.resize(kNamesShown), nodes.emplace_back("...");
      say("left as {} ({}): {}\n", count == 1 ? "it is, 1 node" : fmt::format("they are, {} nodes", count), why,
          joined(nodes));
    }
  }

  void print_sizes() const {
    const auto before = static_cast<double>(model_.size()), after = static_cast<double>(result_.model.size());
    say("{}: {:.1f} kB, {:.1f} % of the {:.1f} kB of {}\n", options_.output, after / 1e3, 100 * after / before,
        before / 1e3, options_.model);
  }

  void print_errors() {
    if (samples_.empty()) {
      print_note("note: the error was not measured; --calibrate FILE or --random N measures it\n");
      return;
    }
    RunningModel integers = running(options_.output, result_.model);
    ResultErrors errors;
    for (size_t s = 0; s < samples_.size(); ++s) {
      show_sample(s, "in integers");
      errors.add(expected_[s], integers.run(samples_[s]));
    }
    say("{}", errors.text(samples_.size()));
  }

  const QuantizeOptions& options_;
  const QuantizeSettings settings_;
  std::string model_;
  std::vector<CalibrationSample> samples_;
  std::vector<std::vector<NamedValue>> expected_;  // the float model's results of each sample
  RangeMeter meter_{options_.calibration.percentile};
  QuantizedModel result_;
};

}  // namespace

void add_quantize(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<QuantizeOptions>();
  CLI::App* command = app.add_subcommand("quantize", "write an ONNX model with integers in place of floats");
  command->add_option("model", options->model, "the ONNX model of floats")->required();
  command->add_option("-o,--output", options->output, "the quantized model (.onnx; -: standard output)")->required();
  options->calibration.add_to(*command);
  CLI::Option* dynamic =
      command->add_flag("--dynamic", options->is_dynamic, "find the ranges of activations in each run");
  command->add_option("--weights", options->weights, "quantize the weights alone: int8 or int4")
      ->check(one_of({"int8", "int4"}))
      ->excludes(dynamic);
  command->add_option("--block", options->block, "weights with one scale: so many in a row, 0: a channel (int4: 32)")
      ->check(whole_number_in(0, kMostBlock));
  command->add_flag("--per-tensor", options->is_per_tensor, "one scale for each weight tensor, not for each channel");
  command->add_option("--activations", options->activations, "the type of activations: uint8 or int8")
      ->check(one_of({"uint8", "int8"}))
      ->capture_default_str();
  command->add_option("--skip", options->skipped, "a node or an operator that stays in floats, repeatable");
  add_inputs(*command, options->inputs);
  options->inputs.add_picture(*command);
  add_threads(*command, options->threads);
  options->compiler.add_to(*command);
  command->footer("Example: relaxc quantize model.onnx -o model_int8.onnx --calibrate samples.npy");
  command->callback([options, &exit_code] {
    check(*options);
    exit_code = Quantizer(*options).run();
  });
}

}  // namespace relaxc::tools
