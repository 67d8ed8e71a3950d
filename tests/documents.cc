#include "tests/documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/patterns.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace fs = std::filesystem;

bool is_hidden_or_built(const fs::path& path) {
  std::string name = path.filename().string();
  return name.starts_with('.') || name.starts_with("build") || name == "node_modules";
}

std::vector<fs::path> documents() {
  std::vector<fs::path> result;
  for (auto it = fs::recursive_directory_iterator(RELAXC_SOURCE_DIR); it != fs::recursive_directory_iterator(); ++it) {
    if (it->is_directory() && is_hidden_or_built(it->path())) it.disable_recursion_pending();
    if (it->path().extension() == ".md") result.push_back(it->path());
  }
  std::sort(result.begin(), result.end());
  return result;
}

std::string read_document(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

namespace {

std::vector<std::string> trimmed_lines(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    line.erase(line.find_last_not_of(" \t\r") + 1);
    result.push_back(line);
  }
  while (!result.empty() && result.back().empty()) result.pop_back();
  return result;
}

// A fenced block of a document.
struct CodeBlock {
  size_t line = 0;  // of its first line
  std::string kind;
  std::vector<std::string> lines = {};
};

std::vector<CodeBlock> blocks_of(const std::string& document) {
  std::vector<CodeBlock> result;
  std::istringstream in(document);
  bool is_inside = false;
  size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.starts_with("```")) {
      is_inside = !is_inside;
      if (is_inside) result.push_back({number + 1, line.substr(3)});
    } else if (is_inside) {
      result.back().lines.push_back(line);
    }
  }
  return result;
}

std::string name_of_file(const CodeBlock& block) {
  if (block.lines.empty()) return "";
  std::vector<std::string> name = whole_match(block.lines[0], "(?:#|//|/\\*) ([A-Za-z0-9_./-]+\\.[a-z]+)(?: \\*/)?");
  return name.empty() ? "" : name[1];
}

std::string text_of(const CodeBlock& block) {
  std::string result;
  for (const std::string& line : block.lines) result += line + "\n";
  return result;
}

// Whether the block has commands, and the text behind a mark of it such as "sh slow: ".
bool has_commands(const CodeBlock& block) { return block.kind == "sh" || block.kind.starts_with("sh "); }
std::optional<std::string> behind_mark(const CodeBlock& block, const std::string& mark) {
  if (!block.kind.starts_with(mark)) return std::nullopt;
  return block.kind.substr(mark.size());
}

void add_commands(const CodeBlock& block, DocumentSteps& to) {
  constexpr size_t kShortestReason = 10;
  Runs runs = Runs::kAlways;
  std::string reason;
  for (const auto& [mark, when] : {std::pair("sh slow: ", Runs::kSlow), std::pair("sh package: ", Runs::kInPackage),
                                   std::pair("sh not run: ", Runs::kNever)})
    if (auto text = behind_mark(block, mark)) runs = when, reason = *text;
  const bool is_marked_right = block.kind == "sh" || reason.size() >= kShortestReason;
  if (!is_marked_right) {
    to.problems.push_back(fmt::format(
        "line {}: expected ```sh, or ```sh slow:, ```sh package: or ```sh not run: with a reason, found ```{}",
        block.line, block.kind));
    return;
  }
  if (runs != Runs::kAlways)
    to.marked.push_back({.line = block.line, .runs = runs, .reason = reason, .text = text_of(block)});
  if (runs == Runs::kNever) return;
  bool continues = false;
  for (size_t i = 0; i < block.lines.size(); ++i) {
    std::string line = block.lines[i];
    bool begins = line.starts_with("$ ");
    if (!begins && i == 0) to.problems.push_back(fmt::format("line {}: expected a command, $ ...", block.line));
    if (!begins && i == 0) return;
    DocumentStep step{.line = block.line + i, .runs = runs};
    if (begins) to.steps.push_back(step);
    DocumentStep& command = to.steps.back();
    if (!begins && !continues) {
      command.shown = command.shown.value_or("") + line + "\n";
      continue;
    }
    std::vector<std::string> code = whole_match(line, "(.*\\S) +# exit code (\\d+)");
    if (!code.empty()) command.exit_code = std::stoi(code[2]), line = code[1];
    continues = line.ends_with('\\');
    command.text += line.substr(begins ? 2 : 0) + (continues ? "\n" : "");
  }
}

// Whether the line is as shown, where "..." stands for any characters.
bool is_line_as_shown(const std::string& line, const std::string& shown) {
  size_t at = 0, from = 0;
  for (bool is_first = true;; is_first = false) {
    size_t dots = shown.find("...", from);
    std::string part = shown.substr(from, dots == std::string::npos ? dots : dots - from);
    if (dots == std::string::npos && !is_first) return line.size() >= at + part.size() && line.ends_with(part);
    if (dots == std::string::npos) return line == part;
    size_t found = line.find(part, at);
    if (found == std::string::npos || (is_first && found != 0)) return false;
    at = found + part.size();
    from = dots + 3;
  }
}

}  // namespace

