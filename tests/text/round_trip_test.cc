// After every pass of every pipeline, the modules that the compiler builds print as text that reads back equal.
// Python's own parser accepts the text.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/visit.h"
#include "ops/ops.h"
#include "tests/ops/samples.h"
#include "tests/process.h"
#include "tests/text/random_module.h"

#include "tests/catch.h"  // last

using namespace relaxc;

namespace {

PrintOptions whole() {
  PrintOptions options;
  options.inline_elements = int64_t{1} << 40;
  return options;
}

// Empty when the module's text reads back equal and prints the same.
std::string problem_of(const IRModule& module) {
  std::string text = print_module(module, whole());
  Difference difference;
  Diagnostics diagnostics;
  IRModule again = parse_module(text, "again.py", op_table(), diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.all()) return to_string(diagnostic) + "\n" + text;
  EqualOptions options;
  options.difference = &difference;
  options.print = print_node;
  if (!structural_equal(module, again, options)) return "differs at " + difference.text + "\n" + text;
  return print_module(again, whole()) == text ? "" : "prints differently:\n" + text;
}

void check_after_every_pass(const std::string& name, IRModule module) {
  PassContext context = pass_context();
  for (const Pass* pass : parse_passes("default")) {
    try {
      module = run_passes(std::move(module), std::vector<const Pass*>{pass}, context);
    } catch (const CompileError& error) {
      if (error.kind() == ErrorKind::kUnsupported) return;  // no lowering yet
      throw;
    }
    std::string problem = problem_of(module);
    INFO(name << " after " << pass->name << "\n" << problem);
    REQUIRE(problem.empty());
  }
}

}  // namespace

TEST_CASE("text after every pass: every operator", "[text]") {
  for (const OpRow& row : op_table().rows()) {
    auto sample = test::sample_call(op_table(), row, 0);
    REQUIRE(sample);
    check_after_every_pass(row.name, test::sample_module(op_table(), row, *sample));
  }
}

TEST_CASE("text after every pass: networks", "[text]") {
  const std::string source = RELAXC_SOURCE_DIR;
  for (const char* path : {"/examples/digits/digits.onnx", "/bench/text/network.py", "/tests/modules/matmul_relu.py"})
    check_after_every_pass(path, read_module(source + path));
}

TEST_CASE("printed modules pass Python's parser", "[text]") {
  namespace fs = std::filesystem;
  const char* python = "/usr/bin/python3";
  if (!fs::exists(python)) {
    WARN("test skipped: python3 is not installed");
    return;
  }
  fs::path folder = fs::temp_directory_path() / fmt::format("relaxc_python_{}", getpid());
  fs::create_directories(folder);
  int files = 0;
  auto write = [&](const IRModule& module, const PrintOptions& options) {
    std::ofstream(folder / fmt::format("m{}.py", files++)) << print_module(module, options);
  };
  PrintOptions later = whole();
  later.dialect = Dialect::kTvm26;
  for (uint64_t seed = 0; seed < op_table().rows().size(); ++seed) {
    write(test::random_module(op_table(), seed), whole());
    write(test::random_module(op_table(), seed), later);
  }
  test::Outcome outcome = test::run_program({python, "-m", "compileall", "-q", folder.string()}, 300);
  INFO(outcome.how_it_ended() << "\n" << outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
  fs::remove_all(folder);
}
