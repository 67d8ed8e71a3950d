// relaxc compare: two profiles side by side, as a table or a page. They are figures that bench wrote, or made here of
// two models, which are run in turn, so that both find the machine in the same state.
#include <algorithm>
#include <memory>

#include "tools/in_turn.h"
#include "tools/profile.h"
#include "tools/profile_page.h"
#include "tools/profile_pair.h"
#include "tools/progress_line.h"
#include "tools/timing.h"
#include "tools/tool.h"

namespace relaxc::tools {

namespace {

struct CompareCommand {
  std::string a, b, html;
  CompilerOptions compiler;
  CacheOptions cache;
  InputOptions inputs;
  TimingOptions timing;
  int threads = 0;
};

bool holds_figures(const std::string& path) { return path.ends_with(".json"); }

// One of two models that are profiled in turn.
class ProfiledModel {
 public:
  ProfiledModel(const std::string& file, const std::string& other, const CompareCommand& command,
                const std::shared_ptr<vm::TaskPool>& pool, const MachineLimits& limits)
      : timing_(command.timing),
        start_ms_(now_ms()),
        settings_(settings_beside(file, other, command.compiler.get(file))),
        loaded_(command.cache.load(file, settings_, command.compiler)),
        load_s_((now_ms() - start_ms_) / 1000),
        function_(loaded_.program.function(settings_.function).name),
        inputs_(command.inputs.make(loaded_.program.function(function_).inputs,
                                    fixed_dims_of(loaded_.program, settings_.dims))),
        session_(loaded_.program, {.pool = pool}),
        watched_pool_(std::make_shared<WatchedPool>(pool)),
        watched_(loaded_.program, {.pool = watched_pool_}),
        profile_(limits, watched_pool_) {
    cold_ms_ = first_runs(command.timing, [&] { return time_of_run(); }, file);
    progress_line().show(printable("first profiled run of " + file, std::string::npos));
    watched_.run_values(inputs_, function_);
    watched_pool_->take();  // the first run does not count
    watched_.set_profiler(&profile_);
  }

  const std::vector<double>& times() const { return times_; }  // in order of the runs, until figures() sorts them
  double time_of_run() {
    timing_.prepare_run();
    const double begin = now_ms();
    session_.run_values(inputs_, function_);
    return now_ms() - begin;
  }
  void time() { times_.push_back(time_of_run()); }
  void profile() {
    timing_.prepare_run();
    watched_.run_values(inputs_, function_);
    ++profiled_runs_;
  }
  // Returns what bench writes.
  std::string figures() {
    std::ranges::sort(times_);
    const Timed timed{
        loaded_.program, function_, inputs_, load_s_, loaded_.was_cached, cold_ms_, watched_pool_->num_workers(),
        timing_.cold};
    const std::string figures = figures_of(times_, timed).json();
    return fmt::format("{}, \"profile\": {}}}", figures.substr(0, figures.size() - 1), profile_.json(profiled_runs_));
  }

 private:
  const TimingOptions& timing_;
  double start_ms_;
  CompileSettings settings_;
  CachedProgram loaded_;
  double load_s_, cold_ms_ = 0;
  std::string function_;
  std::vector<vm::Value> inputs_;
  Session session_;
  std::shared_ptr<WatchedPool> watched_pool_;
  Session watched_;
  Profile profile_;
  std::vector<double> times_;
  int64_t profiled_runs_ = 0;
};

constexpr int kRunsInTurn = 10;  // that are profiled

ProfilePair profiled_in_turn(const CompareCommand& command) {
  auto pool = std::make_shared<vm::ThreadPool>(command.threads);
  command.cache.note_artifacts({command.a, command.b});
  const MachineLimits limits = machine_limits(pool);
  ProfiledModel a(command.a, command.b, command, pool, limits), b(command.b, command.a, command, pool, limits);
  progress_line().end();
  const double begin = now_ms();
  for (size_t i = 0; command.timing.goes_on(i, begin); ++i) {
    progress_line().show(command.timing.progress(i, "pairs of runs"));
    a.time(), b.time();
  }
  for (int i = 0; i < kRunsInTurn; ++i) {
    progress_line().show(fmt::format("{} of {} profiled pairs of runs", i, kRunsInTurn));
    a.profile(), b.profile();
  }
  progress_line().end();
  std::vector<double> ratios;
  for (size_t i = 0; i < a.times().size(); ++i) ratios.push_back(b.times()[i] / a.times()[i]);
  ProfilePair pair = pair_of(read_profile(command.a, a.figures()), read_profile(command.b, b.figures()));
  pair.verdict = fmt::format("{} ({} pairs of runs{})", verdict(ratios), ratios.size(), command.timing.of_caches());
  return pair;
}

ProfilePair read_pair(const CompareCommand& command) {
  ProfilePair pair =
      pair_of(read_profile(command.a, read_text(command.a)), read_profile(command.b, read_text(command.b)));
  pair.verdict = "measured apart, so that a small difference may be chance; compare the models or artifacts to know";
  return pair;
}

int run(const CompareCommand& command) {
  check_output(command.html, command.a);
  check_output(command.html, command.b);
  if (holds_figures(command.a) != holds_figures(command.b))
    throw CLI::ValidationError(
        "one is a file of figures (.json) and the other is not: give two of the same kind, by relaxc bench MODEL "
        "--profile --json FILE");
  ProfilePair pair = holds_figures(command.a) ? read_pair(command) : profiled_in_turn(command);
  const bool share_nodes = std::ranges::any_of(
      pair.rows, [](const ProfileRow& row) { return !row.a_kernels.empty() && !row.b_kernels.empty(); });
  if (!share_nodes && !pair.a.kernels.empty() && !pair.b.kernels.empty())
    pair.verdict =
        "these are different models, as no kernel computes nodes of both, so that their times do not compare";
  if (command.html != "-") print_message("{}", text_of(pair));
  if (!command.html.empty())
    write_text(command.html, comparison_page(fmt::format("{} and {}", command.a, command.b), report_of(pair).json()));
  return kRight;
}

}  // namespace

void add_compare(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CompareCommand>();
  CLI::App* command = app.add_subcommand("compare", "compare two profiles, kernel by kernel");
  command->add_option("a", options->a, "figures (.json) of relaxc bench --profile --json, or a model (.onnx, .py, .so)")
      ->required();
  command->add_option("b", options->b, "the same: models are run in turn, on the same inputs")->required();
  command->add_option("--html", options->html, "write a page there, too (-: to standard output, alone)");
  add_inputs(*command, options->inputs);
  add_threads(*command, options->threads);
  options->timing.add_to(*command);
  options->cache.add_to(*command);
  options->compiler.add_to(*command);
  command->footer("Example: relaxc compare before.so after.so --html difference.html");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace relaxc::tools
