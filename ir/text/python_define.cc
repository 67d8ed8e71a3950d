// Definitions, imports and functions of Python around a module.
#include <algorithm>
#include <iterator>

#include "ir/text/parsing.h"
#include "ir/text/python_run.h"

namespace relaxc::text {

namespace {

// Returns whether the statement makes a module in Python, itself or below it: by relax.BlockBuilder, relax.Function,
// or the export of a model.
bool makes_module(const Line& line) {
  return holds(line, [](const Line& each) {
    return each.kind == LineKind::kAssign && each.value && is_call(*each.value) &&
           (is_one_of(head_of(*each.value).text, {"BlockBuilder", "export_tvm"}) ||
            is_one_of(spelling(head_of(*each.value)), {"relax.Function", "rx.Function"}));
  });
}

// Returns whether what makes the module uses a param: whether its value counts.
bool uses_params(const Line& function) {
  std::set<std::string_view> open;
  for (const Param& param : function.params) {
    if (!param.otherwise) open.insert(param.name);
  }
  size_t last = 0;
  for (size_t i = 0; i < function.body.size(); ++i) {
    bool is_part = makes_module(*function.body[i]) || function.body[i]->kind == LineKind::kWith;
    if (is_part) last = i + 1;
  }
  bool found = false;
  for (size_t i = 0; i < last; ++i)
    for_each(*function.body[i], [&](const Syntax& at) { found = found || (is_name(at) && open.contains(at.text)); });
  return found;
}

bool is_script_class(const Line& line) {
  return std::ranges::any_of(line.decorators,
                             [](const Syntax* each) { return names_script(spelling(head_of(*each))); });
}

}  // namespace

// Forgets what decorators may change: they are run with the definition.
void Python::forget_decorated(const Line& line) {
  PythonEffects effects;
  for (const Syntax* decorator : line.decorators) effects.add(decorator);
  forget_effects(effects, scope_, line);
}

void Python::define(const Line& line) {
  forget_decorated(line);
  if (is_macro(line) && !macro_) macro_ = line;
  if (is_macro(line)) return bind(line.text, macro_value(line));
  if (is_script_function(line)) return write_definition(line);
  bool is_plain = std::ranges::all_of(line.decorators, [](const Syntax* decorator) {
    std::string_view name = head_of(*decorator).text;
    return is_test_decorator(*decorator) || name.starts_with("requires_") ||
           is_one_of(name, {"register_workload", "template", "register_func", "register_global_func", "tag_scope",
                            "generic_func"});
  });
  if (!is_plain) {
    add_volatile(line);
    throw PythonUnknown();
  }
  PythonValue value = function_value(&line, nullptr);
  value.function->errors = errors_;
  bool is_fixture =
      std::ranges::any_of(line.decorators, [](const Syntax* each) { return head_of(*each).text == "fixture"; });
  if (!scope_->parent && !heap_.of_call() && !is_fixture) order_.push_back(value.function);
  bind(line.text, value);
}

// A function that is called twice has two definitions.
void Python::write_definition(const Line& line) {
  if (!writes_) throw PythonUnknown();
  bool again = taken_.contains(line.text) && (calls_ > 0 || loops_ > 0);
  std::string_view name = again ? fresh(line.text) : line.text;
  taken_.insert(name);
  definitions_.insert(name);
  ++written_definitions_;
  bool hides = again || scope_->parent || module_scope().values.contains(name);
  if (hides) bind(line.text, name_value(name, line));
  const Line* result = &written(line);
  if (again) {
    Line& renamed = kept_->line();
    renamed = *result;
    renamed.text = name;
    result = &renamed;
  }
  if (running_ && holds_errors(line))
    for (const Diagnostic& error : std::exchange(running_->errors, {})) diagnostics_.add(error);
  Temporarily of_module(out_, is_exporting() ? exported_.front().outside : out_);  // a program in a model's function
  write(*result);
}

void Python::define_class(const Line& line) {
  forget_decorated(line);
  if (!is_script_class(line) && follows_class(line)) {
    auto is_of_head = [&](const Diagnostic& error) { return error.span.line == line.line; };
    std::ranges::copy_if(errors_, std::back_inserter(model_errors_), is_of_head);
    return bind_class(line);
  }
  bool is_module = is_script_class(line) || (line.decorators.empty() && !line.extra);
  if (is_module) return write_definition(line);
  add_volatile(line);
  throw PythonUnknown();
}

void Python::imports(const Line& line) {
  write(line);
  for (const auto& [path, local] : line.imports) {
    std::string_view package = std::string_view(path).substr(0, path.find('.'));
    bool is_known = is_one_of(package, {"tvm",       "numpy",      "math",   "os",       "sys",        "time",
                                        "typing",    "functools",  "re",     "random",   "copy",       "collections",
                                        "itertools", "contextlib", "json",   "pathlib",  "logging",    "dataclasses",
                                        "abc",       "enum",       "string", "operator", "__future__", "tempfile"});
    may_raise_ = may_raise_ || !is_known;
    worth_ = worth_ || is_one_of(package, {"math", "numpy"});
    std::string_view name = kept_->text(local), whole = kept_->text(path);
    if (local == "*") {
      for (auto& [bound, value] : module_scope().values) {
        if (package != "tvm") value = heap_.computed(bound, line, line.line);
      }
      continue;
    }
    PythonScope& scope = scope_of(name);
    if (!is_known && package != "torch" && scope.values.contains(name)) {
      forget(name, line);
    } else if (scope.parent) {
      PythonValue value = name_value(name, line);
      value.text = whole;
      scope.values.insert_or_assign(name, value);
    } else {
      scope.values.erase(name);
      libraries_.insert_or_assign(name, whole);
    }
  }
}

// Where nothing of the text is a program, the functions that nothing calls and that need no arguments are called, as
// those who read the text would: main(), or the tests. Where others take arguments, all are left to errors.
void Python::run_only() {
  if (has_module_) return;
  std::map<std::string_view, PythonFunction*> by_name;
  for (PythonFunction* function : order_) by_name.insert_or_assign(function->line->text, function);
  std::set<const PythonFunction*> makers, inner;  // functions that make a program, and those that others call
  for (bool grows = true; std::exchange(grows, false);) {
    for (PythonFunction* function : order_) {
      bool makes = computes_with_te(*function->line) || makes_module(*function->line);
      for_each(*function->line, [&](const Syntax& at) {
        auto called = is_name(at) ? by_name.find(at.text) : by_name.end();
        if (called == by_name.end() || called->second == function) return;
        inner.insert(called->second);
        makes = makes || makers.contains(called->second);
      });
      grows = (makes && makers.insert(function).second) || grows;
    }
  }
  for (PythonFunction* function : order_) {
    if (function->used || !makers.contains(function) || inner.contains(function)) continue;
    size_t before = out_->size();
    try {
      give_test_values(*function);
      if (!is_callable_alone(*function)) continue;
      PythonValue result = call(*function, {});
      if (result.is(Kind::kSyntax) || result.items) named(result, "result", *function->line);
    } catch (const PythonUnknown&) {
      out_->resize(before);
      function->used = false;
    } catch (const PythonRaised&) {
      function->used = false;
    }
  }
}

// Functions that nothing has called are Python that is not run, but the definitions in them are read.
void Python::run_unused() {
  std::vector<PythonFunction*> unused;
  std::ranges::copy_if(order_, std::back_inserter(unused), [](const PythonFunction* each) { return !each->used; });
  for (PythonFunction* function : unused) {
    if (function->used) continue;
    const Line& line = *function->line;
    bool is_only = makes_module(line) && !uses_params(line) && source_.text.find("ir_module") == std::string_view::npos;
    try {
      if (holds_definition(line) || is_only) {
        uncalled_.insert_or_assign(line.line, line.text);
        run_unused(*function);
        report_stuck(line);
        Line& head = kept_->line();
        head = line;
        head.body.clear();
        write(head);
      } else {
        write(written(line));
      }
    } catch (const PythonUnknown&) {
      if (!report_stuck(line)) report_limit(line);
    } catch (const PythonRaised&) {
      if (!report_stuck(line)) report_limit(line);
    }
  }
}

void Python::run_unused(PythonFunction& function) {
  give_test_values(function);
  Args args;
  for (size_t i = 0; i < function.line->params.size(); ++i) {
    const Param& param = function.line->params[i];
    PythonValue unknown = heap_.computed(param.name, param, function.line->line);
    args.by_name.emplace(param.name, function.defaults[i] ? *function.defaults[i] : unknown);
  }
  try {
    call(function, args);
  } catch (const PythonRaised&) {
  }
}

// Runs the statements below a head that cannot be read, such as that of a function: its words have no values.
void Python::run_broken(const Line& line) {
  PythonScope& scope = scopes_.emplace_back(PythonScope{.parent = scope_});
  std::string_view head = line.text.substr(0, line.text.find(":\n"));
  for (size_t i = 0; i < head.size();) {
    size_t end = i;
    while (end < head.size() && (std::isalnum(static_cast<unsigned char>(head[end])) != 0 || head[end] == '_')) ++end;
    std::string_view word = head.substr(i, end - i);
    if (!word.empty()) scope.values.insert_or_assign(word, heap_.computed(word, line, line.line));
    i = std::max(end, i + 1);
  }
  worth_ = true;
  {
    Temporarily inside(scope_, &scope);
    run(line.body);
  }
  Line& rest = kept_->line();
  rest = line;
  rest.body.clear();
  write(rest);
  for (std::string_view name : line.names) forget(name, line);
}

}  // namespace relaxc::text
