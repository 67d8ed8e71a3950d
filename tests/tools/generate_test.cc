// relaxc generate: a decoder continues a text, token by token.
#include <filesystem>
#include <fstream>

#include "support/joined.h"
#include "tests/folder.h"
#include "tests/patterns.h"
#include "tests/relaxc_command.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using test::contains;
using test::Outcome;
using test::run_relaxc;

namespace {

const std::string kExample = std::string(RELAXC_SOURCE_DIR) + "/examples/decoder/";
const std::string kVocabulary = kExample + "vocabulary.txt";

// A model without a cache, after token i of five comes i + 1. `ids` and `logits` are the names of its ends.
std::string successor(const std::string& ids, const std::string& logits) {
  std::string rows;
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 5; ++j) rows += fmt::format("{}{}", j ? ", " : i ? "], [" : "[", j == (i + 1) % 5 ? 1 : 0);
  }
  return fmt::format(R"(
@I.ir_module
class Module:
    @R.function
    def main({0}: R.Tensor(("batch", "length"), "int64")):
        R.func_attr({{"output_names": ["{1}"]}})
        with R.dataflow():
            {1} = R.take(R.const([{2}]], "float32"), {0}, axis=0)
            R.output({1})
        return {1}
)",
                     ids, logits, rows);
}

// The example as an artifact whose caches are extended in place, and as one that copies them.
struct Artifacts {
  test::Folder folder{"generate"};
  std::string in_place = folder.at("in_place.so"), copied = folder.at("copied.so");
  Artifacts() {
    REQUIRE(run_relaxc({"compile", kExample + "decoder.onnx", "-o", in_place, "--in-place", "auto"}).exit_code == 0);
    REQUIRE(run_relaxc({"compile", kExample + "decoder.onnx", "-o", copied}).exit_code == 0);
  }
};

Outcome continued(const std::string& model, const std::string& text, int count, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"generate", model, "--vocabulary", kVocabulary,
                                        "--text",   text,  "--count",      fmt::format("{}", count)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_relaxc(arguments);
}

}  // namespace

TEST_CASE("a step with the cache gives the token of a run over the whole text", "[tools]") {
  const Artifacts it;
  const std::string prompt = "The cat", whole = continued(it.copied, prompt, 40).out;
  REQUIRE(whole.size() == prompt.size() + 41);
  CHECK(continued(it.in_place, prompt, 40).out == whole);
  CHECK(continued(it.in_place, prompt, 40, {"--threads", "1"}).out == whole);
  for (size_t size : {8, 20, 46}) {  // of the text that is the prompt
    INFO(size);
    const std::string expected = whole.substr(0, size + 1) + "\n";
    CHECK(continued(it.in_place, whole.substr(0, size), 1).out == expected);
    CHECK(continued(it.copied, whole.substr(0, size), 1).out == expected);
  }
  // Far beyond the room that the caches have at first.
  CHECK(continued(it.in_place, prompt, 300).out == continued(it.copied, prompt, 300).out);
}

TEST_CASE("several prompts are continued as each is alone", "[tools]") {
  const Artifacts it;
  const std::vector<std::string> prompts = {"The cat", "Jack and Jill", "M"};
  const std::vector<std::string> sampled = {"--temperature", "1", "--seed", "5"};
  std::string expected;
  for (const std::string& prompt : prompts) expected += continued(it.in_place, prompt, 12, sampled).out;
  const std::string file = it.folder.at("prompts.txt");
  std::ofstream(file) << joined(prompts, "\n") << "\n";
  std::vector<std::string> command = {"generate",  it.in_place, "--vocabulary", kVocabulary,
                                      "--prompts", file,        "--count",      "12"};
  command.insert(command.end(), sampled.begin(), sampled.end());
  for (const char* batch : {"1", "2", "8"}) {
    INFO(batch);
    std::vector<std::string> batched = command;
    batched.insert(batched.end(), {"--batch", batch});
    const Outcome outcome = run_relaxc(batched);
    CHECK(outcome.out == expected);
    CHECK(contains(outcome.err, "prompt: 21 tokens"));
    CHECK(contains(outcome.err, "steps: 33 tokens"));
    batched[1] = it.copied;
    CHECK(run_relaxc(batched).out == expected);
  }
  std::ofstream(file) << "24,33\n24,x\n";
  const Outcome wrong = run_relaxc({"generate", it.in_place, "--prompts", file});
  CHECK(contains(wrong.err, "--prompts: 'x': expected a number from 0"));
  std::ofstream(file) << "24,33\n\n";
  CHECK(contains(run_relaxc({"generate", it.in_place, "--prompts", file}).err,
                 "prompts.txt:2: a text begins with a token"));
}

TEST_CASE("a text of a batch ends at its own stop, and others go on", "[tools]") {
  const Artifacts it;
  const std::string file = it.folder.at("prompts.txt");
  std::ofstream(file) << "Jack and\nMary had a\nJack and Jill\n";
  const std::vector<std::string> command = {"generate", it.in_place, "--vocabulary", kVocabulary, "--stop",
                                            "0",        "--prompts", file,           "--count",   "40"};
  std::vector<std::string> single = command;
  single.insert(single.end(), {"--batch", "1"});
  const Outcome outcome = run_relaxc(command);
  CHECK(outcome.out == "Jack and Jill went up the hill\nMary had a little lamb,\nJack and Jill went up the hill\n");
  CHECK(outcome.out == run_relaxc(single).out);
}

