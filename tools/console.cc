#include "tools/console.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <utility>

#include "tools/inputs.h"
#include "tools/progress_line.h"

namespace relaxc::tools {

Console& console() {
  static Console instance;
  return instance;
}

void add_console_flags(CLI::App& app) {
  app.add_flag("-q,--quiet", console().quiet, "print results and errors only");
  app.add_flag("-v,--verbose", console().verbose, "say what was done and how long it took");
  app.parse_complete_callback([] {  // CLI11's own exclusion takes a line of --help
    if (console().quiet && console().verbose) throw CLI::ExcludesError("--quiet", "--verbose");
  });
  app.add_option("--color", console().color, "colours: auto (on a terminal, unless NO_COLOR is set), always, never")
      ->type_name("WHEN")
      ->check(one_of({"auto", "always", "never"}).description(""));
}

std::string counted(size_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

bool has_colors(std::FILE* stream) {
  const std::string& wanted = console().color;
  if (wanted != "auto") return wanted == "always";
  const char *no_color = std::getenv("NO_COLOR"), *terminal = std::getenv("TERM");
  const bool is_refused = (no_color && *no_color) || (terminal && std::string_view(terminal) == "dumb");
  return !is_refused && isatty(fileno(stream)) == 1;
}

// Returns the line with its first kind of message in colours: at the begin, or behind the message's place and ": ".
static std::string colored_line(const std::string& line) {
  constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
      {"error:", "\x1b[1;31m"}, {"warning:", "\x1b[1;33m"}, {"note:", "\x1b[1;36m"}};
  size_t first = std::string::npos, size = 0;
  std::string_view color;
  for (const auto& [kind, of_kind] : kKinds) {
    const size_t at = line.find(kind);
    if (at >= first || (at > 0 && line[at - 1] != ' ')) continue;
    first = at, size = kind.size(), color = of_kind;
  }
  if (first == std::string::npos) return line;
  return line.substr(0, first).append(color).append(line, first, size).append("\x1b[0m").append(line, first + size);
}

std::string with_colors(const std::string& text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    result += colored_line(text.substr(at, end - at));
    if (end < text.size()) result += '\n';
    at = end + 1;
  }
  return result;
}

void print_text(std::string_view text) {
  progress_line().end();
  vm::print_to(stdout, text);
}

void write_text(const std::string& path, std::string_view text) {
  if (path == "-") return print_text(text);
  vm::write_file(path, text);
}

void print_to_errors(const std::string& text) {
  const std::string lines = printable_lines(text);
  progress_line().print_above(has_colors(stderr) ? with_colors(lines) : lines);
}

}  // namespace relaxc::tools
