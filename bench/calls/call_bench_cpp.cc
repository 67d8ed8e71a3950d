// Measures what a call costs besides its kernels, as call_bench.c does, by the C++ class relaxc::Session, of an
// artifact in a file. Usage: call_bench_cpp. Exits with 1 where a call with memory of the host's takes a microsecond or
// more.
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>
#include <relaxc/relaxc.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>

namespace {

constexpr int kRuns = 200000, kRounds = 5;

// Returns the microseconds of processor time of a run: the least of the rounds.
template <class Run>
double least_microseconds(Run&& run) {
  auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
  };
  double least = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const double start = now();
    for (int i = 0; i < kRuns; ++i) run();
    least = std::min(least, (now() - start) / kRuns);
  }
  return least;
}

}  // namespace

int main() try {
  constexpr std::string_view kText =
      "@R.function\n"
      "def main(x: R.Tensor((\"n\", 2), \"float32\")):\n"
      "    return R.add(x, x)\n";
  relaxc::CompileSettings settings;
  settings.contents = std::as_bytes(std::span(kText));
  const std::string artifact = std::filesystem::temp_directory_path() / fmt::format("call_bench_{}.so", getpid());
  relaxc::compile_file("tiny.py", settings).write(artifact);
  relaxc::Session session(relaxc::Program::load(artifact), {.threads = 1});
  const relaxc::Tensor x = relaxc::Tensor::empty({3, 2}, relaxc::kFloat32),
                       y = relaxc::Tensor::empty({3, 2}, relaxc::kFloat32);
  std::fill_n(x.data<float>(), x.size(), 1.0f);
  const double into = least_microseconds([&] { session.run_into(std::span(&x, 1), std::span(&y, 1)); });
  const double fresh = least_microseconds([&] { session.run({x}); });
  std::printf("Session::run_into  %.2f us\nSession::run       %.2f us\n", into, fresh);
  std::filesystem::remove(artifact);
  return into < 1 ? 0 : 1;
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
