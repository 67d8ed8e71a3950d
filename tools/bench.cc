// relaxc bench: measures the time of a run.
#include <algorithm>
#include <memory>

#include "support/diagnostic.h"
#include "support/joined.h"
#include "tools/given_shapes.h"
#include "tools/in_turn.h"
#include "tools/profile.h"
#include "tools/progress_line.h"
#include "tools/tool.h"

namespace relaxc::tools {

namespace {

struct BenchOptions {
  std::string model, json, trace;
  CompilerOptions compiler;
  CacheOptions cache;
  InputOptions inputs;
  int threads = 0, runs = 50, warmup = 5;
  double seconds = 10;
  bool profile = false;
};

// Returns "--kernels mine.py", the flags whose effect is measured; "" without such flags.
std::string flags_to_compare(const BenchOptions& options) {
  const CompilerOptions& compiler = options.compiler;
  std::vector<std::string> flags;
  for (const std::string& file : compiler.kernels) flags.push_back("--kernels " + file);
  for (const std::string& file : compiler.backends) flags.push_back("--backend " + file);
  if (!compiler.schedules.empty()) flags.push_back("--schedules " + compiler.schedules);
  return options.model.ends_with(".so") ? "" : joined(flags, " ");
}

Measured measured(const CompiledModule& compiled, std::shared_ptr<vm::TaskPool> pool, const std::string& function) {
  Program program = compiled.load();
  std::string name = program.function(function).name;
  return {compiled.kernels(), Session(program, {.pool = std::move(pool)}), name};
}

// Returns the file, compiled without what the flags add to it. Throws a CompileError where it needs them.
Measured measured_without_flags(const BenchOptions& options, const CompileSettings& with,
                                std::shared_ptr<vm::TaskPool> pool) {
  CompilerOptions plain = options.compiler;
  plain.kernels.clear(), plain.backends.clear(), plain.schedules.clear(), plain.settings.linked.clear();
  CompileSettings settings = plain.get(options.model);
  settings.report = nullptr, settings.warn = nullptr;
  settings.types = with.types, settings.dims = with.dims;
  return measured(compile_file(options.model, settings), std::move(pool), settings.function);
}

// What is measured, after its first runs.
struct Started {
  CompileSettings settings;
  std::optional<CompiledModule> compiled;  // of a file that is not an artifact
  Measured session;
  std::vector<vm::Value> inputs;
  double compile_s;
  bool was_cached;
  Program program;
};
Started started(const BenchOptions& options, const CompileSettings& settings,
                const std::shared_ptr<vm::TaskPool>& pool) {
  double start = now_ms();
  std::optional<CompiledModule> compiled;
  const bool needs_programs = !flags_to_compare(options).empty();  // which an artifact does not hold
  if (needs_programs) compiled = compile_file(options.model, settings);
  CachedProgram loaded = compiled
                             ? CachedProgram{compiled->load()}
                             : load_cached(options.model, settings, options.cache.get(options.compiler, options.model));
  Program program = std::move(loaded.program);
  double compile_s = (now_ms() - start) / 1000;
  progress_line().end();
  const vm::Function& function = program.function(settings.function);
  Measured session{{}, Session(program, {.pool = pool}), function.name};
  std::vector<vm::Value> inputs = options.inputs.make(function.inputs, settings.dims);
  for (int i = 0; i < options.warmup; ++i) session.run(inputs);
  return {settings,  std::move(compiled), std::move(session), std::move(inputs),
          compile_s, loaded.was_cached,   std::move(program)};
}

std::vector<double> timed_runs(const BenchOptions& options, Started& it) {
  std::vector<double> times;
  constexpr double kIntervalMs = 100;
  const double begin = now_ms();
  double shown = begin;
  for (int i = 0; i < options.runs && (i < 3 || now_ms() - begin < options.seconds * 1000); ++i) {
    times.push_back(it.session.run(it.inputs));
    if (now_ms() - shown < kIntervalMs) continue;
    progress_line().show(fmt::format("{} of at most {} runs", times.size(), options.runs));
    shown = now_ms();
  }
  progress_line().end();
  return times;
}

std::string json_of(const std::vector<double>& sorted, const Started& it, const std::optional<InTurn>& in_turn,
                    const std::string& profile) {
  std::string compared = profile.empty() ? "" : ", \"profile\": " + profile;
  if (in_turn)
    compared += fmt::format(
        ", \"without_median_ms\": {:.4f}, \"with_median_ms\": {:.4f}, \"ratio\": {:.4f}, "
        "\"kernels_differ\": {}",
        in_turn->without_ms, in_turn->with_ms, in_turn->ratio, in_turn->differ);
  return fmt::format(
      "{{\"median_ms\": {:.4f}, \"min_ms\": {:.4f}, \"max_ms\": {:.4f}, \"runs\": {}, \"compile_s\": {:.3f}, "
      "\"from_cache\": {}{}}}\n",
      median_of(sorted), sorted.front(), sorted.back(), sorted.size(), it.compile_s, it.was_cached, compared);
}

// Measures what the flags do, and prints it unless the figures alone go to standard output.
std::optional<InTurn> compare(const BenchOptions& options, Started& with, const std::shared_ptr<vm::TaskPool>& pool) {
  bool prints = options.json != "-";
  std::optional<Measured> without;
  try {
    without = measured_without_flags(options, with.settings, pool);
  } catch (const CompileError& error) {
    if (prints)
      print_message("there is nothing to compare with: without {} the model does not compile: {}\n",
                    flags_to_compare(options), error.diagnostics().front().message);
    return std::nullopt;
  }
  with.session.programs = with.compiled->kernels();
  for (int i = 0; i < options.warmup; ++i) without->run(with.inputs);
  InTurn result = measure_in_turn(with.session, *without, with.inputs, {options.runs, options.seconds});
  if (prints) print_message("with and without {}\n{}", flags_to_compare(options), result.text);
  return result;
}

constexpr int kProfiledRuns = 10;

// Runs some more times in a session whose threads are watched, and notes what the kernels do.
Profile profiled(const Started& it, const std::shared_ptr<vm::TaskPool>& pool) {
  auto watched = std::make_shared<WatchedPool>(pool);
  Session session(it.program, {.pool = watched});
  session.run_values(it.inputs, it.session.function);
  Profile profile(machine_limits(pool), watched);
  session.set_profiler(&profile);
  for (int i = 0; i < kProfiledRuns; ++i) session.run_values(it.inputs, it.session.function);
  return profile;
}

int run(const BenchOptions& stated) {
  BenchOptions options = stated;
  options.inputs = stated.inputs.with_buffer_names(stated.model);
  options.inputs.fix_dims(options.model, options.compiler);
  check_output(options.json, options.model);
  check_output(options.trace, options.model);
  if (options.json == "-" && options.trace == "-")
    throw CLI::ValidationError("--json and --trace both write to standard output; name a file for one of them");
  auto pool = std::make_shared<vm::ThreadPool>(options.threads);
  auto start = [&](const CompileSettings& settings) { return started(options, settings, pool); };
  Started it = for_given_shapes(options.model, options.compiler.get(options.model), options.inputs, "", start);
  const std::vector<vm::Value>& inputs = it.inputs;
  std::vector<double> times = timed_runs(options, it);
  std::ranges::sort(times);
  if (options.json != "-") {
    for (const vm::Value& input : inputs) print_message("input {}\n", describe(input));
    print_message("load or compile {:.2f} s{}\nmedian {:.3f} ms, minimum {:.3f} ms, maximum {:.3f} ms over {} runs\n",
                  it.compile_s, it.was_cached ? " (from the cache)" : "", median_of(times), times.front(), times.back(),
                  times.size());
  }
  std::optional<InTurn> in_turn;
  if (!flags_to_compare(options).empty()) in_turn = compare(options, it, pool);
  std::optional<Profile> profile;
  if (options.profile || !options.trace.empty()) profile = profiled(it, pool);
  if (!options.json.empty())
    write_text(options.json, json_of(times, it, in_turn, profile ? profile->json(kProfiledRuns) : ""));
  if (options.profile && options.json != "-") print_message("{}", profile->text(kProfiledRuns));
  if (!options.trace.empty()) write_text(options.trace, profile->trace());
  return kRight;
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "time runs of a model or artifact");
  command->add_option("model", options->model, "the file (.onnx, .py or .so)")->required();
  options->inputs.add_to(*command);
  options->inputs.add_fix_dims(*command);
  add_threads(*command, options->threads);
  command->add_option("--runs", options->runs, "the largest number of timed runs")
      ->check(whole_number_in(1, kMostRuns))
      ->capture_default_str();
  command->add_option("--warmup", options->warmup, "runs before the timed ones")
      ->check(whole_number_in(0, kMostRuns))
      ->capture_default_str();
  command->add_option("--seconds", options->seconds, "stop after that time")
      ->check(number_from(0))
      ->capture_default_str();
  command->add_option("--json", options->json, "write the figures there (-: to standard output, alone)");
  command->add_flag("--profile", options->profile,
                    "print what each kernel does in ten more runs: time, speed, and the share of the machine's limit");
  command->add_option("--trace", options->trace, "write these runs there as trace events, for https://ui.perfetto.dev");
  options->cache.add_to(*command);
  options->compiler.add_to(*command);
  command->footer("Example: relaxc bench model.onnx --dim batch=1 --threads 2");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace relaxc::tools
