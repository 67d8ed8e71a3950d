#include "tools/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

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
// Parts of a core's L2 cache and of the L3 cache, which other data share, and more than any cache holds.
constexpr int64_t kL2Bytes = 192 << 10, kL3Bytes = 6 << 20, kUncachedBytes = 128 << 20;
constexpr int64_t kL2Rounds = 200, kL3Rounds = 8;
constexpr double kMostSlowdown = 20;
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
  std::array<MemoryLevel, 3> levels() const {
    auto l2_bytes = static_cast<double>(threads_ * target_.l2_of_core());
    // Programs on other cores use the L3 cache, too.
    auto l3_bytes = static_cast<double>(std::max(threads_ * target_.l2_of_core(), target_.l3.bytes / 2));
    return {{{"L2", l2_bytes, bytes_per_s(kL2Bytes * threads_, kL2Rounds)},
             {"L3", l3_bytes, bytes_per_s(kL3Bytes, kL3Rounds)},
             {"memory", std::numeric_limits<double>::infinity(), bytes_per_s(kUncachedBytes, 1)}}};
  }

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

size_t MachineLimits::level_of(double bytes) const {
  auto level = std::ranges::find_if(levels, [&](const MemoryLevel& candidate) { return bytes <= candidate.bytes; });
  return static_cast<size_t>(level - levels.begin());
}

MachineLimits machine_limits(const std::shared_ptr<vm::TaskPool>& pool) {
  const Meter meter(pool);
  MachineLimits limits{meter.operations_per_s(), meter.levels()};
  std::vector<double*> figures = {&limits.operations_per_s};
  for (MemoryLevel& level : limits.levels) figures.push_back(&level.bytes_per_s);
  const std::filesystem::path path = limits_file(pool->num_workers());
  std::error_code ignored;
  // What is no file is left alone.
  if (path.empty() || (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored)))
    return limits;
  std::ifstream known(path);
  std::vector<double> best;
  for (double figure; known >> figure;) best.push_back(figure);
  std::filesystem::create_directories(path.parent_path(), ignored);
  std::ofstream file(path);
  for (size_t i = 0; i < figures.size(); ++i) {
    // A busy machine is that much slower at most: larger figures are not of this one.
    const bool is_known = best.size() == figures.size() && best[i] <= kMostSlowdown * *figures[i];
    if (is_known) *figures[i] = std::max(*figures[i], best[i]);
    file << *figures[i] << "\n";
  }
  return limits;
}

}  // namespace relaxc::tools
