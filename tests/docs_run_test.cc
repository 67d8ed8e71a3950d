// The commands and files that documents show run, and print what the documents say (documents.h).
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/documents.h"
#include "tests/patterns.h"
#include "tests/process.h"
#include "tests/python_package.h"
#include "tests/report.h"

#include "tests/catch.h"  // last

using namespace relaxc;
namespace fs = std::filesystem;

namespace {

const fs::path kDocuments = fs::path(RELAXC_BINARY_DIR) / "documents";

// Installs relaxc below the build folder, once.
const fs::path& installed() {
  static const fs::path kPrefix = [] {
    fs::path prefix = kDocuments / "installed";
    fs::remove_all(prefix);
    REQUIRE(test::run_program({RELAXC_CMAKE, "--install", RELAXC_BINARY_DIR, "--prefix", prefix}, 60).exit_code == 0);
    return prefix;
  }();
  return kPrefix;
}

// Returns relaxc.sh of docs/getting-started.md. A shell runs it first where relaxc is installed to a prefix.
std::string variables_of_prefix() {
  for (const test::DocumentStep& step :
       test::steps_of(test::read_document(RELAXC_SOURCE_DIR "/docs/getting-started.md")).steps)
    if (step.file == "relaxc.sh") return step.text;
  FAIL("docs/getting-started.md has no file relaxc.sh");
  return "";
}

// Makes a folder as that of a reader who has relaxc installed and nothing else: with the files that are installed for
// it.
fs::path folder_for(const std::string& document) {
  fs::path folder = kDocuments / document;
  fs::remove_all(folder);
  fs::create_directories(folder);
  for (const char* name : {"examples", "runtime", "tests"})
    fs::copy(installed() / "share/doc/relaxc" / name, folder / name, fs::copy_options::recursive);
  return folder;
}

// Returns whether the command needs what is optional: a library in the build, or NumPy beside it.
bool needs_what_is_missing(const std::string& command) {
  if (test::contains(command, test::kPython)) return !test::why_no_python_package().empty();
  if (test::contains(command, ".png")) return !fs::exists(RELAXC_BINARY_DIR "/librelaxc_images.so");
  if (test::contains(command, "serve/serve") || test::contains(command, "examples/serve "))
    return !fs::exists(RELAXC_BINARY_DIR "/examples/serve/serve");
#ifdef RELAXC_ONEDNN_PLUGIN
  constexpr bool kHasOneDnn = true;
#else
  constexpr bool kHasOneDnn = false;
#endif
  return !kHasOneDnn && test::contains(command, "onednn");
}

bool runs_here(test::Runs runs) {
  if (runs == test::Runs::kSlow) return std::getenv("CI") || std::getenv("RELAXC_SLOW_DOCUMENTS");
  return runs == test::Runs::kAlways;
}

// Returns what the reader's shell runs. All documents share one compiler cache.
std::string in_shell(const fs::path& folder, const std::string& command) {
  static const std::string kPrelude =
      fmt::format("prefix='{}'\n{}\nexport CMAKE_GENERATOR=Ninja CXXFLAGS='" RELAXC_CXX_FLAGS
                  "' CFLAGS='" RELAXC_CXX_FLAGS "'\nalias cc='cc " RELAXC_CXX_FLAGS "' c++='c++ " RELAXC_CXX_FLAGS
                  "'\n"
                  "if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR='{}' "
                  "CCACHE_NOHASHDIR=1; fi\n",
                  installed().string(), variables_of_prefix(), kDocuments.string());
  return fmt::format("{}cd '{}' && {{ {}\n}} 2>&1", kPrelude, folder.string(), command);
}

void run_steps(const std::string& document, const std::vector<test::DocumentStep>& steps) {
  constexpr int kLongestSeconds = 300, kLongestSlowSeconds = 1200;
  const fs::path folder = folder_for(document);
  for (const test::DocumentStep& step : steps) {
    if (step.file.empty() && (!runs_here(step.runs) || needs_what_is_missing(step.text))) continue;
    try_step(document, step, folder, [&](const std::string& command) {
      return test::run_program({"/bin/sh", "-c", in_shell(folder, command)},
                               step.runs == test::Runs::kSlow ? kLongestSlowSeconds : kLongestSeconds);
    });
  }
}

}  // namespace

TEST_CASE("the commands that documents show run, and print what they say", "[docs_run]") {
  size_t commands = 0;
  std::string not_run;
  for (const fs::path& path : test::documents()) {
    test::DocumentSteps found = test::steps_of(test::read_document(path));
    std::string name = fs::relative(path, RELAXC_SOURCE_DIR).string();
    for (const std::string& problem : found.problems) FAIL_CHECK(name << ", " << problem);
    for (const test::MarkedBlock& block : found.marked) {
      const char* where = block.runs == test::Runs::kSlow        ? "runs in CI"
                          : block.runs == test::Runs::kInPackage ? "runs in ./dev package try"
                                                                 : "not run";
      if (!runs_here(block.runs))
        not_run += fmt::format("  {}, line {}: {}: {}\n", name, block.line, where, block.reason);
    }
    if (found.steps.empty()) continue;
    commands += found.steps.size();
    run_steps(name, found.steps);
  }
  CHECK(commands > 150);
  test::write_report(
      "documents",
      fmt::format("documents: {} commands and files are tried, except for the blocks of\n{}", commands, not_run));
}

