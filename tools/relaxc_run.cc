// relaxc-run: runs, measures and describes artifacts, with the runtime alone: neither LLVM nor protobuf.
#include <CLI/CLI.hpp>
#include <csignal>
#include <memory>

#include "support/diagnostic.h"
#include "support/version.h"
#include "tools/console.h"
#include "tools/generation.h"
#include "tools/help.h"
#include "tools/in_turn.h"
#include "tools/inputs.h"
#include "tools/inspect_artifact.h"
#include "tools/manual.h"
#include "tools/progress_line.h"
#include "tools/results.h"
#include "tools/run_progress.h"
#include "tools/timing.h"
#include "vm/artifact.h"
#include "vm/profiler.h"

namespace relaxc::tools {

namespace {

struct RunnerOptions {
  std::string artifact, function, json;
  InputOptions inputs;
  ResultOptions results;
  TimingOptions timing;
  OtherFile other;
  int threads = 0;
  int64_t memory_limit = 0;
  bool profile = false;
};

int run(const RunnerOptions& options) {
  options.results.check(options.inputs.files());
  const Program program = Program::load(options.artifact);
  const vm::Function& function = program.function(options.function);
  Session session(program, {.threads = options.threads, .memory_limit = options.memory_limit});
  const std::vector<vm::Value> inputs = options.inputs.make(function.inputs, fixed_dims_of(program));
  vm::TableProfiler profiler;
  std::optional<RunProgress> progress(std::in_place, program, function, "kernels run",
                                      options.profile ? &profiler : nullptr);
  session.set_profiler(progress->profiler());
  print_detail("the run computes from {:.0f} ms after the start of the command\n", ms_since_start());
  const vm::Value result = session.run_values(inputs, function.name);
  progress.reset();
  if (options.profile) print_message("{}", profiler.text());
  show_results(flat_results(result, function.outputs), function.name, options.results);
  return kRight;
}

// Prints the time of each kernel in one more run.
void print_profile(Measured& measured, const std::vector<vm::Value>& inputs) {
  vm::TableProfiler profiler;
  RunProgress progress(measured.session.program(), measured.signature(), "kernels of the profiled run", &profiler);
  measured.session.set_profiler(progress.profiler());
  measured.session.run_values(inputs, measured.function);
  measured.session.set_profiler(nullptr);
  print_message("{}", profiler.text());
}

int bench(const RunnerOptions& options) {
  const double start = now_ms();
  const Program program = Program::load(options.artifact);
  const double load_s = (now_ms() - start) / 1000;
  const vm::Function& function = program.function(options.function);
  auto pool = std::make_shared<vm::ThreadPool>(options.threads);
  Measured measured{Session(program, {.pool = pool, .memory_limit = options.memory_limit}), function.name};
  std::optional<Measured> other;
  const std::vector<vm::Value> inputs = options.inputs.make(function.inputs, fixed_dims_of(program));
  auto time_run = [&] { return measured.run(inputs); };
  const double cold_ms = first_runs(options.timing, time_run);
  if (!options.other.path.empty()) {
    const Program loaded = Program::load(options.other.path);
    options.other.check(loaded, options.function, measured, inputs);
    other = Measured{Session(loaded, {.pool = pool}), loaded.function(options.function).name};
  }
  const std::vector<double> times = timed_runs(options.timing, time_run);
  const Timed timed{program, function.name, inputs, load_s, false, cold_ms, pool->num_workers(), options.timing.cold};
  Report figures = figures_of(times, timed);
  const bool prints = options.json != "-";
  if (prints) print_times(times, timed);
  std::optional<InTurn> compared;
  if (other) {
    compared = options.other.measure(measured, *other, inputs, options.timing);
    figures.set("compared", figures_of(*compared));
    if (prints) print_message("{} against {}: {}", options.artifact, options.other.path, compared->text);
  }
  if (options.profile && prints) print_profile(measured, inputs);
  if (!options.json.empty()) write_text(options.json, figures.json() + "\n");
  return !compared || is_right(*compared, options.other.path) ? kRight : kWrong;
}

CLI::App* add_command(CLI::App& app, const char* name, const char* description, RunnerOptions& options) {
  CLI::App* command = app.add_subcommand(name, description);
  command->add_option("artifact", options.artifact, "the file (.so)")->required();
  return command;
}

void add_run(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<RunnerOptions>();
  CLI::App* command = add_command(app, "run", "run an artifact", *options);
  options->inputs.add_to(*command);
  options->inputs.add_picture(*command);
  add_threads(*command, options->threads);
  add_memory_limit(*command, options->memory_limit);
  options->results.add_to(*command);
  command->add_option("--function", options->function, "the function that is run");
  command->add_flag("--profile", options->profile, "print the time of each kernel");
  command->footer("Example: relaxc-run run model.so --input x=x.npy --output-dir out");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

void add_bench(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<RunnerOptions>();
  CLI::App* command = add_command(app, "bench", "time runs of an artifact", *options);
  options->inputs.add_to(*command);
  options->inputs.add_picture(*command);
  add_threads(*command, options->threads);
  add_memory_limit(*command, options->memory_limit);
  options->timing.add_to(*command);
  options->other.add_to(*command, ".so");
  command->add_option("--function", options->function, "the function that is run");
  command->add_option("--json", options->json, "write the figures there (-: to standard output, alone)");
  command->add_flag("--profile", options->profile, "print the time of each kernel in one more run");
  command->footer("Example: relaxc-run bench model.so --dim batch=1 --threads 2");
  command->callback([options, &exit_code] {
    check_outputs({options->json}, {options->artifact, options->other.path});
    check_writable({options->json});
    exit_code = bench(*options);
  });
}

void add_generate(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<RunnerOptions>();
  auto generation = std::make_shared<GenerationOptions>();
  CLI::App* command = add_command(app, "generate", "continue a text by a decoder, token by token", *options);
  generation->add_to(*command);
  command->add_option("--function", options->function, "the function that is run");
  command->footer("Example: relaxc-run generate model.so --tokens 1,2,3 --count 20");
  command->callback([options, generation, &exit_code] {
    const Program program = Program::load(options->artifact);
    generate(program, program.function(options->function), *generation);
    exit_code = kRight;
  });
}

void add_inspect(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<RunnerOptions>();
  auto json = std::make_shared<bool>(false);
  CLI::App* command = add_command(app, "inspect", "say what an artifact holds", *options);
  command->add_flag("--json", *json, "print it as JSON");
  command->footer("Example: relaxc-run inspect model.so");
  command->callback([options, json, &exit_code] {
    const Report report = report_of_artifact(options->artifact);
    *json ? print_text(report.json() + "\n") : print_message("{}", report.text());
    exit_code = kRight;
  });
}

int run_command(int argc, char** argv) {
  CLI::App app{"relaxc-run runs artifacts that relaxc has compiled.", "relaxc-run"};
  lay_out_help(app);
  app.set_help_flag("-h,--help", "print this help");
  app.footer(
      "Example: relaxc-run run model.so --dim batch=4\n"
      "Exit codes: 0 right, 1 invalid input, 2 wrong usage.\n"
      "relaxc-run COMMAND --help says more.");
  app.require_subcommand(0, 1);  // a file may have the name of a command
  bool print_version = false;
  CLI::Option* version = app.add_flag("--version", print_version, "print the version");
  int exit_code = kRight;
  add_run(app, exit_code);
  add_bench(app, exit_code);
  add_generate(app, exit_code);
  add_inspect(app, exit_code);
  add_help(app);
  add_manual(app);
  add_console_flags(app);
  for (CLI::App* command : app.get_subcommands(nullptr)) {
    add_console_flags(*command);
    command->excludes(version);
  }
  const ProgressScope progress;
  try {
    app.parse(arguments_of(argc, argv));
    if (print_version) print_text("relaxc-run " + version_text() + "\n");
    if (!print_version && app.get_subcommands().empty()) exit_code = exit_without_command(app, argc);
  } catch (const CLI::ParseError& error) {
    exit_code = exit_of_parser(app, error);
  }
  vm::flush(stdout);
  return exit_code;
}

}  // namespace

}  // namespace relaxc::tools

int main(int argc, char** argv) {
  using namespace relaxc::tools;
  handle_ending_signals();
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit of file sizes is an error
  relaxc::name_kinds_of_files();
  return exit_code_of([&] { return run_command(argc, argv); }, {.bug = [](const std::string& text) {
                        print_error("{}\n  note: this is a bug of relaxc\n", text);
                      }});
}
