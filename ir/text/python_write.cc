// Values of Python as syntax, and statements with the values of their names in them.
#include <algorithm>
#include <cmath>

#include "ir/text/parsing.h"
#include "ir/text/python_lines.h"
#include "ir/text/python_run.h"

namespace relaxc::text {

namespace {

// Adds a definition or a lambda to those that are being written, until the end of the scope.
struct Binder {
  Binder(std::vector<PythonScope*>& all, PythonScope* scope) : binders(all) { binders.push_back(scope); }
  ~Binder() { binders.pop_back(); }
  Binder(const Binder&) = delete;
  Binder& operator=(const Binder&) = delete;
  std::vector<PythonScope*>& binders;
};

constexpr int kDeepestLift = 1000;

}  // namespace

// ---- Values as syntax

const Syntax* Python::lift(const PythonValue& value, const Place& at, bool as_lambda) {
  heap_.spend(1);
  auto leaf = [&](SyntaxKind kind, std::string_view text) -> Syntax& {
    return heap_.node(kind, at, kept_->text(text));
  };
  auto parent = [&](SyntaxKind kind, std::string_view text, const std::vector<const Syntax*>& children) {
    Syntax& model = heap_.node(kind, at, text);
    return node_like(model, children, heap_).syntax;
  };
  if (value.items && value.items->computed != 0) return heap_.computed("the list", at, value.items->computed).syntax;
  switch (value.kind) {
    case Kind::kNone:
      return &leaf(SyntaxKind::kConstant, "None");
    case Kind::kBool:
      return &leaf(SyntaxKind::kConstant, value.whole != 0 ? "True" : "False");
    case Kind::kString:
      return &leaf(SyntaxKind::kString, string_literal(value.text));
    case Kind::kSyntax:
      return value.syntax;
    case Kind::kFunction:
      if (value.object || value.type) throw PythonUnknown();
      return lift_function(*value.function, at, as_lambda);
    case Kind::kClass:
      return &leaf(SyntaxKind::kName, value.type->name);
    case Kind::kObject: {
      const PythonValue* variable = value.object->find("variable");
      if (!variable || !variable->is(Kind::kSyntax)) throw PythonUnknown();
      return variable->syntax;
    }
    case Kind::kInt: {
      uint64_t size = static_cast<uint64_t>(value.whole);
      const Syntax& digits = leaf(SyntaxKind::kInt, fmt::format("{}", value.whole < 0 ? 0 - size : size));
      return value.whole < 0 ? parent(SyntaxKind::kUnary, "-", {&digits}) : &digits;
    }
    case Kind::kFloat: {
      std::string digits = fmt::format("{}", std::abs(value.real));
      const Syntax* number = &leaf(SyntaxKind::kFloat, digits);
      if (!std::isfinite(value.real))
        number = parent(SyntaxKind::kCall, "",
                        {&leaf(SyntaxKind::kName, "float"), &leaf(SyntaxKind::kString, string_literal(digits))});
      return std::signbit(value.real) ? parent(SyntaxKind::kUnary, "-", {number}) : number;
    }
    case Kind::kTuple:
    case Kind::kList:
    case Kind::kDict:
    case Kind::kRange:
      break;
  }
  if (depth_ >= kDeepestLift) throw PythonUnknown();
  Temporarily deeper(depth_, depth_ + 1);
  std::vector<const Syntax*> items;
  if (value.is(Kind::kRange)) items.push_back(&leaf(SyntaxKind::kName, "range"));
  for (const PythonValue& item : value.items->values) items.push_back(lift(item, at, as_lambda));
  return parent(value.is(Kind::kRange)  ? SyntaxKind::kCall
                : value.is(Kind::kDict) ? SyntaxKind::kDict
                : value.is(Kind::kList) ? SyntaxKind::kList
                                        : SyntaxKind::kTuple,
                "", items);
}

// A function of one expression is a lambda where te or a schedule takes it; others are read by te under their names.
const Syntax* Python::lift_function(PythonFunction& function, const Place& at, bool as_lambda) {
  if (function.is_macro) return heap_.computed(function.line->text, at, function.line->line).syntax;
  if (function.lambda) return lambda_of(function, at);
  if (as_lambda) {
    try {
      return lambda_of(function, at);
    } catch (const PythonUnknown&) {
    } catch (const PythonRaised&) {
    }
  }
  return &heap_.node(SyntaxKind::kName, at, function_for_te(function));
}

const Syntax* Python::lambda_of(PythonFunction& function, const Place& at) {
  Syntax& result = heap_.node(SyntaxKind::kLambda, at);
  PythonScope& params = scopes_.emplace_back(PythonScope{.writes = true});
  Temporarily unwritten(writes_, false);
  Temporarily inside(lambdas_, lambdas_ + 1);
  Binder binder(binders_, &params);
  Args args;
  for (const Param& param : params_of(function)) {
    const Syntax* name = name_value(param.name, param).syntax;
    if (param.stars.size() > 1) break;
    if (param.stars == "*" && element_rank_) {  // as many indices as the tensor has
      std::vector<PythonValue> indices;
      const int64_t others = std::ssize(params_of(function)) - 1;
      for (int64_t i = 0; i + others < *element_rank_; ++i) {
        std::string_view own = kept_->text(fmt::format("{}{}", param.name, i));
        params.own.insert(own);
        result.children.push_back(name_value(own, param).syntax);
        indices.push_back({.kind = Kind::kSyntax, .syntax = result.children.back(), .binders = binders_.size()});
      }
      args.by_name.emplace(param.name, heap_.list(Kind::kTuple, std::move(indices)));
      continue;
    }
    params.own.insert(param.name);
    args.by_name.emplace(param.name, PythonValue{.kind = Kind::kSyntax, .syntax = name, .binders = binders_.size()});
    result.children.push_back(
        param.stars.empty() ? name : node_like(heap_.node(SyntaxKind::kStarred, param), {name}, heap_).syntax);
  }
  const Syntax* body = lift(call(function, args), at);
  if (function.line && makes_tensor(*body)) throw PythonUnknown();
  result.children.push_back(body);
  result.depth = body->depth + 1;
  return &result;
}

// Gives the reader a function of te, which what is written names.
void Python::keep_function(const Line& line) {
  functions_out_.push_back(&line);
  types_->function(line);
}

// Writes the function for te, which reads its statements, with the values that its names have now.
std::string_view Python::function_for_te(PythonFunction& function) {
  if (function.active) return function.name;
  constexpr int kDeepestNames = 30;  // of functions in functions
  if (te_functions_ >= kDeepestNames) throw PythonUnknown();
  Temporarily deeper(te_functions_, te_functions_ + 1);
  std::string captured;
  std::string_view before = function.name;
  function.name =
      before.empty() && !taken_.contains(function.line->text) ? function.line->text : fresh(function.line->text);
  Temporarily active(function.active, true);
  Temporarily capture(captured_, &captured);
  Temporarily scope(scope_, function.scope);
  Temporarily alone(binders_, {});
  Line& line = kept_->line();
  line = written(*function.line);
  if (function.of_library) static_cast<Place&>(line) = call_place_;
  line.text = function.name;
  function.used = true;
  if (!before.empty() && captured == function.captured) return function.name = before;
  function.captured = captured;
  line.decorators.clear();
  taken_.insert(function.name);
  keep_function(line);
  return function.name;
}

// Returns whether the call of a function of te is more than its statements say: te reads assignments and a return.
static bool has_to_run(const PythonFunction& function, const std::vector<PythonValue>& args) {
  const std::vector<Param>& params = function.line->params;
  bool whole = args.size() == params.size() &&
               std::ranges::all_of(params, [](const Param& param) { return param.stars.empty(); });
  bool plain =
      std::ranges::all_of(args, [](const PythonValue& arg) { return !arg.items && !arg.is(PythonValue::kNone); });
  auto is_read = [](const Line* line) {
    return line->kind == LineKind::kAssign || line->kind == LineKind::kReturn || line->kind == LineKind::kPass ||
           line->kind == LineKind::kAssert ||
           (line->kind == LineKind::kExpression && line->value->kind == SyntaxKind::kString);
  };
  bool computes = false;
  for (const Line* line : function.line->body)
    for_each(*line, [&](const Syntax& at) {
      computes = computes || at.kind == SyntaxKind::kComprehension || at.kind == SyntaxKind::kConditional ||
                 (at.kind == SyntaxKind::kAttribute && at.text == "extern");
    });
  return !whole || !plain || computes || !computes_with_te(*function.line) ||
         !std::ranges::all_of(function.line->body, is_read);
}

// Returns whether a lambda calls a function of Python, as lambda w: self.decode(w, 4) does.
bool Python::calls_function(const PythonFunction& function) {
  const Syntax& body = *function.lambda->children.back();
  if (!is_call(body)) return false;
  Temporarily inside(scope_, function.scope);
  const Syntax* root = body.children[0];
  while (root->kind == SyntaxKind::kAttribute) root = root->children[0];
  Found found = is_name(*root) ? find(root->text) : Found();
  return found.value && (found.value->is(Kind::kFunction) || found.value->is(Kind::kObject));
}

// Remembers the rank and dtype of a tensor that a function of te gets.
void Python::note_param(std::string_view name, const Syntax& value) {
  PythonResult rank = is_exporting() ? rank_of(value) : std::nullopt;
  auto known = is_name(value) ? ranks_.find(value.text) : ranks_.end();
  ranks_.erase(name);
  if (rank) ranks_.insert_or_assign(name, rank->whole);
  if (!rank && known != ranks_.end()) ranks_.insert_or_assign(name, known->second);
  if (is_exporting()) tensors_.insert_or_assign(name, Tensor{dtype_of(value), rank});
}

const Line& Python::return_line(const Syntax* value, const Place& at) {
  Line& line = kept_->line();
  static_cast<Place&>(line) = at;
  line.kind = LineKind::kReturn;
  line.value = value;
  return line;
}

// Makes bb.emit_te(f, [x, y], {"z": z}, scale=2.0) a call of a function of te whose params are tensors and scalars of
// the graph, and whose statements are those that Python runs: the values of others are in them.
void Python::run_for_te(Args& args, const Place& at) {
  if (args.positional.empty() || !args.positional[0].is(Kind::kFunction) || !args.complete) return;
  PythonFunction& function = *args.positional[0].function;
  if (function.is_macro || function.active || te_functions_ > 0) return;
  if (function.lambda && !calls_function(function)) return;
  auto of_program = [](const auto& each) { return each.first.starts_with("primfunc_"); };
  Args inner, outer;
  std::vector<PythonValue> all(args.positional.begin() + 1, args.positional.end());
  for (const auto& each : args.named) (of_program(each) ? outer : inner).named.push_back(each);
  for (const auto& [name, value] : inner.named) all.push_back(value);
  if (function.line && !has_to_run(function, all)) return;
  Line& line = kept_->line();
  static_cast<Place&>(line) = function.line ? Place(*function.line) : Place(*function.lambda);
  line.kind = LineKind::kFunction;
  std::function<PythonValue(const PythonValue&, std::string_view, const Place&)> inside =
      [&](const PythonValue& value, std::string_view hint, const Place& place) -> PythonValue {
    if (value.is_list() || value.is(Kind::kDict)) {
      std::vector<PythonValue> items;
      for (const PythonValue& item : value.items->values) items.push_back(inside(item, hint, place));
      return heap_.list(value.kind, std::move(items));
    }
    if (value.is(Kind::kObject) && value.object->find("variable"))  // a parameter of a model
      return inside({.kind = Kind::kSyntax, .syntax = lift(value, place)}, hint, place);
    if (!value.is(Kind::kSyntax)) return value;
    std::string_view name = taken_.insert(hint).second ? hint : fresh(hint);
    line.params.push_back({place, name, nullptr, nullptr, {}});
    outer.positional.push_back(value);
    outer.places.push_back(place);
    note_param(name, *value.syntax);
    return name_value(name, place);
  };
  outer.positional.push_back(args.positional[0]);
  outer.places.push_back(args.places[0]);
  const std::vector<Param> params = params_of(function);
  for (size_t i = 1; i < args.positional.size(); ++i) {
    bool is_own = i <= params.size() && params[i - 1].stars.empty();
    std::string_view hint = is_own ? params[i - 1].name : std::string_view("A");
    inner.positional.push_back(inside(args.positional[i], hint, args.places[i]));
    inner.places.push_back(args.places[i]);
  }
  for (auto& [name, value] : inner.named) value = inside(value, name, at);
  const std::string_view own_name = function.line ? function.line->text : std::string_view("te_compute");
  line.text = fresh(own_name);
  Lines lines;
  {
    Temporarily out(out_, &lines);
    Temporarily writing(writes_, true);
    Temporarily alone(binders_, {});
    Temporarily deeper(te_functions_, te_functions_ + 1);
    lines.push_back(&return_line(lift(call(function, inner), line), line));
  }
  line.body = std::move(lines);
  line.decorators.push_back(&heap_.node(SyntaxKind::kName, line, kWrittenForTe));
  keep_function(line);
  auto is_hint = [](const auto& each) { return each.first == "primfunc_name_hint"; };
  if (std::ranges::none_of(outer.named, is_hint))
    outer.named.emplace_back("primfunc_name_hint", heap_.string(own_name));
  outer.positional[0] = name_value(line.text, args.places[0]);
  args = std::move(outer);
}

// ---- Syntax with the values of names

// Returns whether a name in the syntax means something else than itself.
bool Python::mentions_values(const Syntax* at) {
  bool found = false;
  for_each(at, [&](const Syntax& each) {
    if (found || !is_name(each)) return;
    Found known = find(each.text);
    bool is_itself = known.value && known.value->is(Kind::kSyntax) && known.value->syntax->text == each.text &&
                     is_name(*known.value->syntax) && known.value->syntax->computed == 0;
    auto library = libraries_.find(each.text);
    bool is_numbers = library != libraries_.end() && !known.value &&
                      (is_one_of(library->second, {"math", "numpy"}) || path_of_tvm(library->second, each));
    found = !known.own && (is_numbers || known.unbound || volatile_.contains(each.text) || (known.value && !is_itself));
  });
  return found;
}

// Returns the syntax with the values of its names. Where they cannot be computed with, it stays for the reader's error.
const Syntax* Python::written(const Syntax* at) {
  if (!at || !mentions_values(at)) return at;
  Temporarily unwritten(writes_, false);
  try {
    return lift(eval(*at), *at);
  } catch (const PythonUnknown&) {
  } catch (const PythonRaised&) {
  }
  heap_.spend(1);
  bool has_parts = is_call(*at) || is_list(*at) || at->kind == SyntaxKind::kSubscript ||
                   at->kind == SyntaxKind::kBinary || at->kind == SyntaxKind::kAttribute;
  if (!has_parts) return heap_.computed(kept_->text(spelling(*at)), *at, at->line).syntax;
  std::vector<const Syntax*> parts;
  for (const Syntax* child : at->children) parts.push_back(written(child));
  std::vector<Syntax::Keyword> keywords(at->keywords.begin(), at->keywords.end());
  for (Syntax::Keyword& keyword : keywords) keyword.value = written(keyword.value);
  return node_like(*at, parts, heap_, keywords).syntax;
}

// Returns the statement with values in place of the names that it does not bind itself.
const Line& Python::written(const Line& line) {
  bool mentions = line.kind == LineKind::kFunction && holds(line, is_macro);
  if (!worth_ && volatile_.empty() && !mentions) return line;
  heap_.spend(1);
  for_each(line, [&](const Syntax& each) { mentions = mentions || (is_name(each) && mentions_values(&each)); });
  if (!mentions) return line;
  Line& result = kept_->line();
  result = line;
  for (const Syntax*& decorator : result.decorators) decorator = written(decorator);
  PythonScope& params = scopes_.emplace_back(PythonScope{.parent = scope_, .writes = true});
  PythonScope& body = scopes_.emplace_back(PythonScope{.parent = scope_, .writes = true});
  bool is_function = line.kind == LineKind::kFunction;
  if (is_function) {
    add_bound_names(line, body.own);
    body.own.erase(line.text);
    for (const Param& param : line.params) params.own.insert(param.name);
    params.own.insert(line.type_params.begin(), line.type_params.end());
  }
  {
    Temporarily scope(scope_, is_function ? &params : scope_);
    for (Param& param : result.params) param.annotation = written(param.annotation);
    result.annotation = written(result.annotation);
  }
  for (Param& param : result.params) param.otherwise = written(param.otherwise);
  Temporarily scope(scope_, is_function ? &body : scope_);
  std::optional<Binder> binder;
  if (is_function) binder.emplace(binders_, &body);
  for (const Syntax** part : {&result.value, &result.extra}) *part = written(*part);
  const Syntax* target = written(result.target);
  if (target && (!is_name(*result.target) || is_name(*target))) result.target = target;
  for (auto& [item, target] : result.items) {
    item = written(item);
    target = written(target);
  }
  for (Lines* lines : {&result.body, &result.otherwise}) {
    *lines = written(*lines);
  }
  return result;
}

}  // namespace relaxc::text
