// The fuzz targets of the text format (./dev fuzz): RELAXC_FUZZ_PARSE reads any bytes; the other also verifies, prints
// and reads back what it read. Half of the mutations are of tokens, which keep more texts well-formed than those of
// bytes.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "ir/text/parser.h"
#include "ops/ops.h"
#include "tests/text/mutate.h"
#include "tests/text/read_back.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const relaxc::OpTable ops = relaxc::make_op_table();
  std::string_view text(reinterpret_cast<const char*>(data), size);
#ifdef RELAXC_FUZZ_PARSE
  relaxc::Diagnostics diagnostics;
  relaxc::parse_module(text, "fuzz.py", ops, diagnostics);
  for (const relaxc::Diagnostic& diagnostic : diagnostics.all()) to_string(diagnostic);
#else
  std::string broken = relaxc::test::read_back(text, ops).broken;
  if (!broken.empty()) {
    std::fprintf(stderr, "%s\n", broken.c_str());
    std::abort();
  }
#endif
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  static std::vector<std::string> seen = {"x"};  // pieces of the texts that came by
  std::mt19937_64 random(seed);
  if (random() % 2 == 0 || size == 0) return LLVMFuzzerMutate(data, size, most);
  std::string text(reinterpret_cast<const char*>(data), size);
  for (const std::string& piece : relaxc::test::pieces(text)) {
    if (seen.size() < 20000) {
      seen.push_back(piece);
    } else if (random() % 64 == 0) {
      seen[random() % seen.size()] = piece;
    }
  }
  std::string result = relaxc::test::mutated(text, seen, random);
  size_t length = std::min(result.size(), most);
  std::memcpy(data, result.data(), length);
  return length;
}
