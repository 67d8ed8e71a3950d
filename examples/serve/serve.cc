// Serves an artifact over HTTP. POST /predict takes the float32 elements of one sample, little-endian, and answers
// those of its row of the result. GET / describes the program and counts requests; its status is 503 while runs fail.
// SIGTERM, SIGINT and SIGHUP end the server when all connections that the system has accepted for it are answered.
// Usage: serve ARTIFACT [--port 8080] [--batch 32] [--wait MICROSECONDS] [--queue 1024] [--threads 0]
// [--connections 64]; port 0 is any free one.
//
// The library, cpp-httplib, has a thread for each open connection: it waits for the answer while the batcher runs.
#include <httplib.h>
#include <linux/filter.h>
#include <poll.h>
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>

#include <fmt/format.h>

#include "batcher.h"
#include "flags.h"

namespace {

using std::chrono::milliseconds;

// The library's threads, which count the connections that are accepted and not closed.
class Connections : public httplib::ThreadPool {
 public:
  Connections(size_t threads, std::atomic<int>& open) : ThreadPool(threads), open_(open) {}
  void enqueue(std::function<void()> connection) override {
    ++open_;
    ThreadPool::enqueue([&open = open_, connection = std::move(connection)] { connection(), --open; });
  }

 private:
  std::atomic<int>& open_;
};

class Server : public httplib::Server {
 public:
  explicit Server(size_t threads) {
    new_task_queue = [this, threads] { return new Connections(threads, open_); };
    set_post_routing_handler([this](const httplib::Request&, httplib::Response& response) {
      if (!is_ending_) return;
      response.headers.erase("Keep-Alive");
      response.set_header("Connection", "close");
    });
  }

  // Lets more clients connect at once than the five of the library: it has a queue of this length for them in the
  // system, and a connection beyond that is reset.
  void widen() { ::listen(svr_sock_, SOMAXCONN); }

  // Accepts the connections that wait in the system's queue, answers all of them, and ends. New ones are ignored until
  // the socket is closed, and refused then. Connections that are still open after kLongestEnd lose their answers.
  void drain() {
    constexpr milliseconds kStep(10), kLongestEnd(10'000);
    constexpr int kQuietSteps = 5;  // a connection between its queue and its thread is counted in neither
    is_ending_ = true;              // clients are asked to close their connections, and so need no timeout
    ignore_new_connections();
    const auto last = std::chrono::steady_clock::now() + kLongestEnd;
    for (int quiet = 0; quiet < kQuietSteps && std::chrono::steady_clock::now() < last; ++quiet) {
      if (has_connections()) quiet = -1;
      std::this_thread::sleep_for(kStep);
    }
    stop();
  }

 private:
  bool has_connections() const {
    pollfd queue{svr_sock_, POLLIN, 0};
    return open_ > 0 || poll(&queue, 1, 0) > 0;
  }

  // Closing the socket would reset the connections in its queue. A filter of packets drops those that ask for a new
  // connection: with SYN among the flags, which are byte 13 of TCP's header.
  void ignore_new_connections() {
    constexpr uint32_t kFlags = 13, kSyn = 2, kDrop = 0, kKeep = 0xFFFF;
    sock_filter steps[] = {BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kFlags), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kSyn, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, kDrop), BPF_STMT(BPF_RET | BPF_K, kKeep)};
    const sock_fprog filter{std::size(steps), steps};
    setsockopt(svr_sock_, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter);
  }

  std::atomic<int> open_ = 0;
  std::atomic<bool> is_ending_ = false;
};

void fail(httplib::Response& response, int status, const std::string& message) {
  response.status = status;
  response.set_content(message + "\n", "text/plain");
}

void predict(serve::Batcher& batcher, const httplib::Request& request, httplib::Response& response) {
  const size_t bytes = batcher.sample_size() * sizeof(float);
  if (request.body.size() != bytes) {
    return fail(response, 400,
                fmt::format("expected {} bytes, the {} float32 elements of a sample, got {} bytes", bytes,
                            batcher.sample_size(), request.body.size()));
  }
  std::vector<float> sample(batcher.sample_size());
  std::memcpy(sample.data(), request.body.data(), bytes);
  auto answer = batcher.submit(std::move(sample));
  if (!answer) return fail(response, 503, "too many requests wait for an answer; try again later");
  try {
    const std::vector<float> row = answer->get();
    response.set_content(reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float),
                         "application/octet-stream");
  } catch (const relaxc::RuntimeError& error) {
    fail(response, 500, error.what());
  }
}

// Blocks the signals that end the server in this thread and those that it starts, so that wait_for_signal gets them.
sigset_t block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

