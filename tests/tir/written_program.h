// Tensor programs of a few statements, for tests of what is said about them.
#pragma once
#include <string>

#include "codegen/compile.h"
#include "ir/text/parser.h"

#include "tests/catch.h"

namespace relaxc::test {

// Returns the program `main` of the text, below which stand the lines of the body, indented by that many columns. Its
// name in messages is `file`.
inline PrimFuncRef written_program(const std::string& file, std::string text, const std::string& body,
                                   size_t columns = 4) {
  for (size_t begin = 0; begin < body.size();) {
    const size_t end = std::min(body.find('\n', begin), body.size());
    text += std::string(columns, ' ') + body.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  INFO(text);
  Diagnostics diagnostics;
  IRModule module = parse_module(text, file, op_table(), diagnostics);
  diagnostics.throw_if_errors();
  return module.prim_func("main");
}

// Returns the diagnostics as a user sees them.
inline std::string text_of(const std::vector<Diagnostic>& found) {
  std::string result;
  for (const Diagnostic& diagnostic : found) result += to_string(diagnostic);
  return result;
}

}  // namespace relaxc::test
