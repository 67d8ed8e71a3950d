// Speed of contraction kernels next to other libraries and to the processor's measured peak: ./dev bench kernels.
//
// Everybody computes the same problem on the same data, in alternation: in each round ours and every peer run for a few
// milliseconds each, after as long a time to warm up, and the peak loop for a fifth of one before and after ours.
// Figures are medians over the rounds. With one thread, processor time counts, so that other programs on the machine do
// not; with several, time does. Ours is compiled from a module with constant weights by the compiler's front door, and
// is called through a Session.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <thread>

#include "bench/kernels/problem.h"
#include "codegen/compile.h"
#include "codegen/llvm_compile.h"
#include "codegen/target.h"
#include "ir/text/parser.h"
#include "ir/visit.h"
#include "ops/layouts.h"

namespace {

using namespace relaxc;         // NOLINT: a program
using namespace relaxc::bench;  // NOLINT

struct Options {
  std::string filter, json;
  std::vector<std::string> modules;
  std::vector<std::string> matmuls;  // "MxKxN"
  std::vector<int> threads = {1, 2};
  int rounds = 15;
  double milliseconds = 4;  // of one runner in one round
  bool skip_peers = false;
  bool fastest = false;  // round counts, not the median: on a machine that others use
};

// ---- Ours

IRModule parse(const std::string& text, const std::string& name) {
  Diagnostics diagnostics;
  IRModule module = parse_module(text, name, op_table(), diagnostics);
  if (diagnostics.has_errors()) throw CompileError(diagnostics.all());
  return module;
}

void copy_element(const Tensor& from, int64_t i, const Tensor& to, int64_t j) {
  const auto bytes = static_cast<size_t>(from.dtype().bytes());
  std::memcpy(static_cast<char*>(to.raw()) + static_cast<size_t>(j) * bytes,
              static_cast<const char*>(from.raw()) + static_cast<size_t>(i) * bytes, bytes);
}

// An image with its channels in blocks: (1, C, H, W) as (1, C / block, H, W, block), zeros in the rest of the last
// block.
Tensor to_blocks(const Tensor& image, int64_t block) {
  int64_t channels = image.shape()[1], height = image.shape()[2], width = image.shape()[3];
  int64_t blocks = (channels + block - 1) / block;
  Tensor result = Tensor::empty({1, blocks, height, width, block}, image.dtype());
  std::memset(result.raw(), 0, static_cast<size_t>(result.bytes()));
  for (int64_t i = 0; i < image.size(); ++i) {
    int64_t c = i / (height * width);
    copy_element(image, i, result, (c / block * height * width + i % (height * width)) * block + c % block);
  }
  return result;
}
void from_blocks(const Tensor& blocks, const Tensor& image) {
  int64_t block = blocks.shape()[4], pixels = image.shape()[2] * image.shape()[3];
  for (int64_t i = 0; i < image.size(); ++i) {
    int64_t c = i / pixels;
    copy_element(blocks, (c / block * pixels + i % pixels) * block + c % block, image, i);
  }
}

// The static dims of a tensor type; a symbolic one as -1.
std::vector<int64_t> dims_of(const Type& type) {
  std::vector<int64_t> result;
  if (const std::vector<Expr>* dims = known_shape(type)) {
    for (const Expr& dim : *dims) result.push_back(as_int(dim).value_or(-1));
  }
  return result;
}

bool fits(const Type& type, std::vector<int64_t> dims, DType dtype, bool symbolic) {
  const TensorType* tensor = type.as<TensorType>();
  if (symbolic) dims[0] = -1;
  return tensor && tensor->dtype == dtype && dims_of(type) == dims;
}

// The size of the blocks when a type is that of such an image, 0 when it is the image's own; else nothing.
std::optional<int64_t> block_of(const Type& type, const std::vector<int64_t>& dims, DType dtype, bool symbolic) {
  if (fits(type, dims, dtype, symbolic)) return 0;
  std::vector<int64_t> known = dims_of(type);
  if (known.size() != 5 || dims.size() != 4 || known[4] <= 0) return std::nullopt;
  bool is_image = fits(type, {1, (dims[1] + known[4] - 1) / known[4], dims[2], dims[3], known[4]}, dtype, false);
  return is_image ? std::optional(known[4]) : std::nullopt;
}

struct OurModule {
  IRModule module;
  int64_t input_block, output_block;  // of channels; 0: none
};

// The weights become constants, so that they are packed when compiling. Returns nullopt if main computes another
// problem.
std::optional<OurModule> bind_weights(IRModule module, const Problem& p, const Data& data) {
  Function main = *module.graph_function("main");
  std::vector<Tensor> weights = {data.weight};
  if (p.kind == Problem::Kind::kConvolution) weights.push_back(data.bias);
  if (p.is_requantized()) weights.push_back(data.scale);
  if (main.params.size() != 1 + weights.size()) return std::nullopt;
  auto input_block = block_of(main.params[0].type(), p.input_shape(), p.input_dtype(), p.symbolic);
  auto output_block = block_of(main.result, p.output_shape(), p.output_dtype(), p.symbolic);
  if (!input_block || !output_block) return std::nullopt;
  VarMap constants;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!fits(main.params[i + 1].type(), weights[i].shape(), weights[i].dtype(), false)) return std::nullopt;
    constants.emplace(main.params[i + 1].get(), constant(weights[i]));
  }
  main.params.erase(main.params.begin() + 1, main.params.end());
  main.body = substitute(main.body, constants);
  module.functions.at("main") = make_function(std::move(main));
  return OurModule{std::move(module), *input_block, *output_block};
}

