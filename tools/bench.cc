// relaxc bench: measures the time of a run.
#include <algorithm>
#include <memory>

#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/library_file.h"
#include "tools/given_shapes.h"
#include "tools/in_turn.h"
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
  std::string model, json, html, trace, other;
  CompilerOptions compiler;
  CacheOptions cache;
  InputOptions inputs;
  TimingOptions timing;
  Closeness closeness;  // of the results of two versions
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
  double compile_s, cold_ms;  // of the first run
  bool was_cached;
  Program program;
};
Started started(const BenchOptions& options, const CompileSettings& settings,
                const std::shared_ptr<vm::TaskPool>& pool) {
  double start = now_ms();
  std::optional<CompiledModule> compiled;
  const bool needs_programs = !flags_to_compare(options).empty();  // which an artifact does not hold
  if (needs_programs) compiled = compile_file(options.model, settings);
  CachedProgram loaded =
      compiled ? CachedProgram{compiled->load()} : options.cache.load(options.model, settings, options.compiler);
  Program program = std::move(loaded.program);
  double compile_s = (now_ms() - start) / 1000;
  progress_line().end();
  const vm::Function& function = program.function(settings.function);
  Measured session{{}, Session(program, {.pool = pool, .memory_limit = options.memory_limit}), function.name};
  std::vector<vm::Value> inputs = options.inputs.make(function.inputs, settings.dims);
  const double cold_ms = first_runs(options.timing, [&] { return session.run(inputs); });
  return {settings, std::move(compiled), std::move(session), std::move(inputs), compile_s,
          cold_ms,  loaded.was_cached,   std::move(program)};
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
  if (other) {
    figures.set("compared", Report{{"median_ms", other->with_ms},
                                   {"other_median_ms", other->without_ms},
                                   {"ratio", other->ratio},
                                   {"greatest_difference", other->greatest_difference}});
  }
  return figures.json();
}
// Adds the profile and the memory of the run to the figures.
std::string with_profile(const std::string& figures, const Profile& profile, const Started& it) {
  const Report memory = memory_of(it.program.executable(), it.program.function(it.session.function), it.inputs,
                                  profile.fastest_run(kProfiledRuns));
  return fmt::format("{}, \"profile\": {}, \"memory\": {}}}", figures.substr(0, figures.size() - 1),
                     profile.json(kProfiledRuns), memory.json());
}

// Loads the file of --compare, before anything is measured; nullopt where there is none.
std::optional<Program> load_other(const BenchOptions& options, const CompileSettings& settings) {
  if (options.other.empty()) return std::nullopt;
  return options.cache.load(options.other, settings, options.compiler).program;
}

// Reports inputs that have the names of the model's and another order, so that each would get the value of another.
void check_order(const std::string& file, const std::vector<vm::ValueInfo>& others,
                 const std::vector<vm::ValueInfo>& infos) {
  std::vector<std::string> names = map_each(infos, &vm::ValueInfo::name);
  std::vector<std::string> other_names = map_each(others, &vm::ValueInfo::name);
  if (names == other_names || !std::ranges::is_permutation(names, other_names)) return;
  fail({}, "--compare '{}' takes the inputs of the model in another order: {}, and the model {}", file,
       joined(other_names), joined(names));
}

// Returns dtype and shape of a tensor, and the kind of another value.
std::string form_of(const NamedValue& result) {
  const Tensor* tensor = result.value.get_if<Tensor>();
  return tensor ? describe(*tensor) : std::string(vm::to_string(result.value.kind()));
}

// Fails where the other file does not take the inputs of the model, or has results of other forms, before anything is
// measured.
void check_other(const std::string& file, const Program& program, Started& it) {
  const vm::Function& function = it.program.function(it.session.function);
  std::vector<NamedValue> results, others;
  progress_line().show(printable(fmt::format("a run of {} on the inputs of the model", file), std::string::npos));
  try {
    const vm::Function& other = program.function(it.settings.function);
    check_order(file, other.inputs, function.inputs);
    others = flat_results(Session(program, {.threads = 1}).run_values(it.inputs, other.name), other.outputs);
  } catch (const RuntimeError& error) {
    fail({}, "--compare '{}' does not take the inputs of the model: {}", file, error.what());
  }
  results = flat_results(it.session.session.run_values(it.inputs, function.name), function.outputs);
  if (others.size() != results.size())
    fail({}, "--compare '{}' has {}, and the model {}", file, counted(others.size(), "result"), results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    if (form_of(others[i]) != form_of(results[i]))
      fail({}, "--compare '{}' has a result '{}' that is {}, and that of the model, '{}', is {}", file, others[i].name,
           form_of(others[i]), results[i].name, form_of(results[i]));
  }
}

