// Every float32 function over all 2^32 arguments (of two arguments: a large structured set), compiled as any kernel is,
// against double references; then its time. Prints the table of docs/math.md.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <mutex>
#include <thread>
#include <tuple>

#include "tests/codegen/float_functions.h"

namespace {

using namespace relaxc;           // NOLINT: a program
using namespace relaxc::codegen;  // NOLINT

constexpr size_t kChunk = size_t{1} << 18;
constexpr uint64_t kChunks = (uint64_t{1} << 32) / kChunk;
constexpr uint64_t kPairChunks = 768;  // 201 million pairs

// On each target, by all processors.
std::vector<Worst> check(const Intrinsic& row, const std::vector<FloatFunction>& functions) {
  std::vector<Worst> result(functions.size());
  std::atomic<uint64_t> next = 0;
  std::mutex mutex;
  auto work = [&] {
    std::vector<float> a(kChunk), b(kChunk), y(kChunk);
    std::vector<double> exact(kChunk);
    std::vector<Worst> found(functions.size());
    for (uint64_t chunk; (chunk = next++) < (row.arity == 1 ? kChunks : kPairChunks);) {
      for (size_t p = 0; p < kChunk; ++p) {
        uint64_t index = chunk * kChunk + p;
        if (row.arity == 1) a[p] = std::bit_cast<float>(static_cast<uint32_t>(index));
        if (row.arity == 2) std::tie(a[p], b[p]) = argument_pair(index);
        exact[p] = row.eval(static_cast<double>(a[p]), static_cast<double>(b[p]), 0);
      }
      for (size_t f = 0; f < functions.size(); ++f) {
        functions[f](a, b, y);
        for (size_t p = 0; p < kChunk; ++p) found[f].add(y[p], exact[p], a[p], b[p]);
      }
    }
    std::lock_guard lock(mutex);
    for (size_t f = 0; f < functions.size(); ++f) result[f].add(found[f]);
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < std::max(1u, std::thread::hardware_concurrency()); ++t) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  return result;
}

// Nanoseconds for 16 elements, from memory to memory in the L2 cache: the best of many calls.
double time_of(const FloatFunction& function) {
  constexpr size_t kSize = 1 << 15, kCalls = 300;
  std::vector<float> a(kSize), b(kSize), y(kSize);
  for (size_t p = 0; p < kSize; ++p) a[p] = b[p] = 0.5f + static_cast<float>(p) / kSize;
  double best = 1e9;
  for (size_t call = 0; call < kCalls; ++call) {
    auto start = std::chrono::steady_clock::now();
    function(a, b, y);
    best = std::min(best, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
  }
  return best / (kSize / 16);
}

std::string cells(const Intrinsic& row, const Worst& worst, double nanoseconds) {
  std::string error = fmt::format("{:.2f}", std::ceil(worst.ulps * 100) / 100);
  if (worst.wrong) error += fmt::format(" and {} special values wrong", worst.wrong);
  std::string at = row.arity == 1 ? fmt::format("{:a}", worst.a) : fmt::format("{:a} {:a}", worst.a, worst.b);
  if (worst.ulps == 0.5) at.clear();
  return fmt::format(" {} | {} | {:.1f} |", error, at, nanoseconds);
}

}  // namespace

// math_bench [time] [FUNCTION...]: time alone takes seconds, the check of a function a minute.
int main(int argc, char** argv) {
  std::vector<std::string> wanted(argv + 1, argv + argc);
  bool only_time = std::erase(wanted, "time") > 0;
  fmt::print("| function | fma: ulp | at | ns / 16 | no fma: ulp | at | ns / 16 |\n|---|---|---|---|---|---|---|\n");
  for (const Intrinsic* row : float_functions()) {
    std::string name = std::string(row->name).substr(4);
    if (!wanted.empty() && std::ranges::find(wanted, name) == wanted.end()) continue;
    std::vector<FloatFunction> functions;
    for (const char* target : {"host", "x86-64-v2"}) functions.emplace_back(*row, target);
    std::vector<Worst> worst = only_time ? std::vector<Worst>(functions.size()) : check(*row, functions);
    fmt::print("| {} |", name);
    for (size_t f = 0; f < functions.size(); ++f) fmt::print("{}", cells(*row, worst[f], time_of(functions[f])));
    fmt::print("\n");
    std::fflush(stdout);
  }
}