std::optional<OurModule> our_module(const Problem& p, const Data& data, const Options& options) {
  if (options.modules.empty()) {
    const Target target = codegen::host_target();
    const ConvolutionSizes sizes{p.input_dtype(), p.channels / p.groups, p.filters, p.groups, p.window, p.window, true};
    const Blocking blocking{channels_in_block(target, sizes).value_or(1), zeros_in_window(target, sizes)};
    return bind_weights(parse(module_text(p, blocking), p.kernel + ".py"), p, data);
  }
  for (const std::string& file : options.modules) {
    if (auto module = bind_weights(read_module(file), p, data)) return module;
  }
  return std::nullopt;
}

Runner our_runner(const Program& program, const OurModule& module, const Problem& p, const Data& data,
                  const std::shared_ptr<vm::ThreadPool>& pool) {
  auto session = std::make_shared<Session>(program, SessionOptions{.pool = pool});
  Tensor input = module.input_block > 0 ? to_blocks(data.input, module.input_block) : data.input;
  Tensor image = Tensor::empty(p.output_shape(), p.output_dtype());
  Tensor output = module.output_block > 0 ? to_blocks(image, module.output_block) : image;
  Runner runner{"ours", image, [=] { session->run_into({&input, 1}, {&output, 1}); }};
  if (module.output_block > 0) runner.finish = [=] { from_blocks(output, image); };
  return runner;
}

// ---- Timing

double now(int threads) {
  timespec time;
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

double time_calls(const std::function<void()>& run, int64_t calls, int threads) {
  double start = now(threads);
  for (int64_t i = 0; i < calls; ++i) run();
  return (now(threads) - start) / static_cast<double>(calls);
}

// The element that has the share `rank` of the others below it.
double quantile(std::vector<double> values, double rank) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(rank * static_cast<double>(values.size() - 1) + 0.5)];
}

// So many take about a fifth of a millisecond.
int64_t loop_products(Peak peak) {
  switch (peak) {
    case Peak::kFloat32:
    case Peak::kFloat32WithLoads:
    case Peak::kBFloat16:
      return int64_t{1} << 24;
    case Peak::kInt8:
      return int64_t{1} << 26;
    case Peak::kInt8Tiles:
    case Peak::kBFloat16Tiles:
      return int64_t{1} << 28;
  }
  return 0;
}