std::string in_words(const serve::BatchCounts& counts) {
  std::string words =
      fmt::format("accepted {} requests, answered {} in {} batches", counts.accepted, counts.answered, counts.batches);
  if (counts.failed > 0) words += fmt::format(", of which {} failed", counts.failed);
  return words;
}

void set_up(Server& server, serve::Batcher& batcher, const relaxc::Program& program) {
  server.set_keep_alive_max_count(SIZE_MAX);
  server.set_keep_alive_timeout(5);  // seconds: as long as the end waits for connections that are idle
  server.set_tcp_nodelay(true);
  server.set_socket_options([](socket_t socket) {  // the library's would let two servers share a port
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  server.set_payload_max_length(batcher.sample_size() * sizeof(float) + (1 << 20));
  // The library would unpack a body before it looks at its size.
  server.set_pre_routing_handler([](const httplib::Request& request, httplib::Response& response) {
    if (!request.has_header("Content-Encoding")) return Server::HandlerResponse::Unhandled;
    response.status = 415;
    response.set_content("bodies are taken as they are, without Content-Encoding\n", "text/plain");
    return Server::HandlerResponse::Handled;
  });
  server.Get("/", [&](const httplib::Request&, httplib::Response& response) {
    const serve::BatchCounts counts = batcher.counts();
    response.status = counts.error.empty() ? 200 : 503;
    response.set_content(
        fmt::format("{} -> {}\n{}\n{}", to_string(program.inputs()[0]), to_string(program.outputs()[0]),
                    in_words(counts), counts.error.empty() ? "" : "the last run: " + counts.error + "\n"),
        "text/plain");
  });
  server.Post("/predict", [&](const httplib::Request& request, httplib::Response& response) {
    predict(batcher, request, response);
  });
}

// Returns the port that the server has from now on; throws when it cannot have it.
int bound_port(Server& server, int wanted) {
  errno = 0;
  const int port = wanted == 0                                ? server.bind_to_any_port("127.0.0.1")
                   : server.bind_to_port("127.0.0.1", wanted) ? wanted
                                                              : -1;
  if (port > 0) return port;
  if (errno == EADDRINUSE)
    throw std::runtime_error(fmt::format("port {} is in use; --port 0 takes a free one", wanted));
  if (errno == EACCES)
    throw std::runtime_error(fmt::format("port {} is for privileged programs only; give one from 1024", wanted));
  throw std::runtime_error(fmt::format("port {} cannot be opened: {}", wanted, std::strerror(errno)));
}

// Returns false where no connection can be accepted any more, or the system refuses the threads that wait for answers.
bool serve_until_stopped(Server& server) try {
  if (server.listen_after_bind()) return true;  // it was stopped, and every connection has had its answer
  fmt::print(stderr, "connections cannot be accepted any more\n");
  return false;
} catch (const std::system_error& error) {
  fmt::print(stderr, "a thread for each connection cannot be started ({}); give fewer --connections\n", error.what());
  return false;
}

}  // namespace

int main(int argc, char** argv) try {
  relaxc::name_kinds_of_files();
  const serve::Flags flags(argc, argv,
                           {{"port", {8080, 0, 65535}},
                            {"batch", {32, 1, 1 << 20}},
                            {"wait", {500, 0, 60'000'000}},
                            {"queue", {1024, 1, 1 << 20}},
                            {"threads", {0, 0, 1024}},
                            {"connections", {64, 1, 10'000}}});
  const sigset_t signals = block_signals();
  const relaxc::Program program = relaxc::Program::load(flags.artifact);
  serve::Batcher batcher(program, {.largest_batch = flags["batch"],
                                   .longest_wait = std::chrono::microseconds(flags["wait"]),
                                   .longest_queue = static_cast<size_t>(flags["queue"]),
                                   .threads = flags["threads"]});
  batcher.on_error = [](const std::string& error) { fmt::print(stderr, "a run failed: {}\n", error); };
  Server server(flags["connections"]);
  set_up(server, batcher, program);
  const int port = bound_port(server, flags["port"]);
  server.widen();
  fmt::print("listening on 127.0.0.1:{}\n", port);
  std::fflush(stdout);
  std::thread ending([&] {
    int signal = 0;
    sigwait(&signals, &signal);
    while (!server.is_running()) std::this_thread::sleep_for(milliseconds(1));  // stop() needs that
    server.drain();
  });
  if (!serve_until_stopped(server)) std::_Exit(1);  // the other thread waits for a signal
  ending.join();
  batcher.finish();
  fmt::print("{}\n", in_words(batcher.counts()));
} catch (const std::exception& error) {
  return fmt::print(stderr, "{}\n", error.what()), 1;
}
