// Files of schedules: the definitions, the tensor intrinsics and the uses of built-in rules that they hold.
#include "support/joined.h"
#include "support/nearest.h"
#include "tir/schedule/script_body.h"

#include <algorithm>

#include "ir/op_names.h"
#include "ir/text/names.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"

namespace relaxc {

using text::Line, text::LineKind, text::Lines, text::Syntax, text::SyntaxKind;

const Syntax* find_decorator(const Line& line, std::string_view name, std::string_view object) {
  for (const Syntax* decorator : line.decorators) {
    const Syntax& head = head_of(*decorator);
    if (head.kind != SyntaxKind::kAttribute || head.text != name) continue;
    if (object.empty() || head.children[0]->text == object) return decorator;
  }
  return nullptr;
}

bool is_of_kernels(const Line& line) {
  auto has = [&](std::string_view name) { return find_decorator(line, name, "S") != nullptr; };
  return has("implements") || has("pattern") || has("extern") || has("shape");
}

uint32_t first_line(const Line& line) {
  uint32_t result = line.line;
  for (const Syntax* decorator : line.decorators) result = std::min(result, decorator->line);
  return result;
}

std::vector<std::string> names_of_targets(const Syntax& target) {
  if (target.kind == SyntaxKind::kName) return {std::string(target.text)};
  std::vector<std::string> result;
  const bool is_list = target.kind == SyntaxKind::kTuple || target.kind == SyntaxKind::kList;
  for (size_t i = 0; is_list && i < target.children.size(); ++i) {
    if (target.children[i]->kind != SyntaxKind::kName) break;
    result.emplace_back(target.children[i]->text);
  }
  return result;
}

ScriptFile read_script_file(std::string_view text, const std::string& filename, Diagnostics& diagnostics) {
  ScriptFile file{origin_of(text, filename), {}};
  text::SyntaxReader reader({file.origin, *file.origin->text}, diagnostics);
  for (Lines lines; reader.next(*file.trees.emplace_back(std::make_shared<text::SyntaxTree>()), lines); lines.clear()) {
    for (const Line* line : lines) {
      if (line->kind == LineKind::kClass) {
        file.classes.emplace_back(line, Lines());
      } else {
        (reader.in_class() && !file.classes.empty() ? file.classes.back().second : file.lines).push_back(line);
      }
    }
  }
  return file;
}

namespace {

bool has_decorator(const Line& line, std::string_view text) { return find_decorator(line, text); }
bool is_prim_func(const Line& line) { return line.kind == LineKind::kFunction && has_decorator(line, "prim_func"); }
// Returns "use" for S.use(...), "" for a line that is not a call of that form, of this object unless that is empty.
std::string_view called(const Line& line, std::string_view object = {}) {
  if (line.kind != LineKind::kExpression || line.value->kind != SyntaxKind::kCall) return {};
  const Syntax& callee = *line.value->children[0];
  bool matches = callee.kind == SyntaxKind::kAttribute && (object.empty() || callee.children[0]->text == object);
  return matches ? callee.text : std::string_view();
}
// Returns whether the line is S.intrin("name", description, implementation) or TensorIntrin.register(...).
bool is_intrin(const Line& line) { return called(line) == "intrin" || called(line) == "register"; }
// Returns the text with nothing but its tensor programs, at their lines.
std::string only_programs(std::string_view text, const Lines& lines) {
  std::string result;
  bool is_kept = false;
  size_t next = 0, at = 0;  // the statement that begins next, and the character
  for (uint32_t number = 1; at < text.size(); ++number) {
    while (next < lines.size() && first_line(*lines[next]) <= number) is_kept = is_prim_func(*lines[next++]);
    size_t end = std::min(text.find('\n', at), text.size());
    if (is_kept) result += text.substr(at, end - at);
    result += '\n';
    at = end + 1;
  }
  return result;
}

// Returns whether the line belongs to a module that the schedules stand beside.
bool is_of_module(const Line& line) {
  return has_decorator(line, "ir_module") || (line.kind == LineKind::kFunction && has_decorator(line, "function"));
}

ScheduleRule read_use(const Line& line, const std::shared_ptr<const Origin>& origin, const Span& span) {
  const Syntax& call = *line.value;
  ScheduleRule result{.span = span};
  auto text_of = [&](const Syntax& at) {
    AttrValue value = evaluate(at, origin);
    if (!value.as<std::string>()) fail(span, "S.use: expected a name in quotes, found {}", to_string(value));
    return *value.as<std::string>();
  };
  if (call.children.size() != 2)
    fail(span, "S.use takes the name of a rule and then decisions: S.use(\"contraction\", op=\"matmul\", rows=6)");
  result.name = result.uses = text_of(*call.children[1]);
  for (const Syntax::Keyword& keyword : call.keywords) {
    std::string* name = keyword.name == "op"         ? &result.op
                        : keyword.name == "function" ? &result.function
                        : keyword.name == "at"       ? &result.at
                                                     : nullptr;
    if (name) {
      *name = text_of(*keyword.value);
    } else if (keyword.name == "decisions") {  // whose names Python does not take as keywords: {"C.rows": 6}
      AttrValue more = evaluate(*keyword.value, origin);
      if (!more.as<Attrs>()) fail(span, "S.use: decisions is a dictionary, found {}", to_string(more));
      for (const auto& [decision, value] : *more.as<Attrs>()) result.given.set(decision, value);
    } else {
      result.given.set(std::string(keyword.name), evaluate(*keyword.value, origin));
    }
  }
  result.op = ops::short_name(result.op);
  return result;
}

// Reads @S.schedule("function") and @S.rule("operator").
void read_decorator(const Syntax& decorator, const Span& span, ScheduleRule& rule, Diagnostics& diagnostics) {
  bool is_call = decorator.kind == SyntaxKind::kCall && decorator.children[0]->kind == SyntaxKind::kAttribute &&
                 decorator.children.size() == 2 && decorator.children[1]->kind == SyntaxKind::kString;
  std::string_view what = is_call ? decorator.children[0]->text : std::string_view();
  if (what != "schedule" && what != "rule") {
    diagnostics.error(span, "expected @S.schedule(\"function\") or @S.rule(\"operator\")");
    return;
  }
  for (const Syntax::Keyword& keyword : decorator.keywords)
    diagnostics.error(Span{span.origin, keyword.line, keyword.column, keyword.length},
                      "S.{} takes a name alone, not '{}'; a condition is an `assert` among its steps", what,
                      keyword.name);
  std::string error, name = text::unquote(decorator.children[1]->text, error);
  std::string& of = what == "schedule" ? rule.function : rule.op;
  if (!of.empty()) diagnostics.error(span, "'{}' has @S.{}(\"{}\") already", rule.name, what, of);
  of = what == "rule" ? ops::short_name(name) : name;
}

// Returns the definitions and uses of a text. Statements outside of definitions are a rule for no program.
std::vector<ScheduleRule> parse_rules(std::string_view text, const std::string& filename, Diagnostics& diagnostics) {
  ScriptFile file = read_script_file(text, filename, diagnostics);
  auto place = [&](const auto& at) { return Span{file.origin, at.line, at.column, at.length}; };
  std::vector<ScheduleRule> result;
  std::shared_ptr<const TensorIntrins> intrins = read_intrins(file.origin, file.lines, filename, diagnostics);
  auto body = [&](const Lines& lines, std::string_view schedule_name) {
    return ScheduleBody{file.origin, intrins, lines, std::string(schedule_name), file.trees};
  };
  Lines loose;
  // Beside rewriters other statements are Python's.
  bool has_rewriters = std::ranges::any_of(file.lines, [](const Line* line) { return text::is_rewriter(*line); });
  for (const Line* line : file.lines) {
    if (has_rewriters && line->kind != LineKind::kFunction && called(*line, "S").empty()) continue;
    if (line->kind == LineKind::kImport || is_prim_func(*line) || is_intrin(*line) || is_of_module(*line)) continue;
    if (is_of_kernels(*line)) continue;
    if (called(*line) == "use") {
      result.push_back(read_use(*line, file.origin, place(*line)));
    } else if (line->kind != LineKind::kFunction) {
      loose.push_back(line);
    } else if (line->params.empty()) {
      diagnostics.error(place(*line), "'{}' has no parameter for the schedule", line->text);
    } else {
      ScheduleRule rule{.name = std::string(line->text), .span = place(*line)};
      rule.apply = body(line->body, line->params[0].name);
      if (line->decorators.empty()) rule.function = rule.name;
      for (const Syntax* decorator : line->decorators) read_decorator(*decorator, place(*decorator), rule, diagnostics);
      result.push_back(std::move(rule));
    }
  }
  if (!loose.empty())
    result.push_back(
        {.name = std::string(called(*loose[0], "S")), .span = place(*loose[0]), .apply = body(loose, "sch")});
  return result;
}

}  // namespace

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

std::vector<ScheduleRule> read_schedule_rules(std::string_view text, const std::string& filename) {
  Diagnostics diagnostics;
  std::vector<ScheduleRule> rules = parse_rules(text, filename, diagnostics);
  const bool is_sound = !diagnostics.has_errors();  // else it is not known what a line was meant to be
  for (const ScheduleRule& rule : rules) {
    if (is_sound && rule.uses.empty() && rule.function.empty() && rule.op.empty()) {
      std::string near = nearest(rule.name, {"use", "intrin"});
      diagnostics.error(rule.span,
                        "a file of schedules holds definitions, def name(sch): ... under @S.rule(\"operator\") or "
                        "@S.schedule(\"function\"), and calls of S.use(\"rule\", ...) and S.intrin(...){}",
                        near.empty() ? "" : fmt::format("; did you mean S.{}?", near));
    }
    const ScheduleRule& first = *std::ranges::find_if(rules, [&](const ScheduleRule& other) {
      return &other == &rule || (other.uses.empty() && !rule.function.empty() && other.function == rule.function);
    });
    if (rule.uses.empty() && &first != &rule)
      diagnostics.error(rule.span, "function '{}' has a schedule already, '{}' in line {}", rule.function, first.name,
                        first.span.line);
  }
  diagnostics.throw_if_errors();
  return rules;
}

void run_schedule_text(Schedule& schedule, std::string_view text, const std::string& filename) {
  Diagnostics diagnostics;
  std::vector<ScheduleRule> rules = parse_rules(text, filename, diagnostics);
  diagnostics.throw_if_errors();
  Decisions none("", {});
  for (const ScheduleRule& rule : rules) {
    if (!rule.apply)
      fail(rule.span,
           "S.use chooses a rule for a whole compile, and this text is steps on one schedule; give it in a file of "
           "schedules (--schedules, CompileSettings::schedules)");
    rule.apply(schedule, Target(), none);
  }
}

TensorIntrins read_tensor_intrins(std::string_view text, const std::string& filename) {
  Diagnostics diagnostics;
  ScriptFile file = read_script_file(text, filename, diagnostics);
  auto table = read_intrins(file.origin, file.lines, filename, diagnostics);
  diagnostics.throw_if_errors();
  return *table;
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
    result += fmt::format("S.intrin({}, {})\n", to_string(AttrValue(name)), joined(programs));
  }
  return result;
}

}  // namespace relaxc
