// examples/serve/: a server under load on loopback gives right answers, and loses none when it is told to end.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "tests/folder.h"
#include "tests/patterns.h"
#include "tests/relaxc_command.h"
#include "tests/report.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using test::contains;
using test::Outcome;

#ifdef RELAXC_SERVE
namespace {

// A server of the digits model on a free port. It is told to end at the latest when the object goes.
class Server {
 public:
  explicit Server(const std::string& flags) {
    const std::string model = RELAXC_SOURCE_DIR "/examples/digits/digits.onnx";
    REQUIRE(test::run_relaxc({"compile", model, "-o", artifact()}).exit_code == 0);
    // The shell's process becomes the server.
    const std::string command = fmt::format("{{ echo $$; exec '{}' '{}' --port 0 {}; }} >'{}' 2>&1", RELAXC_SERVE,
                                            artifact(), flags, folder_.at("log"));
    running_ = std::thread([this, command] { outcome_ = test::run_program({"/bin/sh", "-c", command}, 120); });
    for (int i = 0; i < 1000 && port_.empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      const auto found = test::matches(folder_.read("log"), "^(\\d+)\nlistening on 127.0.0.1:(\\d+)\n");
      if (!found.empty()) process_ = std::stoi(found[0][1]), port_ = found[0][2];
    }
  }
  ~Server() { end(); }

  const std::string& port() const { return port_; }
  void send(int signal) const { kill(process_, signal); }
  // Returns how many connections to the server have sent bytes that it has not read (proc(5), /proc/net/tcp).
  size_t num_waiting() const {
    std::ifstream table("/proc/net/tcp");
    const std::string text{std::istreambuf_iterator<char>(table), {}};
    return test::matches(text, fmt::format(": 0100007F:{:04X} \\w+:\\w+ 01 \\w+:0*[1-9A-F]", std::stoi(port_))).size();
  }
  std::string artifact() const { return folder_.at("digits.so"); }
  std::string log() const { return folder_.read("log"); }
  // Tells the server to end, and returns the last line that it prints.
  std::string end() {
    if (running_.joinable()) {
      if (process_ > 0) kill(process_, SIGTERM);
      running_.join();
      CHECK(outcome_.how_it_ended() == "exit code 0");
    }
    const std::string text = folder_.read("log");
    return text.substr(text.rfind('\n', text.size() - 2) + 1);
  }

 private:
  test::Folder folder_{"serve"};
  std::thread running_;
  Outcome outcome_;
  pid_t process_ = 0;
  std::string port_;
};

Outcome load(const Server& server, std::vector<std::string> flags) {
  flags.insert(flags.begin(), {RELAXC_SERVE_LOAD, server.artifact(), "--port", server.port()});
  return test::run_program(flags, 120);
}

// Returns the number that stands for "{}" in the text.
int number_in(const std::string& text, const std::string& pattern) {
  const auto found = test::matches(text, pattern);
  return found.empty() ? -1 : std::stoi(found[0][1]);
}

// Sends bytes as a request and returns the answer, by bash's own connections.
std::string answer_of(const Server& server, const std::string& request) {
  const std::string script =
      fmt::format("exec 3<>/dev/tcp/127.0.0.1/{}; printf '{}' >&3; timeout 20 cat <&3", server.port(), request);
  return test::run_program({"/bin/bash", "-c", script}, 30).out;
}

const char* const kAbout = "GET / HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n\\r\\n";

std::string post(const std::string& body) {
  return fmt::format("POST /predict HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\nContent-Length: {}\\r\\n\\r\\n{}",
                     body.size(), body);
}

}  // namespace

TEST_CASE("a server gives right answers under load, and batches them", "[serve]") {
  Server server("--batch 8 --wait 20000");
  REQUIRE_FALSE(server.port().empty());
  const Outcome loaded = load(server, {"--connections", "16", "--requests", "40", "--seconds", "60"});
  INFO(loaded.out << loaded.err);
  CHECK(loaded.exit_code == 0);
  CHECK(contains(loaded.out, "answered 640 requests on 16 connections, 0 wrong, 0 refused, 0 without an answer\n"));
  const std::string last = server.end();
  INFO(last);
  CHECK(contains(last, "accepted 640 requests, answered 640 in "));
  CHECK(number_in(last, "in (\\d+) batches") <= 320);
}

