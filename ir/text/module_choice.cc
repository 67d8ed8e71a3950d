// Looks at a text without reading its module: which modules a tutorial has, and what its programs call their inputs.
#include <algorithm>

#include "ir/text/parser.h"
#include "ir/text/python_value.h"

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

std::map<std::string, std::string> matched_handles(std::string_view text) {
  Diagnostics ignored;
  auto kept = std::make_shared<const std::string>(text);
  auto origin = std::make_shared<Origin>();
  origin->text = kept;
  text::SyntaxReader reader(text::Source{origin, *kept}, ignored);
  text::SyntaxTree tree;
  std::map<std::string, std::string> result;
  std::set<std::string> others;
  for (text::Lines lines; reader.next(tree, lines); lines.clear()) {
    for (const text::Line* line : lines) {
      if (line->kind != text::LineKind::kFunction) continue;
      std::set<std::string> params;
      for (const text::Param& param : line->params) params.emplace(param.name);
      for (const text::Line* inner : line->body) {
        const text::Syntax* call = inner->kind == text::LineKind::kAssign ? inner->value : nullptr;
        bool matches = call && is_call(*call) && call->children.size() > 1 && is_name(*call->children[1]) &&
                       text::is_one_of(call->children[0]->text, {"match_buffer", "buffer_bind"}) &&
                       is_name(*inner->target);
        if (!matches) continue;
        std::string handle(call->children[1]->text), buffer(inner->target->text);
        params.erase(handle);
        others.insert(buffer);
        if (auto [known, is_new] = result.emplace(handle, buffer); !is_new && known->second != buffer)
          others.insert(handle);
      }
      others.merge(params);
    }
  }
  std::erase_if(result, [&](const auto& each) { return others.contains(each.first); });
  return result;
}

}  // namespace relaxc
