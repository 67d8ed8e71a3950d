// What all programs of tools/ print for people and programs, and how: quietly, in detail, in colours.
#pragma once
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "support/printable.h"
#include "vm/output_file.h"

namespace CLI {
class App;
}

namespace relaxc::tools {

// The exit codes of all subcommands.
enum ExitCode : int { kRight = 0, kWrong = 1, kUsage = 2, kUnsupported = 3 };

// The flags that every command has. There is one command line per process, and so they are set once, by it.
struct Console {
  bool quiet = false;    // -q: results and errors, neither notes nor warnings nor progress
  bool verbose = false;  // -v: what was done, too
  std::string color = "auto";
  bool has_result = false;  // standard output has a result, and lines for a person go to standard error
};
Console& console();
// Adds -v, -q and --color to the command.
void add_console_flags(CLI::App& app);

// Returns whether colours are wanted on a stream: with "auto" on a terminal, unless NO_COLOR is set
// (https://no-color.org) or the terminal cannot show them.
bool has_colors(std::FILE* stream);
// Returns the text with the kinds of its messages, such as "error:", in colours.
std::string with_colors(const std::string& text);

// Returns "1 function" or "2 functions".
std::string counted(size_t count, const char* noun);

// Prints a module, code or figures unchanged, for programs to read. It ends the line of progress.
void print_text(std::string_view text);
// Prints text for a person to standard error, above the line of progress. A failure to write it is ignored, because it
// cannot be reported.
void print_to_errors(const std::string& text);
// Prints lines for a person to standard output, with control characters in quoted names escaped. Throws RuntimeError
// when they cannot be written, as print_text does.
template <class... Args>
void print_message(fmt::format_string<Args...> format, Args&&... args) {
  const std::string lines = printable_lines(fmt::format(format, std::forward<Args>(args)...));
  console().has_result ? print_to_errors(lines) : print_text(lines);
}
// Writes to the file; "-" is standard output.
void write_text(const std::string& path, std::string_view text);

// Prints an error, as print_to_errors does.
template <class... Args>
void print_error(fmt::format_string<Args...> format, Args&&... args) {
  print_to_errors(fmt::format(format, std::forward<Args>(args)...));
}
// The same for notes and warnings, which -q leaves out.
template <class... Args>
void print_note(fmt::format_string<Args...> format, Args&&... args) {
  if (!console().quiet) print_error(format, std::forward<Args>(args)...);
}
// The same for what only -v tells.
template <class... Args>
void print_detail(fmt::format_string<Args...> format, Args&&... args) {
  if (console().verbose) print_error(format, std::forward<Args>(args)...);
}

}  // namespace relaxc::tools