// Products per millisecond on all threads of the pool together, from when the first begins to when the last is done.
// For a fifth of a millisecond: shorter than the clock takes to follow the load.
double measure_peak(Peak peak, vm::ThreadPool& pool) {
  struct Task {
    Peak peak;
    std::vector<double> begins, ends;
    std::atomic<size_t> begun = 0;
    std::atomic<int64_t> products = 0;
  };
  size_t threads = static_cast<size_t>(pool.num_workers());
  Task task{peak, std::vector<double>(threads), std::vector<double>(threads)};
  auto work = [](void* closure, int worker) {
    Task& task = *static_cast<Task*>(closure);
    size_t w = static_cast<size_t>(worker);
    int threads = static_cast<int>(task.begins.size());
    for (++task.begun; task.begun < task.begins.size();) std::this_thread::yield();
    run_peak_loop(task.peak, loop_products(task.peak) / 16);
    task.begins[w] = now(threads);
    task.products += run_peak_loop(task.peak, loop_products(task.peak));
    task.ends[w] = now(threads);
  };
  pool.run(work, &task, pool.num_workers());
  double begin = *std::min_element(task.begins.begin(), task.begins.end());
  double end = *std::max_element(task.ends.begin(), task.ends.end());
  return static_cast<double>(task.products) / (end - begin);
}

struct Row {
  Problem problem;
  int threads;
  double llvm_ms;                    // processor time that LLVM took for the kernel, or kernels
  double share;                      // of the peak, median of the rounds
  double error;                      // of ours, see difference()
  std::map<std::string, double> ms;  // of ours and of each peer
  double best_peer() const {
    double best = 0;
    for (const auto& [name, time] : ms) {
      if (name != "ours" && (best == 0 || time < best)) best = time;
    }
    return best;
  }
};

Row measure(const Problem& p, const Data& data, std::vector<Runner> runners, vm::ThreadPool& pool, double llvm_ms,
            const Options& options) {
  int threads = pool.num_workers();
  const Peak fastest = fastest_peak(p.peak);
  Row row{p, threads, llvm_ms, 0, 0, {}};
  std::vector<int64_t> calls;
  for (const Runner& runner : runners) {
    runner.run();
    double once = std::max(time_calls(runner.run, 1, threads), 1e-3);
    calls.push_back(std::clamp<int64_t>(std::lround(options.milliseconds / once), 1, 10000));
  }
  std::vector<double> shares, peaks;
  std::vector<std::vector<double>> times(runners.size());
  for (int round = 0; round < options.rounds; ++round) {
    double peak = 0;
    for (size_t i = 0; i < runners.size(); ++i) {
      // Idle workers of a library spin for some ten milliseconds before they sleep.
      if (threads > 1) std::this_thread::sleep_for(std::chrono::milliseconds(40));
      // The clock follows the load, within milliseconds: the peak counts that is measured on both sides of ours (runner
      // 0), under the clock that ours leaves.
      time_calls(runners[i].run, calls[i], threads);
      if (i == 0) peak = measure_peak(fastest, pool);
      times[i].push_back(time_calls(runners[i].run, calls[i], threads));
      if (i > 0) continue;
      peak = (peak + measure_peak(fastest, pool)) / 2;
      peaks.push_back(peak);
      shares.push_back(static_cast<double>(p.products()) / times[0].back() / peak);
    }
  }
  row.share = options.fastest ? static_cast<double>(p.products()) / quantile(times[0], 0) / quantile(peaks, 1)
                              : quantile(shares, 0.5);
  for (size_t i = 0; i < runners.size(); ++i) {
    row.ms[runners[i].name] = quantile(times[i], options.fastest ? 0 : 0.5);
    if (runners[i].finish) runners[i].finish();
    double error = difference(p, data, runners[i].output);
    if (i == 0) row.error = error;
    if (!(error <= allowed_difference(p)))
      fmt::print("error: {} of {} {} is wrong by {}\n", runners[i].name, p.kernel, p.shape(), error);
  }
  return row;
}

