// Damaged modules are read to an error or to a module, never to a crash. What reads and verifies prints and reads back
// equal. RELAXC_MUTATIONS=100000 tries more (from another seed each: RELAXC_MUTATIONS=100000:7).
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ir/text/printer.h"
#include "ops/ops.h"
#include "tests/text/mutate.h"
#include "tests/text/random_module.h"
#include "tests/text/read_back.h"

#include "tests/catch.h"  // last

using namespace relaxc;

TEST_CASE("damaged modules are read to an error or a module", "[text]") {
  const OpTable ops = make_op_table();
  uint64_t count = 6000, seed = 1;
  if (const char* wish = std::getenv("RELAXC_MUTATIONS")) {
    char* rest = nullptr;
    count = std::strtoull(wish, &rest, 10);
    if (*rest == ':') seed = std::strtoull(rest + 1, nullptr, 10);
  }
  std::mt19937_64 random(seed);
  uint64_t valid = 0;
  std::vector<std::string> others = {"x"};
  std::string text;
  for (uint64_t i = 0; i < count; ++i) {
    if (i % 10 == 0) {
      text = print_module(test::random_module(ops, random() % 100000));
      for (const std::string& part : test::pieces(text)) {
        if (others.size() < 5000) others.push_back(part);
      }
    }
    std::string damaged = test::mutated(text, others, random);
    if (std::getenv("RELAXC_PRINT_MUTATIONS")) fmt::print(stderr, "=== {}\n{}\n", i, damaged);
    INFO(damaged);
    test::ReadBack result = test::read_back(damaged, ops);
    valid += result.valid;
    REQUIRE(result.broken == "");
  }
  CHECK(valid > count / 100);
}

// What ./dev fuzz started from and what it found.
TEST_CASE("the corpus of the fuzzers", "[text]") {
  const OpTable ops = make_op_table();
  size_t count = 0;
  for (const char* folder : {"corpus", "findings"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(std::string(RELAXC_SOURCE_DIR "/tests/fuzz/") + folder)) {
      std::ifstream in(entry.path(), std::ios::binary);
      std::stringstream text;
      text << in.rdbuf();
      INFO(entry.path().string());
      CHECK(test::read_back(text.str(), ops).broken == "");
      ++count;
    }
  }
  CHECK(count >= 20);
}
