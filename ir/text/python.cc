// Reads what Python around a module leaves (python_run.h): statements that are not run.
#include <algorithm>
#include <cmath>
#include <ranges>

#include "ir/text/names.h"
#include "ir/text/parsing.h"
#include "ir/text/python_lines.h"
#include "support/joined.h"

namespace relaxc::text {

// ---- Syntax that the reader makes

// Returns the syntax of a string, as if it stood at this place.
const Syntax* Parser::syntax_of(const std::string& text, const Place& at) {
  Syntax& result = tree_->node();
  static_cast<Place&>(result) = at;
  result.kind = SyntaxKind::kString;
  result.text = *made_texts_.insert(string_literal(text)).first;
  return &result;
}

// Returns the syntax with names replaced as `meaning` says; null: the name stays.
const Syntax* Parser::replaced(const Syntax* at, const Meaning& meaning) {
  if (!at) return at;
  if (is_name(*at)) {
    const Syntax* value = meaning(*at);
    return value ? value : at;
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
    const SyntaxChildren& items = result.children[0]->children;
    auto position = static_cast<size_t>(*int_literal(*result.children[1]));
    if (position < items.size() && items[position]->kind != SyntaxKind::kStarred) return items[position];
  }
  return &result;
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
  // T.Buffer without a shape stands in functions of Python, which programs call.
  if (owner == "T" && name == "Buffer" && &head_of(*at) == at) return false;
  if (!owner.empty()) return is_type && std::ranges::find(kOwners, owner) != std::end(kOwners);
  return name == "handle" || (is_type && &head_of(*at) != at);  // torch has a Tensor, too
}

}  // namespace

bool names_script(std::string_view text) {
  if (text.ends_with("_func_pass")) return false;  // @tvm.tir.transform.prim_func_pass
  return std::ranges::any_of(kScriptNames, [&](std::string_view name) { return text.find(name) != text.npos; });
}

bool is_script_function(const Line& line) {
  auto has_script_name = [](const Syntax* decorator) { return names_script(spelling(head_of(*decorator))); };
  return line.kind == LineKind::kFunction &&
         (std::ranges::any_of(line.decorators, has_script_name) ||
          std::ranges::any_of(line.params, [](const Param& param) { return is_script_type(param.annotation); }));
}

// Returns whether the statement is a definition of a module, or has one below it.
bool holds_definition(const Line& line) {
  bool is_module = line.kind == LineKind::kClass && !line.decorators.empty() &&
                   names_script(spelling(head_of(*line.decorators.front())));
  return is_module || is_script_function(line) ||
         std::ranges::any_of(line.body, [](const Line* inner) { return holds_definition(*inner); });
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

// Leaves out a statement of Python outside of the module.
void Parser::python_line(const Line& line) {
  if (is_docstring(line) || line.kind == LineKind::kPass) return;
  std::set<std::string_view> names;
  bool is_scope = line.kind == LineKind::kFunction || line.kind == LineKind::kClass;
  is_scope ? void(names.insert(line.text)) : add_bound_names(line, names);
  bool is_step = is_schedule_step(line), is_array = array_line(line);
  for (std::string_view name : names) computed_.insert_or_assign(std::string(name), line.line);
  bool is_alias = line.kind == LineKind::kAssign && line.value && is_name(*line.value) &&
                  (declared_.contains(line.value->text) || line.value->text == class_name_);
  if (is_step || is_alias) return;
  leave_python(line);
  if (is_array) return;
  forget_arrays(line);
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
  constexpr LineKind kKinds[] = {LineKind::kAssign, LineKind::kAugmented, LineKind::kFor, LineKind::kIf};
  const bool is_kind = std::ranges::find(kKinds, line.kind) != std::end(kKinds);
  bool tries = line.kind == LineKind::kTry &&
               std::ranges::any_of(line.body, [&](const Line* inner) { return is_schedule_step(*inner); });
  bool uses = false;  // n = 16, below if extent % 16 == 0, where extent is what a step gave
  for_each(line.value, [&](const Syntax& at) { uses = uses || (is_name(at) && step_results_.contains(at.text)); });
  bool is_value = line.kind == LineKind::kAssign && line.value && !schedules_.empty();  // n = 4, before such an if
  for_each(line.value, [&](const Syntax& at) { is_value = is_value && !is_name(at); });
  if (tries || calls_schedule(line.value) || (is_kind && uses) || is_value) {
    std::set<std::string_view> names;
    add_bound_names(line, names);
    step_results_.insert(names.begin(), names.end());
    return true;
  }
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

constexpr const char* kTorchHint =
    "a model of torch is Python: export it by torch.onnx.export(model, inputs, \"model.onnx\"), which every command "
    "takes";
constexpr const char* kMacroHint =
    "a macro is code for the program that calls it: write @T.prim_func, def main(...), and call the macro there";

// What a text without a module has instead, and what to do about it. The first row that fits counts.
constexpr std::pair<std::string_view, const char*> kNoModuleHints[] = {
    {"from_exported_program(", kTorchHint},
    {"from_fx(", kTorchHint},
    {"relax_dynamo(", kTorchHint},
    {"dynamo_capture_subgraphs(", kTorchHint},
    {"from_onnx(", "every command takes the model itself: relaxc compile model.onnx"},
    {"from_tflite(", "models of TensorFlow Lite are not read; export the model to ONNX"},
    {"from_stablehlo(", "StableHLO is not read; export the model to ONNX"},
    {"@R.rewriter", "the text has a rewriter, which changes a module: relaxc compile MODEL -o MODEL.so --kernels FILE"},
    {"relax.dpl", "patterns of relax.dpl are Python; write pattern and replacement as a class with @R.rewriter"},
    {"rewrite_call(", "patterns of relax.dpl are Python; write pattern and replacement as a class with @R.rewriter"},
    {"(torch.nn.Module)", kTorchHint},
    {"torch.nn as nn", kTorchHint},
    {"from torch import nn", kTorchHint},
    {"(nn.Module)",
     "nn.Module is built by Python: print what mod, params = Model().export_tvm(...) gives by mod.script()"},
    {"ScheduleRule", "a rule of dlight is Python; write it as @S.rule(\"operator\") (docs/schedules.md)"},
    {"@T.macro", kMacroHint},
    {"@T.inline", kMacroHint},
    {"@R.macro", kMacroHint},
    {"IRBuilder()",
     "tvm.script.ir_builder builds the function in Python, which is not run; print it by func.script(), or write "
     "@R.function"},
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
    const char* hint = nullptr;
    for (const auto& [form, note] : kNoModuleHints | std::views::reverse) {
      if (origin_->text->find(form) != std::string::npos) hint = note;
    }
    // A text with none of these forms may be a module whose syntax is wrong: then its first error says more.
    for (const Diagnostic& error : python_errors_) {
      if (!hint) diagnostics_.add(error);
    }
    if (!hint && !python_errors_.empty()) return;
    if (!hint) hint = "a module that Python builds prints as such a text by mod.script()";
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