// ---- Output

constexpr const char* kPeers[] = {"openblas", "blis", "onednn", "onednn_winograd"};

void print_header() {
  fmt::print("{:<17} {:<34} {:>3} {:>10}", "kernel", "shape", "thr", "ours ms");
  for (const char* peer : kPeers) fmt::print(" {:>15}", peer);
  fmt::print(" {:>7} {:>7} {:>7} {:>8}\n", "peak", "GFLOP/s", "LLVM ms", "to best");
}

void print_row(const Row& row) {
  fmt::print("{:<17} {:<34} {:>3} {:>10.4f}", row.problem.kernel, row.problem.shape(), row.threads, row.ms.at("ours"));
  for (const char* peer : kPeers) {
    auto it = row.ms.find(peer);
    fmt::print(" {:>15}", it == row.ms.end() ? "" : fmt::format("{:.4f}", it->second));
  }
  fmt::print(" {:>6.1f}% {:>7.1f} {:>7.0f}", 100 * row.share,
             2e-6 * static_cast<double>(row.problem.products()) / row.ms.at("ours"), row.llvm_ms);
  if (double best = row.best_peer(); best > 0) fmt::print(" {:>8.3f}", best / row.ms.at("ours"));
  fmt::print("\n");
  std::fflush(stdout);
}

void print_means(const std::vector<Row>& rows) {
  std::map<std::pair<std::string, int>, std::vector<const Row*>> groups;
  for (const Row& row : rows) groups[{row.problem.kernel, row.threads}].push_back(&row);
  for (const auto& [group, members] : groups) {
    double share = 0, ratio = 0, worst = 1e9;
    for (const Row* row : members) {
      double one = row->best_peer() / row->ms.at("ours");
      share += std::log(row->share);
      ratio += std::log(one);
      worst = std::min(worst, one);
    }
    double count = static_cast<double>(members.size());
    fmt::print("geometric mean of {} on {} threads: {:.1f}% of the peak", group.first, group.second,
               100 * std::exp(share / count));
    if (worst > 0) fmt::print(", {:.3f} of the best peer's speed (least {:.3f})", std::exp(ratio / count), worst);
    fmt::print("\n");
  }
}

// Compiled once for all m, next to compiled for that m.
void print_symbolic(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    for (const Row& other : rows) {
      if (row.problem.kernel != "matmul_symbolic" || other.problem.kernel != "matmul_static") continue;
      if (row.problem.m == other.problem.m && row.threads == other.threads)
        fmt::print("symbolic m = {} on {} threads: {:.3f} of the static kernel's speed\n", row.problem.m, row.threads,
                   other.ms.at("ours") / row.ms.at("ours"));
    }
  }
}

void write_json(const std::string& path, const std::vector<Row>& rows) {
  std::ofstream out(path);
  out << "[\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    out << fmt::format("  {{\"kernel\": \"{}\", \"shape\": \"{}\", \"threads\": {}", row.problem.kernel,
                       row.problem.shape(), row.threads);
    for (const auto& [name, time] : row.ms) out << fmt::format(", \"{}_ms\": {:.6f}", name, time);
    out << fmt::format(", \"share_of_peak\": {:.4f}, \"llvm_ms\": {:.1f}, \"error\": {:.2e}}}{}\n", row.share,
                       row.llvm_ms, row.error, i + 1 < rows.size() ? "," : "");
  }
  out << "]\n";
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
}

std::vector<Problem> matmul_problems(const std::vector<std::string>& shapes) {
  std::vector<Problem> result;
  for (const std::string& shape : shapes) {
    Problem problem{.kernel = "matmul"};
    if (std::sscanf(shape.c_str(), "%ldx%ldx%ld", &problem.m, &problem.k, &problem.n) != 3)
      throw std::runtime_error("not a shape MxKxN: " + shape);
    result.push_back(problem);
  }
  return result;
}

