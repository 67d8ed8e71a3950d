#include "tools/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "tools/in_turn.h"

namespace relaxc::tools {

namespace {

// Chains of multiply-adds, more than the latency of one times the units, which stay in registers.
constexpr const char* kMultiplyAdds = R"(
@T.prim_func
def multiply_adds(x: T.Buffer((2, {lanes}), "float32"), y: T.Buffer(({threads}, {chains}, {lanes}), "float32")):
    T.func_attr({{"tir.is_scheduled": True}})
    for t in T.parallel({threads}):
        sums = T.alloc_buffer(({chains}, {lanes}), "float32", scope="local")
        for c in T.unroll({chains}):
            for l in T.vectorized({lanes}):
                sums[c, l] = T.float32(0)
        for i in range({steps}):
            for c in T.unroll({chains}):
                for l in T.vectorized({lanes}):
                    sums[c, l] = sums[c, l] * x[0, l] + x[1, l]
        for c in T.unroll({chains}):
            for l in T.vectorized({lanes}):
                y[t, c, l] = sums[c, l]
)";
// Reads a part of the memory for each thread, several times.
constexpr const char* kReads = R"(
@T.prim_func
def reads(x: T.Buffer(({threads}, {rows}, {chains}, {lanes}), "float32"), y: T.Buffer(({threads}, {chains}, {lanes}), "float32")):
    T.func_attr({{"tir.is_scheduled": True}})
    for t in T.parallel({threads}):
        sums = T.alloc_buffer(({chains}, {lanes}), "float32", scope="local")
        for c in T.unroll({chains}):
            for l in T.vectorized({lanes}):
                sums[c, l] = T.float32(0)
        for r, i in T.grid({rounds}, {rows}):
            for c in T.unroll({chains}):
                for l in T.vectorized({lanes}):
                    sums[c, l] = sums[c, l] + x[t, i, c, l]
        for c in T.unroll({chains}):
            for l in T.vectorized({lanes}):
                y[t, c, l] = sums[c, l]
)";
constexpr int64_t kChains = 10, kSteps = 400'000;
// A part of an L2 cache, which other data share, and more than any cache holds.
constexpr int64_t kCachedBytes = 192 << 10, kUncachedBytes = 128 << 20;
constexpr int64_t kCachedRounds = 200;
constexpr int kRepetitions = 5;

// Measures programs that get a tensor of zeros.
class Meter {
 public:
  explicit Meter(std::shared_ptr<vm::TaskPool> pool)
      : pool_(std::move(pool)), threads_(pool_->num_workers()), lanes_(target_.vector_lanes(32)) {}

  double operations_per_s() const {
    auto work = static_cast<double>(2 * threads_ * kChains * lanes_ * kSteps);
    return work / least_seconds(kMultiplyAdds, Tensor::empty({2, lanes_}, kFloat32), 0, 0);
  }
  // Of so many bytes, which all threads share, read several times.
  double bytes_per_s(int64_t bytes, int64_t rounds) const {
    const int64_t rows = bytes / (threads_ * kChains * lanes_ * kFloat32.bytes());
    Tensor x = Tensor::empty({threads_, rows, kChains, lanes_}, kFloat32);
    return static_cast<double>(x.bytes() * rounds) / least_seconds(kReads, x, rows, rounds);
  }
  int64_t cache_bytes() const { return threads_ * target_.l2_of_core(); }

 private:
  double least_seconds(const char* program, Tensor x, int64_t rows, int64_t rounds) const {
    std::memset(x.raw(), 0, static_cast<size_t>(x.bytes()));
    std::string text = fmt::format(fmt::runtime(program), fmt::arg("threads", threads_), fmt::arg("lanes", lanes_),
                                   fmt::arg("chains", kChains), fmt::arg("steps", kSteps), fmt::arg("rows", rows),
                                   fmt::arg("rounds", rounds));
    Diagnostics diagnostics;
    IRModule module = parse_module(text, "limits.py", op_table(), diagnostics);
    Session session(compile(std::move(module)).load(), {.pool = pool_});
    double least = 0;
    for (int i = 0; i < kRepetitions; ++i) {
      double start = now_ms();
      session.run({x});
      double seconds = (now_ms() - start) / 1000;
      least = i == 0 ? seconds : std::min(least, seconds);
    }
    return least;
  }

  Target target_ = pass_context().target;
  std::shared_ptr<vm::TaskPool> pool_;
  int64_t threads_, lanes_;
};

// Returns the file that keeps the figures; empty where there is no folder for it.
std::filesystem::path limits_file(int threads) {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  std::filesystem::path folder;
  if (cache && *cache) {
    folder = cache;
  } else if (home && *home) {
    folder = std::filesystem::path(home) / ".cache";
  } else {
    return {};
  }
  std::string processor = pass_context().target.cpu;
  return folder / "relaxc" / fmt::format("limits-{}-{}.txt", processor, threads);
}

}  // namespace

MachineLimits machine_limits(const std::shared_ptr<vm::TaskPool>& pool) {
  const Meter meter(pool);
  MachineLimits limits{meter.operations_per_s(), meter.bytes_per_s(kCachedBytes * pool->num_workers(), kCachedRounds),
                       meter.bytes_per_s(kUncachedBytes, 1), meter.cache_bytes()};
  const std::filesystem::path path = limits_file(pool->num_workers());
  if (path.empty()) return limits;
  MachineLimits known;
  if (std::ifstream file(path); file >> known.operations_per_s >> known.cache_bytes_per_s >> known.memory_bytes_per_s) {
    limits.operations_per_s = std::max(limits.operations_per_s, known.operations_per_s);
    limits.cache_bytes_per_s = std::max(limits.cache_bytes_per_s, known.cache_bytes_per_s);
    limits.memory_bytes_per_s = std::max(limits.memory_bytes_per_s, known.memory_bytes_per_s);
  }
  std::error_code ignored;
  std::filesystem::create_directories(path.parent_path(), ignored);
  std::ofstream(path) << limits.operations_per_s << "\n"
                      << limits.cache_bytes_per_s << "\n"
                      << limits.memory_bytes_per_s << "\n";
  return limits;
}

}  // namespace relaxc::tools
