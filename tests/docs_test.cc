// The documents name files, folders, flags, commands and passes that exist, and list tables as they are.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "passes/pass.h"
#include "passes/tables.h"
#include "support/joined.h"
#include "tests/documents.h"
#include "tests/patterns.h"
#include "tests/process.h"
#include "tir/intrin/tensor_intrin.h"
#include "tir/primitives/primitive.h"
#include "tir/program.h"
#include "tir/rules/builtin_rules.h"

#include "tests/catch.h"

using namespace relaxc;
namespace fs = std::filesystem;

namespace {

const fs::path kRoot = RELAXC_SOURCE_DIR;

using test::documents, test::is_hidden_or_built;

std::vector<std::string> matches(const std::string& text, const std::string& pattern, size_t group) {
  std::vector<std::string> result;
  for (const std::vector<std::string>& match : test::matches(text, pattern)) result.push_back(match[group]);
  return result;
}

bool glob_matches(const std::string& pattern, const std::string& name) {
  std::string escaped = test::with_matches_replaced(pattern, "\\.", "\\.");
  return !test::whole_match(name, test::with_matches_replaced(escaped, "\\*", ".*")).empty();
}

bool is_there(const fs::path& path) {
  std::string name = path.filename().string();
  if (name.find('*') == std::string::npos) return fs::exists(path);
  if (!fs::is_directory(path.parent_path())) return false;
  return std::any_of(fs::directory_iterator(path.parent_path()), fs::directory_iterator(),
                     [&](const auto& entry) { return glob_matches(name, entry.path().filename().string()); });
}

// Relative to the root or to the document; a plain file name may also lie deeper below the document.
bool is_named_right(const fs::path& document, const std::string& name) {
  fs::path folder = document.parent_path();
  if (is_there(kRoot / name) || is_there(folder / name)) return true;
  if (name.find('/') != std::string::npos || folder == kRoot) return false;
  return std::any_of(fs::recursive_directory_iterator(folder), fs::recursive_directory_iterator(),
                     [&](const auto& entry) { return entry.path().filename() == name; });
}

std::string help_of(const std::vector<std::string>& command) {
  std::vector<std::string> argv = {RELAXC_TOOL};
  argv.insert(argv.end(), command.begin(), command.end());
  argv.push_back("--help");
  test::Outcome outcome = test::run_program(argv, 60);
  REQUIRE(outcome.exit_code == 0);
  return outcome.out;
}

const std::vector<std::string> kCommands = {"run", "compile", "opt", "bench", "generate"};

}  // namespace

TEST_CASE("files and folders that documents name exist", "[docs]") {
  size_t checked = 0;
  std::string missing;
  for (const fs::path& document : documents()) {
    // `a/b`, `a/`, or a file name with an extension of ours; not `<name>` patterns, options or build outputs.
    for (const std::string& name : matches(test::read_document(document),
                                           "`([A-Za-z0-9_.*-]*/[A-Za-z0-9_./*-]*|[a-z0-9_*]+\\.(?:cc|h|py|md))`", 1)) {
      if (name.starts_with("build") || name.starts_with("/") || name.starts_with("../")) continue;
      ++checked;
      std::string path = name.starts_with("./") ? name.substr(2) : name;
      if (!is_named_right(document, path)) {
        missing += "\n  " + fs::relative(document, kRoot).string() + ": " + name;
      }
    }
  }
  INFO("named but not there:" << missing);
  CHECK(missing.empty());
  CHECK(checked > 50);
}

TEST_CASE("flags and commands that documents name exist", "[docs]") {
  std::string dev_help = test::run_program({(kRoot / "dev").string(), "help"}, 60).out;
  REQUIRE_FALSE(dev_help.empty());
  std::map<std::string, std::string> help;
  for (const std::string& command : kCommands) help[command] = help_of({command});
  size_t checked = 0;
  std::string missing;
  for (const fs::path& document : documents()) {
    std::string text = test::read_document(document), where = "\n  " + fs::relative(document, kRoot).string() + ": ";
    for (const std::string& command : matches(text, "\\./dev ([a-z]+)", 1)) {
      ++checked;
      bool known = command == "help" || !test::matches(dev_help, "\n  " + command + "\\b").empty();
      if (!known) missing += where + "./dev " + command;
    }
    for (const auto& use : test::matches(text, "\\brelaxc (run|compile|opt|bench)\\b([^`\n|&;]*)")) {
      const bool is_wrong_on_purpose =
          test::contains(use[2], "# exit code 2") || test::contains(use[2], " has no flag ");
      if (is_wrong_on_purpose) continue;
      for (const std::string& flag : matches(use[2], "(--[a-z][a-z-]*|-[a-zA-Z]\\b)", 1)) {
        ++checked;
        bool known = !test::matches(help[use[1]], "[ ,]" + flag + "\\b").empty();
        if (!known) missing += where + "relaxc " + use[1] + " " + flag;
      }
    }
  }
  INFO("named but unknown:" << missing);
  CHECK(missing.empty());
  CHECK(checked > 20);
}

