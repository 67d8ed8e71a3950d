#include "support/progress.h"

#include <algorithm>

namespace relaxc {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

const char* name_of(CompileStage stage) {
  switch (stage) {
    case CompileStage::kImport:
      return "import";
    case CompileStage::kPasses:
      return "passes";
    case CompileStage::kPrograms:
      return "programs";
    case CompileStage::kKernels:
      return "kernels";
  }
  return "";
}

void StageProgress::tell(std::string_view name, double seconds) const {
  report_({.stage = stage_,
           .done = done_,
           .total = total_,
           .added = added_,
           .at_work = name,
           .seconds = seconds,
           .num_reused = num_reused()});
}
void StageProgress::tell_of_oldest() const {
  if (running_.empty()) return tell("", 0);
  tell(running_.front().name, seconds_since(running_.front().since));
}

void StageProgress::begin(const std::string& name) {
  if (!report_) return;
  std::lock_guard lock(mutex_);
  if (refused_) std::rethrow_exception(refused_);
  running_.push_back({name, std::chrono::steady_clock::now()});
  try {
    tell_of_oldest();
  } catch (...) {
    running_.pop_back();
    refused_ = std::current_exception();
    throw;
  }
}

void StageProgress::end(const std::string& name) {
  if (!report_) return;
  std::lock_guard lock(mutex_);
  auto piece = std::ranges::find(running_, name, &Running::name);
  const double seconds = seconds_since(piece->since);
  running_.erase(piece);
  if (seconds > slowest_seconds_) slowest_ = name, slowest_seconds_ = seconds;
  ++done_;
  try {
    done_ == total_ ? tell(slowest_, slowest_seconds_) : tell_of_oldest();
  } catch (...) {  // a destructor calls this: the next piece is the first that can be refused
    refused_ = std::current_exception();
  }
}

void StageProgress::begin_round(size_t pieces, size_t rounds_left) {
  std::lock_guard lock(mutex_);
  const size_t needed = done_ + pieces * rounds_left;
  if (needed <= total_) return;
  if (done_ > 0) added_ += needed - total_;
  total_ = needed;
}

void StageProgress::finish() {
  if (!report_) return;
  std::lock_guard lock(mutex_);
  if (done_ == total_) return;
  done_ = total_;
  tell(slowest_, slowest_seconds_);
}

}  // namespace relaxc
