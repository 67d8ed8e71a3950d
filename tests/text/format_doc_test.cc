// The examples of docs/text-format.md read, verify, and print as text that reads back the same.
#include <fstream>
#include <sstream>

#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify/verify.h"
#include "ir/visit.h"

#include "tests/catch.h"  // last

namespace {

using namespace relaxc;  // NOLINT: a test

std::string indented(const std::string& text, const std::string& by) {
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) result += by + line + "\n";
  return result;
}

// Returns the example inside of a whole module, or the empty string for fences of other kinds.
std::string in_context(const std::string& kind, const std::string& example) {
  if (kind == "python module") return example;
  if (kind == "python tir")
    return "@T.prim_func\n"
           "def f(A: T.Buffer((16, 16), \"float32\"), B: T.Buffer((16, 16), \"float32\"), "
           "I: T.Buffer((16,), \"int32\"), n: T.int32):\n" +
           indented(example, "    ");
  if (kind == "python graph")
    return "@R.function\n"
           "def main(x: R.Tensor((\"n\", 4), \"float32\"), y: R.Tensor((\"n\", 4), \"float32\"), "
           "c: R.Tensor((), \"bool\"), s: R.Shape([\"n\"])):\n"
           "    n = T.int64()\n" +
           indented(example, "    ") + "    return a\n";
  return "";
}

}  // namespace

TEST_CASE("examples of the text format's documentation", "[text]") {
  std::ifstream file(std::string(RELAXC_SOURCE_DIR) + "/docs/text-format.md");
  REQUIRE(file);
  int examples = 0, number = 0;
  std::string kind, example;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (!line.starts_with("```")) {
      if (inside) example += line + "\n";
      continue;
    }
    inside = !inside;
    if (inside) {
      kind = line.substr(3);
      example.clear();
      continue;
    }
    std::string text = in_context(kind, example);
    if (text.empty()) continue;
    ++examples;
    INFO("docs/text-format.md, the example that ends at line " << number << "\n" << text);
    Diagnostics diagnostics;
    IRModule module = parse_module(text, "example.py", op_table(), diagnostics);
    if (!diagnostics.has_errors()) verify(module, op_table(), diagnostics);
    for (const Diagnostic& diagnostic : diagnostics.all()) FAIL_CHECK(to_string(diagnostic));
    std::string printed = print_module(module);
    Diagnostics again;
    IRModule second = parse_module(printed, "printed.py", op_table(), again);
    for (const Diagnostic& diagnostic : again.all()) FAIL_CHECK(to_string(diagnostic) << "\n" << printed);
    CHECK(structural_equal(module, second));
    CHECK(print_module(second) == printed);
  }
  CHECK(examples >= 9);
}
