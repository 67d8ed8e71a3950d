// Damaged modules are read to an error or to a module, never to a crash: texts of random modules with tokens and lines
// taken out, doubled, exchanged or put in from elsewhere. What reads and verifies prints and reads back equal.
// RELAXC_MUTATIONS=100000 tries more (from another seed each: RELAXC_MUTATIONS=100000:7).
#include <cstdlib>
#include <random>

#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify.h"
#include "ir/visit.h"
#include "ops/ops.h"
#include "tests/text/random_module.h"

#include "tests/catch.h"  // last

using namespace relaxc;

namespace {

// Words, numbers, strings, single characters; blanks stay with what follows.
std::vector<std::string> pieces(const std::string& text) {
  std::vector<std::string> result;
  auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin + 1;
    if (is_word(text[begin])) {
      while (end < text.size() && is_word(text[end])) ++end;
    } else if (text[begin] == ' ') {
      while (end < text.size() && text[end] == ' ') ++end;
    }
    result.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return result;
}

std::string mutated(const std::string& text, const std::vector<std::string>& others, std::mt19937_64& random) {
  std::vector<std::string> parts = pieces(text);
  auto below = [&](size_t count) { return static_cast<size_t>(random() % count); };
  constexpr const char* kOdd[] = {"None",    "-1",      "9223372036854775808",
                                  "\"\"",    "(",       ")",
                                  "[0]",     "T.int64", "R",
                                  "cls",     "1e999",   "\t",
                                  "*",       "lambda",  "\n",
                                  "\x01",    "T.X",     "**",
                                  "\"n\"",   ".5",      "0:4:2",
                                  "x=x, x=", "True",    "@"};
  for (size_t edits = 1 + below(3); edits > 0 && !parts.empty(); --edits) {
    size_t at = below(parts.size());
    switch (below(6)) {
      case 0:
        parts.erase(parts.begin() + static_cast<int64_t>(at));
        break;
      case 1:
        parts.insert(parts.begin() + static_cast<int64_t>(at), parts[below(parts.size())]);
        break;
      case 2:
        std::swap(parts[at], parts[below(parts.size())]);
        break;
      case 3:
        parts[at] = kOdd[below(std::size(kOdd))];
        break;
      case 4:
        parts[at] = others[below(others.size())];
        break;
      default: {  // a stretch is gone, such as a line
        size_t end = std::min(parts.size(), at + 1 + below(20));
        parts.erase(parts.begin() + static_cast<int64_t>(at), parts.begin() + static_cast<int64_t>(end));
      }
    }
  }
  std::string result;
  for (const std::string& part : parts) result += part;
  return result;
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
  for (uint64_t i = 0; i < count; ++i) {
    if (i % 10 == 0) {
      text = print_module(test::random_module(ops, random() % 100000));
      for (const std::string& part : pieces(text)) {
        if (others.size() < 5000) others.push_back(part);
      }
    }
    std::string damaged = mutated(text, others, random);
    if (std::getenv("RELAXC_PRINT_MUTATIONS")) fmt::print(stderr, "=== {}\n{}\n", i, damaged);
    INFO(damaged);
    Diagnostics diagnostics;
    IRModule module = parse_module(damaged, "damaged.py", ops, diagnostics);
    if (!diagnostics.has_errors()) verify(module, ops, diagnostics);
    if (diagnostics.has_errors()) continue;
    ++valid;
    std::string printed = print_module(module);
    Diagnostics again;
    IRModule second = parse_module(printed, "printed.py", ops, again);
    INFO("prints as\n" << printed);
    for (const Diagnostic& diagnostic : again.all()) FAIL_CHECK(to_string(diagnostic));
    if (again.has_errors()) return;
    REQUIRE(structural_equal(module, second));
    REQUIRE(print_module(second) == printed);
  }
  CHECK(valid > count / 100);
}
