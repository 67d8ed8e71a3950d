#include "ir/text/python_lines.h"

#include <algorithm>

namespace relaxc::text {

namespace {

bool changes_its_object(std::string_view method) {
  constexpr std::string_view kMethods[] = {"append", "clear",   "extend",     "insert", "pop",
                                           "remove", "reverse", "setdefault", "sort",   "update"};
  return std::ranges::find(kMethods, method) != std::end(kMethods);
}

Replacements without(const Replacements& names, const std::set<std::string_view>& hidden) {
  Replacements result = names;
  for (std::string_view name : hidden) result.erase(name);
  return result;
}

}  // namespace

void for_each(const Syntax* at, const std::function<void(const Syntax&)>& visit) {
  if (!at) return;
  visit(*at);
  for (const Syntax* child : at->children) for_each(child, visit);
  for (const Syntax::Keyword& keyword : at->keywords) for_each(keyword.value, visit);
}
void for_each(const Line& line, const std::function<void(const Syntax&)>& visit) {
  for (const Syntax* part : {line.target, line.annotation, line.value, line.extra}) for_each(part, visit);
  for (const Syntax* decorator : line.decorators) for_each(decorator, visit);
  for (const Param& param : line.params) {
    for_each(param.annotation, visit);
    for_each(param.otherwise, visit);
  }
  for (const auto& [item, target] : line.items) {
    for_each(item, visit);
    for_each(target, visit);
  }
  for (const Lines* lines : {&line.body, &line.otherwise}) {
    for (const Line* inner : *lines) for_each(*inner, visit);
  }
}

void add_names(const Syntax* target, std::set<std::string_view>& names) {
  if (!target) return;
  if (is_name(*target)) names.insert(target->text);
  if (is_list(*target) || target->kind == SyntaxKind::kStarred) {
    for (const Syntax* item : target->children) add_names(item, names);
  }
}

// Adds the names that (n := value) binds.
static void add_named_expressions(const Syntax* at, std::set<std::string_view>& names) {
  for_each(at, [&](const Syntax& each) {
    if (each.kind == SyntaxKind::kBinary && each.text == ":=") add_names(each.children[0], names);
  });
}

void add_bound_names(const Line& line, std::set<std::string_view>& names, bool within) {
  if (line.kind != LineKind::kExpression) add_names(line.target, names);
  bool is_scope = line.kind == LineKind::kFunction || line.kind == LineKind::kClass;
  if (is_scope) names.insert(line.text);
  if (is_scope && !within) return;
  for (const Param& param : line.params) names.insert(param.name);
  names.insert(line.type_params.begin(), line.type_params.end());
  if (line.kind != LineKind::kGlobal) names.insert(line.names.begin(), line.names.end());
  for (const auto& [path, local] : line.imports) names.insert(local);
  for (const auto& [item, target] : line.items) {
    add_names(target, names);
    add_named_expressions(item, names);
  }
  for (const Syntax* part : {line.value, line.extra}) add_named_expressions(part, names);
  for (const Lines* lines : {&line.body, &line.otherwise}) {
    for (const Line* inner : *lines) add_bound_names(*inner, names, within);
  }
}

const Syntax* with_names(const Syntax* at, const Replacements& names, SyntaxTree& tree) {
  if (!at) return at;
  auto found = is_name(*at) ? names.find(at->text) : names.end();
  if (found != names.end()) return found->second;
  Replacements inner;
  if (at->kind == SyntaxKind::kLambda) {
    std::set<std::string_view> own;
    for (size_t i = 0; i + 1 < at->children.size(); ++i) add_names(at->children[i], own);
    inner = without(names, own);
  }
  const Replacements& used = at->kind == SyntaxKind::kLambda ? inner : names;
  Syntax& result = tree.node();
  static_cast<Place&>(result) = *at;
  result.kind = at->kind;
  // The text of strings that were joined belongs to their tree; other texts are the source's.
  result.text = at->kind == SyntaxKind::kString ? tree.text(at->text) : at->text;
  result.computed = at->computed;
  for (const Syntax* child : at->children) {
    result.children.push_back(with_names(child, used, tree));
    if (result.children.back()) result.depth = std::max(result.depth, result.children.back()->depth + 1);
  }
  result.keywords.assign(at->keywords.begin(), at->keywords.end());
  for (Syntax::Keyword& keyword : result.keywords) {
    keyword.value = with_names(keyword.value, used, tree);
    result.depth = std::max(result.depth, keyword.value->depth + 1);
  }
  return &result;
}

const Line& with_names(const Line& line, const Replacements& outer, SyntaxTree& tree) {
  Line& result = tree.line();
  result = line;
  bool is_scope = line.kind == LineKind::kFunction || line.kind == LineKind::kClass;
  for (const Syntax*& decorator : result.decorators) decorator = with_names(decorator, outer, tree);
  for (Param& param : result.params) {
    param.annotation = with_names(param.annotation, outer, tree);
    param.otherwise = with_names(param.otherwise, outer, tree);
  }
  std::set<std::string_view> own;
  if (is_scope) add_bound_names(line, own);
  const Replacements names = is_scope ? without(outer, own) : outer;
  for (const Syntax** part : {&result.target, &result.annotation, &result.value, &result.extra})
    *part = with_names(*part, names, tree);
  for (auto& [item, target] : result.items) {
    item = with_names(item, names, tree);
    target = with_names(target, names, tree);
  }
  for (Lines* lines : {&result.body, &result.otherwise}) {
    for (const Line*& inner : *lines) inner = &with_names(*inner, names, tree);
  }
  return result;
}

bool computes_with_te(const Line& line) {
  bool result = false;
  for_each(line, [&](const Syntax& at) {
    constexpr std::string_view kForms[] = {"te", "compute", "placeholder", "reduce_axis", "extern", "scan"};
    bool of_tvm = at.kind == SyntaxKind::kAttribute && at.children[0]->text == "tvm" &&
                  std::ranges::find(kForms, at.text) != std::end(kForms);
    result = result || of_tvm || (is_name(at) && at.text == "te");
  });
  return result;
}

// ---- Names of functions

static bool is_symbol_key(const Syntax& at) {
  return at.kind == SyntaxKind::kString && at.text.find("global_symbol") == 1;
}

// Returns f of f, f.with_attr(...) and f.without_attr(...), and the name that the latter give it.
static std::optional<NamedFunction> function_in(const Syntax& at) {
  if (is_name(at)) return NamedFunction{at.text, ""};
  // sch.mod["main"]
  bool is_item = at.kind == SyntaxKind::kSubscript && at.children.size() == 2 &&
                 at.children[1]->kind == SyntaxKind::kString && at.children[1]->text.size() > 2;
  if (is_item) return NamedFunction{at.children[1]->text.substr(1, at.children[1]->text.size() - 2), ""};
  if (!is_call(at) || at.children[0]->kind != SyntaxKind::kAttribute) return std::nullopt;
  const Syntax& method = *at.children[0];
  if (method.text != "with_attr" && method.text != "with_attrs" && method.text != "without_attr") return std::nullopt;
  std::optional<NamedFunction> result = function_in(*method.children[0]);
  std::vector<const Syntax*> given(at.children.begin() + 1, at.children.end());
  if (given.size() == 1 && given[0]->kind == SyntaxKind::kDict)
    given.assign(given[0]->children.begin(), given[0]->children.end());
  std::string error;
  for (size_t i = 0; result && i + 1 < given.size(); i += 2) {
    if (is_symbol_key(*given[i]) && given[i + 1]->kind == SyntaxKind::kString)
      result->name = unquote(given[i + 1]->text, error);
  }
  return result;
}

std::vector<NamedFunction> named_functions(const Line& line) {
  std::vector<NamedFunction> result;
  bool assigns = line.kind == LineKind::kAssign && line.value;
  if ((!assigns && line.kind != LineKind::kExpression) || !line.value) return result;
  auto add = [&](const Syntax& value, const Syntax* key) {
    std::optional<NamedFunction> function = function_in(value);
    std::string error;
    if (function && key && key->kind == SyntaxKind::kString) function->name = unquote(key->text, error);
    if (function && !function->name.empty()) result.push_back(*function);
    return function;
  };
  const Syntax& value = *line.value;
  std::string_view made = is_call(value) ? value.children[0]->text : std::string_view();
  const Syntax* first = is_call(value) && value.children.size() == 2 ? value.children[1] : nullptr;
  if (made == "IRModule" && first && first->kind == SyntaxKind::kDict) {
    for (size_t i = 0; i + 1 < first->children.size(); i += 2) add(*first->children[i + 1], first->children[i]);
  } else if (made == "from_expr" && first) {
    add(*first, nullptr);
  } else if (assigns && line.target->kind == SyntaxKind::kSubscript && line.target->children.size() == 2) {
    add(value, line.target->children[1]);
  } else if (assigns && is_name(*line.target) && is_call(value) && add(value, nullptr)) {
    if (result.empty()) result.push_back(*function_in(value));
    result.back().alias = line.target->text;
  }
  return result;
}

bool holds(const Line& line, const std::function<bool(const Line&)>& test) {
  auto any = [&](const Lines& lines) {
    return std::ranges::any_of(lines, [&](const Line* inner) { return holds(*inner, test); });
  };
  return test(line) || any(line.body) || any(line.otherwise);
}
bool holds_errors(const Line& line) {
  return holds(line, [](const Line& each) { return each.kind == LineKind::kBroken; });
}

// ---- Effects

std::string_view root_name(const Syntax& at) {
  bool is_part = at.kind == SyntaxKind::kSubscript || at.kind == SyntaxKind::kAttribute;
  return is_part ? root_name(*at.children[0]) : is_name(at) ? at.text : "";
}

void PythonEffects::add(const Syntax* at) {
  for_each(at, [&](const Syntax& each) {
    if (is_name(each)) uses.insert(each.text);
    bool is_method = is_call(each) && each.children[0]->kind == SyntaxKind::kAttribute;
    if (is_method && changes_its_object(each.children[0]->text)) changes.insert(root_name(*each.children[0]));
  });
}

void PythonEffects::add(const Line& line) {
  for (const Syntax* part : {line.target, line.value, line.extra}) add(part);
  for (const auto& [item, target] : line.items) {
    add(item);
    if (target) add_changed(*target, false);
  }
  for (const Param& param : line.params) add(param.otherwise);
  for (const Syntax* decorator : line.decorators) add(decorator);
  if (line.target) add_changed(*line.target, line.kind == LineKind::kAugmented);
  if (line.kind == LineKind::kGlobal) outer.insert(line.names.begin(), line.names.end());
  if (line.kind == LineKind::kBroken) add_words(line);
  for (const Lines* lines : {&line.body, &line.otherwise}) {
    for (const Line* inner : *lines) add(*inner);
  }
}

// A statement that could not be read, word by word.
void PythonEffects::add_words(const Line& line) {
  auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  std::set<std::string_view> words;
  bool is_change = line.text.starts_with("global ") || line.text.starts_with("nonlocal ");
  for (size_t from = 0, to = 0; from < line.text.size(); from = to + 1) {
    to = static_cast<size_t>(
        std::find_if_not(line.text.begin() + static_cast<int64_t>(from), line.text.end(), is_letter) -
        line.text.begin());
    std::string_view word = line.text.substr(from, to - from);
    bool is_member = from > 0 && line.text[from - 1] == '.';
    if (!is_member) words.insert(word);
    is_change |= is_member && changes_its_object(word);
  }
  uses.insert(words.begin(), words.end());
  if (line.text.starts_with("global ") || line.text.starts_with("nonlocal ")) outer.insert(words.begin(), words.end());
  if (is_change) changes.insert(words.begin(), words.end());
}
void PythonEffects::add_changed(const Syntax& target, bool in_place) {
  if (is_list(target)) {
    for (const Syntax* item : target.children) add_changed(*item, in_place);
  } else if (in_place || !is_name(target)) {
    changes.insert(root_name(target));
  }
}

std::set<std::string_view> changed_names(const Line& line) {
  PythonEffects effects;
  effects.add(line);
  return std::move(effects.changes);
}

bool runs_body(const Line& line) {
  bool is_main = line.kind == LineKind::kIf && line.value->kind == SyntaxKind::kCompare && line.otherwise.empty() &&
                 line.value->children[0]->text == "__name__";
  return is_main || line.kind == LineKind::kWith;
}

}  // namespace relaxc::text
