#include "support/diagnostic.h"

#include <algorithm>
#include <array>

#include "support/lists.h"
#include "support/printable.h"

namespace relaxc {

Span span_of_file(std::string file) {
  return {std::make_shared<const Origin>(
      Origin{.file = std::move(file), .node = {}, .op_type = {}, .text = {}, .others = {}})};
}

Span span_of_nodes(const Span& main, const std::vector<Span>& all) {
  auto is_of_node = [](const Span& span) { return span && !span.origin->node.empty(); };
  auto first = std::ranges::find_if(all, is_of_node);
  if (first == all.end()) return main;
  Span result = is_of_node(main) ? main : *first;
  Origin origin = *result.origin;
  auto add = [&](const std::string& node) {
    if (node != origin.node && !std::ranges::count(origin.others, node)) origin.others.push_back(node);
  };
  for (const Span& span : all) {
    if (!is_of_node(span)) continue;
    add(span.origin->node);
    std::ranges::for_each(span.origin->others, add);
  }
  if (origin.others.size() > result.origin->others.size())
    result.origin = std::make_shared<const Origin>(std::move(origin));
  return result;
}

std::string nodes_of(const Span& span) {
  if (!span) return {};
  std::string result = span.origin->node;
  for (const std::string& node : span.origin->others) result.append(", ").append(node);
  return result;
}

std::string to_string(const Span& span) {
  if (!span) return {};
  const Origin& origin = *span.origin;
  if (!origin.op_type.empty()) return formatted("{}: node '{}' ({})", origin.file, origin.node, origin.op_type);
  if (span.line == 0) return origin.file;
  return formatted("{}:{}:{}", origin.file, span.line, span.column);
}

// Returns the part of a long line around [begin, begin + length), which is moved to the part, in whole characters.
static std::string window(const std::string& line, size_t& begin, size_t& length) {
  constexpr size_t kMostBytes = 160, kBefore = 60;
  if (line.size() <= kMostBytes) return line;
  auto is_inside = [&](size_t i) { return i < line.size() && (static_cast<unsigned char>(line[i]) & 0xc0) == 0x80; };
  size_t first = begin > kBefore ? begin - kBefore : 0;
  while (is_inside(first)) ++first;
  size_t last = std::min(first + kMostBytes, line.size());
  while (is_inside(last)) --last;
  const std::string dots = first > 0 ? "... " : "";
  begin = begin - first + dots.size();
  length = std::min(length, last - first + dots.size() - begin);
  return dots + line.substr(first, last - first) + (last < line.size() ? " ..." : "");
}

std::string source_excerpt(const Span& span) {
  if (!span || !span.origin->text || span.line == 0) return {};
  const std::string& text = *span.origin->text;
  size_t begin = 0;
  for (uint32_t line = 1; line < span.line; ++line) {
    begin = text.find('\n', begin) + 1;
    if (begin == 0) return {};
  }
  size_t end = std::min(text.find('\n', begin), text.size());
  std::string source = text.substr(begin, end - begin);
  size_t column = std::min<size_t>(span.column > 0 ? span.column - 1 : 0, source.size());
  size_t length = std::min<size_t>(span.length, source.size() - column);
  source = window(source, column, length);
  std::string caret;
  for (size_t i = 0; i < column; ++i) caret += source[i] == '\t' ? '\t' : ' ';
  caret.append(std::max<size_t>(1, length), '^');
  return formatted("  {}\n  {}\n", source, caret);
}

std::string to_string(const Diagnostic& diagnostic) {
  std::string place = to_string(diagnostic.span);
  const char* severity = diagnostic.severity == Severity::kWarning    ? "warning"
                         : diagnostic.kind == ErrorKind::kUnsupported ? "unsupported"
                                                                      : "error";
  std::string text = formatted("{}{}{}: {}\n", place, place.empty() ? "" : ": ", severity, diagnostic.message);
  text += source_excerpt(diagnostic.span);
  for (const std::string& note : diagnostic.notes) text += formatted("  note: {}\n", note);
  // Names in the text may come from a model.
  return printable_lines(text);
}

CompileError::CompileError(std::vector<Diagnostic> diagnostics) : diagnostics_(std::move(diagnostics)) {
  constexpr size_t kMostShown = 50;
  const size_t shown = std::min(diagnostics_.size(), kMostShown);
  for (size_t i = 0; i < shown; ++i) text_ += to_string(diagnostics_[i]);
  if (shown < diagnostics_.size()) text_ += formatted("... and {} more\n", diagnostics_.size() - shown);
  while (!text_.empty() && text_.back() == '\n') text_.pop_back();
}

ErrorKind CompileError::kind() const {
  auto has_error = [&](ErrorKind kind) {
    return std::ranges::any_of(diagnostics_,
                               [&](const Diagnostic& d) { return d.severity == Severity::kError && d.kind == kind; });
  };
  for (ErrorKind kind : {ErrorKind::kUnsupported, ErrorKind::kInvalid, ErrorKind::kUsage}) {
    if (has_error(kind)) return kind;
  }
  return ErrorKind::kDoesNotFit;
}

std::vector<Diagnostic> with_place(std::vector<Diagnostic> diagnostics, const Span& span) {
  for (Diagnostic& diagnostic : diagnostics) {
    if (!diagnostic.span) diagnostic.span = span;
  }
  return diagnostics;
}

void throw_error(ErrorKind kind, const Span& span, std::string message) {
  throw CompileError({Diagnostic{Severity::kError, kind, span, std::move(message), {}}});
}

void throw_pattern(ErrorKind kind, const Span& span, std::string_view pattern,
                   std::span<const FormatArgument> arguments) {
  throw_error(kind, span, formatted_text(pattern, arguments));
}

// Orders files by their first mention, and diagnostics within a file by place. Diagnostics at the same place, as all of
// a model's nodes are, keep their order.
static std::vector<Diagnostic> sorted_by_place(const std::vector<Diagnostic>& diagnostics) {
  std::vector<std::string_view> files;
  std::vector<std::array<size_t, 4>> keys;  // the last one is the diagnostic's place in the list
  for (const Diagnostic& diagnostic : diagnostics) {
    const Span& span = diagnostic.span;
    const std::string_view file = span ? std::string_view(span.origin->file) : "";
    const auto known = static_cast<size_t>(std::ranges::find(files, file) - files.begin());
    if (known == files.size()) files.push_back(file);
    keys.push_back({known, span.line, span.column, keys.size()});
  }
  std::ranges::sort(keys);
  return map_each(keys, [&](const auto& key) { return diagnostics[key[3]]; });
}

Diagnostic& Diagnostics::add(Diagnostic diagnostic) { return all_.emplace_back(std::move(diagnostic)); }

bool Diagnostics::has_errors() const {
  return std::ranges::find(all_, Severity::kError, &Diagnostic::severity) != all_.end();
}

void Diagnostics::throw_if_errors() const {
  if (has_errors()) throw CompileError(sorted_by_place(all_));
}

}  // namespace relaxc
