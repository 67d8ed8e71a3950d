// Random chains of primitives keep the meaning of programs. RELAXC_CHAINS=N runs N chains (600 otherwise).
#include <cstdlib>

#include "tests/schedule/chains.h"

#include "tests/catch.h"

namespace relaxc::test {

TEST_CASE("random chains of primitives do not change results") {
  std::vector<TestProgram> programs = schedule_programs();
  const char* wish = std::getenv("RELAXC_CHAINS");
  int chains = wish ? std::atoi(wish) : 600;
  const char* only = std::getenv("RELAXC_CHAIN_SEED");
  int failures = 0;
  for (int i = only ? std::atoi(only) : 0; i < (only ? std::atoi(only) + 1 : chains) && failures < 3; ++i) {
    const TestProgram& program = programs[static_cast<size_t>(i) % programs.size()];
    std::string problem =
        try_chain(program, static_cast<uint32_t>(i), {.compile = std::getenv("RELAXC_CHAIN_COMPILE") != nullptr});
    if (problem.empty()) continue;
    ++failures;
    UNSCOPED_INFO(problem);
    CHECK(problem.empty());
  }
}

}  // namespace relaxc::test
