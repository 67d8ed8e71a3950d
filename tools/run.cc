// relaxc run: runs a model or artifact once, on given, random or reference inputs.
#include <memory>

#include "frontend/onnx/test_data.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/library_file.h"
#include "tools/accuracy.h"
#include "tools/given_shapes.h"
#include "tools/progress_line.h"
#include "tools/results.h"
#include "tools/run_progress.h"
#include "tools/timing.h"
#include "tools/tool.h"
#include "vm/npy.h"

namespace relaxc::tools {

namespace {

struct RunOptions {
  std::string model;
  CompilerOptions compiler;
  CacheOptions cache;
  InputOptions inputs;
  int threads = 0;
  int64_t memory_limit = 0;
  ResultOptions results;
  std::string test_data;
  std::vector<std::string> expected;  // FILE or NAME=FILE
  double rtol = 1e-3, atol = 1e-7;
  bool profile = false, interpret = false, has_passes = false, accuracy = false;
};

CompileSettings settings_of(const RunOptions& options) {
  CompileSettings settings = options.compiler.get(options.model);
  if (options.interpret) {
    if (is_library_file(options.model))
      throw CLI::ValidationError("--interpret needs a model or module; '" + options.model + "' is machine code");
    settings.interpret.emplace();
    // The default is the program as it is written, neither fused nor scheduled; kernels are for simplified operators.
    bool has_kernels = settings.kernels && !settings.kernels->empty();
    if (!options.has_passes)
      settings.passes =
          has_kernels ? "canonicalize,fold_batch_norm,fold_constants,apply_kernels,legalize,compose" : "legalize";
  }
  settings.input_types = types_of_files(options.inputs);
  return settings;
}

std::vector<vm::Value> inputs_of(const RunOptions& options, const std::map<std::string, int64_t>& fixed_dims,
                                 const std::vector<vm::ValueInfo>& of) {
  if (options.test_data.empty()) return options.inputs.make(of, fixed_dims);
  std::vector<vm::Value> inputs = read_inputs(options.test_data, of);
  options.inputs.check(of, inputs, fixed_dims);
  return inputs;
}

struct Results {
  std::string function;
  std::vector<NamedValue> values;
};
Results results_of(const RunOptions& options, const CompileSettings& settings) {
  Program program = options.cache.load(options.model, settings, options.compiler).program;
  progress_line().end();
  Session session(program, {.threads = options.threads, .memory_limit = options.memory_limit});
  const vm::Function& function = program.function(settings.function);
  const std::vector<vm::Value> inputs = inputs_of(options, fixed_dims_of(program, settings.dims), function.inputs);
  vm::TableProfiler profiler;
  print_detail("the run computes from {:.0f} ms after the start of the command\n", ms_since_start());
  const char* pieces = options.interpret ? "kernels run in the interpreter" : "kernels run";
  std::optional<RunProgress> progress(std::in_place, program, function, pieces, options.profile ? &profiler : nullptr);
  session.set_profiler(progress->profiler());
  std::vector<NamedValue> values = flat_results(session.run_values(inputs, function.name), function.outputs);
  progress.reset();
  if (options.profile) print_message("{}", profiler.text());
  return {function.name, std::move(values)};
}

// Results, and the right values of them.
struct ExpectedResults {
  std::vector<NamedValue> results;
  std::vector<vm::Value> expected;
};
// Reads the files of --expect, each for the result that it names, or for the only one.
ExpectedResults expected_files(const RunOptions& options, const std::vector<NamedValue>& results) {
  ExpectedResults comparison;
  const auto quoted = [](const NamedValue& result) { return fmt::format("'{}'", printable(result.name)); };
  for (const std::string& text : options.expected) {
    const bool has_name = !is_nameless(text);
    if (!has_name && results.size() != 1)
      fail({}, "--expect {}: there are {} results, {}; give --expect NAME={}", text, results.size(),
           joined(results, quoted), text);
    const auto [name, file] =
        has_name ? split_at_equals(text, "a result such as y=y.npy", names_file) : std::pair(results[0].name, text);
    const NamedValue* result = find_item(results, std::string(name), &NamedValue::name);
    if (!result) fail({}, "--expect: no result is called '{}'; there are {}", name, joined(results, quoted));
    const std::string path(file);
    comparison.results.push_back(*result);
    comparison.expected.push_back(with_compile_errors({}, [&] { return vm::Value(read_npy(path)); }));
  }
  return comparison;
}
bool agree(const ExpectedResults& comparison, const std::string& source, const RunOptions& options) {
  const auto& [results, expected] = comparison;
  const std::vector<std::string> wrong = differences(results, expected, options.rtol, options.atol);
  for (const std::string& line : wrong) print_error("wrong result: {}\n", printable(line, std::string::npos));
  print_message("{} of {} outputs agree with {} (rtol {}, atol {})\n", results.size() - wrong.size(), results.size(),
                source, options.rtol, options.atol);
  return wrong.empty();
}

int run(const RunOptions& stated) {
  RunOptions options = stated;
  options.inputs = with_buffer_names(stated.inputs, stated.model);
  fix_dims(options.inputs, options.model, options.compiler);
  options.cache.note_artifacts({options.model});
  options.results.check(stated.inputs.files());
  const CompileSettings settings = settings_of(options);
  if (options.accuracy)
    report_accuracy(options.model, options.compiler, options.threads, [&](const auto& inputs) {
      return std::vector<CalibrationSample>{inputs_of(options, settings.dims, inputs)};
    });
  auto work = [&](const CompileSettings& of_run) { return results_of(options, of_run); };
  const auto [function, results] = for_given_shapes(options.model, settings, options.inputs, options.test_data, work);
  show_results(results, function, options.results);
  const bool are_as_expected = options.expected.empty() || agree(expected_files(options, results), "--expect", options);
  if (options.test_data.empty()) return are_as_expected ? kRight : kWrong;
  const ExpectedResults with_data{results, read_outputs(options.test_data, results)};
  return agree(with_data, options.test_data, options) && are_as_expected ? kRight : kWrong;
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "run a model (.onnx), a module (.py) or an artifact (.so)");
  command->add_option("model", options->model, "the file")->required();
  add_inputs(*command, options->inputs);
  options->inputs.add_fix_dims(*command);
  options->inputs.add_picture(*command);
  add_threads(*command, options->threads);
  add_memory_limit(*command, options->memory_limit);
  options->results.tensor_pb = write_tensor_pb;
  options->results.value_pb = [](const std::string& path, const NamedValue& value) {
    write_value_pb(path, value.value, value.name, value.is_optional);
  };
  options->results.add_to(*command);
  command->add_option("--test-data", options->test_data,
                      "folder with input_0.pb ... and output_0.pb ... to compare with");
  command
      ->add_option("--expect", options->expected,
                   "[NAME=]FILE.npy, the right value of a result to compare with, repeatable")
      ->allow_extra_args(false);
  add_tolerances(*command, options->rtol, options->atol);
  command->add_flag(
      "--interpret", options->interpret,
      "run kernels in the interpreter, which checks all indices and reads (docs/relaxc.md); with --passes "
      "after these, else after legalize");
  command->add_flag("--accuracy", options->accuracy,
                    "print the error of --precision against float32 for these inputs, and the worst layers");
  command->add_flag("--profile", options->profile, "print the time of each kernel");
  options->cache.add_to(*command);
  options->compiler.add_to(*command);
  command->footer("Example: relaxc run model.onnx --input x=x.npy --output-dir out");
  command->callback([options, command, &exit_code] {
    options->has_passes = command->count("--passes") > 0;
    exit_code = run(*options);
  });
}

}  // namespace relaxc::tools
