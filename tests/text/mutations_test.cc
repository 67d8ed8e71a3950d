// Damaged modules are read to an error or to a module, never to a crash. What reads and verifies prints and reads back
// equal. RELAXC_MUTATIONS=100000 tries more (from another seed each: RELAXC_MUTATIONS=100000:7).
#include <algorithm>
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

namespace {

std::string contents_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// Returns texts as people write them. The printer knows one spelling of each construct, the parser all of them.
std::vector<std::string> written_texts() {
  std::vector<std::string> texts;
  for (const char* folder : {"tests/text", "tests/text/tir", "tests/text/relax", "examples"}) {
    for (const auto& entry : std::filesystem::directory_iterator(std::string(RELAXC_SOURCE_DIR "/") + folder)) {
      bool is_text = entry.path().extension() == ".test" || entry.path().extension() == ".py";
      if (is_text) texts.push_back(contents_of(entry.path()));
    }
  }
  std::sort(texts.begin(), texts.end());
  return texts;
}

}  // namespace

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
  const std::vector<std::string> written = written_texts();
  for (uint64_t i = 0; i < count; ++i) {
    if (i % 10 == 0) {
      text = i % 20 ? written[random() % written.size()] : print_module(test::random_module(ops, random() % 100000));
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

// The inputs with which ./dev fuzz begins, and those that it found.
TEST_CASE("the corpus of the fuzzers", "[text]") {
  const OpTable ops = make_op_table();
  size_t count = 0;
  for (const char* folder : {"corpus", "findings"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(std::string(RELAXC_SOURCE_DIR "/tests/fuzz/text/") + folder)) {
      INFO(entry.path().string());
      CHECK(test::read_back(contents_of(entry.path()), ops).broken == "");
      ++count;
    }
  }
  CHECK(count >= 20);
}
