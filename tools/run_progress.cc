#include "tools/run_progress.h"

#include <algorithm>

#include "tools/bytecode_walk.h"
#include "tools/console.h"
#include "tools/progress_line.h"

namespace relaxc::tools {

namespace {

// Returns the kernels that a run of the function calls, in order; none where it branches, or calls functions, which may
// be loops.
std::vector<std::string> kernels_called(const Program& program, const vm::Function& function) {
  const WalkedFunction walked = walk_bytecode(program.executable(), function);
  std::vector<std::string> kernels;
  for (const WalkedCall& call : walked.calls) {
    if (call.kind == WalkedCall::Kind::kFunction) return {};
    if (call.kind == WalkedCall::Kind::kKernel) kernels.push_back(call.name);
  }
  return walked.has_branches ? std::vector<std::string>() : kernels;
}

double seconds_of(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

RunProgress::RunProgress(const Program& program, const vm::Function& function, std::string pieces, vm::Profiler* next)
    : pieces_(std::move(pieces)), next_(next) {
  if (progress_line().is_seen()) calls_ = kernels_called(program, function);
  show();
}

RunProgress::~RunProgress() {
  progress_line().end();
  print_detail("{} {} in {:.2f} s{}\n", done_, pieces_, seconds_of(ns_),
               done_ > 1 ? fmt::format(", of which {} took {:.2f} s", slowest_, seconds_of(slowest_ns_)) : "");
}

vm::Profiler* RunProgress::profiler() { return progress_line().is_seen() || console().verbose ? this : next_; }

void RunProgress::on_kernel(const vm::KernelEvent& event) {
  if (next_) next_->on_kernel(event);
  ++done_;
  ns_ += event.duration_ns;
  if (event.duration_ns >= slowest_ns_) slowest_ = event.kernel, slowest_ns_ = event.duration_ns;
  show();
}

void RunProgress::show() const {
  if (!progress_line().is_seen()) return;
  const std::string count =
      calls_.empty() ? std::to_string(done_) : fmt::format("{} of {}", done_, std::max(done_, calls_.size()));
  const std::string at_work = done_ < calls_.size() ? ": " + calls_[done_] : "";
  progress_line().show(printable(fmt::format("{} {}{}", count, pieces_, at_work), std::string::npos));
}

vm::Value run_in_search(const Program& program, const std::vector<vm::Value>& inputs, const vm::Function& function,
                        int number) {
  vm::Value result;
  {
    RunProgress progress(program, function, fmt::format("kernels of run {} in search of the pass", number));
    Session session(program, {.threads = 1});
    session.set_profiler(progress.profiler());
    result = session.run_values(inputs, function.name);
  }
  progress_line().show(fmt::format("passes and code for run {} in search of the pass", number + 1));
  return result;
}

}  // namespace relaxc::tools