void run(const Options& options) {
  fmt::print("peers: {}; {}\n", describe_blas(), describe_onednn());
  vm::ThreadPool one_thread(1);
  for (auto [name, peak] :
       {std::pair{"float32 FMA", Peak::kFloat32}, std::pair{"float32 FMA with a tile's loads", Peak::kFloat32WithLoads},
        std::pair{"vpdpbusd", Peak::kInt8}, std::pair{"tdpbusd", Peak::kInt8Tiles},
        std::pair{"vdpbf16ps", Peak::kBFloat16}, std::pair{"tdpbf16ps", Peak::kBFloat16Tiles}}) {
    std::vector<double> rates;
    for (int i = 0; i < 15; ++i) rates.push_back(measure_peak(peak, one_thread));
    double rate = quantile(rates, 0.5);
    if (rate > 0) fmt::print("peak, {}: {:.1f} GFLOP/s on one thread\n", name, 2e-6 * rate);
  }
  print_header();
  std::vector<Row> rows;
  for (const Problem& p : options.matmuls.empty() ? problems() : matmul_problems(options.matmuls)) {
    if ((p.kernel + " " + p.shape()).find(options.filter) == std::string::npos) continue;
    Data data = make_data(p);
    std::optional<Program> program;
    std::optional<OurModule> module;
    double llvm_ms = 0;
    try {
      module = our_module(p, data, options);
      if (!module) continue;  // --module: for other problems
      CompiledModule compiled = compile(module->module);
      auto to_machine_code = [&] {
        codegen::compile_kernels(compiled.kernels(), compiled.target(), {.jobs = 1, .reuse = false});
      };
      llvm_ms = 1e9;
      for (int i = 0; i < 3; ++i) llvm_ms = std::min(llvm_ms, time_calls(to_machine_code, 1, 1));
      program = compiled.load();
    } catch (const std::exception& error) {
      fmt::print("{:<17} {:<34} not compiled: {}\n", p.kernel, p.shape(), error.what());
      continue;
    }
    for (int threads : options.threads) {
      auto pool = std::make_shared<vm::ThreadPool>(threads);
      // As inside of one run of a network: workers stay awake from one call to the next (1 ms, no longer).
      pool->enter();
      std::vector<Runner> runners = {our_runner(*program, *module, p, data, pool)};
      if (!options.skip_peers) {
        for (auto make_runners : {blas_runners, onednn_runners}) {
          for (Runner& runner : make_runners(p, data, threads)) runners.push_back(std::move(runner));
        }
      }
      rows.push_back(measure(p, data, std::move(runners), *pool, llvm_ms, options));
      print_row(rows.back());
    }
  }
  print_means(rows);
  print_symbolic(rows);
  if (!options.json.empty()) write_json(options.json, rows);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("speed of contraction kernels");
  app.add_option("--json", options.json, "write the rows here");
  app.add_option("--filter", options.filter, "only problems whose \"kernel shape\" contains this");
  app.add_option("--threads", options.threads, "numbers of threads")->delimiter(',');
  app.add_option("--module", options.modules,
                 "ours is the first of these modules (.py) whose main has the problem's types");
  app.add_option("--matmul", options.matmuls, "these shapes MxKxN of float32 matmul instead of the benchmark's");
  app.add_option("--rounds", options.rounds, "rounds of which the median counts");
  app.add_flag("--alone", options.skip_peers, "no peers");
  app.add_flag("--fastest", options.fastest, "the fastest round counts, not the median: on a machine that others use");
  CLI11_PARSE(app, argc, argv);
  // The same instructions for both sides: oneDNN, too, has matrix registers where our target has them.
  const bool has_tiles = codegen::host_target().has_int8_tiles;
  setenv("ONEDNN_MAX_CPU_ISA", has_tiles ? "AVX512_CORE_AMX" : "AVX512_CORE_BF16", 0);
  try {
    run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
