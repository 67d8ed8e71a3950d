// <relaxc/progress.h>: what a compilation is doing, for whoever waits for it.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace relaxc {

// The stages of a compilation, which comes to each one once. What their pieces are: nodes of the model; passes, of
// which neighbours over tensor programs count as one; the programs that each group of these works on, so that this
// stage is a part of the one before; kernels that become machine code.
enum class CompileStage : uint8_t { kImport, kPasses, kPrograms, kKernels };
// Returns "import", "passes", "programs" or "kernels".
const char* name_of(CompileStage stage);

struct Progress {
  CompileStage stage = CompileStage::kImport;
  // Pieces of the stage, which has ended when they are equal. Neither becomes less. `total` becomes more where passes
  // make more programs than there were: `added` are those of it.
  size_t done = 0, total = 0, added = 0;
  // The piece that is at work the longest, by name. At the end of a stage the one that took longest; "" when none did.
  // The characters live as long as the call.
  std::string_view at_work = {};
  double seconds = 0;     // how long that has been at work
  size_t num_reused = 0;  // kernels, of those that are done, whose code an earlier compilation made
};

// Is called when a piece begins and when it ends, by the thread that works on it, but never by two threads at once. It
// must return soon, since the others may wait for it. What it throws ends the compilation before the next piece.
using OnProgress = std::function<void(const Progress&)>;

// Counts the pieces of one stage, on which several threads may work. Without a callback it does nothing.
class StageProgress {
 public:
  StageProgress(const OnProgress& report, CompileStage stage, size_t total)
      : report_(report), stage_(stage), total_(total) {}

  // Begins a round of pieces, in a stage that has several. Those after it are expected to have as many; where they have
  // fewer, the others count as done at the end.
  void begin_round(size_t pieces, size_t rounds_left);
  // Says that the stage has ended, where pieces of it were left out.
  void finish();
  // Counts a piece that is taken from an earlier compilation, while it is at work.
  void count_reused() { num_reused_.fetch_add(1, std::memory_order_relaxed); }
  size_t num_reused() const { return num_reused_.load(std::memory_order_relaxed); }

  // A piece that is at work as long as the object lives.
  class Piece {
   public:
    Piece(StageProgress& stage, std::string_view name) : stage_(stage), name_(name) { stage_.begin(name_); }
    ~Piece() { stage_.end(name_); }
    Piece(const Piece&) = delete;
    Piece& operator=(const Piece&) = delete;

   private:
    StageProgress& stage_;
    std::string name_;
  };

 private:
  struct Running {
    std::string name;
    std::chrono::steady_clock::time_point since;
  };
  void begin(const std::string& name);
  void end(const std::string& name);
  void tell(std::string_view name, double seconds) const;
  void tell_of_oldest() const;

  const OnProgress& report_;
  const CompileStage stage_;
  size_t total_, added_ = 0;
  std::mutex mutex_;
  std::atomic<size_t> num_reused_ = 0;
  size_t done_ = 0;
  std::vector<Running> running_;  // the oldest first
  std::exception_ptr refused_;    // what the callback threw, which ends the stage: no further piece begins
  std::string slowest_;
  double slowest_seconds_ = 0;
};

}  // namespace relaxc
