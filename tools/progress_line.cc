#include "tools/progress_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <utility>

#include "tools/console.h"

namespace relaxc::tools {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kQuietTime{1000}, kInterval{100};
constexpr char kWipe[] = "\r\x1b[K";

double seconds_from(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

size_t terminal_columns() {
  winsize size{};
  const bool is_known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : 80;
}

// What the pieces of a stage are.
const char* verb_of(CompileStage stage) {
  switch (stage) {
    case CompileStage::kImport:
      return "nodes imported";
    case CompileStage::kPasses:
      return "passes";
    case CompileStage::kPrograms:
      return "programs scheduled or lowered";
    case CompileStage::kKernels:
      return "kernels compiled or reused";
  }
  return "";
}

std::string text_of(const Progress& progress) {
  std::string text = fmt::format("{} of {} {}", progress.done, progress.total, verb_of(progress.stage));
  if (progress.added > 0) text += fmt::format(" ({} more than at first)", progress.added);
  if (!progress.at_work.empty()) text += fmt::format(": {}", progress.at_work);
  if (progress.seconds >= 1) text += fmt::format(" ({:.0f} s)", progress.seconds);
  return printable(text, std::string::npos);
}

// Says what the pieces of a stage were.
std::string text_of_end(const Progress& progress) {
  if (progress.stage != CompileStage::kKernels) return fmt::format("{} {}", progress.total, verb_of(progress.stage));
  return fmt::format("{} kernels compiled and {} reused", progress.total - progress.num_reused, progress.num_reused);
}

}  // namespace

// For handlers of signals, which cannot take the lock: whether the line is on the terminal, and whether it may come
// back.
static std::atomic<bool> is_on_terminal = false, is_ending = false;

void wipe_progress_line() {
  is_ending = true;
  if (is_on_terminal.exchange(false)) [[maybe_unused]]
    const ssize_t written = write(STDERR_FILENO, kWipe, sizeof kWipe - 1);
}

extern "C" {
static void end_by_signal(int signal) {
  wipe_progress_line();
  std::signal(signal, SIG_DFL);
  raise(signal);
  _exit(128 + signal);  // it is the first process of a container
}
}

void handle_ending_signals() {
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action{}, old{};
    action.sa_handler = end_by_signal;
    action.sa_flags = SA_NODEFER;  // so that raise() in the handler ends the process
    if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler == SIG_DFL) sigaction(signal, &action, nullptr);
  }
}

ProgressLine& progress_line() {
  static ProgressLine line;
  return line;
}

ProgressLine::~ProgressLine() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ProgressLine::show(std::string text) {
  if (!is_seen()) return;
  {
    std::lock_guard lock(mutex_);
    if (!working_) since_ = Clock::now();
    text_ = std::move(text);
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    if (std::exchange(working_, true)) return;
  }
  wake_.notify_all();
}

void ProgressLine::show(const Progress& progress) {
  StageTime& stage = stages_.at(static_cast<size_t>(progress.stage));
  if (stage.ended) stage.since = Clock::now();
  stage.ended = progress.done == progress.total;
  show(text_of(progress));
  if (!stage.ended) return;
  const bool has_slowest = !progress.at_work.empty() && progress.total > 1;
  print_detail("{} in {:.2f} s{}\n", text_of_end(progress), seconds_from(stage.since),
               has_slowest ? fmt::format(", of which {} took {:.2f} s", progress.at_work, progress.seconds) : "");
}

bool ProgressLine::is_seen() const {
  static const bool is_terminal = isatty(STDERR_FILENO) == 1;
  return is_terminal && !console().quiet;
}

void ProgressLine::end() {
  std::lock_guard lock(mutex_);
  clear();
  working_ = false;
}

void ProgressLine::print_above(const std::string& text) {
  std::lock_guard lock(mutex_);
  clear();
  std::fputs(text.c_str(), stderr);
}

void ProgressLine::clear() {
  if (is_on_terminal.exchange(false)) std::fputs(kWipe, stderr);
}

void ProgressLine::draw() {
  const std::string clock = fmt::format("{:3.0f} s  ", seconds_from(since_));
  const size_t columns = terminal_columns() - 1;
  std::string line = clock + text_;
  if (line.size() > columns) line = line.substr(0, columns - std::min<size_t>(columns, 3)) + "...";
  is_on_terminal = true;
  if (is_ending) return;
  std::fputs(("\r" + line + "\x1b[K").c_str(), stderr);
  std::fflush(stderr);
}

void ProgressLine::run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (!working_) {
      wake_.wait(lock);
      continue;
    }
    if (Clock::now() - since_ >= kQuietTime) draw();
    wake_.wait_for(lock, kInterval);
  }
}

}  // namespace relaxc::tools