TEST_CASE("every flag of relaxc is in docs/relaxc.md", "[docs]") {
  std::string reference = test::read_document(kRoot / "docs/relaxc.md");
  std::vector<std::string> commands = kCommands;
  commands.emplace_back("quantize");
  for (const std::string& command : commands) {
    for (const std::string& flag : matches(help_of({command}), "\n  (?:-[a-zA-Z],)?(--[a-z0-9-]+)", 1)) {
      INFO("relaxc " << command << " " << flag);
      CHECK(test::contains(reference, "`" + flag));
    }
  }
}

TEST_CASE("help fits a screen and shows an example", "[docs]") {
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{}, {"run"}, {"compile"}, {"opt"}, {"bench"}}) {
    std::string text = help_of(command);
    INFO(text);
    CHECK(std::count(text.begin(), text.end(), '\n') <= 60);
    size_t example = text.find("Example:");
    REQUIRE(example != std::string::npos);
    CHECK(test::contains(text.substr(example), command.empty() ? "relaxc run" : "relaxc " + command[0]));
  }
}

TEST_CASE("every folder has a README of five to twenty-odd lines", "[docs]") {
  std::vector<fs::path> folders = {kRoot / "examples/digits", kRoot / "examples/embed", kRoot / "tests/hostile"};
  for (const auto& entry : fs::directory_iterator(kRoot)) {
    if (entry.is_directory() && !is_hidden_or_built(entry.path())) folders.push_back(entry.path());
  }
  for (const fs::path& folder : folders) {
    INFO(folder.filename().string());
    std::string text = test::read_document(folder / "README.md");
    auto lines = std::count(text.begin(), text.end(), '\n');
    CHECK(lines >= 5);
    CHECK(lines <= 35);
  }
  std::string architecture = test::read_document(kRoot / "ARCHITECTURE.md");
  CHECK(std::count(architecture.begin(), architecture.end(), '\n') <= 150);
}

TEST_CASE("messages that documents quote stand in the sources", "[docs]") {
  size_t checked = 0;
  for (const fs::path& document : documents()) {
    for (const test::QuotedMessage& message : test::steps_of(test::read_document(document)).messages) {
      ++checked;
      INFO(document.string() << ", line " << message.line << ": " << message.text);
      CHECK(test::contains(test::read_document(kRoot / message.file), message.text));
    }
  }
  CHECK(checked > 0);
}

TEST_CASE("documents name no machine of ours", "[docs]") {
  for (const fs::path& document : documents()) {
    std::string text = test::read_document(document);
    INFO(document.string());
    for (const char* place : {"/work/", "/home/", "/root/", "/tmp/"}) CHECK_FALSE(test::contains(text, place));
  }
}

namespace {

// A table whose rows have a file each, and the folder of these files.
struct Table {
  std::string folder;  // of the files, in which other .cc are helpers that its README names
  std::vector<std::string> rows;
  std::string tests;  // folder of a text per row
};

// Returns what the rows of a table lack, and files that belong to no row.
std::string problems_of(const Table& table) {
  std::string result, readme = test::read_document(kRoot / table.folder / "README.md");
  for (const std::string& name : table.rows) {
    std::string file = table.folder + "/" + name, text = table.tests + "/" + name + ".test";
    if (!fs::exists(kRoot / (file + ".cc")) && !fs::exists(kRoot / (file + ".h")))
      result += "\n  " + name + " has a row, but no file " + file + ".cc";
    if (!fs::exists(kRoot / text)) result += "\n  " + name + " has a row, but no test " + text;
  }
  for (const auto& entry : fs::directory_iterator(kRoot / table.folder)) {
    std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".cc" || std::ranges::count(table.rows, name) > 0) continue;
    bool is_named = test::contains(readme, "`" + name + ".cc`") || test::contains(readme, "`" + name + ".h`");
    std::string own_function = "\n(?:(?:IRModule|PrimFuncRef) " + name + "|ScheduleRule " + name + "_rule)\\(";
    if (!is_named || !matches(test::read_document(entry.path()), own_function, 0).empty())
      result += "\n  " + table.folder + "/" + name + ".cc: add a row, or name it as a helper in the folder's README";
  }
  return result;
}

template <class Rows>
std::vector<std::string> names_of(const Rows& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) names.emplace_back(row.name);
  return names;
}

}  // namespace

