#include "tir/schedule/script_intrins.h"

#include <algorithm>

#include "ir/text/names.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "tir/schedule/script.h"

namespace relaxc {

using text::Line;
using text::LineKind;
using text::Lines;
using text::Syntax;
using text::SyntaxKind;

namespace {

bool has_decorator(const Line& line, std::string_view text) {
  return std::ranges::any_of(line.decorators, [&](const Syntax* decorator) {
    const Syntax* name = decorator->kind == SyntaxKind::kCall ? decorator->children[0] : decorator;
    return name->kind == SyntaxKind::kAttribute && name->text == text;
  });
}
bool is_prim_func(const Line& line) { return line.kind == LineKind::kFunction && has_decorator(line, "prim_func"); }
// S.intrin("name", description, implementation), or TensorIntrin.register(...).
bool is_intrin(const Line& line) {
  if (line.kind != LineKind::kExpression || line.value->kind != SyntaxKind::kCall) return false;
  const Syntax& callee = *line.value->children[0];
  return callee.kind == SyntaxKind::kAttribute && (callee.text == "intrin" || callee.text == "register");
}
uint32_t first_line(const Line& line) {
  uint32_t result = line.line;
  for (const Syntax* decorator : line.decorators) result = std::min(result, decorator->line);
  return result;
}

// The file's tensor programs and nothing else, at their lines.
std::string only_programs(std::string_view text, const Lines& lines) {
  std::vector<std::pair<uint32_t, uint32_t>> kept;  // [first, end)
  for (size_t i = 0; i < lines.size(); ++i) {
    uint32_t end = i + 1 < lines.size() ? first_line(*lines[i + 1]) : std::numeric_limits<uint32_t>::max();
    if (is_prim_func(*lines[i])) kept.emplace_back(first_line(*lines[i]), end);
  }
  std::string result;
  size_t at = 0, range = 0;
  for (uint32_t number = 1; at < text.size(); ++number) {
    size_t end = std::min(text.find('\n', at), text.size());
    while (range < kept.size() && number >= kept[range].second) ++range;
    if (range < kept.size() && number >= kept[range].first) result += text.substr(at, end - at);
    result += '\n';
    at = end + 1;
  }
  return result;
}

}  // namespace

bool declares_intrin(const Line& line) { return is_prim_func(line) || is_intrin(line); }

bool is_of_module(const Line& line) {
  return has_decorator(line, "ir_module") || (line.kind == LineKind::kFunction && has_decorator(line, "function"));
}

std::shared_ptr<const TensorIntrins> read_intrins(const std::shared_ptr<const Origin>& origin, const Lines& lines,
                                                  const std::string& filename, Diagnostics& diagnostics) {
  auto table = std::make_shared<TensorIntrins>();
  if (std::ranges::none_of(lines, [](const Line* line) { return is_intrin(*line); })) return table;
  OpTable no_operators({});
  Diagnostics in_programs;
  IRModule module = parse_module(only_programs(*origin->text, lines), filename, no_operators, in_programs);
  for (const Diagnostic& diagnostic : in_programs.all()) diagnostics.add(diagnostic);
  if (in_programs.has_errors()) return table;
  for (const Line* line : lines) {
    if (!is_intrin(*line)) continue;
    const Syntax& call = *line->value;
    Span span{origin, call.line, call.column, call.length};
    std::string error, name;
    bool fits = call.children.size() == 4 && call.children[1]->kind == SyntaxKind::kString;
    if (fits) name = text::unquote(call.children[1]->text, error);
    std::vector<PrimFuncRef> programs;
    for (size_t i = 2; fits && i < 4; ++i) {
      const Expr* found = module.find(call.children[i]->text);
      if (call.children[i]->kind == SyntaxKind::kName && found && found->is<PrimFunc>())
        programs.push_back(cast<PrimFunc>(*found));
    }
    if (programs.size() != 2 || !error.empty()) {
      diagnostics.error(
          span, "expected S.intrin(\"name\", description, implementation), the last two @T.prim_func of this file");
      continue;
    }
    if (table->find(name) || builtin_tensor_intrins().find(name)) {
      diagnostics.error(span, "intrinsic '{}' is {}; give this one another name", name,
                        table->find(name) ? "declared above" : "built in");
      continue;
    }
    try {
      table->add({name, programs[0], programs[1]});
    } catch (const CompileError& problem) {
      for (const Diagnostic& diagnostic : problem.diagnostics()) diagnostics.add(diagnostic);
    }
  }
  return table;
}

std::string print_intrins(const TensorIntrins& intrins) {
  std::string result;
  text::NameTable names;
  for (const std::string& name : intrins.names()) {
    std::vector<std::string> programs;
    auto print = [&](const PrimFuncRef& program, const char* role) {
      std::string text = print_function(programs.emplace_back(names.reserve(name + role)), program);
      result += text.substr(text.find("@T.")) + "\n";  // not the comments before it
    };
    print(intrins.find(name)->description, "_description");
    print(intrins.find(name)->implementation, "_implementation");
    result += fmt::format("S.intrin({}, {})\n", to_string(AttrValue(name)), fmt::join(programs, ", "));
  }
  return result;
}

}  // namespace relaxc
