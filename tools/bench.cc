// relaxc bench: measures the time of a run.
#include <algorithm>
#include <chrono>
#include <memory>

#include "support/diagnostic.h"
#include "tools/tool.h"

namespace relaxc::tools {

namespace {

struct BenchOptions {
  std::string model, json;
  CompilerOptions compiler;
  InputOptions inputs;
  int threads = 0, runs = 50, warmup = 5;
  double seconds = 10;
  bool profile = false;
};

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int run(const BenchOptions& options) {
  check_output(options.json, options.model);
  double start = now_ms();
  CompileSettings settings = options.compiler.get(options.model);
  Program program = load_program(options.model, settings);
  double compile_s = (now_ms() - start) / 1000;
  Session session(program, {.threads = options.threads});
  const vm::Function& function = program.function(settings.function);
  std::vector<vm::Value> inputs = options.inputs.make(function.inputs);
  for (int i = 0; i < options.warmup; ++i) session.run_values(inputs, function.name);
  std::vector<double> times;
  double begin = now_ms();
  for (int i = 0; i < options.runs && (i < 3 || now_ms() - begin < options.seconds * 1000); ++i) {
    double t = now_ms();
    session.run_values(inputs, function.name);
    times.push_back(now_ms() - t);
  }
  std::sort(times.begin(), times.end());
  double median = times[times.size() / 2];
  std::string json = fmt::format(
      "{{\"median_ms\": {:.4f}, \"min_ms\": {:.4f}, \"max_ms\": {:.4f}, \"runs\": {}, \"compile_s\": {:.3f}}}\n",
      median, times.front(), times.back(), times.size(), compile_s);
  if (!options.json.empty()) write_text(options.json, json);
  if (options.json != "-") {
    for (const vm::Value& input : inputs) print_message("input {}\n", describe(input));
    print_message("load or compile {:.2f} s\nmedian {:.3f} ms, minimum {:.3f} ms, maximum {:.3f} ms over {} runs\n",
                  compile_s, median, times.front(), times.back(), times.size());
  }
  if (options.profile) {
    vm::TableProfiler profiler;
    session.set_profiler(&profiler);
    for (int i = 0; i < 10; ++i) session.run_values(inputs, function.name);
    print_message("{}", profiler.text());
  }
  return kRight;
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "time runs of a model or artifact");
  command->add_option("model", options->model, "the file (.onnx, .py or .so)")->required();
  options->inputs.add_to(*command);
  command->add_option("--threads", options->threads, "threads that run kernels (0: all cores)");
  command->add_option("--runs", options->runs, "the largest number of timed runs")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--warmup", options->warmup, "runs before the timed ones")->capture_default_str();
  command->add_option("--seconds", options->seconds, "stop after that time")->capture_default_str();
  command->add_option("--json", options->json, "write the figures there (-: to standard output, alone)");
  command->add_flag("--profile", options->profile, "print the time of each kernel, over ten more runs");
  options->compiler.add_to(*command);
  command->footer("Example: relaxc bench model.onnx --dim batch=1 --threads 2");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace relaxc::tools
