// Finds the modules of a text that has several, such as a tutorial.
#include <algorithm>

#include "ir/text/lexer.h"
#include "ir/text/parser.h"

namespace relaxc {

namespace {

// Returns the lines above the position that are decorators.
bool has_module_decorator(std::string_view text, size_t line_start) {
  while (line_start > 0) {
    size_t end = line_start - 1, start = text.rfind('\n', end == 0 ? 0 : end - 1);
    start = start == std::string_view::npos || start >= end ? 0 : start + 1;
    std::string_view line = text.substr(start, end - start);
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
    if (!line.starts_with("@")) return false;
    bool is_module =
        line.find("ir_module") != line.npos || line.find("py_module") != line.npos || line.find(".script") != line.npos;
    if (is_module) return true;
    line_start = start;
  }
  return false;
}

bool is_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

std::vector<std::string> several_modules(std::string_view text) {
  constexpr std::string_view kClass = "class ";
  std::vector<std::string> result;
  for (size_t at = text.find(kClass); at != text.npos; at = text.find(kClass, at + 1)) {
    size_t start = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;  // npos + 1 is 0
    bool begins = text.substr(start, at - start).find_first_not_of(" \t") == std::string_view::npos;
    if (!begins || !has_module_decorator(text, start)) continue;
    size_t first = at + kClass.size(), last = first;
    while (last < text.size() && is_letter(text[last])) ++last;
    result.emplace_back(text.substr(first, last - first));
  }
  if (result.size() < 2) result.clear();
  return result;
}

std::string chosen_module(std::string_view text, const std::vector<std::string>& modules) {
  if (modules.empty()) return "";
  std::string result = modules.back();
  size_t latest = 0;
  for (const std::string& name : modules) {
    for (std::string_view use : {"build(", "compile(", "Schedule(", "lower("}) {
      std::string wanted = std::string(use) + name;
      for (size_t at = text.find(wanted); at != text.npos; at = text.find(wanted, at + 1)) {
        size_t end = at + wanted.size();
        if (at < latest || (end < text.size() && is_letter(text[end]))) continue;
        latest = at;
        result = name;
      }
    }
  }
  return result;
}

}  // namespace relaxc