TEST_CASE("a model without a mask continues prompts one after another, and says why", "[tools]") {
  const test::Folder folder("generate_one_by_one");
  std::ofstream(folder.at("prompts.txt")) << "1,2\n4\n";
  const std::string model = folder.at("model.py");
  std::ofstream(model) << successor("ids", "logits");
  const Outcome outcome = run_relaxc({"generate", model, "--prompts", folder.at("prompts.txt"), "--count", "2"});
  CHECK(outcome.out == "3,4\n0,1\n");
  CHECK(contains(
      outcome.err,
      "the prompts are continued one after another, since the model cannot take them as a batch: it has no cache"));
  CHECK(contains(run_relaxc({"generate", model, "--tokens", "1", "--batch", "2"}).err, "--batch requires --prompts"));
}

TEST_CASE("relaxc-run generates, as text and as numbers", "[tools]") {
  const Artifacts it;
  const std::vector<std::string> flags = {"generate", it.in_place, "--tokens", "24,33,50", "--count", "6"};
  std::vector<std::string> command = flags;
  command.insert(command.begin(), RELAXC_RUN);
  const Outcome outcome = test::run_program(command, 60), expected = run_relaxc(flags);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out == expected.out);
  CHECK(parts_of(outcome.out, ',').size() == 6);
  CHECK(contains(outcome.err, "prompt: 3 tokens in "));
  CHECK(contains(outcome.err, "steps: 5 tokens in "));
}

TEST_CASE("draws are those of the seed", "[tools]") {
  const Artifacts it;
  auto drawn = [&](const char* seed, const char* k) {
    return continued(it.in_place, "The", 60, {"--temperature", "2", "--top-k", k, "--seed", seed}).out;
  };
  CHECK(drawn("1", "10") == drawn("1", "10"));
  CHECK(drawn("1", "10") != drawn("2", "10"));
  CHECK(drawn("3", "1") == continued(it.in_place, "The", 60).out);
}

TEST_CASE("a model without a cache reads the whole text in each step", "[tools]") {
  const test::Folder folder{"successor"};
  const std::string model = folder.write("model.py", successor("input_ids", "logits"));
  const Outcome outcome = run_relaxc({"generate", model, "--tokens", "1,2", "--count", "7"});
  CHECK(outcome.out == "3,4,0,1,2,3,4\n");
  CHECK(contains(outcome.err, "the model has no cache"));
  CHECK(run_relaxc({"generate", model, "--tokens", "1", "--count", "7", "--stop", "0"}).out == "2,3,4\n");
  CHECK(run_relaxc({"generate", model, "--tokens", "1", "--count", "0"}).out == "\n");
  const std::string letters = folder.write("letters.txt", "a\nb\n\\n\nc d\n\\\\\n");
  CHECK(run_relaxc({"generate", model, "--vocabulary", letters, "--text", "c d", "--count", "3"}).out == "c d\\ab\n");
  CHECK(run_relaxc({"generate", model, "--vocabulary", letters, "--text", "b", "--stop", "\\"}).out == "b\nc d\n");
}

TEST_CASE("generate says what is wrong", "[tools]") {
  const test::Folder folder{"generate_errors"};
  const std::string model = folder.write("model.py", successor("input_ids", "logits"));
  const std::string other = folder.write("other.py", successor("x", "logits"));
  const std::string unnamed = folder.write("unnamed.py", successor("input_ids", "y"));
  const std::string letters = folder.write("letters.txt", "a\nb\n");
  const std::string twice = folder.write("twice.txt", "a\nb\na\n"), escaped = folder.write("escaped.txt", "a\n\\x\n");
  const std::vector<std::pair<std::vector<std::string>, const char*>> cases = {
      {{other, "--tokens", "1"}, "expected an input 'input_ids'"},
      {{unnamed, "--tokens", "1"}, "expected an output 'logits'"},
      {{model, "--tokens", "1,5"}, "token 5 does not exist: the model has the tokens 0 to 4"},
      {{model, "--tokens", "1", "--stop", "9"}, "token 9 does not exist"},
      {{model, "--tokens", "1", "--past", "x=y"}, "there is no input 'x'"},
      {{model, "--vocabulary", letters, "--text", "abc"}, "no token for 'c', at byte 2 of the text"},
      {{model, "--vocabulary", twice, "--text", "a"}, "lines 1 and 3 are the same token, 'a'"},
      {{model, "--vocabulary", escaped, "--text", "a"}, "a backslash stands before n, r, t or another one"},
      {{model, "--tokens", "1", "--in-place", "auto"}, "there is no cache to extend in place"},
      {{kExample + "decoder.onnx", "--tokens", "1", "--in-place", "position_ids=logits"},
       "expected that the output 'logits' is a Concat"}};
  const Outcome letter = run_relaxc({"generate", model, "--tokens", "1", "--stop", "a"});
  CHECK(letter.exit_code == 2);
  CHECK(contains(letter.err, "'a' is not a token: expected a number; texts need --vocabulary"));
  for (const auto& [flags, message] : cases) {
    std::vector<std::string> arguments = {"generate"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Outcome outcome = run_relaxc(arguments);
    INFO(outcome.err);
    CHECK(outcome.exit_code == (contains(message, "there is no input") ? 2 : 1));
    CHECK(contains(outcome.err, message));
  }
  CHECK(run_relaxc({"generate", model}).exit_code == 2);
  CHECK(run_relaxc({"generate", model, "--text", "a"}).exit_code == 2);
  CHECK(run_relaxc({"generate", model, "--tokens", "1", "--seed", "3"}).exit_code == 2);
  CHECK(run_relaxc({"generate", model, "--tokens", "1,x"}).exit_code == 2);
  for (const char* gap : {"1,,3", ",1", "1,"}) {
    const Outcome outcome = run_relaxc({"generate", model, "--tokens", gap});
    CHECK(outcome.exit_code == 2);
    CHECK(contains(outcome.err, "--tokens: '': expected a number from 0"));
  }
}
