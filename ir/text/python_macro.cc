// Macros of programs, @T.macro and @T.inline: their statements are written out where a program calls them. And modules
// in strings, tvm.script.from_source("..."), which are read as if they stood in the text.
#include <algorithm>

#include "ir/text/parsing.h"
#include "ir/text/python_run.h"

namespace relaxc::text {

namespace {

constexpr int kDeepestMacro = 64;

const Syntax* macro_decorator(const Line& line) {
  auto is_macro = [](const Syntax* decorator) {
    const Syntax& head = head_of(*decorator);
    return head.kind == SyntaxKind::kAttribute && is_one_of(head.text, {"macro", "inline"}) &&
           names_script(spelling(head));
  };
  auto found = std::ranges::find_if(line.decorators, is_macro);
  return line.kind == LineKind::kFunction && found != line.decorators.end() ? *found : nullptr;
}

}  // namespace

bool is_macro(const Line& line) { return macro_decorator(line) != nullptr; }

// A macro is hygienic, unless it says otherwise: its names mean what they mean where, and when, it is defined.
PythonValue Python::macro_value(const Line& line) {
  PythonScope& now = scopes_.emplace_back(PythonScope{.parent = scope_});
  for_each(line, [&](const Syntax& at) {
    Found found = is_name(at) ? find(at.text) : Found();
    if (found.value) now.values.insert_or_assign(at.text, *found.value);
  });
  PythonValue value = function_value(&line, nullptr);
  value.function->scope = &now;
  value.function->is_macro = true;
  for (const Syntax::Keyword& keyword : macro_decorator(line)->keywords)
    value.function->captures = keyword.name == "hygienic" && keyword.value->text == "False";
  return value;
}

// Returns the macro or function that the statement calls, h.macro(A, i) of an object too; nullopt for other statements.
// Of a statement with a result it is a macro.
PythonResult Python::called_function(const Line& line) {
  bool has_result = line.kind == LineKind::kAssign || line.kind == LineKind::kReturn;
  if ((line.kind != LineKind::kExpression && !has_result) || !line.value || !is_call(*line.value)) return std::nullopt;
  const Syntax& callee = *line.value->children[0];
  bool is_method = callee.kind == SyntaxKind::kAttribute && is_name(*callee.children[0]);
  if (!is_name(callee) && !is_method) return std::nullopt;
  Found found = find((is_method ? *callee.children[0] : callee).text);
  if (!found.value) return std::nullopt;
  PythonValue value = *found.value;
  if (is_method && !value.is(Kind::kObject) && !value.is(Kind::kClass)) return std::nullopt;
  if (is_method) value = member(callee, value);
  bool is_function = value.is(Kind::kFunction) && value.function->line && (value.function->is_macro || !has_result);
  return is_function && (value.function->is_macro || !is_method) ? PythonResult(value) : std::nullopt;
}

// Returns the statements that a function of Python adds to the program which calls it: T.buffer_store(A, x, [i]).
Lines Python::emitted(PythonFunction& function, const Syntax& at) {
  if (macros_ >= kDeepestMacro) throw PythonUnknown();
  Temporarily deeper(macros_, macros_ + 1);
  Lines lines;
  Temporarily inner(out_, &lines);
  std::optional<Args> args;
  {
    Temporarily unwritten(writes_, false);
    args = arguments(at);
  }
  if (!args->complete) throw PythonUnknown();
  Temporarily writing(writes_, true);
  PythonValue result = call(function, *args);
  if (!result.is(Kind::kNone)) throw PythonUnknown();
  return lines;
}

// Returns whether a name that a macro binds would hide another value where it is called.
bool Python::is_visible(std::string_view name) {
  bool bound = std::ranges::any_of(binders_, [&](const PythonScope* each) { return each->own.contains(name); });
  return bound || find(name).value || libraries_.contains(name) || taken_.contains(name);
}

// Returns the statements of the macro, with the arguments in place of its params. Names that it binds are new ones
// where the program around it has them, too.
Lines Python::expanded(const PythonValue& value, const Syntax& call) {
  const PythonFunction& macro = *value.function;
  if (macros_ >= kDeepestMacro) throw PythonUnknown();
  heap_.spend(20);
  Temporarily deeper(macros_, macros_ + 1);
  Temporarily unwritten(writes_, false);
  Args args = arguments(call);
  if (!args.complete) throw PythonUnknown();
  if (value.object) {
    args.positional.insert(args.positional.begin(), PythonValue{.kind = Kind::kObject, .object = value.object});
    args.places.insert(args.places.begin(), Place(call));
  }
  std::set<std::string_view> bound;
  for (const Line* line : macro.line->body) add_bound_names(*line, bound);
  for (const Param& param : macro.line->params)
    if (bound.contains(param.name)) throw PythonUnknown();
  PythonScope& params = scopes_.emplace_back(PythonScope{.parent = macro.captures ? scope_ : macro.scope});
  PythonScope& body = scopes_.emplace_back(PythonScope{.parent = &params, .writes = true});
  bind_params(macro, args, params);
  Replacements names;
  for (std::string_view name : bound) {
    std::string_view now = is_visible(name) ? fresh(name) : name;
    if (now != name) names.emplace(name, name_value(now, call).syntax);
    body.own.insert(now);
  }
  Lines lines;
  for (const Line* line : macro.line->body) lines.push_back(&with_names(*line, names, *kept_));
  if (!binders_.empty()) binders_.back()->own.insert(body.own.begin(), body.own.end());
  Temporarily inside(scope_, &body);
  binders_.push_back(&body);
  try {
    lines = written(lines);
  } catch (...) {
    binders_.pop_back();
    throw;
  }
  binders_.pop_back();
  return lines;
}

// Returns the statements for which a call stands. A macro's `return` gives the result of the statement: y = f(x).
Lines Python::inlined(const PythonValue& function, const Line& line) {
  if (!function.function->is_macro) return emitted(*function.function, *line.value);
  Lines lines = expanded(function, *line.value);
  if (line.kind == LineKind::kExpression) return lines;
  if (lines.empty() || lines.back()->kind != LineKind::kReturn || !lines.back()->value) throw PythonUnknown();
  Line& last = kept_->line();
  last = line;
  last.value = lines.back()->value;
  lines.back() = &last;
  return lines;
}

// Returns statements of a definition with values in place of names, and with the macros that they call written out.
Lines Python::written(const Lines& lines) {
  Lines result;
  for (const Line* line : lines) {
    if (is_macro(*line) && !binders_.empty()) {
      scope_->own.erase(line->text);
      scope_->values.insert_or_assign(line->text, macro_value(*line));
      continue;
    }
    PythonResult function = binders_.empty() ? std::nullopt : called_function(*line);
    if (!function) {
      result.push_back(&written(*line));
      continue;
    }
    try {
      Lines inner = inlined(*function, *line);
      result.insert(result.end(), inner.begin(), inner.end());
    } catch (const PythonUnknown&) {
      result.push_back(line);
    } catch (const PythonRaised&) {
      result.push_back(line);
    }
  }
  return result;
}

// Reads the definitions in a string of the text, and returns the last one's name.
PythonResult Python::from_source(const PythonValue& source) {
  size_t at = source.is(Kind::kString) && writes_ ? source_.text.find(source.text) : source_.text.npos;
  if (at == source_.text.npos || source.text.empty()) return std::nullopt;
  std::string_view before = source_.text.substr(0, at);
  size_t line_start = before.rfind('\n') == before.npos ? 0 : before.rfind('\n') + 1;
  auto line = static_cast<uint32_t>(std::ranges::count(before, '\n'));
  Source inner{source_.origin, source_.text.substr(at, source.text.size()), source_.line + line,
               static_cast<uint32_t>(at - line_start + 1)};
  SyntaxReader reader(inner, diagnostics_);
  std::string_view last;
  Line* module = nullptr;
  for (Lines lines; reader.next(*kept_, lines); lines.clear()) {
    for (const Line* each : lines) {
      if (reader.in_class() && module) {
        module->body.push_back(each);
        continue;
      }
      if (each->kind == LineKind::kImport) continue;
      Line& kept = kept_->line();
      kept = *each;
      bool is_class = each->kind == LineKind::kClass;
      if (is_class || each->kind == LineKind::kFunction) {
        if (taken_.contains(kept.text)) kept.text = fresh(kept.text);
        taken_.insert(kept.text);
        definitions_.insert(kept.text);
        ++written_definitions_;
        last = kept.text;
      }
      module = is_class ? &kept : nullptr;
      write(kept);
    }
  }
  has_module_ = has_module_ || !last.empty();
  if (last.empty()) return std::nullopt;
  return name_value(last, Place{inner.line, inner.column, 1});
}

}  // namespace relaxc::text
