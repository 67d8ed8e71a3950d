// Times a model in ONNX Runtime as `relaxc bench` does in relaxc: the same flags, the same random inputs, the same
// figures.
//
// usage: ort_bench model.onnx --library libonnxruntime.so.1 [--threads N] [--dim batch=1] [--input x=x.npy] [--runs N]
//        ort_bench model.onnx --library libonnxruntime.so.1 --results DIR [--test-data DIR] [--plain]
//
// Prints one line of JSON. With --results it measures nothing: it writes output_0.npy and so on, as
// `relaxc run --output-dir` does. --plain: without graph optimizations, each operator as the model has it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "bench/ort/runtime.h"
#include "tools/in_turn.h"
#include "tools/tool.h"
#include "vm/npy.h"

namespace {

using namespace relaxc;  // NOLINT: a program

struct Options {
  std::string model, library, results, test_data;
  tools::InputOptions inputs;
  bool is_plain = false;
  int threads = 1, runs = 50, warmup = 5;
  double seconds = 10;
};

void set_inputs(bench::OrtSession& session, const Options& options) {
  std::vector<Tensor> inputs;
  for (const vm::Value& value : options.test_data.empty() ? options.inputs.make(session.inputs())
                                                          : tools::read_inputs(options.test_data, session.inputs()))
    inputs.push_back(value.tensor());
  session.set_inputs(inputs);
}

void write_results(const Options& options) {
  bench::OrtSession session(options.library, options.model, options.threads,
                            options.is_plain ? bench::OrtOptimizations::kNone : bench::OrtOptimizations::kAll);
  set_inputs(session, options);
  std::filesystem::create_directories(options.results);
  size_t index = 0;
  for (const Tensor& result : session.results())
    write_npy(fmt::format("{}/output_{}.npy", options.results, index++), result);
}

void run(const Options& options) {
  double start = tools::now_ms();
  bench::OrtSession session(options.library, options.model, options.threads);
  double load_s = (tools::now_ms() - start) / 1000;
  set_inputs(session, options);
  for (int i = 0; i < options.warmup; ++i) session.run();
  std::vector<double> times;
  double begin = tools::now_ms();
  for (int i = 0; i < options.runs && (i < 3 || tools::now_ms() - begin < options.seconds * 1000); ++i)
    times.push_back(session.run());
  std::ranges::sort(times);
  fmt::print(
      "{{\"median_ms\": {:.4f}, \"min_ms\": {:.4f}, \"max_ms\": {:.4f}, \"runs\": {}, \"load_s\": {:.3f}, \"threads\": "
      "{}, "
      "\"bound\": {}, \"onnxruntime\": \"{}\"}}\n",
      tools::median_of(times), times.front(), times.back(), times.size(), load_s, options.threads,
      session.has_bound_outputs(), session.version());
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("time runs of a model in ONNX Runtime");
  app.add_option("model", options.model, "the file (.onnx)")->required();
  app.add_option("--library", options.library, "ONNX Runtime's shared library")->required();
  options.inputs.add_to(app);
  app.add_option("--threads", options.threads, "threads that run kernels");
  app.add_option("--runs", options.runs, "the largest number of timed runs")->check(CLI::PositiveNumber);
  app.add_option("--warmup", options.warmup, "runs before the timed ones");
  app.add_option("--seconds", options.seconds, "stop after that time");
  app.add_option("--results", options.results, "measure nothing, write the results to that folder (.npy)");
  app.add_flag("--plain", options.is_plain, "no graph optimizations, with --results");
  app.add_option("--test-data", options.test_data, "folder with the inputs, input_0.pb ...");
  CLI11_PARSE(app, argc, argv);
  try {
    options.results.empty() ? run(options) : write_results(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  std::fflush(stdout);
  std::_Exit(0);  // thread pools need no farewell
}
