// Hostile input gets a one-line error and the right exit code: never a crash, a hang or an unbounded allocation.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "codegen/compile.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "tests/frontend/onnx_text.h"
#include "tests/process.h"
#include "vm/error.h"
#include "vm/program.h"

#include "tests/catch.h"

using namespace relaxc;
namespace fs = std::filesystem;

namespace {

const std::string kModels = RELAXC_SOURCE_DIR "/tests/hostile/models/";
const std::string kDigits = RELAXC_SOURCE_DIR "/examples/digits/digits.onnx";
constexpr double kLimitSeconds = 120;  // generous: a sanitizer build on a busy machine

struct Expectation {
  std::string exit_code;           // "1", "3", or "any"
  std::vector<std::string> texts;  // all of them in the error
};

std::string trim(const std::string& text) {
  size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

std::map<std::string, Expectation> read_cases() {
  std::map<std::string, Expectation> result;
  std::ifstream file(RELAXC_SOURCE_DIR "/tests/hostile/cases.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    size_t first = line.find('|'), second = line.find('|', first + 1);
    REQUIRE(second != std::string::npos);
    Expectation& expectation = result[trim(line.substr(0, first))];
    expectation.exit_code = trim(line.substr(first + 1, second - first - 1));
    std::string text = trim(line.substr(second + 1));
    if (!text.empty()) expectation.texts.push_back(text);
  }
  return result;
}

// How often the text says "error: " or "unsupported: "; once per diagnostic.
int64_t count(const std::string& text, const std::string& word) {
  int64_t result = 0;
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) ++result;
  return result;
}
int64_t count_errors(const std::string& text) { return count(text, "error: "); }

bool is_printable(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c == '\n' || static_cast<unsigned char>(c) >= 32; });
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

// A folder of this process's own, gone at the end.
struct ScratchFolder {
  std::string path = (fs::temp_directory_path() / fmt::format("relaxc-hostile-{}", getpid())).string();
  ScratchFolder() { fs::create_directories(path); }
  ~ScratchFolder() { fs::remove_all(path); }
  std::string file(const std::string& name) const { return path + "/" + name; }
};

std::string compiled_digits(const ScratchFolder& folder) {
  std::string artifact = folder.file("digits.so");
  test::Outcome outcome = test::run_program({RELAXC_TOOL, "compile", kDigits, "-o", artifact}, 120);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return artifact;
}

// "refused" when the loader throws a CompileError, "loaded" when it loads and runs.
std::string load_and_run(const std::string& path) {
  try {
    Session session(Program::load(path), {.threads = 1});
    session.run({Tensor::of({1, 1, 8, 8}, kFloat32, std::vector<float>(64, 0.5f))});
    return "loaded";
  } catch (const CompileError& error) {
    std::string text = error.what();
    return text.find("error: ") != std::string::npos ? "refused" : text;
  } catch (const RuntimeError& error) {  // the first run compares the weights with their hash
    std::string text = error.what();
    return text.find("the weights have changed") != std::string::npos ? "refused" : text;
  }
}

}  // namespace

TEST_CASE("every hostile model has an expectation and every expectation a model", "[hostile]") {
  std::map<std::string, Expectation> cases = read_cases();
  for (const auto& entry : fs::directory_iterator(kModels)) {
    std::string name = entry.path().filename().string();
    INFO(name);
    if (name.ends_with(".onnx")) CHECK(cases.contains(name));
  }
  for (const auto& [name, expectation] : cases) {
    INFO(name);
    CHECK(fs::exists(kModels + name));
  }
}

TEST_CASE("hostile models get a one-line error", "[hostile]") {
  std::map<std::string, Expectation> cases = read_cases();
  std::vector<std::string> names;
  for (const auto& [name, expectation] : cases) names.push_back(name);
  std::map<std::string, test::Outcome> outcomes;
  for (const std::string& name : names) {
    outcomes[name] = test::run_program({RELAXC_TOOL, "run", kModels + name, "--threads", "1"}, kLimitSeconds);
  }
  for (const auto& [name, expectation] : cases) {
    const test::Outcome& outcome = outcomes[name];
    INFO(name << ": " << outcome.how_it_ended() << "\n" << outcome.err);
    REQUIRE_FALSE(outcome.timed_out);
    CHECK(outcome.signal == 0);
    CHECK(outcome.err.find("internal error") == std::string::npos);
    CHECK(outcome.err.find("Sanitizer") == std::string::npos);
    CHECK(outcome.err.find("runtime error:") == std::string::npos);
    CHECK(is_printable(outcome.err));
    if (expectation.exit_code == "any") {
      CHECK((outcome.exit_code == 0 || outcome.exit_code == 1 || outcome.exit_code == 3));
    } else {
      CHECK(std::to_string(outcome.exit_code) == expectation.exit_code);
    }
    if (outcome.exit_code == 0) continue;
    if (outcome.exit_code == 1) CHECK(count_errors(outcome.err) == 1);
    if (outcome.exit_code == 3) CHECK(count(outcome.err, "unsupported: ") >= 1);
    for (const std::string& text : expectation.texts) {
      INFO("expected: " << text);
      CHECK(outcome.err.find(text) != std::string::npos);
    }
  }
}