TEST_CASE("commands in documents for users stand in blocks that are run, or say why they are not", "[docs_run]") {
  for (const fs::path& path : test::documents()) {
    std::string name = fs::relative(path, RELAXC_SOURCE_DIR).string();
    const bool is_for_users = name.starts_with("docs/") || name.starts_with("examples/") || name == "README.md";
    if (!is_for_users) continue;
    for (const std::string& command : test::other_commands(test::read_document(path)))
      FAIL_CHECK(name << ", " << command << ": put it into a block that begins with ```sh (tests/documents.h)");
    for (const std::string& line : test::blocks_without_language(test::read_document(path)))
      FAIL_CHECK(name << ", " << line << ": expected a block with its language, or ```text (tests/documents.h)");
  }
}

// Those that no command uses have at least no error of syntax.
TEST_CASE("what documents show as Python parses as Python", "[docs_run]") {
  if (!fs::exists(test::kPython)) return test::skip("python3 is not installed");
  const fs::path folder = kDocuments / "python_blocks";
  fs::remove_all(folder);
  fs::create_directories(folder);
  std::vector<std::string> command = {test::kPython, "-c",
                                      "import ast, sys, textwrap\n"
                                      "for path in sys.argv[1:]:\n"
                                      "    ast.parse(textwrap.dedent(open(path).read()), path)\n"};
  for (const fs::path& path : test::documents()) {
    std::string name = test::with_matches_replaced(fs::relative(path, RELAXC_SOURCE_DIR).string(), "/", "_");
    for (const test::PythonBlock& block : test::python_blocks(test::read_document(path))) {
      command.push_back((folder / fmt::format("{}_line_{}.py", name, block.line)).string());
      std::ofstream(command.back()) << block.text;
    }
  }
  CHECK(command.size() > 60);
  test::Outcome outcome = test::run_program(command, 60);
  INFO(outcome.err);
  CHECK(outcome.exit_code == 0);
}

TEST_CASE("examples of documents are read: files, commands, outputs, exit codes", "[docs_run]") {
  test::DocumentSteps found = test::steps_of(
      "```python\n# a.py\nx = 1\n```\n```text\na picture\n```\n```sh\n$ cat a.py \\\n    -\n# a.py\n...\n$ false  # "
      "exit "
      "code 1\n```\n");
  CHECK(found.problems.empty());
  REQUIRE(found.steps.size() == 3);
  CHECK(found.steps[0].file == "a.py");
  CHECK(found.steps[0].text == "# a.py\nx = 1\n");
  CHECK(found.steps[1].text == "cat a.py \\\n    -");
  CHECK(found.steps[1].shown == "# a.py\n...\n");
  CHECK(found.steps[2].text == "false");
  CHECK(found.steps[2].exit_code == 1);
  CHECK_FALSE(found.steps[2].shown);
  CHECK(test::steps_of("```sh\n$ true\n```\n```python\nx = 1\n```\n```python\n# b.py\n```\n").problems.size() == 2);
  CHECK(test::steps_of("```sh\ntrue\n```\n").problems.size() == 1);
  CHECK(test::steps_of("```sh\n$ true\n```\n```\na picture\n```\n").problems.size() == 1);
  CHECK(test::blocks_without_language("```text\na\n```\n\n```\nb\n```\n") == std::vector<std::string>{"line 5"});
  CHECK(test::python_blocks("```python graph\nx = 1\n```\n```pythonic\ny\n```\n").size() == 1);
  CHECK(test::steps_of("```python\nx = 1\n```\n").problems.empty());  // a document that runs nothing
}

TEST_CASE("commands that are slow or cannot run say why", "[docs_run]") {
  test::DocumentSteps found = test::steps_of(
      "```sh not run: it needs hardware\n$ relaxc run --target gpu\n```\n```sh slow: it takes minutes\n$ make\n```\n"
      "```sh package: it needs root\n$ apt-get install a.deb\n```\n");
  CHECK(found.problems.empty());
  REQUIRE(found.marked.size() == 3);
  CHECK(found.marked[0].runs == test::Runs::kNever);
  CHECK(found.marked[0].reason == "it needs hardware");
  CHECK(found.marked[0].text == "$ relaxc run --target gpu\n");
  REQUIRE(found.steps.size() == 2);
  CHECK(found.steps[0].runs == test::Runs::kSlow);
  CHECK(found.steps[1].runs == test::Runs::kInPackage);
  CHECK(found.steps[1].text == "apt-get install a.deb");
  for (const char* kind : {"sh not run:", "sh slow", "sh package: no", "sh later: it takes minutes"})
    CHECK(test::steps_of(fmt::format("```{}\n$ true\n```\n", kind)).problems.size() == 1);
  CHECK(test::other_commands("    relaxc run a.onnx\n").size() == 1);
  CHECK(test::other_commands("```\nPYTHONPATH=a python3 b.py\n```\n    cmake --install build\n").size() == 2);
  CHECK(test::other_commands("relaxc run\n\n    relaxc\n```sh\n$ relaxc run a.onnx\n```\n").empty());
}

TEST_CASE("outputs are compared with what documents show", "[docs_run]") {
  CHECK(test::is_as_shown("a  \nb\n\n", "a\nb\n"));
  CHECK(test::is_as_shown("a\nb\nc\nb\nd\n", "a\n...\nb\nd\n"));
  CHECK(test::is_as_shown("", "...\n"));
  CHECK(test::is_as_shown("took 3.25 ms on 4 threads", "took ... ms on ... threads"));
  CHECK(test::is_as_shown("aXbXb", "a...b"));
  CHECK_FALSE(test::is_as_shown("a\nb", "a"));
  CHECK_FALSE(test::is_as_shown("a", "a\nb"));
  CHECK_FALSE(test::is_as_shown("a\nb", "...\na"));
  CHECK_FALSE(test::is_as_shown("took 3 s", "took ... ms"));
  CHECK_FALSE(test::is_as_shown("ab", "ab...b"));
}
