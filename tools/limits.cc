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
#include "passes/quantized_values.h"
#include "tir/intrin/tensor_intrin.h"
#include "tir/primitives/get_block.h"
#include "tir/primitives/get_loops.h"
#include "tir/primitives/tensorize.h"
#include "tir/schedule/schedule.h"
#include "tir/tile_forms.h"
#include "tools/in_turn.h"
#include "tools/progress_line.h"

namespace relaxc::tools {

namespace {

// A program whose threads add up in `chains` vectors that stay in registers: more of them than the latency of an
// addition times the units.
struct ChainsProgram {
  std::string_view params;       // but for the results
  std::string_view loops, step;  // around the chains; what is done for chain c
  bool has_block = false;        // which is scheduled before the program is lowered
};
constexpr const char* kChainsText = R"(
@T.prim_func
def chains(PARAMS, y: T.Buffer(({threads}, {chains}, {lanes}), "{result}")):
    T.func_attr({{"tir.is_scheduled": IS_SCHEDULED}})
    for t in T.parallel({threads}):
        sums = T.alloc_buffer(({chains}, {lanes}), "{result}", scope="local")
        for c in T.unroll({chains}):
            for l in T.vectorized({lanes}):
                sums[c, l] = {zero}
        for LOOPS:
            for c in T.unroll({chains}):
                STEP
        for c in T.unroll({chains}):
            for l in T.vectorized({lanes}):
                y[t, c, l] = sums[c, l]
)";
constexpr ChainsProgram kMultiplyAdds{R"(x: T.Buffer((2, {lanes}), "float32"))", "i in range({steps})",
                                      R"(for l in T.vectorized({lanes}):
                    sums[c, l] = sums[c, l] * x[0, l] + x[1, l])"};
// The block is an instruction once it is tensorized, or several. The chains are a tile of rows and two vectors of
// columns, as in a product of matrices, so that no two of them multiply the same and operands are widened as rarely.
constexpr ChainsProgram kDotProducts = {
    R"(x: T.Buffer(({rows}, {chains} // 2, {group}), "{a}"), w: T.Buffer((2, {lanes}, {group}), "{b}"))",
    "r, s in T.grid({rounds}, {rows})",
    R"(for l, k in T.grid({lanes}, {group}):
                    with T.block("product"):
                        vc, vr, vs, vl, vk = T.axis.remap("SRRSR", [c, r, s, l, k])
                        sums[vc, vl] = sums[vc, vl] + T.Cast("{result}", x[vs, vc // 2, vk]) * T.Cast("{result}", w[vc % 2, vl, vk]))",
    true};
// Reads a part of the memory for each thread, several times.
constexpr ChainsProgram kReads{R"(x: T.Buffer(({threads}, {rows}, {chains}, {lanes}), "float32"))",
                               "r, i in T.grid({rounds}, {rows})", R"(for l in T.vectorized({lanes}):
                    sums[c, l] = sums[c, l] + x[t, i, c, l])"};
// The same as kDotProducts on matrix registers.
constexpr const char* kTileProducts = R"(
@T.prim_func
def tile_products(x: T.Buffer(({rows}, {depth}), "{a}"), w: T.Buffer(({rows}, {rows}, {group}), "{b}"), y: T.Buffer(({threads}, {chains}, {rows}, {rows}), "{result}")):
    for t in T.parallel({threads}):
        sums = T.alloc_buffer(({chains}, {rows}, {rows}), "{result}", scope="amx.tmm")
        left = T.alloc_buffer(({rows}, {depth}), "{a}", scope="amx.tmm")
        right = T.alloc_buffer(({rows}, {rows}, {group}), "{b}", scope="amx.tmm")
        for c in T.unroll({chains}):
            for i, j in T.grid({rows}, {rows}):
                with T.block("zero"):
                    vc, vi, vj = T.axis.remap("SSS", [c, i, j])
                    sums[vc, vi, vj] = {zero}
        for i, k in T.grid({rows}, {depth}):
            with T.block("load_left"):
                vi, vk = T.axis.remap("SS", [i, k])
                left[vi, vk] = x[vi, vk]
        for i, j, k in T.grid({rows}, {rows}, {group}):
            with T.block("load_right"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                right[vi, vj, vk] = w[vi, vj, vk]
        for s in range({steps}):
            for c in T.unroll({chains}):
                for i, j, k in T.grid({rows}, {rows}, {depth}):
                    with T.block("product"):
                        vc, vs, vi, vj, vk = T.axis.remap("SRSSR", [c, s, i, j, k])
                        sums[vc, vi, vj] = sums[vc, vi, vj] + T.Cast("{result}", left[vi, vk]) * T.Cast("{result}", right[vk // {group}, vj, vk % {group}])
        for c in T.unroll({chains}):
            for i, j in T.grid({rows}, {rows}):
                with T.block("store"):
                    vt, vc, vi, vj = T.axis.remap("SSSS", [t, c, i, j])
                    y[vt, vc, vi, vj] = sums[vc, vi, vj]
)";
constexpr int64_t kChains = 10, kSteps = 400'000, kDotRows = 64;
// A product of tiles takes 16 cycles and is ready after 52; all sums and two operands are the eight tiles.
constexpr int64_t kTileChains = kTiles - 2, kTileSteps = 20'000;
// Parts of a core's L2 cache and of the L3 cache, which other data share, and more than any cache holds.
constexpr int64_t kL2Bytes = 192 << 10, kL3Bytes = 6 << 20, kUncachedBytes = 128 << 20;
constexpr int64_t kL2Rounds = 200, kL3Rounds = 8;
constexpr double kMostSlowdown = 20;
constexpr int kRepetitions = 5;

// Measures programs, whose inputs are zeros.
class Meter {
 public:
  explicit Meter(std::shared_ptr<vm::TaskPool> pool)
      : pool_(std::move(pool)), threads_(pool_->num_workers()), lanes_(target_.vector_lanes(32)) {}

  std::array<double, 3> operations_per_s() const {
    const double float32 = multiply_adds_per_s();
    const DType bytes = activations_for_dots(target_).value_or(DType::uint(8));
    return {float32, products_per_s(bytes, DType::int_(8), kInt32).value_or(float32),
            products_per_s(DType::bfloat16(), DType::bfloat16(), kFloat32).value_or(float32)};
  }
  // Of so many bytes, which all threads share, read several times.
  double bytes_per_s(int64_t bytes, int64_t rounds) const {
    const int64_t rows = bytes / (threads_ * kChains * lanes_ * kFloat32.bytes());
    Tensor x = Tensor::empty({threads_, rows, kChains, lanes_}, kFloat32);
    const std::string text = text_of(kReads, kFloat32, lanes_, fmt::arg("rows", rows), fmt::arg("rounds", rounds));
    return static_cast<double>(x.bytes() * rounds) / least_seconds(parsed(text), {x});
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
  // A block and the tensor intrinsic that computes its innermost loops.
  struct Tensorized {
    const char* block;
    int64_t loops;
    std::string intrinsic;
  };

  template <class... Args>
  std::string text_of(const ChainsProgram& program, DType result, int64_t lanes, const Args&... args) const {
    std::string pattern = kChainsText;
    for (const auto& [word, part] : {std::pair<std::string_view, std::string_view>{"PARAMS", program.params},
                                     {"IS_SCHEDULED", program.has_block ? "False" : "True"},
                                     {"LOOPS", program.loops},
                                     {"STEP", program.step}})
      pattern.replace(pattern.find(word), word.size(), part);
    return fmt::format(fmt::runtime(pattern), fmt::arg("threads", threads_), fmt::arg("chains", kChains),
                       fmt::arg("lanes", lanes), fmt::arg("result", to_string(result)),
                       fmt::arg("zero", zero_of(result)), args...);
  }
  double multiply_adds_per_s() const {
    const std::string text = text_of(kMultiplyAdds, kFloat32, lanes_, fmt::arg("steps", kSteps));
    return operations(kChains * lanes_ * kSteps) / least_seconds(parsed(text), {Tensor::empty({2, lanes_}, kFloat32)});
  }
  // Returns the rate of the instructions that kernels use for such products; nullopt where there are none.
  std::optional<double> products_per_s(DType a, DType b, DType result) const {
    if (const TileForm* form = find_tile_form(a, b, result, target_)) return tile_products_per_s(*form);
    if (const DotForm* form = find_dot_form(a, b, result, target_)) return dot_products_per_s(*form);
    return std::nullopt;
  }
  double tile_products_per_s(const TileForm& form) const {
    const std::string text =
        fmt::format(kTileProducts, fmt::arg("threads", threads_), fmt::arg("chains", kTileChains),
                    fmt::arg("steps", kTileSteps), fmt::arg("rows", kTileRows), fmt::arg("depth", form.depth),
                    fmt::arg("group", form.group()), fmt::arg("a", to_string(form.a)), fmt::arg("b", to_string(form.b)),
                    fmt::arg("result", to_string(form.result)), fmt::arg("zero", zero_of(form.result)));
    const std::string a = short_name(form.a), b = short_name(form.b), result = short_name(form.result);
    const IRModule module = tensorized(
        parsed(text), {{"zero", 2, fmt::format("amx_zero_{0}x{0}_{1}", kTileRows, result)},
                       {"load_left", 2, fmt::format("amx_load_{}x{}_{}", kTileRows, form.depth, a)},
                       {"load_right", 3, fmt::format("amx_load_{0}x{0}x{1}_{2}", kTileRows, form.group(), b)},
                       {"product", 3, form.name},
                       {"store", 2, fmt::format("amx_store_{0}x{0}_{1}", kTileRows, result)}});
    return operations(kTileChains * kTileSteps * kTileRows * kTileRows * form.depth) /
           least_seconds(module, {Tensor::empty({kTileRows, form.depth}, form.a),
                                  Tensor::empty({kTileRows, kTileRows, form.group()}, form.b)});
  }
  double dot_products_per_s(const DotForm& form) const {
    const std::string text = text_of(kDotProducts, form.result, form.lanes, fmt::arg("rounds", kSteps / kDotRows),
                                     fmt::arg("rows", kDotRows), fmt::arg("group", form.group),
                                     fmt::arg("a", to_string(form.a)), fmt::arg("b", to_string(form.b)));
    return operations(kChains * kSteps * form.lanes * form.group) /
           least_seconds(tensorized(parsed(text), {{"product", 2, form.name}}),
                         {Tensor::empty({kDotRows, kChains / 2, form.group}, form.a),
                          Tensor::empty({2, form.lanes, form.group}, form.b)});
  }
  static const char* zero_of(DType dtype) { return dtype.is_float() ? "T.float32(0)" : "T.int32(0)"; }
  // Of so many products on each thread.
  double operations(int64_t products) const { return static_cast<double>(2 * threads_ * products); }

  static IRModule parsed(const std::string& text) {
    Diagnostics diagnostics;
    IRModule module = parse_module(text, "limits.py", op_table(), diagnostics);
    diagnostics.throw_if_errors();
    return module;
  }
  static IRModule tensorized(IRModule module, const std::vector<Tensorized>& blocks) {
    Schedule schedule(std::move(module), {.show_program = false});
    for (const auto& [name, depth, intrinsic] : blocks) {
      const std::vector<LoopRV> loops = schedule.apply(GetLoops{schedule.apply(GetBlock{name})});
      schedule.apply(Tensorize{loops.end()[-depth], intrinsic});
    }
    return schedule.module();
  }
  // Of inputs of zeros.
  double least_seconds(IRModule module, const std::vector<Tensor>& inputs) const {
    for (const Tensor& input : inputs) std::memset(input.raw(), 0, static_cast<size_t>(input.bytes()));
    Session session(compile(std::move(module)).load(), {.pool = pool_});
    double least = 0;
    for (int i = 0; i < kRepetitions; ++i) {
      double start = now_ms();
      session.run(inputs);
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
  constexpr int kMethod = 3;  // changes with what is measured
  return folder / "relaxc" / fmt::format("limits{}-{}-{}.txt", kMethod, pass_context().target.cpu, threads);
}

}  // namespace

const char* name_of(ProductKind kind) {
  switch (kind) {
    case ProductKind::kFloat32:
      return "float32";
    case ProductKind::kInt8:
      return "int8";
    case ProductKind::kBFloat16:
      return "bfloat16";
  }
  return "";
}

size_t MachineLimits::level_of(double bytes) const {
  auto level = std::ranges::find_if(levels, [&](const MemoryLevel& candidate) { return bytes <= candidate.bytes; });
  return static_cast<size_t>(level - levels.begin());
}

MachineLimits machine_limits(const std::shared_ptr<vm::TaskPool>& pool) {
  progress_line().show("measuring the limits of the machine");
  const Meter meter(pool);
  MachineLimits limits{meter.operations_per_s(), meter.levels()};
  std::vector<double*> figures;
  for (double& rate : limits.operations_per_s) figures.push_back(&rate);
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
