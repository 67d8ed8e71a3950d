// The command `help`, messages about wrong usage, and the exit codes of errors.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "support/diagnostic.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace relaxc::tools {

// Lets help describe positional arguments under the line of usage: that of run is to fit a screen. Commands that are
// added later have it, too.
void lay_out_help(CLI::App& app);
void add_help(CLI::App& app);
// Returns the arguments as App::parse takes them, the last one first. CLI11 splits a list in brackets, which is one
// value here; a space behind it prevents that.
std::vector<std::string> arguments_of(int argc, char** argv);
// Prints the help where there are no arguments at all, and returns the exit code; throws a CLI::RequiredError else.
int exit_without_command(const CLI::App& app, int argc);
// Prints what --help, --version or wrong usage has to say, and returns the exit code.
int exit_of_parser(const CLI::App& app, const CLI::ParseError& error);

// How a program tells of errors that are not plainly the input's.
struct ErrorReports {
  std::function<void(const std::string& text)> bug;                // of relaxc itself
  std::function<void(const CompileError&)> unsupported = nullptr;  // null: as any other error
};
// Runs the command line. Prints what it throws, and returns the exit code.
int exit_code_of(const std::function<int()>& run, const ErrorReports& reports);

}  // namespace relaxc::tools