TEST_CASE("every pass, primitive and rule has its file, its row and its text test", "[docs]") {
  std::vector<Table> tables = {
      {"passes", {}, "tests/passes"},
      {"tir/lower", {}, "tests/lower"},
      {"tir/primitives", names_of(scheduling::primitives()), "tests/schedule/primitives"},
      {"tir/rules", names_of(builtin_schedule_rules()), "tests/schedule"},
  };
  for (const Pass& pass : passes()) {
    bool is_pass = fs::exists(kRoot / "passes" / (std::string(pass.name) + ".cc"));
    tables[is_pass ? 0 : 1].rows.emplace_back(pass.name);
  }
  for (const Table& table : tables) {
    REQUIRE(table.rows.size() >= 4);
    std::string problems = problems_of(table);
    INFO("rows and files of " << table.folder << " do not match:" << problems);
    CHECK(problems.empty());
  }
  std::string lacking = problems_of({"tir/rules", {"no_such_rule"}, "tests/schedule"});
  CHECK(test::contains(lacking, "no_such_rule has a row, but no file tir/rules/no_such_rule.cc"));
  CHECK(test::contains(lacking, "tir/rules/default.cc: add a row"));
}

TEST_CASE("every pass has a line of doc and a pipeline, and its text runs it", "[docs]") {
  std::set<std::string> in_pipelines;
  Tables with_backend;  // which brings passes of its own into the pipelines
  with_backend.add(ExternalCompiler{.name = "none",
                                    .patterns = {{"nn.relu"}},
                                    .compile = [](const ExternalPart&) { return ""; },
                                    .function = "none"});
  for (const std::vector<Pipeline>& all : {pipelines(), with_backend.pipelines()}) {
    for (const Pipeline& pipeline : all) in_pipelines.insert(pipeline.passes.begin(), pipeline.passes.end());
  }
  for (const Pass& pass : passes()) {
    std::string name = pass.name;
    INFO(name << " needs one line of doc and a pipeline in passes/table.cc");
    CHECK((pass.on_module == nullptr) != (pass.on_program == nullptr));
    CHECK(std::string(pass.doc).size() > 10);
    CHECK(std::string(pass.doc).find('\n') == std::string::npos);
    CHECK(in_pipelines.contains(name));
    bool is_pass = fs::exists(kRoot / "passes" / (name + ".cc"));
    std::string text = test::read_document(kRoot / (is_pass ? "tests/passes" : "tests/lower") / (name + ".test"));
    CHECK(!test::matches(text.substr(0, text.find('\n')), "[=,]" + name + "\\b").empty());
  }
}

namespace {

// "16", or "4 vscale" of `T.vscale() * T.int32(4)`.
std::string size_in_words(const Expr& size) {
  std::string text = size_text(size);
  std::vector<std::string> factor = matches(text, "vscale.*\\((\\d+)\\)", 1);
  return factor.empty() ? text : factor[0] + " vscale";
}

// The cells of a row about these intrinsics: their sizes, and the dtypes of their operands.
std::pair<std::string, std::string> cells_of(const std::vector<std::string>& names) {
  std::vector<std::string> first, others, dtypes;
  for (const std::string& name : names) {
    const TensorIntrin* intrin = builtin_tensor_intrins().find(name);
    if (!intrin) return {"is not in --list-intrins", ""};
    std::vector<Buffer> operands = buffer_params(intrin->description);
    const std::vector<Expr>&results = buffer_type(operands[2]).shape, &left = buffer_type(operands[0]).shape;
    first.push_back(size_in_words(results[0]));
    others.clear(), dtypes.clear();
    for (size_t d = 1; d < results.size(); ++d) others.push_back(size_in_words(results[d]));
    others.push_back(size_in_words(left.back()));
    for (const Buffer& operand : operands) dtypes.push_back(to_string(buffer_type(operand).dtype));
  }
  if (std::set<std::string>(dtypes.begin(), dtypes.end()).size() == 1) dtypes.resize(1);
  return {joined(first) + " x " + joined(others, " x "), joined(dtypes)};
}

}  // namespace

// The tables are for readers and may leave some out, so that an instruction is one row. --list-intrins has all.
TEST_CASE("the tables of intrinsics in docs/schedules.md say what --list-intrins says", "[docs]") {
  std::string text = test::read_document(kRoot / "docs/schedules.md");
  size_t listed = 0;
  for (const auto& row : test::matches(text, "\n\\| (`(?:dot|fma)_[^|]*) \\| ([^|]*) \\| ([^|]*) \\|")) {
    std::vector<std::string> names = matches(row[1], "`([a-z0-9_]+)`", 1);
    listed += names.size();
    auto [sizes, dtypes] = cells_of(names);
    INFO(row[1]);
    CHECK(row[2] == sizes);
    bool counts_vectors = test::matches(row[3], "^\\d+$").size() == 1;
    if (!counts_vectors) CHECK(row[3] == dtypes);
  }
  CHECK(listed >= 14);
}
