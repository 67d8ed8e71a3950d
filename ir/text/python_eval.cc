// Expressions of Python around a module: their values, and their syntax with the values of names in it.
#include <algorithm>
#include <cmath>

#include "ir/text/parsing.h"
#include "ir/text/python_run.h"

namespace relaxc::text {

namespace {

constexpr int kDeepestEval = 1000, kDeepestSyntax = 300;

bool takes_lambda(const Syntax& callee) {
  constexpr std::string_view kTakes[] = {"compute",   "extern",   "comm_reducer",           "transform_layout",
                                         "from_func", "IndexMap", "transform_block_layout", "index_map"};
  return std::ranges::find(kTakes, callee.text) != std::end(kTakes);
}

}  // namespace

bool makes_tensor(const Syntax& at) {
  constexpr std::string_view kMakes[] = {"reduce_axis", "placeholder", "compute", "extern"};
  bool found = false;
  for_each(&at, [&](const Syntax& each) {
    found = found || (is_call(each) && std::ranges::find(kMakes, each.children[0]->text) != std::end(kMakes));
  });
  return found;
}

// Returns the node with other children; its places stay.
PythonValue node_like(const Syntax& at, const std::vector<const Syntax*>& children, PythonHeap& heap,
                      const std::vector<Syntax::Keyword>& keywords) {
  heap.spend(1 + children.size());
  Syntax& result = heap.node(at.kind, at, at.text);
  result.children.assign(children.begin(), children.end());
  result.keywords.assign(keywords.begin(), keywords.end());
  for (const Syntax* child : children) result.depth = std::max(result.depth, child ? child->depth + 1 : 1);
  for (const Syntax::Keyword& each : keywords) result.depth = std::max(result.depth, each.value->depth + 1);
  if (result.depth > kDeepestSyntax) throw PythonUnknown();
  return {.kind = PythonValue::kSyntax, .syntax = &result};
}

// Compares values; what a library made is a thing, of which no more is known than that it is not None.
std::optional<bool> Python::compared(std::string_view op, const PythonValue& a, const PythonValue& b) {
  const bool is_function = a.is(Kind::kSyntax) && a.syntax->kind == SyntaxKind::kAttribute &&
                           is_tensor_library(a.text.substr(0, a.text.find('.')));  // R.nn.relu
  bool of_model =
      is_function || ((heap_.of_call() || is_exporting()) && a.is(Kind::kSyntax) && a.syntax->computed == 0);
  bool is_made = of_model || (a.is(Kind::kSyntax) && is_name(*a.syntax) &&
                              (libraries_made_.contains(a.syntax->text) || definitions_.contains(a.syntax->text)));
  if (is_made && b.is(Kind::kNone) && op.starts_with("is")) return op == "is not";
  const bool equality = op == "==" || op == "!=";
  if (std::optional<bool> equal = equality ? equal_dims(a, b) : std::nullopt) return *equal == (op == "==");
  return compare(op, a, b, heap_);
}

PythonValue Python::eval(const Syntax& at) {
  heap_.spend(1);
  if (depth_ >= kDeepestEval) throw PythonUnknown();
  Temporarily deeper(depth_, depth_ + 1);
  auto rebuilt = [&](const std::vector<PythonValue>& parts) {
    std::vector<const Syntax*> children;
    for (size_t i = 0; i < parts.size(); ++i) children.push_back(lift(parts[i], *at.children[i]));
    return node_like(at, children, heap_);
  };
  switch (at.kind) {
    case SyntaxKind::kName:
      return value_of(at);
    case SyntaxKind::kString:
    case SyntaxKind::kInt:
    case SyntaxKind::kFloat:
    case SyntaxKind::kConstant:
      return literal(at);
    case SyntaxKind::kTuple:
    case SyntaxKind::kList:
    case SyntaxKind::kDict:
      return collection(at);
    case SyntaxKind::kAttribute:
      return attribute(at, eval(*at.children[0]));
    case SyntaxKind::kSubscript:
      return subscript(at);
    case SyntaxKind::kCall:
      return called(at);
    case SyntaxKind::kComprehension:
      return comprehension(at);
    case SyntaxKind::kConditional:
      return conditional(at);
    case SyntaxKind::kBool:
      return bool_value(at);
    case SyntaxKind::kLambda:
      return function_value(nullptr, static_cast<const Syntax*>(with_names(&at, {}, *kept_)));
    case SyntaxKind::kStarred:
      return rebuilt({eval(*at.children[0])});
    case SyntaxKind::kUnary: {
      PythonValue operand = eval(*at.children[0]);
      PythonResult result = unary_value(at.text, operand);
      return result ? *result : rebuilt({operand});
    }
    case SyntaxKind::kBinary: {
      if (at.text == ":=") return named_expression(at);
      PythonValue a = eval(*at.children[0]), b = eval(*at.children[1]);
      if (a.is_list() || b.is_list()) a = expanded(a), b = expanded(b);  // A.shape + [k]
      PythonResult result = arithmetic(at.text, a, b, heap_);
      return result ? *result : rebuilt({a, b});
    }
    case SyntaxKind::kCompare: {
      PythonValue a = eval(*at.children[0]), b = eval(*at.children[1]);
      std::optional<bool> result = compared(at.text, a, b);
      return result ? python_bool(*result) : rebuilt({a, b});
    }
    case SyntaxKind::kSlice:
      return slice(at);
  }
  throw PythonUnknown();
}

PythonValue Python::slice(const Syntax& at) {
  std::vector<const Syntax*> parts;
  for (const Syntax* part : at.children) parts.push_back(part ? lift(eval(*part), *part) : nullptr);
  return node_like(at, parts, heap_);
}

// Assigns (n := value), in the scope around comprehensions.
PythonValue Python::named_expression(const Syntax& at) {
  PythonValue value = eval(*at.children[1]);
  PythonScope* outer = scope_;
  while (outer->of_comprehension && outer->parent) outer = outer->parent;
  Temporarily inside(scope_, outer);
  assign_to(*at.children[0], value, at);
  return eval(*at.children[0]);
}

PythonValue Python::literal(const Syntax& at) {
  std::string_view prefix = at.text.substr(0, at.text.find_first_of("\"'"));
  bool is_format = at.kind == SyntaxKind::kString && prefix.find_first_of("fF") != prefix.npos;
  PythonResult value = literal_value(at, heap_);
  if (!value) return node_like(at, {}, heap_);
  if (!is_format) return *value;
  return format_text(at, value->text);
}

// Returns the end of the expression in braces that begins at `from`: at its format, or at the brace that closes it.
static size_t end_of_field(std::string_view text, size_t from) {
  int depth = 0;
  char quote = 0;
  for (size_t i = from; i < text.size(); ++i) {
    char c = text[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (depth == 0 && (c == '}' || c == ':' || (c == '!' && text.substr(i, 2) != "!="))) {
      return i;
    } else if (std::string_view("([{").find(c) != std::string_view::npos) {
      ++depth;
    } else if (std::string_view(")]}").find(c) != std::string_view::npos) {
      --depth;
    }
  }
  return text.npos;
}

// Returns the text of f"{rows}x{columns * 2}". A width or another format makes it one that only Python knows.
PythonValue Python::format_text(const Syntax& at, std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    if (text[i] != '{' && text[i] != '}') {
      result += text[i++];
      continue;
    }
    if (text.substr(i, 2) == "{{" || text.substr(i, 2) == "}}") {
      result += text[i];
      i += 2;
      continue;
    }
    size_t end = end_of_field(text, i + 1);
    if (end == text.npos) throw PythonUnknown();
    Diagnostics ignored;
    Source field{source_.origin, kept_->text(text.substr(i + 1, end - i - 1)), at.line, at.column};
    const Syntax* expression = text[end] == '}' ? parse_expression(field, *kept_, ignored) : nullptr;
    std::optional<std::string> value = expression ? text_of(eval(*expression)) : std::nullopt;
    if (!value) return heap_.computed("the text", at, at.line);
    result += *value;
    i = end + 1;
  }
  return heap_.string(result);
}

// Only the branch that is taken is evaluated. Where both may be, nothing in them is run.
PythonValue Python::conditional(const Syntax& at) {
  PythonValue condition = eval(*at.children[1]);
  if (std::optional<bool> test = truth_of(condition)) return eval(*at.children[*test ? 0 : 2]);
  Temporarily unsure(writes_, false);
  const Syntax* test = lift(condition, *at.children[1]);
  return node_like(
      at, {lift(eval(*at.children[0]), *at.children[0]), test, lift(eval(*at.children[2]), *at.children[2])}, heap_);
}

PythonValue Python::bool_value(const Syntax& at) {
  PythonValue first = eval(*at.children[0]);
  if (std::optional<bool> test = truth_of(first)) return *test == (at.text == "or") ? first : eval(*at.children[1]);
  Temporarily unsure(writes_, false);
  return node_like(at, {lift(first, *at.children[0]), lift(eval(*at.children[1]), *at.children[1])}, heap_);
}

PythonValue Python::collection(const Syntax& at) {
  if (at.kind == SyntaxKind::kDict) return dictionary(at);
  std::vector<PythonValue> items;
  for (const Syntax* child : at.children) {
    PythonValue item = eval(child->kind == SyntaxKind::kStarred ? *child->children[0] : *child);
    if (child->kind != SyntaxKind::kStarred) {
      items.push_back(item);
      continue;
    }
    auto spread = items_of(item);
    if (!spread) item = node_like(*child, {lift(item, *child)}, heap_);
    spread ? void(items.insert(items.end(), spread->begin(), spread->end())) : items.push_back(item);
  }
  return heap_.list(at.kind == SyntaxKind::kTuple ? Kind::kTuple : Kind::kList, std::move(items));
}

PythonValue Python::dictionary(const Syntax& at) {
  PythonValue result = heap_.list(Kind::kDict, {});
  for (size_t i = 0; i + 1 < at.children.size(); i += 2) {
    bool spreads = at.children[i]->kind == SyntaxKind::kStarred;
    PythonValue key = spreads ? PythonValue() : eval(*at.children[i]), value = eval(*at.children[i + 1]);
    bool known =
        spreads ? call_method(result, "update", {value}, heap_).has_value() : set_item(result, key, value, heap_);
    if (!known) throw PythonUnknown();
  }
  return result;
}

// A comprehension over what is not known stays as it is; its variables are its own.
PythonValue Python::comprehension(const Syntax& at) {
  PythonScope& inner = scopes_.emplace_back(PythonScope{.parent = scope_, .of_comprehension = true});
  for (size_t i = 2; i < at.children.size(); i += 3) add_names(at.children[i], inner.own);
  Temporarily scope(scope_, &inner);
  std::vector<PythonValue> items;
  bool is_dict = at.children[1] != nullptr;
  size_t before = out_->size();
  try {
    clauses(at, 2, items);
    if (!is_dict) return heap_.list(Kind::kList, std::move(items));
    PythonValue result = heap_.list(Kind::kDict, {});
    for (size_t i = 0; i + 1 < items.size(); i += 2) {
      if (!set_item(result, items[i], items[i + 1], heap_)) throw PythonUnknown();
    }
    return result;
  } catch (const PythonUnknown&) {
    out_->resize(before);
    if (is_exporting()) throw;
  }
  PythonEffects effects;
  effects.add(&at);
  forget_effects(effects, scope_, at);
  inner.values.clear();
  inner.writes = true;
  Temporarily unsure(writes_, false);
  std::vector<const Syntax*> parts;
  for (const Syntax* part : at.children) parts.push_back(part ? lift(eval(*part), *part) : nullptr);
  return node_like(at, parts, heap_);
}

void Python::clauses(const Syntax& at, size_t clause, std::vector<PythonValue>& out) {
  if (clause >= at.children.size()) {
    for (const Syntax* part : {at.children[0], at.children[1]}) {
      if (part) out.push_back(named(eval(*part), "item", *part));
    }
    return;
  }
  auto values = items_of(eval(*at.children[clause + 1]));
  if (!values) throw PythonUnknown();
  for (const PythonValue& value : *values) {
    heap_.spend(10);
    assign_to(*at.children[clause], value, *at.children[clause]);
    const Syntax* condition = at.children[clause + 2];
    std::optional<bool> test = condition ? truth_of(eval(*condition)) : true;
    if (!test) throw PythonUnknown();
    if (*test) clauses(at, clause + 3, out);
  }
}

PythonValue Python::attribute(const Syntax& at, const PythonValue& given, Use use) {
  bool is_called = use == Use::kCalled;
  const PythonValue object = at.text == "shape" ? shaped(given, at) : given;
  if (object.is(Kind::kObject) || object.is(Kind::kClass)) return member(at, object);
  if (object.is(Kind::kSyntax) && !object.text.empty()) {
    std::string_view path = kept_->text(fmt::format("{}.{}", object.text, at.text));
    if (PythonResult known = library_constant(path)) return *known;
    if (PythonResult known = library_value(path)) return *known;
    bool is_dtype = is_one_of(object.text, {"numpy", "torch", "tvm"}) && parse_dtype(at.text);
    if (is_dtype && !is_called) return heap_.string(at.text);
    PythonValue result = node_like(at, {object.syntax}, heap_);
    result.text = path;
    return result;
  }
  if (is_exporting() && object.is(Kind::kSyntax) && at.text == "_expr") return object;  // of nn.Tensor
  if (object.is(Kind::kSyntax) && object.text.empty()) {
    if (PythonResult known = array_property(*object.syntax, at.text)) return *known;
  }
  const bool of_dtype = object.is(Kind::kString) && is_one_of(at.text, {"bits", "lanes"});  // of tvm.DataType
  if (std::optional<DType> dtype = of_dtype ? parse_dtype(object.text) : std::nullopt)
    return python_int(at.text == "bits" ? dtype->bits : dtype->lanes);
  if (is_one_of(at.text, {"dtype", "ndim"}) && object.is(Kind::kSyntax) && is_name(*object.syntax)) {
    if (PythonResult known = at.text == "ndim" ? rank_of(*object.syntax) : dtype_made_by(*object.syntax)) return *known;
  }
  if (is_exporting() && object.is(Kind::kSyntax) && is_one_of(at.text, {"dtype", "ndim"})) {
    if (PythonResult known = at.text == "dtype" ? dtype_of(*object.syntax) : rank_of(*object.syntax)) return *known;
  }
  PythonValue result = node_like(at, {lift(object, *at.children[0])}, heap_);
  if (!is_called && object.can_change()) forget_value(object, at);  // f = rows.append: called at any time
  return result;
}

PythonValue Python::subscript(const Syntax& at) {
  PythonValue object = eval(*at.children[0]);
  const Syntax& only = *at.children[1];
  if (PythonResult dims = model_dims(object)) object = *dims;
  if (only.kind == SyntaxKind::kSlice) object = expanded(object);
  if (!object.is(Kind::kSyntax) && at.children.size() == 2) {
    PythonResult result;
    if (only.kind == SyntaxKind::kSlice) {
      std::vector<PythonValue> bounds;
      for (const Syntax* part : only.children) bounds.push_back(part ? eval(*part) : PythonValue());
      result = slice_of(object, bounds, heap_);
      if (result && object.is_list()) result->text = object.text;
    } else {
      result = item_of(object, eval(only));
    }
    if (result) return *result;
  }
  const PythonValue* method = object.is(Kind::kObject) ? object.object->type->find("__getitem__") : nullptr;
  if (method && at.children.size() == 2 && only.kind != SyntaxKind::kSlice) {
    PythonValue bound = *method;
    bound.object = object.object;
    return invoke(bound, Args{.positional = {eval(only)}, .places = {only}});
  }
  bool is_shape = is_exporting() && te_functions_ == 0 && object.is(Kind::kSyntax) &&
                  object.syntax->kind == SyntaxKind::kAttribute && object.syntax->text == "shape" &&
                  at.children.size() == 2;
  bool of_shape = object.is(Kind::kSyntax) && object.syntax->kind == SyntaxKind::kAttribute &&
                  object.syntax->text == "shape" && at.children.size() == 2 && only.kind != SyntaxKind::kSlice;
  if (of_shape && !is_shape) {
    const PythonValue index = eval(only);
    PythonResult known = index.is(Kind::kInt) ? known_dim(object, index.whole) : std::nullopt;
    if (known) return *known;
  }
  if (is_shape) return dim_of(object, only.kind == SyntaxKind::kSlice ? PythonValue() : eval(only), at);
  std::vector<const Syntax*> parts = {lift(object, *at.children[0])};
  for (const Syntax* index : at.operands()) {
    bool spreads = index->kind == SyntaxKind::kStarred;
    PythonValue value = eval(spreads ? *index->children[0] : *index);
    auto items = spreads ? items_of(value) : std::nullopt;
    for (const PythonValue& item : items ? *items : std::vector<PythonValue>()) parts.push_back(lift(item, *index));
    if (spreads && !items) value = node_like(*index, {lift(value, *index)}, heap_);
    if (!items) parts.push_back(lift(value, *index));
  }
  return node_like(at, parts, heap_);
}

// ---- Calls

Python::Args Python::arguments(const Syntax& at) {
  Args args;
  auto add = [&](const PythonValue& value, const Place& place) {
    args.positional.push_back(value);
    args.places.push_back(place);
  };
  for (const Syntax* operand : at.operands()) {
    bool spreads = operand->kind == SyntaxKind::kStarred;
    PythonValue value = eval(spreads ? *operand->children[0] : *operand);
    auto items = spreads ? items_of(value) : std::nullopt;
    for (const PythonValue& item : items ? *items : std::vector<PythonValue>()) add(item, *operand);
    args.complete = args.complete && (!spreads || items);
    if (!items) add(spreads ? node_like(*operand, {lift(value, *operand)}, heap_) : value, *operand);
  }
  for (const Syntax::Keyword& keyword : at.keywords) {
    PythonValue value = eval(*keyword.value);
    bool spreads = keyword.name == "**";
    bool known = spreads && value.is(Kind::kDict) && value.items->computed == 0;
    for (size_t i = 0; known && i + 1 < value.items->values.size(); i += 2)
      args.named.emplace_back(value.items->values[i].text, value.items->values[i + 1]);
    args.complete = args.complete && (!spreads || known);
    if (!known) args.named.emplace_back(keyword.name, value);
  }
  return args;
}

PythonValue Python::called(const Syntax& at) {
  const Syntax& callee = *at.children[0];
  if (is_name(callee) && callee.text == "super" && running_ && running_->owner) return base_object();
  if (sets_attribute(at)) return {};
  bool is_method = callee.kind == SyntaxKind::kAttribute;
  PythonValue object = is_method ? eval(*callee.children[0]) : PythonValue();
  bool of_value = is_method && !object.is(Kind::kSyntax) && !object.is(Kind::kObject) && !object.is(Kind::kClass);
  PythonResult of_tensor = is_method ? tensor_method(object, callee.text) : std::nullopt;
  PythonValue function = of_tensor   ? *of_tensor
                         : of_value  ? PythonValue()
                         : is_method ? attribute(callee, object, Use::kCalled)
                                     : eval(callee);
  Args args = arguments(at);
  if (of_tensor) {
    args.positional.insert(args.positional.begin(), object);
    args.places.insert(args.places.begin(), callee);
  }
  Temporarily place(call_place_, Place(at));
  bool is_task = callee.text == "create" && is_method && callee.children[0]->text == "task";  // autotvm.task.create
  if (is_task || is_one_of(callee.text, {"SearchTask", "create_task"})) as_workload(function, args);
  if (of_value) {
    for (PythonValue& each : args.positional) {  // outs.append(x)
      if (object.is(Kind::kList) && writes_ && is_one_of(callee.text, {"append", "insert", "extend"}))
        each = named(each, "item", at);
      add_aliases(each);
    }
    PythonResult result =
        args.complete && args.named.empty() ? call_method(object, callee.text, args.positional, heap_) : std::nullopt;
    if (result) return *result;
    function = attribute(callee, object);
    forget_value(object, at);
  }
  bool is_run = writes_ || !binders_.empty();  // not in a branch that may not be taken
  if (function.is(Kind::kFunction) && function.function->is_macro) throw PythonUnknown();
  if (PythonResult result = is_method ? global_var(object, callee.text, args, at) : std::nullopt) return *result;
  if (is_run) {
    if (PythonResult result = applied(function, args)) return *result;
  }
  if (PythonResult result = builtin(function, args, at)) return *result;
  require_in_library(function, at);
  if (is_run && is_one_of(callee.text, {"emit_te", "call_te", "extern"})) run_for_reader(callee.text, args, at);
  std::vector<const Syntax*> children = {lift(function, callee)};
  bool takes = takes_lambda(callee);
  Temporarily ranked(element_rank_, callee.text == "compute" ? rank_of_stage(args) : std::nullopt);
  for (size_t i = 0; i < args.positional.size(); ++i)
    children.push_back(lift(args.positional[i], args.places[i], takes));
  std::vector<Syntax::Keyword> keywords;
  for (const auto& [name, value] : args.named) {
    auto same = std::ranges::find(at.keywords, name, &Syntax::Keyword::name);
    bool spread = same == at.keywords.end();  // from **arguments, or of a function of te
    const Place place = spread ? Place(at) : Place(*same), of_value = spread ? Place(at) : Place(*same->value);
    Syntax::Keyword keyword{place, name, lift(value, of_value, takes)};
    keywords.push_back(keyword);
  }
  forget_call(function, args, at);
  return node_like(at, children, heap_, keywords);
}

// Returns Module.f for Module.get_global_var("f"), which may stand wherever its name stands.
PythonResult Python::global_var(const PythonValue& module, std::string_view method, const Args& args, const Place& at) {
  const bool is_one = method == "get_global_var" && module.is(Kind::kSyntax) && is_name(*module.syntax) &&
                      definitions_.contains(module.syntax->text) && args.positional.size() == 1 &&
                      args.positional[0].is(Kind::kString);
  if (!is_one) return std::nullopt;
  PythonValue result =
      node_like(heap_.node(SyntaxKind::kAttribute, at, args.positional[0].text), {module.syntax}, heap_);
  result.text = "global_var";
  return result;
}

// Runs the function that a builder or te.extern is given where it can be run; else te reads its statements.
void Python::run_for_reader(std::string_view form, Args& args, const Place& at) {
  size_t before = out_->size(), functions = functions_out_.size();
  try {
    form == "extern" ? run_extern(args, at) : run_for_te(args, at);
  } catch (const PythonUnknown&) {
    out_->resize(before);
    functions_out_.resize(functions);
  }
}

// Makes f(512, 512) of auto_scheduler.SearchTask(func=f, args=(512, 512), target="llvm").
void Python::as_workload(PythonValue& function, Args& args) {
  PythonResult workload, values;
  for (const auto& [name, value] : args.named) {
    if (name == "func") workload = value;
    if (name == "args") values = value;
  }
  if (!workload && !args.positional.empty()) workload = args.positional[0];
  if (!values && args.positional.size() > 1) values = args.positional[1];
  // @autotvm.template("matmul") names its function.
  for (PythonFunction* each : order_) {
    bool is_named = workload && workload->is(Kind::kString) &&
                    std::ranges::any_of(each->line->decorators, [&](const Syntax* decorator) {
                      return is_call(*decorator) && decorator->children.size() > 1 &&
                             decorator->children[1]->text.find(workload->text) != std::string_view::npos;
                    });
    if (is_named) workload = PythonValue{.kind = Kind::kFunction, .function = each};
  }
  if (!workload || !workload->is(Kind::kFunction) || !values || !values->is_list()) return;
  function = *workload;
  args = Args{.positional = values->items->values, .places = std::vector<Place>(values->items->values.size())};
}

// Calls what the text defines: a function, a class, an object. Of models nothing is left to others.
PythonResult Python::applied(const PythonValue& function, const Args& args) {
  if (!args.complete) return std::nullopt;
  bool is_new = function.is(Kind::kClass);
  PythonValue callee = function;
  if (function.is(Kind::kObject)) {
    const PythonValue* method = function.object->type->find("__call__");
    if (!method) throw PythonUnknown();
    callee = *method;
    callee.object = function.object;
  }
  if (!is_new && !callee.is(Kind::kFunction)) return std::nullopt;
  size_t before = out_->size();
  try {
    return is_new ? instantiate(*function.type, args) : invoke(callee, args);
  } catch (const PythonUnknown&) {
    bool is_strict = is_new || callee.object || callee.type || callee.function->of_library || is_exporting();
    out_->resize(before);
    if (is_strict) throw;
  }
  return std::nullopt;
}

// isinstance(value, type) and isinstance(value, (type, type)).
PythonResult Python::is_instance(const PythonValue& value, const PythonValue& type) {
  if (type.is(Kind::kTuple)) {
    bool any = false;
    for (const PythonValue& each : type.items->values) {
      PythonResult is_one = is_instance(value, each);
      std::optional<bool> test = is_one ? truth_of(*is_one) : std::nullopt;
      if (!test) return std::nullopt;
      any = any || *test;
    }
    return python_bool(any);
  }
  if (!type.is(Kind::kSyntax)) return std::nullopt;
  constexpr std::pair<std::string_view, Kind> kTypes[] = {{"int", Kind::kInt},     {"float", Kind::kFloat},
                                                          {"str", Kind::kString},  {"list", Kind::kList},
                                                          {"tuple", Kind::kTuple}, {"dict", Kind::kDict}};
  const Kind* wanted = row_of(kTypes, type.text);
  if (!wanted) return std::nullopt;
  if (!value.is(Kind::kSyntax))
    return python_bool(value.kind == *wanted || (*wanted == Kind::kInt && value.is(Kind::kBool)));
  return heap_.of_call() ? std::optional(python_bool(false)) : std::nullopt;  // a tensor of a model
}

PythonResult Python::builtin(const PythonValue& function, const Args& args, const Place& at) {
  if (!function.is(Kind::kSyntax) || function.text.empty() || !args.complete) return std::nullopt;
  constexpr std::string_view kIntrinsic = "relaxc.", kBuilder = "relaxc.ib.";
  if (function.text.starts_with(kBuilder)) return build_statement(function.text.substr(kBuilder.size()), args, at);
  if (function.text.ends_with("ir_builder.create"))
    return PythonValue{.kind = Kind::kSyntax, .text = "relaxc.ib", .syntax = &heap_.node(SyntaxKind::kName, at, "ib")};
  if (function.text.starts_with(kIntrinsic)) return intrinsic(function.text.substr(kIntrinsic.size()), args, at);
  bool is_path = args.positional.size() == 2 && args.positional[0].is(Kind::kSyntax) &&
                 !args.positional[0].text.empty() && args.positional[1].is(Kind::kString);
  if (function.text == "getattr" && is_path)  // getattr(topi, "exp")
    return attribute(heap_.node(SyntaxKind::kAttribute, at, args.positional[1].text), args.positional[0]);
  if (PythonResult result = reflection(function.text, args, at)) return *result;
  if (PythonResult result = args.named.empty() ? higher_order(function.text, args) : std::nullopt) return *result;
  const bool is_variable = lambdas_ > 0 && is_one_of(function.text, {"tir.Var", "tvm.tir.Var", "tvm.tirx.Var"});
  if (is_variable && !args.positional.empty() && args.positional[0].is(Kind::kString))  // which tir.Let binds
    return name_value(fresh(kept_->text(identifier(args.positional[0].text))), at);
  if (is_one_of(function.text, {"numpy.random.default_rng", "numpy.random.RandomState"})) {  // draws as np.random does
    PythonValue random{.kind = Kind::kSyntax, .text = "numpy.random", .syntax = function.syntax->children[0]};
    return random;
  }
  if (is_one_of(function.text, {"tvm.DataType", "tvm.runtime.DataType"}) && args.positional.size() == 1 &&
      args.positional[0].is(Kind::kString))
    return args.positional[0];
  if (function.text == "tvm.testing.parameter" && !args.positional.empty()) return args.positional[0];
  if (PythonResult result = of_environment(function.text, args)) return *result;
  if (function.text == "collections.namedtuple" && args.positional.size() == 2) return named_tuple(args);
  if (PythonResult result = data_fields(function.text, args)) return *result;
  if (function.text == "dict" && (args.positional.empty() || args.positional[0].is(Kind::kDict))) {
    PythonValue result = heap_.list(Kind::kDict, {});
    if (!args.positional.empty() && !call_method(result, "update", {args.positional[0]}, heap_)) return std::nullopt;
    for (const auto& [name, value] : args.named) set_item(result, heap_.string(name), value, heap_);
    return result;
  }
  if (function.text == "isinstance" && args.positional.size() == 2) {
    if (PythonResult result = is_instance(args.positional[0], args.positional[1])) return *result;
  }
  bool is_source = is_one_of(function.text, {"tvm.script.from_source", "tvm.script.parse", "tvm.script.parser.parse",
                                             "tvm.script.parser.from_source"});
  if (is_source && args.positional.size() == 1) return from_source(args.positional[0]);
  if (!args.named.empty()) return std::nullopt;
  std::vector<PythonValue> positional;
  for (const PythonValue& each : args.positional) positional.push_back(expanded(each));
  return call_builtin(function.text, positional, heap_);
}

}  // namespace relaxc::text
