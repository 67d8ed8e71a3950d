// Loads a server on this machine: each of so many connections sends a sample, waits for the answer and sends the next
// one. Compares every answer with the artifact's own, and prints requests per second and latencies. It ends after
// --seconds, after --requests of each connection, or when the server ends. Usage: serve_load ARTIFACT
// [--port 8080] [--connections 32] [--seconds 5] [--requests 0]; 0 requests: as many as the time allows.
//
// Exit code 1: an answer was wrong or missing, or a request was refused.
#include <httplib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <thread>

#include <fmt/format.h>
#include <relaxc/runtime.h>

#include "flags.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Sample {
  std::string body;           // the elements of the input
  std::vector<float> answer;  // by a run of this sample alone
};

std::vector<Sample> make_samples(const relaxc::Program& program, int count) {
  std::vector<int64_t> shape = {1};
  const auto& dims = *program.inputs()[0].dims;
  for (size_t i = 1; i < dims.size(); ++i) shape.push_back(dims[i].value);
  relaxc::Session session(program);
  relaxc::Tensor input = relaxc::Tensor::empty(shape, relaxc::kFloat32);
  std::minstd_rand random(1);
  std::vector<Sample> samples;
  for (int i = 0; i < count; ++i) {
    std::generate_n(input.data<float>(), input.size(),
                    [&] { return std::uniform_real_distribution<float>(-1, 1)(random); });
    const relaxc::Tensor output = session.run({input})[0];
    samples.push_back({std::string(static_cast<const char*>(input.raw()), input.bytes()),
                       std::vector(output.data<float>(), output.data<float>() + output.size())});
  }
  return samples;
}

// Sums of a batch may be taken in another order than those of a single sample.
bool is_right(const std::string& body, const std::vector<float>& expected) {
  if (body.size() != expected.size() * sizeof(float)) return false;
  std::vector<float> found(expected.size());
  std::memcpy(found.data(), body.data(), body.size());
  return std::equal(found.begin(), found.end(), expected.begin(),
                    [](float a, float b) { return std::abs(a - b) <= 1e-5f + 1e-4f * std::abs(b); });
}

struct Outcome {
  std::vector<double> milliseconds;  // of the requests that were answered
  int64_t wrong = 0;                 // of these
  int64_t refused = 0;               // by a status other than 200
  int64_t unanswered = 0;            // the connection ended first
};

Outcome send_requests(int port, int requests, Clock::time_point end, const std::vector<Sample>& samples, size_t first) {
  httplib::Client client("127.0.0.1", port);
  client.set_keep_alive(true);
  client.set_tcp_nodelay(true);
  client.set_read_timeout(60);
  Outcome outcome;
  for (size_t i = 0; Clock::now() < end && (requests == 0 || i < static_cast<size_t>(requests)); ++i) {
    const Sample& sample = samples[(first + i) % samples.size()];
    const Clock::time_point start = Clock::now();
    auto response = client.Post("/predict", sample.body, "application/octet-stream");
    if (!response) {
      // A server that has ended refuses connections, and a request that was never sent needs no answer.
      if (response.error() != httplib::Error::Connection) ++outcome.unanswered;
      break;
    }
    if (response->status != 200) {
      ++outcome.refused;
      continue;
    }
    outcome.milliseconds.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    if (!is_right(response->body, sample.answer)) ++outcome.wrong;
  }
  return outcome;
}

void add(Outcome& sum, const Outcome& part) {
  sum.milliseconds.insert(sum.milliseconds.end(), part.milliseconds.begin(), part.milliseconds.end());
  sum.wrong += part.wrong;
  sum.refused += part.refused;
  sum.unanswered += part.unanswered;
}

// Throws where no server answers.
void check_server(int port) {
  const auto about = httplib::Client("127.0.0.1", port).Get("/");
  if (about) return;
  throw std::runtime_error(
      fmt::format("no server answers at 127.0.0.1:{}; start it first: serve ARTIFACT --port {}", port, port));
}

double percentile(const std::vector<double>& sorted, double share) {
  return sorted.empty() ? 0 : sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))];
}

}  // namespace

int main(int argc, char** argv) try {
  relaxc::name_kinds_of_files();
  const serve::Flags flags(argc, argv,
                           {{"port", {8080, 1, 65535}},
                            {"connections", {32, 1, 10'000}},
                            {"seconds", {5, 1, 86'400}},
                            {"requests", {0, 0, 1 << 30}}});
  check_server(flags["port"]);
  const std::vector<Sample> samples = make_samples(relaxc::Program::load(flags.artifact), 64);
  const Clock::time_point start = Clock::now(), end = start + std::chrono::seconds(flags["seconds"]);
  std::vector<Outcome> outcomes(flags["connections"]);
  std::vector<std::thread> connections;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    connections.emplace_back(
        [&, i] { outcomes[i] = send_requests(flags["port"], flags["requests"], end, samples, i); });
  }
  for (std::thread& connection : connections) connection.join();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  Outcome all;
  for (const Outcome& outcome : outcomes) add(all, outcome);
  std::sort(all.milliseconds.begin(), all.milliseconds.end());
  fmt::print("answered {} requests on {} connections, {} wrong, {} refused, {} without an answer\n",
             all.milliseconds.size(), outcomes.size(), all.wrong, all.refused, all.unanswered);
  fmt::print("{:.0f} requests per second, p50 {:.2f} ms, p99 {:.2f} ms\n",
             static_cast<double>(all.milliseconds.size()) / seconds, percentile(all.milliseconds, 0.5),
             percentile(all.milliseconds, 0.99));
  return all.wrong + all.refused + all.unanswered > 0 ? 1 : 0;
} catch (const std::exception& error) {
  return fmt::print(stderr, "{}\n", error.what()), 1;
}
