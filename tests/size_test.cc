// A function fits a screen and a file a sitting. Layout is clang-format's, so a function ends at the first line that
// closes with the indentation that its head has.
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/catch.h"

namespace fs = std::filesystem;

namespace {

constexpr size_t kLongestFunction = 60, kLongestFile = 600;
constexpr size_t kLongestOfTests = 100;  // a test case may be a long list

std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  for (std::string_view prefix : prefixes) {
    if (text.starts_with(prefix)) return true;
  }
  return false;
}

// Returns the indentation of the head whose body opens at the end of the line, if that is a function's head.
std::optional<size_t> function_indent(const std::string& line) {
  size_t indent = line.find_first_not_of(' ');
  if (indent == std::string::npos || !line.ends_with("{")) return std::nullopt;
  std::string_view text = std::string_view(line).substr(indent);
  if (starts_with_any(text, {"namespace", "struct ", "class ", "enum ", "union ", "extern ", "//", "#", "}"}))
    return std::nullopt;
  bool is_table = text.starts_with("return") || text.ends_with("= {") || text.starts_with("std::vector<OpRow>");
  if (is_table) return std::nullopt;
  if (text.starts_with(":")) indent = indent < 4 ? 0 : indent - 4;  // members that a constructor initializes
  if (indent > 2) return std::nullopt;
  return indent;
}

struct Long {
  size_t line, count;
};

std::vector<Long> long_functions(const std::vector<std::string>& lines, size_t limit) {
  std::vector<Long> result;
  for (size_t i = 0; i < lines.size(); ++i) {
    std::optional<size_t> indent = function_indent(lines[i]);
    bool starts_with_table = i + 1 < lines.size() && lines[i + 1].ends_with("= {");
    if (!indent || starts_with_table) continue;
    const std::string close = std::string(*indent, ' ') + "}";
    size_t end = i + 1;
    while (end < lines.size() && !lines[end].starts_with(close)) ++end;
    if (end - i + 1 > limit) result.push_back({i + 1, end - i + 1});
    if (*indent == 0) i = end;
  }
  return result;
}

}  // namespace

TEST_CASE("a function fits a screen, a file a sitting", "[layering]") {
  std::string wrong;
  size_t files = 0;
  for (const char* room :
       {"support", "ir", "ops", "frontend", "passes", "tir", "codegen", "vm", "tools", "tests", "bench", "examples"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(RELAXC_SOURCE_DIR) / room)) {
      std::string extension = entry.path().extension();
      if (extension != ".h" && extension != ".cc") continue;
      std::string name = fs::relative(entry.path(), RELAXC_SOURCE_DIR);
      std::vector<std::string> lines = lines_of(entry.path());
      ++files;
      if (lines.size() > kLongestFile) wrong += "\n  " + name + " has " + std::to_string(lines.size()) + " lines";
      bool is_test = name.starts_with("tests/") || name.starts_with("bench/");
      for (const Long& found : long_functions(lines, is_test ? kLongestOfTests : kLongestFunction))
        wrong += "\n  " + name + ":" + std::to_string(found.line) + ": a function of " + std::to_string(found.count) +
                 " lines";
    }
  }
  REQUIRE(files > 400);
  INFO("longer than " << kLongestFunction << " lines a function (" << kLongestOfTests << " in tests) or "
                      << kLongestFile << " a file:" << wrong);
  CHECK(wrong.empty());
}

TEST_CASE("long functions are found", "[layering]") {
  std::vector<std::string> lines = {"int f(int a) {", "  if (a) {", "  }", "}",          "struct S {",
                                    "  void g() {",   "    g();",   "  }", "  S(int a)", "      : a_(a) {",
                                    "    g();",       "  }",        "};"};
  std::vector<Long> found = long_functions(lines, 3);
  REQUIRE(found.size() == 1);
  CHECK(found[0].line == 1);
  CHECK(found[0].count == 4);
  CHECK(long_functions(lines, 2).size() == 3);
}
