// Vocabularies: the byte-level tokenizers of Hugging Face's files.
#include "tools/byte_level.h"

#include "support/diagnostic.h"
#include "tests/folder.h"
#include "tests/patterns.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using test::contains;
using Tokens = std::vector<int64_t>;

namespace {

// Single characters, among them a space (G with a dot), an apostrophe and the two bytes of an e with an accent.
constexpr const char* kTokens =
    R"({"a": 0, "b": 1, "\u0120": 2, "ab": 3, "Ġab": 4, "'": 5, "s": 6, "'s": 7, "1": 8, "Ã": 9, "©": 10, "Ċ": 11,)"
    R"( "!": 12, "12": 13, "2": 14, "a!": 15})";

std::string tokenizer(const char* merges) {
  return fmt::format(
      R"({{"added_tokens": [{{"id": 16, "content": "<end>", "special": true}}], "pre_tokenizer": {{"type": "ByteLevel"}},)"
      R"( "decoder": {{"type": "ByteLevel"}}, "model": {{"type": "BPE", "vocab": {}, "merges": {}}}}})",
      kTokens, merges);
}

std::string message_of(const test::Folder& folder, const std::string& json) {
  try {
    (void)tools::read_byte_level(folder.write("tokenizer.json", json));
  } catch (const CompileError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a byte-level tokenizer merges pairs inside of words", "[tools]") {
  const test::Folder folder{"byte_level"};
  for (const char* merges : {R"(["a b", "Ġ ab", "' s", "1 2", "a !"])",
                             R"([["a", "b"], ["Ġ", "ab"], ["'", "s"], ["1", "2"], ["a", "!"]])"}) {
    const auto vocabulary = tools::read_byte_level(folder.write("tokenizer.json", tokenizer(merges)));
    CHECK(vocabulary.encode("ab ab") == Tokens{3, 4});
    CHECK(vocabulary.encode("ab's") == Tokens{3, 7});
    CHECK(vocabulary.encode("ab12") == Tokens{3, 13});         // letters and digits are words of their own
    CHECK(vocabulary.encode("a!") == Tokens{0, 12});           // so are others, and no merge crosses words
    CHECK(vocabulary.encode("a   ab") == Tokens{0, 2, 2, 4});  // the last space belongs to the word
    CHECK(vocabulary.encode("ab \n") == Tokens{3, 2, 11});     // unless none follows
    CHECK(vocabulary.encode("\xc3\xa9") == Tokens{9, 10});
    CHECK(vocabulary.encode("").empty());
    CHECK(vocabulary.text(4) == " ab");
    CHECK(std::string(vocabulary.text(9)) + std::string(vocabulary.text(10)) == "\xc3\xa9");
    CHECK(vocabulary.text(16) == "<end>");
    CHECK(vocabulary.text(17).empty());
    REQUIRE(vocabulary.find("<end>"));
    CHECK(*vocabulary.find("<end>") == 16);
  }
}

TEST_CASE("vocab.json has its merges beside it, or none", "[tools]") {
  const test::Folder folder{"vocab"};
  const std::string path = folder.write("vocab.json", kTokens);
  CHECK(tools::read_byte_level(path).encode("a!") == Tokens{15});  // the longest token
  folder.write("merges.txt", "#version: 0.2\na b\n");
  CHECK(tools::read_byte_level(path).encode("ab a!") == Tokens{3, 2, 0, 12});
}

TEST_CASE("a tokenizer of another kind is an error", "[tools]") {
  const test::Folder folder{"other_tokenizers"};
  CHECK(contains(message_of(folder, R"({"model": {"type": "Unigram", "vocab": [["a", 0.5]]}})"),
                 "expected a tokenizer of byte pairs"));
  CHECK(
      contains(message_of(folder, R"({"model": {"type": "BPE", "vocab": {"a": 0}}, "decoder": {"type": "Metaspace"}})"),
               "found type BPE"));
  CHECK(contains(message_of(folder, R"({"a": -1})"), "token 'a': expected a number from 0"));
  CHECK(contains(message_of(folder, R"({"a": 99999999999})"), "expected a smaller number"));
  CHECK(contains(message_of(folder, "[1]"), "expected a dictionary of tokens"));
  CHECK(contains(message_of(folder, "{"), "'{' was never closed"));
  CHECK(contains(message_of(folder, tokenizer(R"(["ab"])")), "expected two tokens that merge"));
}
