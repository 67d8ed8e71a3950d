// Runs every tests/**/*.test. The first line says what to do with the module below it:
//   # test: roundtrip        it prints as the text after `# ----` (as itself when there is none), and that text parses
//                            to an equal module and prints the same
//   # test: dialect=0.26     the same in the spelling of that version
//   # test: verify           it parses, and the verifier reports what `# error:` lines say
//   # test: parse-error      the reader reports what `# error:` lines say
//   # test: passes=a,b       it verifies, the passes run, and the result prints as the text after `# ----`; or they
//                            report what `# error:` lines say
// `# error: substring` or `# error: substring note: substring of a note` stands at the end of the offending line;
// several are separated by ` # error: `; warnings say `# warning: `. Every error must be expected and every expectation
// met. RELAXC_UPDATE=1 rewrites the text after `# ----`.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify.h"
#include "ir/visit.h"
#include "passes/runner.h"
#include "tests/catch.h"

namespace {

using namespace relaxc;  // NOLINT: a test

constexpr PrintOptions kWhole{int64_t{1} << 40};
constexpr std::string_view kSeparator = "# ----\n";

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::stringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// "-expected" and "+actual" lines with what they share around them.
std::string diff(const std::string& expected, const std::string& actual) {
  std::vector<std::string> a = lines_of(expected), b = lines_of(actual);
  std::vector<std::vector<size_t>> common(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;) {
      common[i][j] = a[i] == b[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
    }
  }
  std::string result;
  for (size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      result += " " + a[i++] + "\n";
      ++j;
    } else if (j == b.size() || (i < a.size() && common[i + 1][j] >= common[i][j + 1])) {
      result += "-" + a[i++] + "\n";
    } else {
      result += "+" + b[j++] + "\n";
    }
  }
  return result;
}

std::string body_of(const std::string& printed) {
  // Without the header comments, which every print has.
  size_t start = printed.find("@");
  return start == std::string::npos ? printed : printed.substr(start);
}

struct Expected {
  size_t line;
  Severity severity;
  std::string text;
  bool met = false;
};

std::vector<Expected> expected_errors(const std::string& input) {
  std::vector<Expected> result;
  std::vector<std::string> lines = lines_of(input);
  constexpr std::string_view kError = "# error: ", kWarning = "# warning: ";
  for (size_t i = 0; i < lines.size(); ++i) {
    auto next_mark = [&](size_t from) { return std::min(lines[i].find(kError, from), lines[i].find(kWarning, from)); };
    size_t at = next_mark(0);
    while (at != std::string::npos) {
      bool warns = lines[i].compare(at, kWarning.size(), kWarning) == 0;
      size_t next = next_mark(at + 1), begin = at + (warns ? kWarning : kError).size();
      std::string text = lines[i].substr(begin, next == std::string::npos ? next : next - begin);
      while (!text.empty() && text.back() == ' ') text.pop_back();
      result.push_back({i + 1, warns ? Severity::kWarning : Severity::kError, text});
      at = next;
    }
  }
  return result;
}

void check_errors(const std::string& input, const std::vector<Diagnostic>& diagnostics) {
  std::vector<Expected> expected = expected_errors(input);
  REQUIRE(!expected.empty());
  for (const Diagnostic& diagnostic : diagnostics) {
    std::string notes;
    for (const std::string& note : diagnostic.notes) notes += note + "\n";
    auto it = std::find_if(expected.begin(), expected.end(), [&](const Expected& e) {
      constexpr std::string_view kNote = " note: ";
      size_t note = std::min(e.text.find(kNote), e.text.size());
      bool fits = diagnostic.message.find(e.text.substr(0, note)) != std::string::npos;
      if (note < e.text.size()) fits = fits && notes.find(e.text.substr(note + kNote.size())) != std::string::npos;
      return !e.met && e.line == diagnostic.span.line && e.severity == diagnostic.severity && fits;
    });
    if (it == expected.end()) {
      FAIL_CHECK("unexpected: " << to_string(diagnostic));
    } else {
      it->met = true;
    }
  }
  for (const Expected& e : expected) {
    if (!e.met) FAIL_CHECK("line " << e.line << ": expected an error with '" << e.text << "'");
  }
}

