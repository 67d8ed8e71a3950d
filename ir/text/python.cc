// Reads the Python around a module: constants, which definitions name, and statements that are not run.
#include <algorithm>
#include <cmath>
#include <ranges>

#include "ir/text/names.h"
#include "ir/text/parsing.h"
#include "ir/text/unfold.h"
#include "support/joined.h"

namespace relaxc::text {

// ---- Constants in definitions

// Returns the syntax of a value, as if it stood at this place.
const Syntax* Parser::syntax_of(const AttrValue& value, const Place& at) {
  auto leaf = [&](SyntaxKind kind, std::string text) {
    Syntax& result = tree_->node();
    static_cast<Place&>(result) = at;
    result.kind = kind;
    result.text = *made_texts_.insert(std::move(text)).first;
    return &result;
  };
  auto parent = [&](SyntaxKind kind, std::string text, const std::vector<const Syntax*>& children) {
    Syntax* result = leaf(kind, std::move(text));
    for (const Syntax* item : children) {
      result->children.push_back(item);
      result->depth = std::max(result->depth, item->depth + 1);
    }
    return result;
  };
  if (value.is_none()) return leaf(SyntaxKind::kConstant, "None");
  if (const bool* flag = value.as<bool>()) return leaf(SyntaxKind::kConstant, *flag ? "True" : "False");
  if (const std::string* text = value.as<std::string>()) return leaf(SyntaxKind::kString, string_literal(*text));
  if (const int64_t* number = value.as<int64_t>()) {
    if (*number >= 0) return leaf(SyntaxKind::kInt, fmt::format("{}", *number));
    return parent(SyntaxKind::kUnary, "-",
                  {leaf(SyntaxKind::kInt, fmt::format("{}", 0 - static_cast<uint64_t>(*number)))});
  }
  if (const double* number = value.as<double>()) {
    std::string digits = fmt::format("{}", std::abs(*number));
    const Syntax* result =
        std::isfinite(*number)
            ? leaf(SyntaxKind::kFloat, digits)
            : parent(SyntaxKind::kCall, "",
                     {leaf(SyntaxKind::kName, "float"), leaf(SyntaxKind::kString, string_literal(digits))});
    return std::signbit(*number) ? parent(SyntaxKind::kUnary, "-", {result}) : result;
  }
  std::vector<const Syntax*> items;
  if (const AttrList* list = value.as<AttrList>()) {
    for (const AttrValue& item : *list) items.push_back(syntax_of(item, at));
    return parent(SyntaxKind::kTuple, "", items);
  }
  for (const auto& [key, item] : *value.as<Attrs>()) {
    items.push_back(syntax_of(key, at));
    items.push_back(syntax_of(item, at));
  }
  return parent(SyntaxKind::kDict, "", items);
}

// Returns the syntax with names replaced as `meaning` says (null: the name stays), and with the arithmetic on them
// done.
const Syntax* Parser::replaced(const Syntax* at, const Meaning& meaning) {
  if (!at) return at;
  if (is_name(*at)) {
    const Syntax* value = meaning(*at);
    return value ? value : at;
  }
  std::string_view prefix = at->text.substr(0, at->text.find_first_of("\"'"));
  bool is_format = at->kind == SyntaxKind::kString && prefix.find_first_of("fF") != std::string_view::npos;
  if (is_format) {
    std::optional<AttrValue> value = python_text(*at);
    return value ? syntax_of(*value, *at) : at;
  }
  Meaning inner = meaning;
  if (at->kind == SyntaxKind::kLambda) {
    inner = [&](const Syntax& name) -> const Syntax* {
      bool is_param =
          std::ranges::any_of(at->children | std::views::take(at->children.size() - 1), [&](const Syntax* param) {
            return (param->kind == SyntaxKind::kStarred ? param->children[0] : param)->text == name.text;
          });
      return is_param ? nullptr : meaning(name);
    };
  }
  std::vector<const Syntax*> children;
  bool changed = false;
  for (const Syntax* child : at->children) {
    const Syntax* now = replaced(child, inner);
    changed |= now != child;
    bool spreads = child && now != child && child->kind == SyntaxKind::kStarred && is_list(*now->children[0]);
    if (!spreads) children.push_back(now);
    if (spreads) children.insert(children.end(), now->children[0]->children.begin(), now->children[0]->children.end());
  }
  std::vector<Keyword> keywords(at->keywords.begin(), at->keywords.end());
  for (Keyword& keyword : keywords) {
    const Syntax* now = replaced(keyword.value, inner);
    changed |= now != keyword.value;
    keyword.value = now;
  }
  if (!changed) return at;
  Syntax& result = tree_->node();
  static_cast<Place&>(result) = *at;
  result.kind = at->kind;
  result.text = at->text;
  result.depth = at->depth;
  result.children.assign(children.begin(), children.end());
  result.keywords.assign(keywords.begin(), keywords.end());
  for (const Syntax* child : children) result.depth = std::max(result.depth, child ? child->depth + 1 : 1);
  bool is_item = result.kind == SyntaxKind::kSubscript && is_list(*result.children[0]) && result.children.size() == 2 &&
                 result.children[1]->kind == SyntaxKind::kInt;
  if (is_item) {
    std::optional<AttrValue> position = python_literal(*result.children[1]);
    const SyntaxChildren& items = result.children[0]->children;
    size_t at_item = position ? static_cast<size_t>(*position->as<int64_t>()) : items.size();
    if (at_item < items.size() && items[at_item]->kind != SyntaxKind::kStarred) return items[at_item];
  }
  bool computes = result.kind == SyntaxKind::kBinary || result.kind == SyntaxKind::kUnary ||
                  result.kind == SyntaxKind::kSubscript || result.kind == SyntaxKind::kCompare ||
                  result.kind == SyntaxKind::kCall || result.kind == SyntaxKind::kConditional;
  std::optional<AttrValue> value = computes ? python_value(result) : std::nullopt;
  return value ? syntax_of(*value, *at) : &result;
}

namespace {

// Returns whether the value is, or may be, an object that Python can change: a list or a dictionary.
bool makes_object(const Syntax& at, const std::set<std::string, std::less<>>& objects) {
  bool is_object = at.kind == SyntaxKind::kList || at.kind == SyntaxKind::kDict ||
                   (is_name(at) && (at.text == "list" || objects.contains(at.text)));
  return is_object ||
         std::ranges::any_of(at.children, [&](const Syntax* child) { return child && makes_object(*child, objects); });
}

}  // namespace

const Line& Parser::replaced_line(const Line& line, const Meaning& meaning) {
  Line& result = tree_->line();
  result = line;
  for (const Syntax** part : {&result.annotation, &result.value, &result.extra}) *part = replaced(*part, meaning);
  bool is_element = result.target && result.target->kind == SyntaxKind::kSubscript;
  if (is_element) result.target = replaced(result.target, meaning);
  for (const Syntax*& decorator : result.decorators) decorator = replaced(decorator, meaning);
  for (Param& param : result.params) param.annotation = replaced(param.annotation, meaning);
  for (auto& [item, target] : result.items) item = replaced(item, meaning);
  for (Lines* lines : {&result.body, &result.otherwise}) {
    for (const Line*& inner : *lines) inner = &replaced_line(*inner, meaning);
  }
  return result;
}

// Returns the definition with the constants around it written out. Names that it binds are its own, as in Python.
const Line& Parser::with_constants(const Line& line) {
  if (constants_.empty() && array_names_.empty()) return line;
  std::set<std::string_view> own;
  add_bound_names(line, own);
  if (line.kind != LineKind::kFunction) own.clear();  // x = x + 1 reads the x before it
  return replaced_line(line, [&](const Syntax& name) -> const Syntax* {
    if (own.contains(name.text)) return nullptr;
    const AttrValue* value = find_value(constants_, name.text);
    if (value) return syntax_of(*value, name);
    const std::string* array = find_value(array_names_, name.text);
    if (!array) return nullptr;
    Syntax& made = tree_->node();
    static_cast<Place&>(made) = name;
    made.kind = SyntaxKind::kName;
    made.text = arrays_.find(*array)->first;
    return &made;
  });
}

// ---- Statements

static void for_each_name(const Syntax* at, const std::function<void(const Syntax&)>& visit) {
  if (!at) return;
  if (is_name(*at)) visit(*at);
  for (const Syntax* child : at->children) for_each_name(child, visit);
  for (const Syntax::Keyword& keyword : at->keywords) for_each_name(keyword.value, visit);
}

namespace {

constexpr std::string_view kScriptNames[] = {"hybrid.script",
                                             "ir_module",
                                             "prim_func",
                                             "R.function",
                                             "relax.function",
                                             "rx.function",
                                             "script.tir",
                                             "script.relax",
                                             "rx.script",
                                             "S.",
                                             "I.",
                                             "T.",
                                             "R."};
bool names_script(std::string_view text) {
  return std::ranges::any_of(kScriptNames, [&](std::string_view name) { return text.find(name) != text.npos; });
}

// Returns whether the type of a parameter says that the function is a program: T.Buffer(...), ty.handle, Tensor((n,)).
bool is_script_type(const Syntax* at) {
  if (!at) return false;
  std::string text = spelling(head_of(*at));
  size_t dot = text.rfind('.');
  std::string owner = dot == std::string::npos ? "" : text.substr(0, dot);
  std::string_view name = std::string_view(text).substr(dot + 1);
  constexpr std::string_view kOwners[] = {"T", "R", "ty", "tir", "I", "relax", "rx", "tvm.tir", "tvm.relax"};
  constexpr std::string_view kTypes[] = {"Buffer", "Ptr",   "ptr",      "Tensor",  "Shape", "Prim",
                                         "Object", "Tuple", "Callable", "DTensor", "Any"};
  bool is_type = std::ranges::find(kTypes, name) != std::end(kTypes) || parse_dtype(name);
  if (!owner.empty()) return is_type && std::ranges::find(kOwners, owner) != std::end(kOwners);
  return name == "handle" || (is_type && &head_of(*at) != at);  // torch has a Tensor, too
}

}  // namespace

bool is_script_function(const Line& line) {
  auto has_script_name = [](const Syntax* decorator) { return names_script(spelling(head_of(*decorator))); };
  return line.kind == LineKind::kFunction &&
         (std::ranges::any_of(line.decorators, has_script_name) ||
          std::ranges::any_of(line.params, [](const Param& param) { return is_script_type(param.annotation); }));
}

// Returns whether the statement makes a relax.BlockBuilder, itself or below it.
static bool makes_builder(const Line& line) {
  return (line.kind == LineKind::kAssign && line.value && head_of(*line.value).text == "BlockBuilder") ||
         std::ranges::any_of(line.body, [](const Line* inner) { return makes_builder(*inner); });
}

// Returns whether the statement is a definition of a module, or has one below it.
bool holds_definition(const Line& line) {
  bool is_module = line.kind == LineKind::kClass && !line.decorators.empty() &&
                   names_script(spelling(head_of(*line.decorators.front())));
  return is_module || is_script_function(line) ||
         std::ranges::any_of(line.body, [](const Line* inner) { return holds_definition(*inner); });
}

// Returns whether definitions stand inside of the statement: an `if`, a `with`, a `try`, or a function of Python.
bool Parser::opens_scope(const Line& line) const {
  bool is_function = line.kind == LineKind::kFunction;
  // Of a function with params that this reader does not know, or with decorators, the text tells.
  bool is_broken = line.kind == LineKind::kBroken && !names_script(line.text.substr(0, line.text.find('\n'))) &&
                   (line.text.starts_with("try") || line.text.starts_with("def ") || line.text.starts_with("@"));
  bool is_scope =
      line.kind == LineKind::kIf || line.kind == LineKind::kWith || line.kind == LineKind::kTry || is_broken;
  if (is_function ? is_script_function(line) : !is_scope) return false;
  if (std::ranges::any_of(line.body, [](const Line* inner) { return holds_definition(*inner); })) return true;
  // A function that builds a module is read where the text has no other.
  bool is_only = line.params.empty() && origin_->text->find("ir_module") == std::string::npos;
  return makes_builder(line) && (!is_function || is_only);
}

// Reads the definitions in a scope of Python as they are when Python runs it: an `if` whose condition is not known is
// taken to hold, and a function's params have no value.
void Parser::python_scope(const Line& line, bool& keep) {
  const auto constants = constants_;
  const auto computed = computed_;
  auto forget = [&](std::string_view name) { forget_constant(name, line); };
  for (const Param& param : line.params) {
    forget(param.name);
    python_functions_.insert_or_assign(line.line, line.text);
    std::optional<AttrValue> value = param.otherwise ? python_value(*param.otherwise) : std::nullopt;
    if (value) constants_.insert_or_assign(std::string(param.name), *value);
    if (value) computed_.erase(std::string(param.name));
  }
  std::optional<AttrValue> test = line.kind == LineKind::kIf ? python_value(*line.value) : std::nullopt;
  bool holds = !test || *test != AttrValue(false);
  for (const Line* inner : holds ? line.body : line.otherwise) {
    bool is_module = inner->kind == LineKind::kClass && !is_python(*inner);
    bool is_left_out = is_rewriter(*inner) || (is_module && is_other_module(*inner));
    if (!is_left_out) guarded([&] { definition(*inner, true, keep); });
  }
  leave_python(line);
  if (line.kind == LineKind::kFunction) {
    inner_computed_.insert(computed_.begin(), computed_.end());
    constants_ = constants;
    computed_ = computed;
    python_effects(line);
  } else if (!test) {
    std::set<std::string_view> names;
    add_bound_names(line, names);
    std::ranges::for_each(names, forget);
  }
}

// Remembers that the statement is not run.
void Parser::leave_python(const Line& line) {
  if (!python_from_) python_from_ = line;
  if (python_lines_.empty() || python_lines_.back() != line.line) python_lines_.push_back(line.line);
}

// Returns whether a statement outside of the module is Python's: not a definition of a module, and not meant as one.
bool Parser::is_python(const Line& line) const {
  if (line.kind == LineKind::kFunction) return !is_script_function(line);
  if (line.kind == LineKind::kClass) {
    auto has_script_name = [](const Syntax* decorator) { return names_script(spelling(head_of(*decorator))); };
    // A class without a decorator is a module where the text has none with one.
    if (line.decorators.empty()) return line.extra || origin_->text->find("ir_module") != std::string::npos;
    return std::ranges::none_of(line.decorators, has_script_name);
  }
  if (line.kind == LineKind::kBroken) {
    if (std::ranges::any_of(line.body, [](const Line* inner) { return holds_definition(*inner); })) return false;
    if (line.text.starts_with("@")) return !names_script(line.text);
    if (line.text.starts_with("class")) return line.text.find('(') != std::string_view::npos;
    if (line.text.starts_with("def"))
      return !names_script(line.text) && line.text.find("ty.") == std::string_view::npos;
    return !line.text.starts_with("metadata");
  }
  return line.kind != LineKind::kImport;
}

// Reads a statement of Python outside of the module: a constant, or a computation that is not run.
void Parser::python_line(const Line& line) {
  if (line.kind == LineKind::kAssign && line.value) {
    std::optional<AttrValue> value = python_value(*with_constants(line).value);
    bool is_object = makes_object(*line.value, objects_);
    if (value && assign_constant(*line.target, *value)) {
      std::set<std::string_view> names;
      add_names(line.target, names);
      for (std::string_view name : names) {
        objects_.erase(std::string(name));
        const AttrValue& now = constants_.find(name)->second;
        if (is_object && (now.as<AttrList>() || now.as<Attrs>())) objects_.emplace(name);
      }
      return;
    }
  }
  if (is_docstring(line) || line.kind == LineKind::kPass) return;
  std::set<std::string_view> names;
  bool is_scope = line.kind == LineKind::kFunction || line.kind == LineKind::kClass;
  is_scope ? void(names.insert(line.text)) : add_bound_names(line, names);
  bool is_step = is_schedule_step(line);
  // What is computed of a function's params is known when that is called.
  const Line* origin = &line;
  Line of_function = line;
  for_each_name(line.value, [&](const Syntax& used) {
    auto known = computed_.find(used.text);
    if (known == computed_.end() || !python_functions_.contains(known->second)) return;
    of_function.line = known->second;
    origin = &of_function;
  });
  for (std::string_view name : names) forget_constant(name, *origin);
  python_effects(line);
  bool is_alias = line.kind == LineKind::kAssign && line.value && is_name(*line.value) &&
                  (declared_.contains(line.value->text) || line.value->text == class_name_);
  bool is_lambda = line.kind == LineKind::kAssign && line.value && line.value->kind == SyntaxKind::kLambda;
  if (is_step || is_alias || is_lambda) return;  // a lambda is written out where it is used
  leave_python(line);
  if (line.kind == LineKind::kAssign && line.value && is_name(*line.target)) {
    const Syntax& value = *with_constants(line).value;
    bool of_arrays = is_array_of_numpy(value) || callee_path(value) == "R.const";
    for_each_name(&value, [&](const Syntax& name) { of_arrays = of_arrays || arrays_.contains(name.text); });
    if (!of_arrays) return;
    std::string key = fmt::format("{}<{}>", line.target->text, arrays_.size());
    arrays_.emplace(key, PythonArray{with_names(&value, {}, *python_tree_), line.line});
    array_names_.insert_or_assign(std::string(line.target->text), std::move(key));
    return;
  }
  if (holds_definition(line))
    report_text({line, {}, "take the definition out of it"},
                "a definition inside of a statement of Python exists only when Python runs");
}

// Returns whether the expression calls a primitive of a schedule.
bool Parser::calls_schedule(const Syntax* at) const {
  if (!at) return false;
  const Syntax* callee = is_call(*at) ? at->children[0] : nullptr;
  bool is_step = callee && callee->kind == SyntaxKind::kAttribute && is_name(*callee->children[0]) &&
                 schedules_.contains(callee->children[0]->text);
  return is_step || std::ranges::any_of(at->children, [&](const Syntax* child) { return calls_schedule(child); });
}

// Returns whether the statement is a step on sch = tvm.tir.Schedule(Module), which tir/schedule/script.h reads.
bool Parser::is_schedule_step(const Line& line) {
  if (runs_body(line)) {
    auto others = std::ranges::count_if(line.body, [&](const Line* inner) { return !is_schedule_step(*inner); });
    return others == 0;
  }
  if (calls_schedule(line.value)) return true;
  if (!line.value || !is_call(*line.value)) return false;
  const Syntax& callee = *line.value->children[0];
  if (spelling(callee).ends_with("TensorIntrin.register")) {
    for (const Syntax* part : line.value->operands()) intrin_parts_.emplace(part->text);
    return true;
  }
  bool is_new =
      callee.text == "Schedule" || (callee.text == "create_schedule" && resolve(callee) == "T.create_schedule");
  if (is_new && line.kind == LineKind::kAssign && is_name(*line.target)) schedules_.emplace(line.target->text);
  return is_new;
}

bool Parser::assign_constant(const Syntax& target, const AttrValue& value) {
  if (is_name(target)) {
    constants_.insert_or_assign(std::string(target.text), value);
    if (auto computed = computed_.find(target.text); computed != computed_.end()) computed_.erase(computed);
    return true;
  }
  const AttrList* list = value.as<AttrList>();
  if (!is_list(target) || !list || list->size() != target.children.size()) return false;
  bool done = true;
  for (size_t i = 0; i < list->size(); ++i) done = assign_constant(*target.children[i], (*list)[i]) && done;
  return done;
}

// What a text without a module has instead, and what to do about it. The first row that fits counts.
constexpr std::pair<std::string_view, const char*> kNoModuleHints[] = {
    {"@R.rewriter", "the text has a rewriter, which changes a module: relaxc compile MODEL -o MODEL.so --kernels FILE"},
    {"relax.dpl", "patterns of relax.dpl are Python; write pattern and replacement as a class with @R.rewriter"},
    {"rewrite_call(", "patterns of relax.dpl are Python; write pattern and replacement as a class with @R.rewriter"},
    {"(nn.Module)",
     "nn.Module is built by Python: print what mod, params = Model().export_tvm(...) gives by mod.script()"},
    {"ScheduleRule", "a rule of dlight is Python; write it as @S.rule(\"operator\") (docs/schedules.md)"},
    {"ir_builder",
     "tvm.tir.ir_builder builds statements in Python, which is not run; print them, or write @T.prim_func"},
    {"relay.", "relay is the graph language before Relax, which is not read; export the model to ONNX"},
    {"T.block(", "statements of a tensor program stand in a function: @T.prim_func, def main(A: T.Buffer(...)):"},
    {"te.compute(", "te's definitions stand in a function that the text does not call: call it below, f(128, 128)"},
    {"tvm.compute(", "te's definitions stand in a function that the text does not call: call it below, f(128, 128)"},
    {"relax.Function(", "write the graph as @R.function, or by bb.emit(...) of a relax.BlockBuilder"},
    {"BlockBuilder", "the builder is used in a function that the text does not call: call it below with values"},
    {".get_loops(", "a schedule needs a module above it: @T.prim_func, then sch = tvm.tir.Schedule(main)"},
    {".split(", "a schedule needs a module above it: @T.prim_func, then sch = tvm.tir.Schedule(main)"},
    {"R.", "operators of a graph stand in a function: @R.function, def main(x: R.Tensor((n, 4), \"float32\")):"}};

// Says which lines of Python were left out: once, since a tutorial has many.
void Parser::report_python() {
  if (!python_from_) return;
  constexpr size_t kShown = 8;
  std::ranges::sort(python_lines_);  // functions that nothing calls come last
  std::vector<int64_t> shown(python_lines_.begin(),
                             python_lines_.begin() + static_cast<int64_t>(std::min(kShown, python_lines_.size())));
  std::string places = joined(shown) + (python_lines_.size() > kShown ? ", ..." : "");
  bool empty = module_.functions.empty() && !diagnostics_.has_errors() && failed_.empty() && !in_class_;
  if (empty) {
    const char* hint = "a module that Python builds prints as such a text by mod.script()";
    for (const auto& [form, note] : kNoModuleHints | std::views::reverse) {
      if (origin_->text->find(form) != std::string::npos) hint = note;
    }
    report_text({*python_from_, {}, hint},
                "the text has no module: expected a class with @I.ir_module, @T.prim_func, @R.function or "
                "te.create_prim_func([...])");
    return;
  }
  if (python_lines_.empty()) return;  // all of it is read where it is used
  diagnostics_.warning(span(*python_from_), "Python around the module is not run (line{} {})",
                       python_lines_.size() == 1 ? "" : "s", places);
}

}  // namespace relaxc::text
