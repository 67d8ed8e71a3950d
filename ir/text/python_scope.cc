// Names of Python around a module: scopes, calls of functions, and what is forgotten after something unknown.
#include <algorithm>

#include "ir/text/python_run.h"

namespace relaxc::text {

namespace {

constexpr int kDeepestCall = 100;

// Libraries whose functions leave the lists that they are given as they are.
bool is_library(std::string_view root) {
  constexpr std::string_view kRoots[] = {
      "tvm", "$R",    "te",     "T",         "I",        "R",          "tir",   "topi",   "relax",   "rx",
      "S",   "ty",    "relay",  "numpy",     "np",       "math",       "torch", "print",  "len",     "str",
      "int", "float", "list",   "tuple",     "set",      "isinstance", "type",  "sorted", "min",     "max",
      "sum", "range", "zip",    "any",       "all",      "abs",        "repr",  "round",  "hasattr", "getattr",
      "id",  "bool",  "format", "enumerate", "reversed", "map",        "filter"};
  return std::ranges::find(kRoots, root) != std::end(kRoots);
}

bool reaches_all(std::string_view path) {
  constexpr std::string_view kReach[] = {"exec",    "eval",    "globals",    "locals",   "vars",
                                         "setattr", "delattr", "__import__", "builtins", "sys.modules"};
  return std::ranges::find(kReach, path) != std::end(kReach);
}

// Adds the names that the statements declare as global (true) or nonlocal, without those of functions below them.
void add_outer(const Lines& lines, std::map<std::string_view, bool>& names) {
  for (const Line* line : lines) {
    if (line->kind == LineKind::kFunction || line->kind == LineKind::kClass) continue;
    if (line->kind == LineKind::kGlobal) {
      for (std::string_view name : line->names) names.emplace(name, line->text == "global");
    }
    add_outer(line->body, names);
    add_outer(line->otherwise, names);
  }
}

}  // namespace

// ---- Names

Python::Found Python::find(std::string_view name) {
  for (PythonScope* scope = scope_; scope; scope = scope->parent) {
    if (scope->writes && scope->own.contains(name)) return {.own = true};
    if (auto outer = scope->outer.find(name); outer != scope->outer.end()) {
      if (outer->second) scope = &module_scope();
      if (!outer->second) continue;
    }
    auto known = scope->values.find(name);
    if (known != scope->values.end()) return {.value = &known->second, .of_module = !scope->parent};
    if (scope->own.contains(name)) return {.unbound = true};
  }
  return {.of_module = true};
}

// Returns the scope in which an assignment binds the name.
PythonScope& Python::scope_of(std::string_view name) {
  auto outer = scope_->outer.find(name);
  if (outer == scope_->outer.end()) return *scope_;
  if (outer->second) return module_scope();
  PythonScope* scope = scope_->parent;
  while (scope->parent && !scope->own.contains(name)) scope = scope->parent;
  return *scope;
}

PythonValue Python::name_value(std::string_view name, const Place& at) {
  return {.kind = Kind::kSyntax, .syntax = &heap_.node(SyntaxKind::kName, at, name)};
}

// Returns whether a name in the value means something else where it is written now.
bool Python::is_captured(const PythonValue& value) const {
  bool found = false;
  for (size_t i = value.binders; i < binders_.size(); ++i)
    for_each(value.syntax,
             [&](const Syntax& at) { found = found || (is_name(at) && binders_[i]->own.contains(at.text)); });
  return found;
}

// Returns tvm.relax.op.arange for the name `arange` that is imported from there; null for names of other libraries.
const Syntax* Python::path_of_tvm(std::string_view path, const Place& at) {
  constexpr std::string_view kPackages[] = {"tvm.relax.", "tvm.te.",    "tvm.tir.",
                                            "tvm.tirx.",  "tvm.s_tir.", "tvm.topi."};
  bool is_part = std::ranges::any_of(kPackages, [&](std::string_view package) { return path.starts_with(package); });
  const bool is_script = path.find(".script.") != path.npos;  // tvm.relax.script.ir_builder, forms of which R means
  if (!is_part || is_script || path.starts_with("tvm.relax.frontend") || path.starts_with("tvm.relax.testing"))
    return nullptr;
  const Syntax* result = nullptr;
  for (size_t from = 0; from < path.size();) {
    size_t end = std::min(path.find('.', from), path.size());
    std::string_view part = path.substr(from, end - from);
    result = result ? node_like(heap_.node(SyntaxKind::kAttribute, at, part), {result}, heap_).syntax
                    : &heap_.node(SyntaxKind::kName, at, part);
    from = end + 1;
  }
  return result;
}

// Returns what a name of a library stands for, whose path is known.
PythonValue Python::of_library(PythonValue named, const Place& at) {
  if (reaches_all(named.text)) forget_everything(at);
  if (const Syntax* whole = path_of_tvm(named.text, at)) named.syntax = whole;
  if (PythonResult known = library_value(named.text)) return *known;
  if (PythonResult known = library_constant(named.text)) return *known;
  return named;
}

PythonValue Python::value_of(const Syntax& at) {
  std::string_view name = at.text;
  Found found = find(name);
  if (at.computed != 0 || found.own) {
    PythonValue result = name_value(name, at);
    const_cast<Syntax*>(result.syntax)->computed = at.computed;
    return result;
  }
  if (found.unbound) throw PythonRaised{"UnboundLocalError"};
  auto changed = found.of_module ? volatile_.find(name) : volatile_.end();
  if (changed != volatile_.end()) return heap_.computed(name, at, changed->second);
  if (!found.value) {
    if (name == "__name__") return heap_.string("__main__");
    bool hidden = std::ranges::any_of(binders_, [&](const PythonScope* each) { return each->own.contains(name); });
    if (hidden) return heap_.computed(name, at, at.line);
    PythonValue result = name_value(name, at);
    auto library = libraries_.find(name);
    if (!taken_.contains(name))
      result.text = library != libraries_.end() ? library->second : name == "np" ? "numpy" : name;
    return of_library(result, at);
  }
  PythonValue value = *found.value;
  if (value.items && value.items->computed != 0) return heap_.computed(name, at, value.items->computed);
  if (captured_) {
    *captured_ +=
        fmt::format("{}={} {} {} {} ", name, static_cast<int>(value.kind), value.whole, value.real, value.text);
    *captured_ += fmt::format("{} {} ", static_cast<void*>(value.items), static_cast<void*>(value.function));
    if (value.items) *captured_ += fmt::format("v{} ", ++versions_);
    if (value.syntax) *captured_ += fmt::format("{} ", value.syntax->text);
  }
  if (!value.is(Kind::kSyntax)) return value;
  bool is_import = !value.text.empty() && is_name(*value.syntax) && value.syntax->text == name;  // of a function
  if (is_import) {
    PythonValue result = name_value(name, at);
    result.text = value.text;
    return of_library(result, at);
  }
  if (is_captured(value)) return heap_.computed(name, at, at.line);
  if (!is_name(*value.syntax)) return value;
  Syntax& copy = heap_.node(SyntaxKind::kName, at, value.syntax->text);
  copy.computed = value.syntax->computed;
  value.syntax = &copy;
  return value;
}

void Python::add_aliases(const PythonValue& value) {
  heap_.spend(1);
  if (value.syntax)
    for_each(value.syntax, [&](const Syntax& at) {
      if (is_name(at)) aliased_.insert(at.text);
    });
  if (!value.items || depth_ > 100) return;
  Temporarily deeper(depth_, depth_ + 1);
  for (const PythonValue& item : value.items->values) add_aliases(item);
}

void Python::bind(std::string_view name, PythonValue value) {
  PythonScope& scope = scope_of(name);
  value.binders = binders_.size();
  bool is_itself = value.is(Kind::kSyntax) && is_name(*value.syntax) && value.syntax->text == name &&
                   value.syntax->computed == 0 && !scope.parent;
  worth_ = worth_ || !is_itself;
  scope.values.insert_or_assign(name, value);
}

std::string_view Python::fresh(std::string_view name) {
  auto is_used = [&](std::string_view wanted) {
    return taken_.contains(wanted) || libraries_.contains(wanted) || module_scope().values.contains(wanted);
  };
  std::string result;
  for (int64_t& i = numbers_[name]; result.empty() || is_used(result);) result = fmt::format("{}_{}", name, ++i);
  std::string_view made = *taken_.insert(kept_->text(result)).first;
  kept_->made(made, name);
  return made;
}

// Returns the name under which a written statement binds the name: one that no other value has.
std::string_view Python::written_name(std::string_view name) {
  PythonScope& scope = scope_of(name);
  auto known = scope.values.find(name);
  const Syntax* now = known == scope.values.end() ? nullptr : known->second.syntax;
  bool keeps = now && is_name(*now) && now->computed == 0 && taken_.contains(now->text) &&
               !aliased_.contains(now->text) && written_at_[now->text] == written_definitions_;
  if (keeps) return now->text;
  bool is_module = !scope.parent;
  bool is_free =
      !taken_.contains(name) && (is_module || (!libraries_.contains(name) && !module_scope().values.contains(name)));
  if (!is_free) return fresh(name);
  return *taken_.insert(name).first;
}

// ---- Functions

PythonValue Python::function_value(const Line* line, const Syntax* lambda) {
  heap_.spend(10);
  PythonFunction& function = functions_.emplace_back(
      PythonFunction{.line = line, .lambda = lambda, .scope = scope_, .of_library = heap_.of_call().has_value()});
  if (line) {
    for (const Param& param : line->params)
      function.defaults.push_back(param.otherwise ? PythonResult(eval(*param.otherwise)) : std::nullopt);
  }
  return {.kind = Kind::kFunction, .function = &function};
}

std::vector<Param> Python::params_of(const PythonFunction& function) {
  if (function.line) return function.line->params;
  std::vector<Param> params;
  for (size_t i = 0; i + 1 < function.lambda->children.size(); ++i) {
    const Syntax& at = *function.lambda->children[i];
    bool starred = at.kind == SyntaxKind::kStarred;
    params.push_back({at, (starred ? at.children[0] : &at)->text, nullptr, nullptr, starred ? "*" : ""});
  }
  return params;
}

void Python::bind_params(const PythonFunction& function, const Args& args, PythonScope& scope) {
  std::vector<Param> params = params_of(function);
  std::set<std::string_view> taken;
  size_t next = 0;
  for (size_t i = 0; i < params.size(); ++i) {
    const Param& param = params[i];
    PythonResult value;
    if (auto given = args.by_name.find(param.name); given != args.by_name.end()) {
      value = given->second;
    } else if (param.stars == "*") {
      auto from = args.positional.begin() + static_cast<int64_t>(std::min(next, args.positional.size()));
      std::vector<PythonValue> rest(from, args.positional.end());
      next = args.positional.size();
      value = heap_.list(Kind::kTuple, std::move(rest));
    } else if (param.stars == "**") {
      value = heap_.list(Kind::kDict, {});
      for (const auto& [name, given] : args.named) {
        if (taken.insert(name).second) set_item(*value, heap_.string(name), given, heap_);
      }
    } else {
      auto named = std::ranges::find(args.named, param.name, &std::pair<std::string_view, PythonValue>::first);
      if (named != args.named.end()) {
        value = named->second;
        taken.insert(param.name);
      } else if (next < args.positional.size()) {
        value = args.positional[next++];
      } else if (i < function.defaults.size()) {
        value = function.defaults[i];
      }
    }
    if (!value) throw PythonUnknown();
    if (args.by_name.empty()) value = named(*value, param.name, param);
    value->binders = binders_.size();
    scope.values.insert_or_assign(param.name, *value);
    scope.own.insert(param.name);
    add_aliases(*value);
  }
  if (next < args.positional.size() || taken.size() < args.named.size()) throw PythonUnknown();
}

// Runs the function, and returns its result. The arguments may be syntax.
PythonValue Python::call(PythonFunction& function, const Args& args) {
  if (calls_ >= kDeepestCall) throw PythonUnknown();
  heap_.spend(20);
  PythonScope& scope = scopes_.emplace_back(PythonScope{.parent = function.scope});
  worth_ = true;
  if (function.line) {
    add_outer(function.line->body, scope.outer);
    for (const Line* line : function.line->body) add_bound_names(*line, scope.own, false);
    for (const auto& [name, global] : scope.outer) scope.own.erase(name);
  }
  bind_params(function, args, scope);
  function.used = true;
  Temporarily deeper(calls_, calls_ + 1);
  Temporarily inside(scope_, &scope);
  Temporarily outside(loops_, 0);
  Temporarily running(running_, &function);
  bool of_library = function.of_library;
  std::optional<Place> place =
      of_library ? heap_.of_call() ? heap_.of_call() : std::optional(call_place_) : std::nullopt;
  Temporarily placed(heap_.of_call(), place);
  Temporarily out(out_, out_);
  if (function.lambda) return eval(*function.lambda->children.back());
  Temporarily result(returned_, PythonResult());
  run(function.line->body);
  return returned_ ? *returned_ : PythonValue();
}

// ---- What is not known any more

void Python::forget(std::string_view name, const Place& at) { bind(name, heap_.computed(name, at, at.line)); }

// Forgets what the value holds, if Python may change it.
void Python::forget_value(const PythonValue& value, const Place& at) {
  if (value.is(Kind::kObject)) {
    if (value.object->computed == 0) value.object->computed = at.line;
    return;
  }
  if (value.is(Kind::kFunction)) return forget_effects(*value.function, at, 0);
  if (!value.items || value.items->computed != 0) return;
  if (value.can_change()) value.items->computed = at.line;
  if (value.is(Kind::kRange)) return;
  for (const PythonValue& item : value.items->values) forget_value(item, at);
}

void Python::forget_effects(const PythonEffects& effects, PythonScope* scope, const Place& at, int depth) {
  constexpr int kDeepest = 8;
  if (depth > kDeepest) return forget_everything(at);
  Temporarily inside(scope_, scope);
  for (std::string_view name : effects.uses) {
    if (reaches_all(name)) return forget_everything(at);
  }
  for (std::string_view name : effects.changes) {
    if (Found found = find(name); found.value) forget_value(*found.value, at);
  }
  for (std::string_view name : effects.outer) {
    for (PythonScope* each = scope; each; each = each->parent) {
      if (each->values.contains(name) || !each->parent)
        each->values.insert_or_assign(name, heap_.computed(name, at, at.line));
    }
    worth_ = true;
  }
  for (std::string_view name : effects.uses) {
    Found found = find(name);
    if (found.value && found.value->is(Kind::kFunction)) forget_effects(*found.value->function, at, depth + 1);
  }
}

void Python::forget_effects(PythonFunction& function, const Place& at, int depth) {
  if (function.active) return;
  Temporarily active(function.active, true);
  heap_.spend(10);
  PythonEffects effects;
  if (function.line) {
    for (const Line* line : function.line->body) effects.add(*line);
    for (const Param& param : function.line->params) {
      if (effects.changes.contains(param.name)) forget_defaults(function, at);
    }
  } else {
    effects.add(function.lambda->children.back());
  }
  forget_effects(effects, function.scope, at, depth);
}

void Python::forget_defaults(const PythonFunction& function, const Place& at) {
  for (const PythonResult& value : function.defaults) {
    if (value) forget_value(*value, at);
  }
}

void Python::forget_everything(const Place& at) {
  for (PythonScope& scope : scopes_) {
    heap_.spend(scope.values.size() + 1);
    for (auto& [name, value] : scope.values) {
      bool is_forgotten = value.is(Kind::kSyntax) && value.syntax->computed != 0;
      if (!is_forgotten) value = heap_.computed(name, at, at.line);
    }
  }
  heap_.forget_all(at.line);
  worth_ = true;
}

// Forgets what a function that is not run may change: of libraries nothing.
void Python::forget_call(const PythonValue& function, const Args& args, const Place& at) {
  if (function.is(Kind::kFunction)) forget_effects(*function.function, at, 0);
  const Syntax* root = function.syntax;
  while (root && !is_name(*root) && !root->children.empty()) root = root->children[0];
  std::string_view name = root && is_name(*root) ? root->text : "";
  auto library = libraries_.find(name);
  std::string_view path = library == libraries_.end() ? name : library->second;
  bool is_method = function.syntax == root ? false : is_one_of(path, {"list", "dict", "set"});  // list.append(rows, 1)
  if (libraries_made_.contains(name) || (is_library(path.substr(0, path.find('.'))) && !is_method)) return;
  may_raise_ = true;
  for (const PythonValue& value : args.positional) forget_value(value, at);
  for (const auto& [keyword, value] : args.named) forget_value(value, at);
}

}  // namespace relaxc::text
