// relaxc bench: measures the time of a run.
#include <algorithm>
#include <memory>

#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/library_file.h"
#include "tools/given_shapes.h"
#include "tools/kernels_in_turn.h"
#include "tools/memory_plan.h"
#include "tools/profile.h"
#include "tools/profile_page.h"
#include "tools/progress_line.h"
#include "tools/report.h"
#include "tools/timing.h"
#include "tools/tool.h"

namespace relaxc::tools {

namespace {

struct BenchOptions {
  std::string model, json, html, trace;
  CompilerOptions compiler;
  CacheOptions cache;
  InputOptions inputs;
  TimingOptions timing;
  OtherFile other;
  int threads = 0;
  int64_t memory_limit = 0;
  bool profile = false;
};

// Returns "--kernels mine.py", the flags whose effect is measured; "" without such flags.
std::string flags_to_compare(const BenchOptions& options) {
  const CompilerOptions& compiler = options.compiler;
  std::vector<std::string> flags;
  for (const std::string& file : compiler.kernels) flags.push_back("--kernels " + file);
  for (const std::string& file : compiler.backends) flags.push_back("--backend " + file);
  if (!compiler.schedules.empty()) flags.push_back("--schedules " + compiler.schedules);
  return is_library_file(options.model) ? "" : joined(flags, " ");
}

// Returns whether standard output is for people, and not for figures or a page.
bool prints(const BenchOptions& options) { return options.json != "-" && options.html != "-" && options.trace != "-"; }

Version loaded(const CompiledModule& compiled, std::shared_ptr<vm::TaskPool> pool, const std::string& function) {
  Program program = compiled.load();
  std::string name = program.function(function).name;
  return {{Session(program, {.pool = std::move(pool)}), name}, compiled.kernels()};
}

// Returns the file, compiled without what the flags add to it. Throws a CompileError where it needs them.
Version loaded_without_flags(const BenchOptions& options, const CompileSettings& with,
                             std::shared_ptr<vm::TaskPool> pool) {
  CompilerOptions plain = options.compiler;
  plain.kernels.clear(), plain.backends.clear(), plain.schedules.clear(), plain.settings.linked.clear();
  CompileSettings settings = plain.get(options.model);
  settings.report = nullptr, settings.warn = nullptr;
  settings.types = with.types, settings.dims = with.dims;
  return loaded(compile_file(options.model, settings), std::move(pool), settings.function);
}

// What is measured, after its first runs.
struct Started {
  CompileSettings settings;
  Version version;  // with its programs where flags add something that is measured
  std::vector<vm::Value> inputs;
  double compile_s, cold_ms;  // of the first run
  bool was_cached;
  Measured& measured() { return version.measured; }
  const Program& program() const { return version.measured.session.program(); }
  const std::string& function() const { return version.measured.function; }
};
Started started(const BenchOptions& options, const CompileSettings& settings,
                const std::shared_ptr<vm::TaskPool>& pool) {
  double start = now_ms();
  std::optional<CompiledModule> compiled;
  const bool needs_programs = !flags_to_compare(options).empty();  // which an artifact does not hold
  if (needs_programs) compiled = compile_file(options.model, settings);
  CachedProgram loaded =
      compiled ? CachedProgram{compiled->load()}
               : options.cache.load(options.model, settings_beside(options.model, options.other.path, settings),
                                    options.compiler);
  double compile_s = (now_ms() - start) / 1000;
  progress_line().end();
  const vm::Function& function = loaded.program.function(settings.function);
  Measured measured{Session(loaded.program, {.pool = pool, .memory_limit = options.memory_limit}), function.name};
  std::vector<vm::Value> inputs = options.inputs.make(function.inputs, fixed_dims_of(loaded.program, settings.dims));
  const double cold_ms = first_runs(options.timing, [&] { return measured.run(inputs); });
  Version version{std::move(measured), compiled ? compiled->kernels() : codegen::KernelMap()};
  return {settings, std::move(version), std::move(inputs), compile_s, cold_ms, loaded.was_cached};
}

constexpr int kProfiledRuns = 10;

std::string json_of(Report figures, const std::optional<InTurn>& in_turn, const std::optional<InTurn>& other) {
  if (in_turn) {
    figures.set("without_median_ms", in_turn->without_ms);
    figures.set("with_median_ms", in_turn->with_ms);
    figures.set("ratio", in_turn->ratio);
    figures.set("kernels_differ", in_turn->differ);
    figures.set("greatest_difference", in_turn->greatest_difference);
  }
  if (other) figures.set("compared", figures_of(*other));
  return figures.json();
}
// Adds the profile and the memory of the run to the figures.
std::string with_profile(const std::string& figures, const Profile& profile, const Started& it) {
  const Report memory = memory_of(it.program().executable(), it.program().function(it.function()), it.inputs,
                                  profile.fastest_run(kProfiledRuns));
  return fmt::format("{}, \"profile\": {}, \"memory\": {}}}", figures.substr(0, figures.size() - 1),
                     profile.json(kProfiledRuns), memory.json());
}

// Loads the file of --compare, and tries it, before anything is measured; nullopt where there is none.
std::optional<Program> load_other(const BenchOptions& options, Started& it) {
  const std::string& other = options.other.path;
  if (other.empty()) return std::nullopt;
  const CompileSettings settings = settings_beside(other, options.model, it.settings);
  Program program = options.cache.load(other, settings, options.compiler).program;
  options.other.check(program, settings.function, it.measured(), it.inputs);
  return program;
}

// Measures the model and another one, or another compilation of it, in turn.
InTurn compare_with_other(const BenchOptions& options, Started& it, const Program& program,
                          const std::shared_ptr<vm::TaskPool>& pool) {
  Measured other{Session(program, {.pool = pool}), program.function(it.settings.function).name};
  InTurn result = options.other.measure(it.measured(), other, it.inputs, options.timing);
  const bool are_models = !is_library_file(options.model) && !is_library_file(options.other.path);
  const char* same_flags = are_models ? " (compiled with the same flags)" : "";
  if (prints(options)) print_message("{} against {}{}: {}", options.model, options.other.path, same_flags, result.text);
  return result;
}

// Measures what the flags do, and prints it unless the figures alone go to standard output.
std::optional<InTurn> compare(const BenchOptions& options, Started& with, const std::shared_ptr<vm::TaskPool>& pool) {
  std::optional<Version> without;
  try {
    without = loaded_without_flags(options, with.settings, pool);
  } catch (const CompileError& error) {
    if (prints(options))
      print_message("there is nothing to compare with: without {} the model does not compile: {}\n",
                    flags_to_compare(options), error.diagnostics().front().message);
    return std::nullopt;
  }
  first_runs(options.timing, [&] { return without->measured.run(with.inputs); }, "the model without the flags");
  InTurn result = measure_kernels(with.version, *without, with.inputs, options.timing);
  compare_results(with.measured(), without->measured, with.inputs, options.other.closeness, result);
  if (prints(options)) print_message("with and without {}\n{}", flags_to_compare(options), result.text);
  return result;
}

// Runs some more times in a session whose threads are watched, and notes what the kernels do.
Profile profiled(const Started& it, const std::shared_ptr<vm::TaskPool>& pool) {
  auto watched = std::make_shared<WatchedPool>(pool);
  Session session(it.program(), {.pool = watched});
  progress_line().show("first profiled run");
  session.run_values(it.inputs, it.function());
  Profile profile(machine_limits(pool), watched);
  session.set_profiler(&profile);
  for (int i = 0; i < kProfiledRuns; ++i) {
    progress_line().show(fmt::format("{} of {} profiled runs", i, kProfiledRuns));
    session.run_values(it.inputs, it.function());
  }
  progress_line().end();
  return profile;
}

int run(const BenchOptions& stated) {
  BenchOptions options = stated;
  options.inputs = with_buffer_names(stated.inputs, stated.model);
  const bool is_beside_model = !options.other.path.empty() && !is_library_file(options.other.path);
  fix_dims(options.inputs, is_beside_model ? options.other.path : options.model, options.compiler);
  options.cache.note_artifacts({options.model, options.other.path});
  std::vector<std::string> inputs = options.compiler.files(options.model);
  std::ranges::move(stated.inputs.files(), std::back_inserter(inputs));
  inputs.push_back(options.other.path);
  check_outputs({options.json, options.html, options.trace}, inputs);
  check_writable({options.json, options.html, options.trace});
  if (!options.other.path.empty() && !names_file("", split_text_path(options.other.path).file))
    fail({}, "--compare: there is no file '{}'", options.other.path);
  auto pool = std::make_shared<vm::ThreadPool>(options.threads);
  auto start = [&](const CompileSettings& settings) { return started(options, settings, pool); };
  Started it = for_given_shapes(options.model, options.compiler.get(options.model), options.inputs, "", start);
  const std::optional<Program> other_program = load_other(options, it);
  const std::vector<double> times = timed_runs(options.timing, [&] { return it.measured().run(it.inputs); });
  const Timed timed{it.program(),  it.function(), it.inputs,           it.compile_s,
                    it.was_cached, it.cold_ms,    pool->num_workers(), options.timing.cold};
  if (prints(options)) print_times(times, timed);
  std::optional<InTurn> in_turn;
  if (!flags_to_compare(options).empty()) in_turn = compare(options, it, pool);
  std::optional<InTurn> other;
  if (other_program) other = compare_with_other(options, it, *other_program, pool);
  std::optional<Profile> profile;
  if (options.profile || !options.trace.empty() || !options.html.empty()) profile = profiled(it, pool);
  std::string figures = json_of(figures_of(times, timed), in_turn, other);
  if (profile && (options.profile || !options.html.empty())) figures = with_profile(figures, *profile, it);
  if (!options.json.empty()) write_text(options.json, figures + "\n");
  if (!options.html.empty()) write_text(options.html, profile_page(options.model, figures));
  if (options.profile && prints(options)) print_message("{}", profile->text(kProfiledRuns));
  if (!options.trace.empty()) write_text(options.trace, profile->trace());
  const bool are_right = !in_turn || is_right(*in_turn, "the model without " + flags_to_compare(options)),
             is_other_right = !other || is_right(*other, options.other.path);
  return are_right && is_other_right ? kRight : kWrong;
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "time runs of a model or artifact");
  command->add_option("model", options->model, "the file (.onnx, .py or .so)")->required();
  add_inputs(*command, options->inputs);
  options->inputs.add_fix_dims(*command);
  options->inputs.add_picture(*command);
  add_threads(*command, options->threads);
  add_memory_limit(*command, options->memory_limit);
  options->timing.add_to(*command);
  options->other.add_to(*command, ".so, .onnx, .py");
  command->add_option("--json", options->json, "write the figures there (-: to standard output, alone)");
  command->add_flag("--profile", options->profile,
                    "print what each kernel does in ten more runs: time, speed, and the share of the machine's limit");
  command->add_option("--html", options->html,
                      "write a page there: roofline, time by kernel, memory over time (docs/seeing.md)");
  command->add_option("--trace", options->trace, "write these runs there as trace events, for https://ui.perfetto.dev");
  options->cache.add_to(*command);
  options->compiler.add_to(*command);
  command->footer("Example: relaxc bench model.onnx --dim batch=1 --threads 2");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace relaxc::tools
