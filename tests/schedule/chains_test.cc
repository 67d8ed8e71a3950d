// Random chains of primitives keep the meaning of programs. RELAXC_CHAINS=N runs N chains (600 otherwise, 150 with
// sanitizers), from the seed RELAXC_CHAIN_SEED=S on (0 otherwise; with it alone, that one chain);
// RELAXC_CHAIN_PROGRAM=P takes only programs whose names contain P;
// RELAXC_CHAIN_COMPILE=1 runs machine code, too: of every fifth chain as the product optimizes it, of others as it is
// emitted (60 chains per second on one core), and of those none that split by T.vscale(), which this processor may not
// have. Chains take turns with the targets below, whose vectors and registers the lowering uses; machine code is made
// for them where it runs here.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "tests/schedule/chains.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

// Chains that found something, as long as primitives and their choices stay what they are.
struct Found {
  const char* program;
  int seed;
};
constexpr Found kFound[] = {{"stencil_symbolic", 400467},
                            {"int8_dot", 404106},
                            {"concat_symbolic", 404297},
                            {"transposed_conv_symbolic", 406001},
                            {"transposed_conv_symbolic", 602883},
                            {"two_results", 604010},
                            {"conv3d_symbolic", 610917},
                            {"stencil", 905362},
                            {"total", 1006984},
                            {"column_max_symbolic", 1012275},
                            {"argmax_symbolic", 1019555},
                            {"avg_pool_overlapping", 1025396},
                            {"rms_norm_symbolic", 1100605},
                            {"avg_pool_overlapping", 1110558},
                            {"strided_windows", 2000068},
                            {"smoothed_in_place_symbolic", 2000299},
                            {"transposed_conv_symbolic", 2002245},
                            {"requantize_symbolic", 2003183},
                            {"guarded_sum", 2003304},
                            {"elementwise_symbolic", 2004017},
                            {"dot_symbolic", 2008049},
                            {"strided_windows", 2009812},
                            {"strided_windows", 2015380},
                            {"upsample_symbolic", 203521},
                            {"scatter_last", 2020944},
                            {"first_of_largest", 7101308},
                            {"avg_pool_overlapping_symbolic", 8111783},
                            {"group_norm_symbolic", 99565}};

constexpr const char* kChainTargets[] = {"x86-64", "x86-64-v3", "x86-64-v4",
                                         "triple=aarch64-linux-gnu,cpu=neoverse-n1"};

}  // namespace

TEST_CASE("random chains of primitives do not change results") {
  std::vector<TestProgram> programs = schedule_programs(), with_empty_dims = empty_programs();
  const char *wish = std::getenv("RELAXC_CHAINS"), *from = std::getenv("RELAXC_CHAIN_SEED"),
             *only = std::getenv("RELAXC_CHAIN_PROGRAM");
  int first = from ? std::atoi(from) : 0, chains = wish ? std::atoi(wish) : from ? 1 : kSanitized ? 150 : 600;
  int failures = 0, given_up = 0;
  bool compile = std::getenv("RELAXC_CHAIN_COMPILE") != nullptr;
  auto try_one = [&](const TestProgram& program, int seed, bool int32) {
    ChainResult result =
        try_chain(program, static_cast<uint32_t>(seed),
                  {.compile = compile, .int32 = int32, .target = kChainTargets[static_cast<size_t>(seed / 3) % 4]});
    given_up += result.gave_up;
    if (result.problem.empty()) return;
    ++failures;
    UNSCOPED_INFO(result.problem);
    CHECK(result.problem.empty());
  };
  for (const auto& [name, seed] : kFound) {
    auto is_it = [&](const TestProgram& program) { return program.name == name; };
    try_one(*std::find_if(programs.begin(), programs.end(), is_it), seed, false);
  }
  std::vector<const std::vector<TestProgram>*> kinds;
  for (std::vector<TestProgram>* kind : {&programs, &with_empty_dims}) {
    if (only) std::erase_if(*kind, [&](const TestProgram& p) { return p.name.find(only) == std::string::npos; });
    if (!kind->empty()) kinds.push_back(kind);
  }
  REQUIRE(!kinds.empty());
  for (int i = first; i < first + chains && failures < 3; ++i) {
    // Programs take turns, every third one with a dim of 0. Half of the chains count in int32.
    bool is_empty = i % 3 == 2;
    const std::vector<TestProgram>& kind = *(is_empty ? kinds.back() : kinds.front());
    int turn = is_empty ? i / 3 : i - i / 3;
    std::mt19937 random(static_cast<uint32_t>(i));
    try_one(kind[static_cast<size_t>(turn) % kind.size()], i, random() % 2 == 1);
  }
  INFO(given_up << " of " << chains << " chains were too long to run");
  CHECK(given_up * 100 <= chains + 100);
  if (wish) fmt::print("{} chains, {} of them too long to run\n", chains, given_up);
}

}  // namespace relaxc::test