TEST_CASE("a server answers what it accepted before it ends", "[serve]") {
  Server server("--batch 4 --wait 5000");
  REQUIRE_FALSE(server.port().empty());
  Outcome loaded;
  std::thread clients([&] { loaded = load(server, {"--connections", "24", "--seconds", "60"}); });
  int before = 0;
  for (int i = 0; i < 600 && before < 100; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    before = number_in(answer_of(server, kAbout), "accepted (\\d+) requests");
  }
  const std::string last = server.end();
  clients.join();
  INFO(loaded.out << loaded.err << last);
  CHECK(contains(loaded.out, "0 wrong, 0 refused, 0 without an answer\n"));
  CHECK(loaded.exit_code == 0);
  const int accepted = number_in(last, "accepted (\\d+) requests");
  CHECK(before >= 100);
  CHECK(accepted >= before);
  CHECK(number_in(last, "answered (\\d+) in") == accepted);
  CHECK(number_in(loaded.out, "answered (\\d+) requests") == accepted);
}

TEST_CASE("a server that ends answers the connections that the system has accepted for it", "[serve]") {
  // One thread, so that connections wait for it, too. The process sleeps while they come, and is told to end then.
  Server server("--connections 1 --batch 4 --wait 1000");
  REQUIRE_FALSE(server.port().empty());
  server.send(SIGSTOP);
  constexpr size_t kClients = 8;
  std::vector<std::string> answers(kClients);
  std::vector<std::thread> clients;
  for (std::string& answer : answers)
    clients.emplace_back([&] { answer = answer_of(server, post(std::string(256, 'a'))); });
  for (int i = 0; i < 1000 && server.num_waiting() < kClients; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(server.num_waiting() == kClients);
  server.send(SIGTERM);
  server.send(SIGCONT);
  for (std::thread& client : clients) client.join();
  for (const std::string& answer : answers) CHECK(contains(answer, "HTTP/1.1 200 "));
  CHECK(contains(server.end(), "accepted 8 requests, answered 8 in "));
}

TEST_CASE("a server says what is wrong with a request", "[serve]") {
  Server server("");
  REQUIRE_FALSE(server.port().empty());
  const std::string wrong = answer_of(server, post("three"));
  INFO(wrong);
  CHECK(contains(wrong, "HTTP/1.1 400 "));
  CHECK(contains(wrong, "expected 256 bytes, the 64 float32 elements of a sample, got 5 bytes\n"));
  std::string packed = post(std::string(256, 'a'));
  packed.insert(packed.find("Content-Length"), "Content-Encoding: gzip\\r\\n");
  CHECK(contains(answer_of(server, packed), "HTTP/1.1 415 "));
  const std::string about = answer_of(server, kAbout);
  INFO(about);
  CHECK(contains(about, "image: float32[batch, 1, 8, 8] -> probability: float32[batch, 10]\n"));
  const Outcome second = test::run_program({RELAXC_SERVE, server.artifact(), "--port", server.port()}, 20);
  CHECK(second.exit_code == 1);
  CHECK(contains(second.err, fmt::format("port {} is in use", server.port())));
  CHECK(contains(server.end(), "accepted 0 requests"));
}

TEST_CASE("a server whose runs fail says so, and ends when its terminal goes", "[serve]") {
  Server server("");
  REQUIRE_FALSE(server.port().empty());
  const std::string sample(256, '0');
  CHECK(contains(answer_of(server, post(sample)), "200 OK"));
  CHECK(contains(answer_of(server, kAbout), "200 OK"));
  std::filesystem::last_write_time(server.artifact(), std::filesystem::file_time_type::clock::now());
  for (int i = 0; i < 2; ++i) CHECK(contains(answer_of(server, post(sample)), "500 Internal Server Error"));
  const std::string about = answer_of(server, kAbout);
  INFO(about);
  CHECK(contains(about, "503 Service Unavailable"));
  CHECK(contains(about, "answered 3 in 3 batches, of which 2 failed\nthe last run: '"));
  server.send(SIGHUP);
  CHECK(contains(server.end(), "accepted 3 requests, answered 3 in 3 batches, of which 2 failed"));
  CHECK(test::matches(server.log(), "a run failed: '[^\n]*was written to while it was in use").size() == 1);
}

TEST_CASE("a server refuses requests when its queue is full", "[serve]") {
  Server server("--queue 1 --batch 2 --wait 3000000");  // the first request waits for a second one
  REQUIRE_FALSE(server.port().empty());
  std::string answered;
  std::thread first([&] { answered = answer_of(server, post(std::string(256, 'a'))); });
  for (int i = 0; i < 100 && number_in(answer_of(server, kAbout), "accepted (\\d+) requests") != 1; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const std::string refused = answer_of(server, post(std::string(256, 'a')));
  first.join();
  INFO(refused << answered);
  CHECK(contains(answered, "HTTP/1.1 200 "));
  CHECK(contains(refused, "HTTP/1.1 503 "));
  CHECK(contains(refused, "too many requests wait for an answer; try again later\n"));
}

TEST_CASE("a server refuses programs that it cannot batch, and wrong flags", "[serve]") {
  const test::Folder folder("serve_refused");
  const std::string module =
      folder.write("fixed.py", "@R.function\ndef main(x: R.Tensor((2, 3), 'float32')):\n    return R.exp(x)\n");
  REQUIRE(test::run_relaxc({"compile", module, "-o", folder.at("fixed.so")}).exit_code == 0);
  auto error_of = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), RELAXC_SERVE);
    const Outcome outcome = test::run_program(arguments, 20);
    CHECK(outcome.exit_code == 1);
    return outcome.err;
  };
  CHECK(contains(error_of({folder.at("fixed.so")}), "expected one float32 input and one float32 output"));
  const std::string first_row = folder.write("first_row.py",
                                             "@R.function\ndef main(x: R.Tensor(('n', 4), 'float32')):\n"
                                             "    return R.strided_slice(x, axes=[0], begin=[0], end=[1])\n");
  REQUIRE(test::run_relaxc({"compile", first_row, "-o", folder.at("first_row.so")}).exit_code == 0);
  CHECK(contains(error_of({folder.at("first_row.so")}),
                 "expected an output with a row for each row of the input, found x: float32[n, 4] -> "));
  const std::string mixed = folder.write("mixed.py",
                                         "@R.function\ndef main(x: R.Tensor(('n', 4), 'float32')):\n"
                                         "    return R.nn.softmax(x, axis=0)\n");
  REQUIRE(test::run_relaxc({"compile", mixed, "-o", folder.at("mixed.so")}).exit_code == 0);
  CHECK(contains(error_of({folder.at("mixed.so")}), "a row of the output depends on the other rows of the batch"));
  for (const auto& [flag, value, range] :
       {std::tuple("--port", "many", "0 to 65535"), std::tuple("--port", "99999", "0 to 65535"),
        std::tuple("--port", "", "0 to 65535"), std::tuple("--batch", "0", "1 to 1048576"),
        std::tuple("--batch", "-1", "1 to 1048576"), std::tuple("--connections", "0", "1 to 10000"),
        std::tuple("--queue", "0", "1 to 1048576"), std::tuple("--threads", "5000", "0 to 1024")}) {
    CHECK(contains(error_of({"a.so", flag, value}),
                   fmt::format("{}: expected a number from {}, found '{}'", flag, range, value)));
  }
  CHECK(contains(error_of({"a.so", "--porto", "1"}), "unknown argument '--porto'\nusage: "));
  CHECK(contains(error_of({"--port", "1"}), "expected an artifact\nusage: "));
  const Outcome help = test::run_program({RELAXC_SERVE, "--help"}, 20);
  CHECK(help.exit_code == 0);
  CHECK(contains(help.out, "usage: "));
  const Outcome nobody = test::run_program({RELAXC_SERVE_LOAD, folder.at("fixed.so"), "--port", "1"}, 20);
  CHECK(nobody.exit_code == 1);
  CHECK(contains(nobody.err, "no server answers at 127.0.0.1:1; start it first"));
  CHECK(contains(error_of({folder.at("none.so")}), "cannot open"));
  const std::string model = RELAXC_SOURCE_DIR "/examples/digits/digits.onnx";
  CHECK(contains(error_of({model}), "not an artifact: it is an ONNX model; 'relaxc compile' makes an artifact"));
}
#else
TEST_CASE("a server gives right answers under load", "[serve]") {
  test::skip("cpp-httplib is not there (./dev test installs libcpp-httplib-dev)");
}
#endif
