#include "tests/text/harness.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "ir/verify/verify.h"
#include "ir/visit.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

constexpr std::string_view kMark = "# ----";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::stringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
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

// "substring" or "substring note: substring of a note".
bool is_described_by(const Diagnostic& diagnostic, const std::string& expectation) {
  constexpr std::string_view kNote = " note: ";
  size_t note = std::min(expectation.find(kNote), expectation.size());
  if (diagnostic.message.find(expectation.substr(0, note)) == std::string::npos) return false;
  if (note == expectation.size()) return true;
  std::string notes;
  for (const std::string& line : diagnostic.notes) notes += line + "\n";
  return notes.find(expectation.substr(note + kNote.size())) != std::string::npos;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

std::optional<std::string_view> Section::words_of(std::string_view kind) const {
  std::string_view rest = header;
  if (!rest.starts_with(kind)) return std::nullopt;
  rest.remove_prefix(kind.size());
  if (!rest.empty() && rest[0] != ' ' && rest[0] != ':') return std::nullopt;
  rest.remove_prefix(std::min(rest.find_first_not_of(": "), rest.size()));
  return rest;
}

std::string Section::in_place() const { return std::string(line - 1, '\n') + body; }

void TextTest::set_output(const std::string& text) { set_section_behind(0, "", text); }

void TextTest::set_section_behind(size_t at, std::string_view kind, const std::string& text) {
  bool is_there = at + 1 < sections.size() && sections[at + 1].header == kind;
  if (!is_there) sections.insert(sections.begin() + static_cast<ptrdiff_t>(at) + 1, {std::string(kind), "", 0});
  sections[at + 1].body = text;
}

std::string TextTest::text() const {
  std::string result = sections[0].body;
  for (size_t i = 1; i < sections.size(); ++i) {
    result += fmt::format("{}{}{}\n", kMark, sections[i].header.empty() ? "" : " ", sections[i].header);
    result += sections[i].body;
  }
  return result;
}

TextTest read_text_test(const std::filesystem::path& path) {
  TextTest test{path, "", {Section{"", "", 1}}};
  std::vector<std::string> lines = lines_of(read_file(path));
  constexpr std::string_view kCommand = "# test: ";
  if (lines.empty() || !lines[0].starts_with(kCommand)) {
    FAIL(path.string() << ": the first line is '# test: COMMAND'");
  }
  test.command = lines[0].substr(kCommand.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].starts_with(kMark)) {
      test.sections.back().body += lines[i] + "\n";
      continue;
    }
    std::string header = lines[i].substr(kMark.size());
    test.sections.push_back({header.substr(std::min(header.find_first_not_of(' '), header.size())), "", i + 2});
  }
  return test;
}

void check_file(const TextTest& test) {
  std::string there = read_file(test.path), wanted = test.text();
  if (there == wanted) return;
  if (std::getenv("RELAXC_UPDATE")) {
    std::ofstream(test.path, std::ios::binary) << wanted;
    WARN("rewrote " << test.path.string());
    return;
  }
  FAIL_CHECK(test.path.string() << ":\n" << diff(there, wanted));
}

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

bool expects_errors(const std::string& input) { return !expected_errors(input).empty(); }
bool expects_failure(const std::string& input) {
  return std::ranges::count(expected_errors(input), Severity::kError, &Expected::severity) > 0;
}

void check_errors(const std::string& input, const std::vector<Diagnostic>& diagnostics) {
  std::vector<Expected> expected = expected_errors(input);
  for (const Diagnostic& diagnostic : diagnostics) {
    auto it = std::find_if(expected.begin(), expected.end(), [&](const Expected& e) {
      return !e.met && e.line == diagnostic.span.line && e.severity == diagnostic.severity &&
             is_described_by(diagnostic, e.text);
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

void check_message(const std::string& input, const std::string& message) {
  std::vector<Expected> expected = expected_errors(input);
  if (expected.empty()) FAIL_CHECK("unexpected: " << message);
  for (const Expected& e : expected) {
    if (message.find(e.text) == std::string::npos) FAIL_CHECK("expected '" << e.text << "', found: " << message);
  }
}

IRModule parse_text(const std::string& text, const std::string& name) {
  Diagnostics diagnostics;
  IRModule module = parse_module(text, name, op_table(), diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.all()) FAIL_CHECK(to_string(diagnostic));
  return module;
}

std::string body_of(const std::string& printed) {
  size_t start = printed.find("@");
  return start == std::string::npos ? printed : printed.substr(start);
}

std::string print_body(const IRModule& module) { return body_of(print_module(module, kWhole)); }

void check_verified(const IRModule& module) {
  Diagnostics diagnostics;
  verify(module, op_table(), diagnostics);
  verify_ranges(module, Ranges::kAxes, diagnostics);
  // Python around a module is warned of; tests/text/errors has such warnings.
  for (const Diagnostic& diagnostic : diagnostics.all()) {
    if (diagnostic.severity == Severity::kError) FAIL_CHECK(to_string(diagnostic));
  }
}

void check_round_trip(const IRModule& module) {
  std::string printed = print_module(module, kWhole);
  IRModule again = parse_text(printed, "printed");
  Difference difference;
  EqualOptions options;
  options.difference = &difference;
  bool equal = structural_equal(module, again, options);
  INFO("first difference: " << difference.text);
  INFO(printed);
  CHECK(equal);
  std::string reprinted = print_module(again, kWhole);
  if (reprinted != printed) FAIL_CHECK("printing is not a fixed point:\n" << diff(printed, reprinted));
}

std::map<std::string, int64_t> parse_dims(std::string_view text) {
  std::map<std::string, int64_t> dims;
  std::stringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    size_t equals = word.find('=');
    int64_t value = 0;
    const char* end = word.data() + word.size();
    bool is_dim = equals != std::string::npos && std::from_chars(word.data() + equals + 1, end, value).ptr == end &&
                  equals + 1 < word.size();
    if (!is_dim) FAIL_CHECK("expected NAME=NUMBER, found '" << word << "'");
    dims.emplace(word.substr(0, equals), value);
  }
  return dims;
}

}  // namespace relaxc::test
