// Runs every tests/**/*.test. The first line says what to do with the text below it:
//   # test: roundtrip        it prints as the text after `# ----` (as itself when there is none), and that text parses
//                            to an equal module and prints the same
//   # test: dialect=0.26     the same in the spelling of that version
//   # test: verify           it parses, and the verifier reports what `# error:` lines say
//   # test: parse-error      the reader reports what `# error:` lines say
//   # test: passes=a,b       it verifies, the passes run, with the schedules beside it, and the result prints as the
//                            text after `# ----`; or they report what `# error:` lines say. `passes=a target=T`: for
//                            that target; `passes=a target=T precision=bf16` as with --precision
//   # test: schedule         steps of schedules on a program, and what comes out (schedule/schedule_cases.h)
//   # test: loops            the drawings of its tensor programs, with what each loop allows
//   # test: run              runs of a module on given inputs, and their results (modules/module_cases.cc)
//   # test: import           the module that an ONNX model becomes (frontend/import_cases.cc)
// `# error: substring` or `# error: substring note: substring of a note` stands at the end of the offending line;
// several are separated by ` # error: `; warnings say `# warning: `. Every error must be expected and every expectation
// met. RELAXC_UPDATE=1 rewrites the expected output, and RELAXC_TEXTS=TEXT runs only the files whose path contains
// TEXT.
#include <algorithm>
#include <cstdlib>

#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "ir/verify/verify.h"
#include "ir/visit.h"
#include "passes/kernel_rules.h"
#include "passes/precision.h"
#include "passes/runner.h"
#include "tests/text/harness.h"
#include "tir/schedule/draw.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

void run_parse_error(TextTest& test, std::string_view) {
  Diagnostics diagnostics;
  parse_module(test.input(), test.name(), op_table(), diagnostics);
  REQUIRE(expects_errors(test.input()));
  check_errors(test.input(), diagnostics.all());
}

void run_verify(TextTest& test, std::string_view) {
  IRModule module = parse_text(test.input(), test.name());
  Diagnostics diagnostics;
  verify(module, op_table(), diagnostics);
  verify_ranges(module, Ranges::kAxes, diagnostics);
  if (!diagnostics.has_errors()) verify_ranges(module, Ranges::kIndices, diagnostics);
  REQUIRE(expects_errors(test.input()));
  check_errors(test.input(), diagnostics.all());
}

void run_round_trip(TextTest& test, std::string_view) {
  IRModule module = parse_text(test.input(), test.name());
  check_verified(module);
  check_round_trip(module);
  std::string printed = print_body(module);
  std::string itself = test.input().substr(test.input().find('\n') + 1);
  if (test.sections.size() == 1 && body_of(itself) == printed) return;
  test.set_output(printed);
}

void run_dialect(TextTest& test, std::string_view version) {
  REQUIRE(version == "0.26");
  IRModule module = parse_text(test.input(), test.name());
  check_verified(module);
  PrintOptions later = kWhole;
  later.dialect = Dialect::kTvm26;
  std::string printed = print_module(module, later);
  CHECK(structural_equal(module, parse_text(printed, "printed")));
  test.set_output(body_of(printed));
}

// Takes " name=value" off the end of the text and returns the value.
std::optional<std::string> take_setting(std::string_view& text, std::string_view name) {
  const std::string begin = fmt::format(" {}=", name);
  const size_t at = text.find(begin);
  if (at == std::string_view::npos) return std::nullopt;
  std::string value(text.substr(at + begin.size()));
  text = text.substr(0, at);
  return value;
}

void run_passes(TextTest& test, std::string_view names) {
  IRModule module = parse_text(test.input(), test.name());
  check_verified(module);
  CompileSettings settings;
  settings.precision = find_precision(take_setting(names, "precision").value_or("fp32")).value_or(Precision::kFloat32);
  settings.target = take_setting(names, "target").value_or("x86-64");
  bool has_kernels = test.input().find("\n@S.") != std::string::npos ||
                     test.input().find("\nS.use(") != std::string::npos ||
                     test.input().find("\n@R.rewriter") != std::string::npos;
  if (has_kernels) {
    std::vector<KernelRule> rules = read_kernel_rules(test.input(), test.name(), op_table());
    settings.kernels = std::make_shared<const std::vector<KernelRule>>(std::move(rules));
    settings.schedules = read_schedule_rules(test.input(), test.name());
  }
  PassContext context = pass_context(settings);
  for (const Pass* pass : parse_passes(names)) {
    try {
      module = run_pass(*pass, std::move(module), context);
    } catch (const CompileError& error) {
      return check_errors(test.input(), error.diagnostics());
    }
    check_verified(module);
    check_round_trip(module);
  }
  CHECK_FALSE(expects_errors(test.input()));
  test.set_output(print_body(module));
}

void run_loops(TextTest& test, std::string_view) {
  IRModule module = parse_text(test.input(), test.name());
  check_verified(module);
  std::string drawn;
  for (const auto& [name, function] : module.functions) {
    if (function.is<PrimFunc>()) drawn += draw_loops(name, cast<PrimFunc>(function)) + "\n";
  }
  test.set_output(drawn);
}

struct Command {
  std::string_view name;
  void (*run)(TextTest&, std::string_view argument);
};
constexpr Command kCommands[] = {
    {"roundtrip", run_round_trip},
    {"dialect", run_dialect},
    {"verify", run_verify},
    {"parse-error", run_parse_error},
    {"passes", run_passes},
    {"schedule", [](TextTest& test, std::string_view) { run_schedule_cases(test); }},
    {"loops", run_loops},
    {"run", [](TextTest& test, std::string_view) { run_module_cases(test); }},
    {"import", [](TextTest& test, std::string_view) { run_import_cases(test); }},
};

void run(const std::filesystem::path& path) {
  TextTest test = read_text_test(path);
  std::string_view name = test.command, argument;
  if (size_t equals = name.find('='); equals != std::string_view::npos) {
    argument = name.substr(equals + 1);
    name = name.substr(0, equals);
  }
  for (const Command& command : kCommands) {
    if (command.name != name) continue;
    command.run(test, argument);
    return check_file(test);
  }
  std::string known;
  for (const Command& command : kCommands) known += fmt::format(" {}", command.name);
  FAIL(path.string() << ": unknown command '" << name << "'; there are:" << known);
}

}  // namespace

TEST_CASE("text tests", "[text]") {
  const char* filter = std::getenv("RELAXC_TEXTS");
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(RELAXC_SOURCE_DIR "/tests")) {
    bool is_wanted = !filter || entry.path().string().find(filter) != std::string::npos;
    if (entry.path().extension() == ".test" && is_wanted) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  REQUIRE(!files.empty());
  for (const std::filesystem::path& path : files) {
    INFO(path.string());
    try {
      run(path);
    } catch (const std::exception& error) {  // CompileError, or a failed RELAXC_CHECK
      FAIL_CHECK(path.string() << ": " << error.what());
    }
  }
}

}  // namespace relaxc::test
