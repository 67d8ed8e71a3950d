// Which constants a statement of Python that is not run may change: definitions below it cannot name them.
#include <algorithm>

#include "ir/text/parsing.h"

namespace relaxc::text {

namespace {

constexpr std::string_view kAnyObject = "*";  // a function that changes a param changes any

bool changes_its_object(std::string_view method) {
  constexpr std::string_view kMethods[] = {"append", "clear",   "extend",     "insert", "pop",
                                           "remove", "reverse", "setdefault", "sort",   "update"};
  return std::ranges::find(kMethods, method) != std::end(kMethods);
}

// Returns the name of which the expression is an item, attribute or slice; empty for others.
std::string_view root_name(const Syntax& at) {
  bool is_part = at.kind == SyntaxKind::kSubscript || at.kind == SyntaxKind::kAttribute;
  return is_part ? root_name(*at.children[0]) : is_name(at) ? at.text : "";
}

// The effects that a statement of Python may have on constants when it is not run: `uses` are all names in it,
// `changes` those of objects that it changes (x.append(1), x[0] = 1, x += y).
struct PythonEffects {
  std::set<std::string_view> uses, changes;

  void add(const Syntax* at) {
    if (!at) return;
    if (is_name(*at)) uses.insert(at->text);
    bool is_method = is_call(*at) && at->children[0]->kind == SyntaxKind::kAttribute;
    if (is_method && changes_its_object(at->children[0]->text)) changes.insert(root_name(*at->children[0]));
    for (const Syntax* child : at->children) add(child);
    for (const Syntax::Keyword& keyword : at->keywords) add(keyword.value);
  }
  void add(const Line& line) {
    for (const Syntax* part : {line.target, line.value, line.extra}) add(part);
    for (const auto& [item, target] : line.items) add(item);
    if (line.target) add_changed(*line.target, line.kind == LineKind::kAugmented);
    if (line.kind == LineKind::kBroken) add_words(line);
    for (const Lines* lines : {&line.body, &line.otherwise}) {
      for (const Line* inner : *lines) add(*inner);
    }
  }
  // A statement that could not be read, word by word.
  void add_words(const Line& line) {
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
    if (is_change) changes.insert(words.begin(), words.end());
  }
  void add_changed(const Syntax& target, bool in_place) {
    if (is_list(target)) {
      for (const Syntax* item : target.children) add_changed(*item, in_place);
    } else if (in_place || !is_name(target)) {
      changes.insert(root_name(target));
    }
  }
};

}  // namespace

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

void Parser::forget_constant(std::string_view name, const Line& line) {
  if (auto known = constants_.find(name); known != constants_.end()) constants_.erase(known);
  if (auto known = array_names_.find(name); known != array_names_.end()) array_names_.erase(known);
  computed_.insert_or_assign(std::string(name), line.line);
}

// Forgets constants that the statement may change beside those that it binds. A function does that where it is used.
void Parser::python_effects(const Line& line) {
  PythonEffects effects;
  effects.add(line);
  constexpr std::string_view kReachesAll[] = {"exec", "globals", "setattr"};
  bool reaches_all =
      std::ranges::any_of(kReachesAll, [&](std::string_view name) { return effects.uses.contains(name); });
  std::set<std::string, std::less<>> changed(effects.changes.begin(), effects.changes.end());
  for (std::string_view used : effects.uses) {
    if (const auto* inner = find_value(function_changes_, used)) changed.insert(inner->begin(), inner->end());
  }
  if (reaches_all) {
    for (const auto& [name, value] : constants_) changed.insert(name);
  }
  if (line.kind == LineKind::kFunction) {
    // A function may change objects that have other names outside: its params may be any of them.
    bool any = std::ranges::any_of(line.params, [&](const Param& param) { return changed.contains(param.name); });
    if (any) changed.emplace(kAnyObject);
    function_changes_.insert_or_assign(std::string(line.text), changed);
    return;
  }
  // Several names may mean one object.
  bool changes_object = std::ranges::any_of(
      changed, [&](const std::string& name) { return name == kAnyObject || objects_.contains(name); });
  if (changes_object) changed.insert(objects_.begin(), objects_.end());
  for (const std::string& name : changed) {
    if (constants_.contains(name) || array_names_.contains(name)) forget_constant(name, line);
  }
  if (changed.contains(kAnyObject)) array_names_.clear();
}

// An import gives a name another meaning, which is not known unless it is of these libraries.
void Parser::import_constant(const std::string& path, const std::string& local, const Line& line) {
  constexpr std::string_view kKnown[] = {"tvm", "math", "numpy", "torch", "typing", "builtins", "__future__"};
  std::string_view package = std::string_view(path).substr(0, path.find('.'));
  bool is_known = std::ranges::find(kKnown, package) != std::end(kKnown);
  constexpr std::string_view kRead[] = {"len",   "tuple", "list", "float", "int", "abs", "sqrt",  "log2", "ceil",
                                        "floor", "min",   "max",  "prod",  "sum", "np",  "numpy", "math", "torch"};
  bool is_read = std::ranges::find(kRead, local) != std::end(kRead);
  if (constants_.contains(local) || (is_read && !is_known)) forget_constant(local, line);
  if (local != "*" || is_known) return;
  while (!constants_.empty()) forget_constant(std::string(constants_.begin()->first), line);
}

}  // namespace relaxc::text
