// One line on a terminal that says what is going on, for work of more than a second.
#pragma once
#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "support/progress.h"

namespace relaxc::tools {

// The line appears on standard error, where that is a terminal and -q is not given, once the work has lasted a second,
// and is renewed by a thread of its own. Other messages stand above it.
class ProgressLine {
 public:
  ~ProgressLine();
  // Begins or continues work; `text` says what is going on.
  void show(std::string text);
  // Does so for a compilation; with -v a line about each stage stays.
  void show(const Progress& progress);
  // Returns whether somebody may see it: on a terminal, without -q.
  bool is_seen() const;
  // The work has ended.
  void end();
  // Prints text to standard error, above the line.
  void print_above(const std::string& text);

 private:
  // Of a compilation: when each stage began, and whether it has ended or was never begun.
  static constexpr size_t kNumStages = 4;
  struct StageTime {
    std::chrono::steady_clock::time_point since;
    bool ended = true;
  };
  void clear();
  void draw();
  void run();
  std::mutex mutex_;
  std::condition_variable wake_;
  std::thread thread_;
  bool working_ = false, stop_ = false;
  std::chrono::steady_clock::time_point since_;
  std::array<StageTime, kNumStages> stages_;
  std::string text_;
};
// The one of this process, which has one terminal.
ProgressLine& progress_line();
// Removes the line from the terminal, for handlers of signals that end the process.
void wipe_progress_line();
// Lets SIGINT, SIGTERM and SIGHUP, unless they are ignored, end the process without leaving the line on the terminal;
// the first process of a container, which signals do not end by default, exits with 128 and the signal's number.
void handle_ending_signals();

// Ends the work that the line shows when it goes out of scope.
struct ProgressScope {
  ProgressScope() = default;
  ~ProgressScope() { progress_line().end(); }
  ProgressScope(const ProgressScope&) = delete;
  ProgressScope& operator=(const ProgressScope&) = delete;
};

}  // namespace relaxc::tools
