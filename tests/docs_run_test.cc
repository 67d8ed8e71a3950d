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

// Makes a folder in which the paths of the tree hold: the build's, the examples', and the headers that C kernels see.
fs::path folder_for(const std::string& document) {
  fs::path folder = fs::path(RELAXC_BINARY_DIR) / "documents" / document;
  fs::remove_all(folder);
  fs::create_directories(folder);
  for (const char* name : {"api", "cmake", "examples", "support", "tests", "tools", "vm", "CMakeLists.txt"})
    fs::create_symlink(fs::path(RELAXC_SOURCE_DIR) / name, folder / name);
  fs::create_directory_symlink(RELAXC_BINARY_DIR, folder / "build");
  test::Outcome headers = test::run_program(
      {RELAXC_CMAKE, "-DSOURCE_DIR=" RELAXC_SOURCE_DIR, "-DDESTINATION=" + (folder / "include").string(), "-P",
       RELAXC_SOURCE_DIR "/cmake/install_headers.cmake"},
      60);
  REQUIRE(headers.exit_code == 0);
  return folder;
}

// Returns whether the command needs what is optional: a library in the build, or NumPy beside it.
bool needs_what_is_missing(const std::string& command) {
  if (test::contains(command, "PYTHONPATH=api/python")) return !test::why_no_python_package().empty();
  if (test::contains(command, ".png")) return !fs::exists(RELAXC_BINARY_DIR "/librelaxc_images.so");
  if (test::contains(command, "build/examples/serve/")) return !fs::exists(RELAXC_BINARY_DIR "/examples/serve/serve");
#ifdef RELAXC_ONEDNN_PLUGIN
  constexpr bool kHasOneDnn = true;
#else
  constexpr bool kHasOneDnn = false;
#endif
  return !kHasOneDnn && test::contains(command, "onednn");
}

void run_steps(const std::string& document, const std::vector<test::DocumentStep>& steps) {
  fs::path folder = folder_for(document), tools = fs::path(RELAXC_TOOL).parent_path();
  for (const test::DocumentStep& step : steps) {
    if (!step.file.empty()) {
      fs::create_directories((folder / step.file).parent_path());
      std::ofstream(folder / step.file) << step.text;
      continue;
    }
    if (step.is_slow && !std::getenv("RELAXC_SLOW_DOCUMENTS")) continue;
    if (needs_what_is_missing(step.text)) continue;
    std::string command =
        fmt::format("cd '{}' && PATH='{}':$PATH && {{ {}\n}} 2>&1", folder.string(), tools.string(), step.text);
    test::Outcome outcome = test::run_program({"/bin/sh", "-c", command}, 300);
    INFO(document << ", line " << step.line << ": " << step.text << "\n"
                  << outcome.how_it_ended() << "\n"
                  << outcome.out);
    CHECK(outcome.exit_code == step.exit_code);
    if (!step.shown) continue;
    INFO("expected\n" << *step.shown);
    CHECK(test::is_as_shown(outcome.out, *step.shown));
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
    for (const auto& [mark, blocks] : {std::pair("slow", &found.slow), std::pair("not run", &found.not_run)})
      for (const test::MarkedBlock& block : *blocks)
        not_run += fmt::format("  {}, line {}: {}: {}\n", name, block.line, mark, block.reason);
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
  }
}

TEST_CASE("examples of documents are read: files, commands, outputs, exit codes", "[docs_run]") {
  test::DocumentSteps found = test::steps_of(
      "```python\n# a.py\nx = 1\n```\n```\na picture\n```\n```sh\n$ cat a.py \\\n    -\n# a.py\n...\n$ false  # exit "
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
  CHECK(test::steps_of("```python\nx = 1\n```\n").problems.empty());  // a document that runs nothing
}

TEST_CASE("commands that are slow or cannot run say why", "[docs_run]") {
  test::DocumentSteps found = test::steps_of(
      "```sh not run: it needs root\n$ apt-get install a.deb\n```\n```sh slow: it takes minutes\n$ make\n```\n");
  CHECK(found.problems.empty());
  REQUIRE(found.not_run.size() == 1);
  CHECK(found.not_run[0].reason == "it needs root");
  CHECK(found.not_run[0].text == "$ apt-get install a.deb\n");
  CHECK(found.slow.size() == 1);
  REQUIRE(found.steps.size() == 1);
  CHECK(found.steps[0].is_slow);
  for (const char* kind : {"sh not run:", "sh slow", "sh later: it takes minutes"})
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