DocumentSteps steps_of(const std::string& document) {
  DocumentSteps result;
  std::vector<CodeBlock> blocks = blocks_of(document);
  if (std::ranges::none_of(blocks, has_commands)) return result;
  for (const CodeBlock& block : blocks) {
    std::string file = name_of_file(block);
    if (auto source = behind_mark(block, "message ")) {
      for (size_t i = 0; i < block.lines.size(); ++i)
        result.messages.push_back({block.line + i, *source, block.lines[i]});
    } else if (has_commands(block)) {
      add_commands(block, result);
    } else if (block.kind != "text" && !contains(block.kind, " ") && file.empty()) {
      result.problems.push_back(
          fmt::format("line {}: the block neither runs commands (```sh) nor names its file in a comment, nor is an "
                      "excerpt (```{} excerpt)",
                      block.line, block.kind));
    } else if (!file.empty()) {
      result.steps.push_back({.line = block.line, .file = file, .text = text_of(block)});
    }
  }
  for (const DocumentStep& step : result.steps) {
    auto names_it = [&](const DocumentStep& other) { return other.file.empty() && contains(other.text, step.file); };
    auto would_name_it = [&](const MarkedBlock& block) { return contains(block.text, step.file); };
    if (!step.file.empty() && std::ranges::none_of(result.steps, names_it) &&
        std::ranges::none_of(result.marked, would_name_it))
      result.problems.push_back(fmt::format("line {}: no command names the file {}", step.line, step.file));
  }
  return result;
}

std::vector<std::string> blocks_without_language(const std::string& document) {
  std::vector<std::string> result;
  for (const CodeBlock& block : blocks_of(document))
    if (block.kind.empty()) result.push_back(fmt::format("line {}", block.line - 1));
  return result;
}

std::vector<PythonBlock> python_blocks(const std::string& document) {
  std::vector<PythonBlock> result;
  for (const CodeBlock& block : blocks_of(document))
    if (block.kind == "python" || block.kind.starts_with("python ")) result.push_back({block.line, text_of(block)});
  return result;
}

std::vector<std::string> other_commands(const std::string& document) {
  static const std::string kCommand =
      " *(?:[A-Z_]+=\\S+ +)*(?:\\$ |\\S*\\./dev |(?:\\./build/)?relaxc(?:-run)? (?:-|[a-z])|cmake -|cc |c\\+\\+ "
      "|apt-get |pip |"
      "(?:/usr/bin/)?python3 ).*";
  std::vector<std::string> result;
  std::istringstream in(document);
  size_t number = 0;
  std::optional<std::string> kind;  // of the block around the line
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.starts_with("```")) {
      kind = kind ? std::nullopt : std::optional(line.substr(3));
    } else if (kind ? kind->empty() || *kind == "text" : line.starts_with("    ")) {
      if (!whole_match(line, kCommand).empty()) result.push_back(fmt::format("line {}: {}", number, line));
    }
  }
  return result;
}

bool is_as_shown(const std::string& output, const std::string& shown) {
  std::vector<std::string> lines = trimmed_lines(output), wanted = trimmed_lines(shown);
  size_t line = 0, want = 0;
  std::optional<size_t> dots;  // the last line of dots, and the first line that it does not stand for
  size_t after_dots = 0;
  while (line < lines.size()) {
    if (want < wanted.size() && wanted[want] == "...") {
      dots = want++;
      after_dots = line;
    } else if (want < wanted.size() && is_line_as_shown(lines[line], wanted[want])) {
      ++line, ++want;
    } else if (dots) {
      want = *dots + 1;
      line = ++after_dots;
    } else {
      return false;
    }
  }
  return std::all_of(wanted.begin() + static_cast<std::ptrdiff_t>(want), wanted.end(),
                     [](const std::string& rest) { return rest == "..."; });
}

void try_step(const std::string& document, const DocumentStep& step, const fs::path& folder,
              const std::function<Outcome(const std::string& command)>& run) {
  if (!step.file.empty()) {
    fs::create_directories((folder / step.file).parent_path());
    std::ofstream(folder / step.file) << step.text;
    return;
  }
  const Outcome outcome = run(step.text);
  INFO(document << ", line " << step.line << ": " << step.text << "\n"
                << outcome.how_it_ended() << "\n"
                << outcome.out);
  CHECK(outcome.exit_code == step.exit_code);
  if (!step.shown) return;
  INFO("expected\n" << *step.shown);
  CHECK(is_as_shown(outcome.out, *step.shown));
}

}  // namespace relaxc::test
