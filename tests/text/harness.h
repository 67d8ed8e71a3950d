// A file of text tests, and the checks that its commands share (text_tests.cc lists the commands).
//
// The first line names the command. Lines "# ---- HEADER" cut the file into sections; a command fills in the sections
// that hold expected output, and the runner compares what came out with the file or, under ./dev update, rewrites it.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"
#include "ir/text/printer.h"
#include "support/diagnostic.h"

namespace relaxc::test {

struct Section {
  std::string header;  // behind "# ----"; empty for the first section, and for the only output of some commands
  std::string body;    // whole lines; of the first section with the line that names the command
  size_t line = 0;     // of the file, where the body begins

  // The words of the header behind `kind`; nullopt: it is a section of another kind.
  std::optional<std::string_view> words_of(std::string_view kind) const;
  // The body behind as many empty lines as stand before it in the file, so that spans are places in the file.
  std::string in_place() const;
};

struct TextTest {
  std::filesystem::path path;
  std::string command;  // "passes=a,b"
  std::vector<Section> sections;

  std::string name() const { return path.filename().string(); }
  std::string input() const { return sections[0].body; }
  // The text of the only output, which stands behind "# ----".
  void set_output(const std::string& text);
  // The section of that kind behind sections[at] has this text from now on; made where there is none.
  void set_section_behind(size_t at, std::string_view kind, const std::string& text);
  std::string text() const;
};

TextTest read_text_test(const std::filesystem::path& path);
// The file has the text that its command made of it; else a failed check with the difference, or a rewritten file.
void check_file(const TextTest& test);

// "-expected" and "+actual" lines with what they share around them.
std::string diff(const std::string& expected, const std::string& actual);

// ---- `# error:` and `# warning:`
bool expects_errors(const std::string& input);   // or warnings
bool expects_failure(const std::string& input);  // errors
// Every diagnostic is expected on its line of the input, and every expectation is met.
void check_errors(const std::string& input, const std::vector<Diagnostic>& diagnostics);
// The same for errors without lines: the expectations stand anywhere in the input, and all are in the message.
void check_message(const std::string& input, const std::string& message);

// ---- Modules
inline const PrintOptions kWhole{int64_t{1} << 40};  // its strings are no constants to every compiler
// A text that does not parse is a failed check.
IRModule parse_text(const std::string& text, const std::string& name);
// Without the header comments, which every print has.
std::string body_of(const std::string& printed);
std::string print_body(const IRModule& module);
void check_verified(const IRModule& module);
// The printed text parses to an equal module, which prints to the same text.
void check_round_trip(const IRModule& module);

// "n=3 m=5": dims by name. A text of another form is a failed check.
std::map<std::string, int64_t> parse_dims(std::string_view text);

// ---- Commands that have a file of their own
void run_schedule_cases(TextTest& test);  // tests/schedule/schedule_cases.cc
void run_module_cases(TextTest& test);    // tests/modules/module_cases.cc
void run_import_cases(TextTest& test);    // tests/frontend/import_cases.cc

}  // namespace relaxc::test