IRModule parse(const std::string& text, const std::string& name) {
  Diagnostics diagnostics;
  IRModule module = parse_module(text, name, op_table(), diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.all()) FAIL_CHECK(to_string(diagnostic));
  return module;
}

void verify_all(const IRModule& module, Diagnostics& diagnostics) {
  verify(module, op_table(), diagnostics);
  verify_ranges(module, Ranges::kAxes, diagnostics);
  if (!diagnostics.has_errors()) verify_ranges(module, Ranges::kIndices, diagnostics);
}

void check_verified(const IRModule& module) {
  Diagnostics diagnostics;
  verify(module, op_table(), diagnostics);
  verify_ranges(module, Ranges::kAxes, diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.all()) FAIL_CHECK(to_string(diagnostic));
}

void check_round_trip(const IRModule& module) {
  std::string printed = print_module(module, kWhole);
  IRModule again = parse(printed, "printed");
  Difference difference;
  EqualOptions options;
  options.difference = &difference;
  bool equal = structural_equal(module, again, options);
  INFO("first difference: " << difference.text);
  INFO(printed);
  CHECK(equal);
  std::string reprinted = print_module(again, kWhole);
  if (reprinted != printed) FAIL_CHECK("printing is no fixed point:\n" << diff(printed, reprinted));
}

void check_text(const std::filesystem::path& path, const std::string& whole, size_t separator,
                const std::string& expected, const std::string& actual) {
  if (expected == actual) return;
  if (std::getenv("RELAXC_UPDATE")) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, separator) << kSeparator << actual;
    WARN("rewrote " << path.string());
    return;
  }
  FAIL_CHECK(path.string() << ":\n" << diff(expected, actual));
}

void run(const std::filesystem::path& path) {
  std::string whole = read_file(path);
  std::string command = whole.substr(0, whole.find('\n'));
  size_t colon = command.find("test: ");
  REQUIRE(colon != std::string::npos);
  command = command.substr(colon + 6);
  size_t separator = std::min(whole.find(kSeparator), whole.size());
  std::string input = whole.substr(0, separator);
  std::string expected = separator < whole.size() ? whole.substr(separator + kSeparator.size()) : "";
  std::string name = path.filename().string();
  if (command == "parse-error") {
    Diagnostics diagnostics;
    parse_module(input, name, op_table(), diagnostics);
    return check_errors(input, diagnostics.all());
  }
  IRModule module = parse(input, name);
  if (command == "verify") {
    Diagnostics diagnostics;
    verify_all(module, diagnostics);
    return check_errors(input, diagnostics.all());
  }
  if (command == "roundtrip") {
    check_verified(module);
    check_round_trip(module);
    if (separator == whole.size()) expected = body_of(input.substr(input.find('\n') + 1));
    return check_text(path, whole, separator, expected, body_of(print_module(module, kWhole)));
  }
  if (command == "dialect=0.26") {
    check_verified(module);
    PrintOptions later = kWhole;
    later.dialect = Dialect::kTvm26;
    std::string printed = print_module(module, later);
    CHECK(structural_equal(module, parse(printed, "printed")));
    return check_text(path, whole, separator, expected, body_of(printed));
  }
  if (command.starts_with("passes=")) {
    check_verified(module);
    CompileSettings settings;
    settings.target = "x86-64";
    PassContext context = pass_context(settings);
    for (const Pass* pass : parse_passes(std::string_view(command).substr(7))) {
      try {
        module = run_pass(*pass, std::move(module), context);
      } catch (const CompileError& error) {
        return check_errors(input, error.diagnostics());
      }
      check_verified(module);
      check_round_trip(module);
    }
    return check_text(path, whole, separator, expected, body_of(print_module(module, kWhole)));
  }
  FAIL("unknown command '" << command << "'; there are roundtrip, dialect=0.26, verify, parse-error and passes=");
}

}  // namespace

TEST_CASE("text tests", "[text]") {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(RELAXC_SOURCE_DIR "/tests")) {
    if (entry.path().extension() == ".test") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  REQUIRE(!files.empty());
  for (const std::filesystem::path& path : files) {
    INFO(path.string());
    try {
      run(path);
    } catch (const CompileError& error) {
      FAIL_CHECK(path.string() << ": " << error.what());
    }
  }
}
