// Runs what may crash or hang beside this process: another program, or a function in a forked copy of it.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace relaxc::tools {

struct Outcome {
  int exit_code = -1;  // -1 when it did not exit by itself
  int signal = 0;      // what killed it; 0: nothing did
  bool timed_out = false;
  double seconds = 0;
  std::string out, err;
  // "exit code 1", "killed by signal 11 (Segmentation fault)", "still running after 20 s".
  std::string how_it_ended() const;
};

// A signal ended the work: SIGINT, SIGTERM or SIGHUP.
struct Interrupted {
  int signal;
};
// While it lives, these signals do not end the process at once: run_program() ends the other program and throws
// Interrupted, so that destructors clean up. There is one at a time.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
  // Throws Interrupted if a signal came.
  static void check();
  // Ends the process by the signal, as if it had not been caught.
  [[noreturn]] static void end_process(Interrupted interrupted);
};

// Runs a program (argv[0] is its path) with an empty standard input, and collects what it prints.
Outcome run_program(const std::vector<std::string>& argv, double limit_seconds);

// Runs `count` functions, each in an own forked process, `parallel` of them at a time. What work(i) returns arrives in
// `out` of done(i, outcome), which is called in this process, in the order in which they end. The caller must have no
// other threads: a forked copy has only one.
void run_forked(int count, int parallel, double limit_seconds, const std::function<std::string(int)>& work,
                const std::function<void(int, const Outcome&)>& done);

}  // namespace relaxc::tools
