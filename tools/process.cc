#include "tools/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <map>
#include <stdexcept>

namespace relaxc::tools {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// A running child and the pipes that it writes to.
struct Child {
  pid_t pid = -1;
  int out = -1, err = -1;  // -1 once at its end
  Clock::time_point start;
  Outcome outcome;
};

std::pair<int, int> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  return {ends[0], ends[1]};
}

// Forks; the child runs `body(out, err)` with the write ends and must not return.
template <class Body>
Child start(Body body) {
  auto [out_read, out_write] = make_pipe();
  auto [err_read, err_write] = make_pipe();
  fflush(nullptr);
  Child child;
  child.start = Clock::now();
  child.pid = fork();
  if (child.pid < 0) throw std::runtime_error("no process");
  if (child.pid == 0) body(out_write, err_write);
  close(out_write);
  close(err_write);
  child.out = out_read;
  child.err = err_read;
  return child;
}

void read_some(int& fd, std::string& text) {
  char buffer[1 << 16];
  ssize_t count = read(fd, buffer, sizeof buffer);
  if (count > 0) {
    text.append(buffer, static_cast<size_t>(count));
    return;
  }
  close(fd);
  fd = -1;
}

// Waits a little for output or the end of any child; kills those that exceed the limit. Returns whether the child is
// done.
bool attend(Child& child, double limit_seconds) {
  if (child.out >= 0 || child.err >= 0) {
    pollfd fds[2] = {{child.out, POLLIN, 0}, {child.err, POLLIN, 0}};
    if (poll(fds, 2, 2) > 0) {
      if (fds[0].revents) read_some(child.out, child.outcome.out);
      if (fds[1].revents) read_some(child.err, child.outcome.err);
    }
    bool late = seconds_since(child.start) > limit_seconds;
    if (!late) return false;
    child.outcome.timed_out = true;
    kill(child.pid, SIGKILL);
    if (child.out >= 0) close(child.out);
    if (child.err >= 0) close(child.err);
    child.out = child.err = -1;
  }
  int status = 0;
  if (waitpid(child.pid, &status, 0) != child.pid) throw std::runtime_error("lost a child process");
  child.outcome.seconds = seconds_since(child.start);
  if (WIFEXITED(status)) child.outcome.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) child.outcome.signal = WTERMSIG(status);
  return true;
}

void write_all(int fd, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    ssize_t count = write(fd, text.data() + done, text.size() - done);
    if (count <= 0) return;
    done += static_cast<size_t>(count);
  }
}

}  // namespace

std::string Outcome::how_it_ended() const {
  if (timed_out) return fmt::format("still running after {:.0f} s", seconds);
  if (signal != 0) return fmt::format("killed by signal {} ({})", signal, strsignal(signal));
  return fmt::format("exit code {}", exit_code);
}

static volatile std::sig_atomic_t received_signal = 0;
extern "C" {
static void note_signal(int signal) { received_signal = signal; }
}
static constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGHUP};

InterruptScope::InterruptScope() {
  received_signal = 0;
  for (int signal : kEndingSignals) {
    struct sigaction action{}, old{};
    action.sa_handler = note_signal;
    // A signal that was ignored stays so, as for a program that nohup starts.
    if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
}
InterruptScope::~InterruptScope() {
  for (int signal : kEndingSignals) {
    struct sigaction old{};
    if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler == note_signal) std::signal(signal, SIG_DFL);
  }
}
void InterruptScope::check() {
  if (received_signal != 0) throw Interrupted{received_signal};
}
void InterruptScope::end_process(Interrupted interrupted) {
  std::signal(interrupted.signal, SIG_DFL);
  raise(interrupted.signal);
  _exit(128 + interrupted.signal);  // it is blocked
}

Outcome run_program(const std::vector<std::string>& argv, double limit_seconds) {
  std::vector<char*> arguments;
  for (const std::string& text : argv) arguments.push_back(const_cast<char*>(text.c_str()));
  arguments.push_back(nullptr);
  Child child = start([&](int out, int err) {
    dup2(open("/dev/null", O_RDONLY), 0);
    dup2(out, 1);
    dup2(err, 2);
    execvp(arguments[0], arguments.data());
    _exit(127);
  });
  while (!attend(child, received_signal != 0 ? 0 : limit_seconds)) {
  }
  InterruptScope::check();
  return child.outcome;
}

void run_forked(int count, int parallel, double limit_seconds, const std::function<std::string(int)>& work,
                const std::function<void(int, const Outcome&)>& done) {
  std::map<int, Child> running;
  for (int next = 0; next < count || !running.empty();) {
    while (next < count && static_cast<int>(running.size()) < parallel) {
      int index = next++;
      running.emplace(index, start([&](int out, int err) {
                        dup2(err, 2);
                        write_all(out, work(index));
                        _exit(0);  // not exit: destructors of this process's statics are not the copy's to run
                      }));
    }
    for (auto it = running.begin(); it != running.end();) {
      if (!attend(it->second, limit_seconds)) {
        ++it;
        continue;
      }
      done(it->first, it->second.outcome);
      it = running.erase(it);
    }
  }
}

}  // namespace relaxc::tools