TEST_CASE("the model beside the hostile ones is right", "[hostile]") {
  test::Outcome outcome = test::run_program(
      {RELAXC_TOOL, "run", kModels + "external_ok.onnx", "--test-data", kModels + "external_ok_data"}, kLimitSeconds);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
}

namespace {

// Returns the first thing in the text that a terminal does not show as it is: a control character other than line ends
// and tabs, a mark that turns the direction, or a line that a name made.
std::string misuse_of_terminal(const std::string& text) {
  for (size_t i = 0; i < text.size(); ++i) {
    auto c = static_cast<unsigned char>(text[i]);
    if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) return fmt::format("byte {:02x} at {}", c, i);
    std::string_view rest = std::string_view(text).substr(i);
    if (rest.starts_with("\xc2\x9b") || rest.starts_with("\xe2\x80\xae")) return fmt::format("a mark at {}", i);
  }
  return text.starts_with("EVIL") || text.find("\nEVIL") != std::string::npos ? "a forged line" : "";
}

}  // namespace

TEST_CASE("names out of a model never control the terminal", "[hostile]") {
  ScratchFolder folder;
  std::string model = kModels + "names_for_a_terminal.onnx", artifact = folder.file("names.so"),
              data = folder.file("data"), text = folder.file("text.py");
  fs::create_directories(data);
  fs::copy(kModels + "external_ok_data/input_0.pb", data);
  fs::copy(kModels + "external_ok_data/output_0.pb", data);
  std::vector<std::vector<std::string>> commands = {
      {"compile", model, "-o", artifact},
      {"compile", model, "--emit=graph", "-o", text},
      {"run", model},
      {"run", model, "--profile"},
      {"run", model, "--test-data", data},
      {"run", model, "--dim", "nowhere=3"},
      {"run", model, "--input", "nowhere=x.npy"},
      {"run", model, "--input-pb", kModels + "external_ok_data/input_0.pb", "in1.pb"},
      {"run", kModels + "control_characters.onnx"},
      {"run", artifact},
      {"run", artifact, "--profile"},
      {"run", artifact, "--dim", "nowhere=3"},
      {"run", artifact, "--input", "nowhere=x.npy"},
      {"bench", model, "--runs", "3", "--profile"},
      {"bench", model, "--runs", "3", "--json", "-"},
      {"opt", model},
      {"opt", model, "--passes", "simplify", "--print-after", "all", "--time-passes"},
      {"fmt", model},
      {"check", model},
      {"diff", model, kDigits},
      {"diff", model, text},
  };
  for (const char* level : {"graph", "tir", "loops", "trace", "llvm", "asm", "bytecode"}) {
    commands.push_back({"compile", model, std::string("--emit=") + level});
  }
  for (std::vector<std::string> command : commands) {
    command.insert(command.begin(), RELAXC_TOOL);
    test::Outcome outcome = test::run_program(command, kLimitSeconds);
    INFO(joined(command, " ") << "\n" << outcome.out << outcome.err);
    CHECK(outcome.signal == 0);
    CHECK(misuse_of_terminal(outcome.out) == "");
    CHECK(misuse_of_terminal(outcome.err) == "");
  }
  // The names are there, escaped.
  test::Outcome run = test::run_program({RELAXC_TOOL, "run", model}, kLimitSeconds);
  CHECK(run.out.find("y\\nEVIL y\\x1b[31m\\xc2\\x9b31m\\xe2\\x80\\xae\\x7f: float32") != std::string::npos);
}