// Measures the model and another one, or another compilation of it, in turn.
InTurn compare_with_other(const BenchOptions& options, Started& it, const Program& program,
                          const std::shared_ptr<vm::TaskPool>& pool) {
  const vm::Function& function = program.function(it.settings.function);
  Measured other{{}, Session(program, {.pool = pool}), function.name};
  first_runs(options.timing, [&] { return other.run(it.inputs); }, options.other);
  InTurn result = measure_pair(it.session, other, it.inputs, {options.timing.runs, options.timing.seconds});
  compare_results(it.session, other, it.inputs, function.outputs, options.closeness, result);
  const char* same_flags = is_library_file(options.other) ? "" : " (compiled with the same flags)";
  if (prints(options)) print_message("{} against {}{}: {}", options.model, options.other, same_flags, result.text);
  return result;
}

// Measures what the flags do, and prints it unless the figures alone go to standard output.
std::optional<InTurn> compare(const BenchOptions& options, Started& with, const std::shared_ptr<vm::TaskPool>& pool) {
  std::optional<Measured> without;
  try {
    without = measured_without_flags(options, with.settings, pool);
  } catch (const CompileError& error) {
    if (prints(options))
      print_message("there is nothing to compare with: without {} the model does not compile: {}\n",
                    flags_to_compare(options), error.diagnostics().front().message);
    return std::nullopt;
  }
  with.session.programs = with.compiled->kernels();
  first_runs(options.timing, [&] { return without->run(with.inputs); }, "the model without the flags");
  InTurn result = measure_in_turn(with.session, *without, with.inputs, {options.timing.runs, options.timing.seconds});
  const vm::Function& function = with.program.function(with.session.function);
  compare_results(with.session, *without, with.inputs, function.outputs, options.closeness, result);
  if (prints(options)) print_message("with and without {}\n{}", flags_to_compare(options), result.text);
  return result;
}

// Runs some more times in a session whose threads are watched, and notes what the kernels do.
Profile profiled(const Started& it, const std::shared_ptr<vm::TaskPool>& pool) {
  auto watched = std::make_shared<WatchedPool>(pool);
  Session session(it.program, {.pool = watched});
  progress_line().show("first profiled run");
  session.run_values(it.inputs, it.session.function);
  Profile profile(machine_limits(pool), watched);
  session.set_profiler(&profile);
  for (int i = 0; i < kProfiledRuns; ++i) {
    progress_line().show(fmt::format("{} of {} profiled runs", i, kProfiledRuns));
    session.run_values(it.inputs, it.session.function);
  }
  progress_line().end();
  return profile;
}

// Says where the results differ from those of the other version by more than they may.
bool is_right(const std::optional<InTurn>& compared, const std::string& what) {
  if (!compared || compared->wrong.empty()) return true;
  print_error(
      "wrong result against {}: {}\n  note: --rtol and --atol say how much may differ: models of other precision "
      "do, by what 'relaxc quantize' and --check-inputs report\n",
      what, printable(compared->wrong, std::string::npos));
  return false;
}

int run(const BenchOptions& stated) {
  BenchOptions options = stated;
  options.inputs = with_buffer_names(stated.inputs, stated.model);
  fix_dims(options.inputs, options.model, options.compiler);
  std::vector<std::string> inputs = options.compiler.files(options.model);
  std::ranges::move(stated.inputs.files(), std::back_inserter(inputs));
  inputs.push_back(options.other);
  check_outputs({options.json, options.html, options.trace}, inputs);
  check_writable({options.json, options.html, options.trace});
  if (!options.other.empty() && !names_file("", split_text_path(options.other).file))
    fail({}, "--compare: there is no file '{}'", options.other);
  auto pool = std::make_shared<vm::ThreadPool>(options.threads);
  auto start = [&](const CompileSettings& settings) { return started(options, settings, pool); };
  Started it = for_given_shapes(options.model, options.compiler.get(options.model), options.inputs, "", start);
  const std::optional<Program> other_program = load_other(options, it.settings);
  if (other_program) check_other(options.other, *other_program, it);
  const std::vector<double> times = timed_runs(options.timing, [&] { return it.session.run(it.inputs); });
  const Timed timed{it.program,    it.session.function, it.inputs,           it.compile_s,
                    it.was_cached, it.cold_ms,          pool->num_workers(), options.timing.cold};
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
  const bool are_right = is_right(in_turn, "the model without " + flags_to_compare(options)),
             is_other_right = is_right(other, options.other);
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
  command->add_option("--compare", options->other,
                      "another file (.so, .onnx, .py) that is run in turn, with the same inputs");
  add_tolerances(*command, options->closeness.rtol, options->closeness.atol, "for two versions: ");
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
