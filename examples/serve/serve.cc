// Serves an artifact over HTTP. POST /predict takes the float32 elements of one sample, little-endian, and answers
// those of its row of the result. GET / describes the program and counts requests. SIGTERM and SIGINT end the server
// when what it accepted is answered. Usage: serve ARTIFACT [--port 8080] [--batch 32] [--wait MICROSECONDS]
// [--queue 1024] [--threads 0] [--connections 64]; port 0 is any free one.
//
// The library, cpp-httplib, has a thread for each open connection: it waits for the answer while the batcher runs.
#include <httplib.h>
#include <signal.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "batcher.h"
#include "flags.h"

namespace {

class Server : public httplib::Server {
 public:
  // Lets more clients connect at once than the five of the library: it has a queue of this length for them in the
  // system, and a connection beyond that is reset.
  void widen() { ::listen(svr_sock_, SOMAXCONN); }
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
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

std::string in_words(const serve::BatchCounts& counts) {
  return fmt::format("accepted {} requests, answered {} in {} batches", counts.accepted, counts.answered,
                     counts.batches);
}

void set_up(Server& server, serve::Batcher& batcher, const relaxc::Program& program, int connections) {
  server.new_task_queue = [=] { return new httplib::ThreadPool(connections); };
  server.set_keep_alive_max_count(SIZE_MAX);
  server.set_keep_alive_timeout(5);  // seconds: as long as the end waits for connections that are idle
  server.set_tcp_nodelay(true);
  server.set_socket_options([](socket_t socket) {  // the library's would let two servers share a port
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  server.set_payload_max_length(batcher.sample_size() * sizeof(float) + (1 << 20));
  server.Get("/", [&](const httplib::Request&, httplib::Response& response) {
    response.set_content(fmt::format("{} -> {}\n{}\n", to_string(program.inputs()[0]), to_string(program.outputs()[0]),
                                     in_words(batcher.counts())),
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
  Server server;
  set_up(server, batcher, program, flags["connections"]);
  const int port = bound_port(server, flags["port"]);
  server.widen();
  fmt::print("listening on 127.0.0.1:{}\n", port);
  std::fflush(stdout);
  std::thread ending([&] {
    int signal = 0;
    sigwait(&signals, &signal);
    while (!server.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // stop() needs that
    server.stop();
  });
  if (!serve_until_stopped(server)) std::_Exit(1);  // the other thread waits for a signal
  ending.join();
  batcher.finish();
  fmt::print("{}\n", in_words(batcher.counts()));
} catch (const std::exception& error) {
  return fmt::print(stderr, "{}\n", error.what()), 1;
}