TEST_CASE("damaged artifacts are refused", "[hostile]") {
  ScratchFolder folder;
  std::string artifact = compiled_digits(folder), content = read_file(artifact), damaged = folder.file("damaged.so");
  REQUIRE(load_and_run(artifact) == "loaded");
  std::mt19937_64 random(1);

  std::vector<std::string> variants;
  for (int i = 0; i < 40; ++i) variants.push_back(content.substr(0, content.size() * static_cast<size_t>(i) / 40));
  variants.push_back(content.substr(0, content.size() - 1));
  for (int i = 0; i < 160; ++i) {
    // Half of them near the two ends, where headers and tables are.
    size_t range = i % 2 ? content.size() : std::min<size_t>(content.size(), 4096);
    size_t at = i % 4 == 0 ? content.size() - 1 - random() % range : random() % range;
    variants.push_back(content);
    variants.back()[at] = static_cast<char>(variants.back()[at] ^ (1 << random() % 8));
  }
  std::vector<std::string> wrong;
  test::run_forked(
      static_cast<int>(variants.size()), 2, kLimitSeconds,
      [&](int i) {
        std::string path = fmt::format("{}/damaged{}.so", folder.path, i);
        write_file(path, variants[static_cast<size_t>(i)]);
        std::string result = load_and_run(path);
        fs::remove(path);
        return result;
      },
      [&](int i, const test::Outcome& outcome) {
        if (outcome.exit_code == 0 && outcome.out == "refused") return;
        wrong.push_back(fmt::format("variant {}: {} {} {}", i, outcome.how_it_ended(), outcome.out, outcome.err));
      });
  for (const std::string& text : wrong) UNSCOPED_INFO(text);
  CHECK(wrong.empty());

  // The same through the tool: the exit code and the form of the message.
  for (size_t i : {size_t{0}, size_t{20}, size_t{40}, size_t{41}, variants.size() - 1}) {
    write_file(damaged, variants[i]);
    test::Outcome outcome = test::run_program({RELAXC_TOOL, "run", damaged}, kLimitSeconds);
    INFO("variant " << i << ": " << outcome.how_it_ended() << "\n" << outcome.err);
    CHECK(outcome.exit_code == 1);
    CHECK(count_errors(outcome.err) == 1);
    CHECK(outcome.err.find(damaged) != std::string::npos);
  }
}

TEST_CASE("wrong usage has exit code 2", "[hostile]") {
  const std::vector<std::vector<std::string>> uses = {{},
                                                      {"frobnicate"},
                                                      {"run"},
                                                      {"run", "x.onnx", "--no-such-flag"},
                                                      {"run", kDigits, "--dim", "batch"},
                                                      {"compile", kDigits}};
  for (std::vector<std::string> use : uses) {
    use.insert(use.begin(), RELAXC_TOOL);
    test::Outcome outcome = test::run_program(use, kLimitSeconds);
    INFO(joined(use, " ") << "\n" << outcome.err);
    CHECK(outcome.exit_code == 2);
  }
}

TEST_CASE("a file that is not there has exit code 1", "[hostile]") {
  for (const char* name : {"no_such_file.onnx", "no_such_file.so", "no_such_file.py"}) {
    test::Outcome outcome = test::run_program({RELAXC_TOOL, "run", name}, kLimitSeconds);
    INFO(name << ": " << outcome.err);
    CHECK(outcome.exit_code == 1);
    CHECK(count_errors(outcome.err) == 1);
    CHECK(outcome.err.find(name) != std::string::npos);
  }
}

TEST_CASE("a loop of endless length ends at the host's limit of steps", "[hostile]") {
  const char* model = R"(<ir_version: 8, opset_import: ["": 18]>
endless (float[n] x) => (float[n] y) {
  always = Constant <value = bool {1}> ()
  count = Constant <value = int64 {9223372036854775807}> ()
  y = Loop (count, always, x) <
    body = step (int64 i, bool going, float[n] state) => (bool again, float[n] next) {
      again = Identity (going)
      next = Add (state, x)
    }
  >
}
)";
  Program program = compile(test::import_onnx_text(model, "endless.onnx"), {}).load();
  Session session(program, {.threads = 1, .step_limit = 1000});
  try {
    session.run({Tensor::of<float>({2}, kFloat32, {1, 2})});
    FAIL("it ended");
  } catch (const RuntimeError& error) {
    CHECK(std::string(error.what()).find("more than 1000 calls and backward jumps") != std::string::npos);
  }
}
