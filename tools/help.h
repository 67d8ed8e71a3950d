// The command `help`, and messages about wrong usage.
#pragma once

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace relaxc::tools {

void add_help(CLI::App& app);
// Prints what --help, --version or wrong usage has to say, and returns the exit code.
int exit_of_parser(const CLI::App& app, const CLI::ParseError& error);

}  // namespace relaxc::tools
