// Runs statements of Python around a module.
#include "ir/text/python_run.h"

#include <algorithm>

#include "ir/text/parsing.h"

namespace relaxc::text {

namespace {

bool is_docstring(const Line& line) {
  return line.kind == LineKind::kExpression && line.value->kind == SyntaxKind::kString;
}

// Returns whether the statement may end the function or the loop around it.
bool escapes(const Line& line, bool in_loop = false) {
  if (line.kind == LineKind::kReturn) return true;
  if (line.kind == LineKind::kBreak || line.kind == LineKind::kContinue) return !in_loop;
  if (line.kind == LineKind::kFunction || line.kind == LineKind::kClass) return false;
  bool loops = in_loop || line.kind == LineKind::kFor || line.kind == LineKind::kWhile;
  auto any = [&](const Lines& lines) {
    return std::ranges::any_of(lines, [&](const Line* inner) { return escapes(*inner, loops); });
  };
  return any(line.body) || any(line.otherwise);
}

// Returns whether the statement leaves a test where a device is missing: if not tvm.runtime.enabled("llvm"): return
bool is_device_guard(const Line& line) {
  bool asks = false;
  for_each(line.value, [&](const Syntax& at) {
    asks = asks || (is_call(at) && is_one_of(at.children[0]->text, {"enabled", "device_enabled", "exist"}));
  });
  return asks && line.otherwise.empty() && line.body.back()->kind == LineKind::kReturn && !line.body.back()->value;
}

// Returns whether the exception is of the class, or of one below it.
bool is_exception(std::string_view type, std::string_view wanted) {
  constexpr std::pair<std::string_view, std::string_view> kParents[] = {{"ZeroDivisionError", "ArithmeticError"},
                                                                        {"OverflowError", "ArithmeticError"},
                                                                        {"IndexError", "LookupError"},
                                                                        {"KeyError", "LookupError"},
                                                                        {"ModuleNotFoundError", "ImportError"},
                                                                        {"UnboundLocalError", "NameError"},
                                                                        {"NotImplementedError", "RuntimeError"},
                                                                        {"RecursionError", "RuntimeError"}};
  if (type == wanted || wanted == "Exception" || wanted == "BaseException") return true;
  const std::string_view* parent = row_of(kParents, type);
  return parent && *parent == wanted;
}

}  // namespace

Python::Python(const Source& source, Diagnostics& diagnostics, std::unique_ptr<ModelTypes> types)
    : source_(source), reader_(source, diagnostics), diagnostics_(diagnostics), types_(std::move(types)) {
  heap_.allow(source.text.size() * 50);
}

bool Python::next(SyntaxTree& tree, Lines& out) {
  withheld_ = false;
  size_t before = diagnostics_.all().size();
  bool more = reader_.next(tree, out);
  out_ = &out;
  if (open_class_ && (!more || !reader_.in_class())) close_class();
  if (!more) {
    if (std::exchange(ended_, true)) return false;
    out.clear();
    tree.names_module = true;  // statements of functions may name what stands further down
    run_only();
    run_unused();
    return !out.empty();
  }
  errors_.assign(diagnostics_.all().begin() + static_cast<long>(before), diagnostics_.all().end());
  Lines read = std::exchange(out, {});
  for (const Line* line : read) {
    if (open_class_) {
      open_class_->body.push_back(&with_names(*line, {}, *kept_));
      continue;
    }
    if (!reader_.in_class() && opens_class(*line)) continue;
    has_module_ = has_module_ || reader_.in_class() || holds_definition(*line) ||
                  (line->kind != LineKind::kFunction && computes_with_te(*line));
    if (reader_.in_class()) {
      member(*line);
    } else {
      // Values name the syntax that they come from, so all of Python is kept. Programs are not: they are large.
      const bool is_program = is_script_function(*line) && !is_macro(*line);
      statement(is_program ? *line : with_names(*line, {}, *kept_));
    }
  }
  withheld_ = out.empty() && !read.empty();
  return true;
}

// A function in a class of Python may change names of the module at any time.
void Python::member(const Line& line) {
  ++written_definitions_;
  if (!is_script_function(line)) add_volatile(line);
  try {
    out_->push_back(&written(line));
  } catch (const PythonUnknown&) {
    report_limit(line);
  }
}

void Python::add_volatile(const Line& line) {
  PythonEffects effects;
  effects.add(line);
  std::set<std::string_view> own;
  for (const Param& param : line.params) own.insert(param.name);
  for (const std::set<std::string_view>& names : {effects.outer, effects.changes}) {
    for (std::string_view name : names) {
      if (!own.contains(name)) volatile_.insert_or_assign(name, line.line);
    }
  }
}

void Python::report_limit(const Place& at) {
  if (!exceeded_) exceeded_ = at;
}

// A statement that takes too long leaves half of the steps for those after it.
void Python::statement(const Line& line) {
  size_t before = out_->size();
  const size_t rest = heap_.hold_back();
  stuck_.reset();
  try {
    run(line);
    return heap_.allow(rest);
  } catch (const PythonRaised&) {
  } catch (const PythonUnknown&) {
  }
  heap_.allow(rest);
  out_->resize(before);
  if (report_stuck(line)) return;
  try {
    left_as_it_is(line);
  } catch (const PythonUnknown&) {
    report_limit(line);
  } catch (const PythonRaised&) {
    report_limit(line);
  }
}

Python::Flow Python::run(const Lines& lines) {
  for (const Line* line : lines) {
    if (Flow flow = run(*line); flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

// A statement whose effect is not known is left as it is, if what follows it is known to be run.
Python::Flow Python::run(const Line& line) {
  heap_.spend(3);
  if (depth_ > 200) throw PythonUnknown();
  Temporarily deeper(depth_, depth_ + 1);
  size_t before = out_->size();
  try {
    return run_known(line);
  } catch (const PythonUnknown&) {
    bool is_inside = calls_ > 0 || loops_ > 0;
    if (is_exporting() && !stuck_) stuck_ = heap_.place(line);
    if (!writes_ || stuck_ || heap_.of_call() || (is_inside && escapes(line))) throw;
  }
  out_->resize(before);
  left_as_it_is(line);
  return Flow::kNext;
}

Python::Flow Python::run_known(const Line& line) {
  switch (line.kind) {
    case LineKind::kExpression:
      return expression(line);
    case LineKind::kAssign:
      return assign(line);
    case LineKind::kAugmented:
      return augmented(line);
    case LineKind::kFor:
    case LineKind::kWhile:
      return loop(line);
    case LineKind::kIf:
      return branch(line);
    case LineKind::kWith:
      return with(line);
    case LineKind::kTry:
      return attempt(line);
    case LineKind::kFunction:
      return define(line), Flow::kNext;
    case LineKind::kClass:
      return define_class(line), Flow::kNext;
    case LineKind::kImport:
      return imports(line), Flow::kNext;
    case LineKind::kBreak:
      return loops_ > 0 ? Flow::kBreak : throw PythonUnknown();
    case LineKind::kContinue:
      return loops_ > 0 ? Flow::kContinue : throw PythonUnknown();
    case LineKind::kPass:
    case LineKind::kGlobal:
      return Flow::kNext;
    case LineKind::kRaise:
      throw line.value ? PythonRaised{head_of(*line.value).text} : throw PythonUnknown();
    case LineKind::kReturn:
      if (calls_ == 0) throw PythonUnknown();
      returned_ = line.value ? eval(*line.value) : PythonValue();
      return Flow::kReturn;
    case LineKind::kAssert: {
      PythonValue value = eval(*line.value);
      std::optional<bool> test = truth_of(value);
      if (!test && !writes_) return Flow::kNext;
      if (!test) {
        Line& result = kept_->line();
        result = line;
        result.value = lift(value, *line.value);
        return write(result), Flow::kNext;
      }
      return *test ? Flow::kNext : throw PythonRaised{"AssertionError"};
    }
    case LineKind::kDelete:
    case LineKind::kClause:
      throw PythonUnknown();
    case LineKind::kBroken:
      break;
  }
  if (calls_ > 0) throw PythonUnknown();
  if (holds_definition(line)) return run_broken(line), Flow::kNext;
  throw PythonUnknown();
}

Python::Flow Python::expression(const Line& line) {
  if (is_docstring(line)) return Flow::kNext;
  PythonValue value = eval(*line.value);
  if (value.is(Kind::kSyntax) && !writes_ && binders_.empty()) throw PythonUnknown();
  bool calls = false;
  if (value.is(Kind::kSyntax) || value.items)
    for_each(lift(value, *line.value), [&](const Syntax& at) { calls = calls || is_call(at); });
  if (!calls || !writes_) return Flow::kNext;
  Line& result = kept_->line();
  result = line;
  result.value = lift(value, *line.value);
  write(result);
  return Flow::kNext;
}

Python::Flow Python::augmented(const Line& line) {
  PythonValue now = eval(*line.target), value = eval(*line.value);
  bool extends = now.is(Kind::kList) && line.text == "+" && value.items;
  if (extends && writes_) value = named(value, "item", line);
  if (extends) add_aliases(value);
  if (extends && call_method(now, "extend", {value}, heap_)) return Flow::kNext;
  PythonResult result = now.is(Kind::kList) ? std::nullopt : arithmetic(line.text, now, value, heap_);
  if (now.items && !result) throw PythonUnknown();
  if (!result) {
    Syntax& sum = heap_.node(SyntaxKind::kBinary, *line.target, line.text);
    for (const Syntax* part : {lift(now, *line.target), lift(value, *line.value)}) {
      sum.children.push_back(part);
      sum.depth = std::max(sum.depth, part->depth + 1);
    }
    result = PythonValue{.kind = Kind::kSyntax, .syntax = &sum};
  }
  assign_to(*line.target, *result, line);
  return Flow::kNext;
}

// ---- Control flow

Python::Flow Python::loop(const Line& line) {
  Temporarily deeper(loops_, loops_ + 1);
  auto once = [&](Flow& flow) {
    heap_.spend(10);
    flow = run(line.body);
    if (flow == Flow::kContinue) flow = Flow::kNext;
    return flow == Flow::kNext;
  };
  Flow flow = Flow::kNext;
  if (line.kind == LineKind::kFor) {
    auto values = items_of(eval(*line.value));
    if (!values) throw PythonUnknown();
    for (const PythonValue& value : *values) {
      assign_to(*line.target, value, line);
      if (!once(flow)) break;
    }
  } else {
    while (true) {
      std::optional<bool> test = truth_of(eval(*line.value));
      if (!test) throw PythonUnknown();
      if (!*test || !once(flow)) break;
    }
  }
  if (flow == Flow::kNext) return run(line.otherwise);
  return flow == Flow::kBreak ? Flow::kNext : flow;
}

// Returns whether the statement is `if x.dtype != "float32": x = x.astype("float32")`, where the cast does nothing if
// the condition does not hold.
static bool casts_unless_cast(const Line& line) {
  const Syntax& test = *line.value;
  bool compares = test.kind == SyntaxKind::kCompare && test.text == "!=" && line.otherwise.empty() &&
                  test.children[0]->kind == SyntaxKind::kAttribute && test.children[0]->text == "dtype" &&
                  test.children[1]->kind == SyntaxKind::kString && line.body.size() == 1;
  if (!compares || line.body[0]->kind != LineKind::kAssign || !line.body[0]->value) return false;
  const Syntax &value = *line.body[0]->value, &target = *line.body[0]->target, &tested = *test.children[0]->children[0];
  bool casts = is_call(value) && value.children.size() == 2 && value.children[0]->text == "astype" &&
               value.children[1]->text == test.children[1]->text;
  return casts && is_name(target) && is_name(tested) && target.text == tested.text &&
         root_name(*value.children[0]) == target.text;
}

// Where the condition is not known, definitions in the branch are read as they are when it holds.
Python::Flow Python::branch(const Line& line) {
  PythonValue condition = eval(*line.value);
  if (std::optional<bool> test = truth_of(condition)) return run(*test ? line.body : line.otherwise);
  if (is_device_guard(line)) return Flow::kNext;
  if (is_exporting() && casts_unless_cast(line)) return run(line.body);
  require_decided(condition, line);
  if (!holds_definition(line) || calls_ > 0 || loops_ > 0) throw PythonUnknown();
  std::set<std::string_view> names, definitions;
  add_bound_names(line, names, false);
  PythonEffects effects;
  effects.add(line);
  if (run(line.body) != Flow::kNext) throw PythonUnknown();
  Line& head = kept_->line();
  head = line;
  head.value = lift(condition, *line.value);
  head.body.clear();
  head.otherwise.clear();
  write(head);
  for (std::string_view name : names) {
    Found found = find(name);
    bool is_definition =
        found.value && found.value->is(Kind::kSyntax) && definitions_.contains(found.value->syntax->text);
    if (!is_definition) forget(name, line);
  }
  forget_effects(effects, scope_, line);
  return Flow::kNext;
}

Python::Flow Python::with(const Line& line) {
  bool is_context = std::ranges::all_of(line.items, [](const auto& item) {
    const Syntax& head = head_of(*item.first);
    bool is_target = head.text == "create" && head.kind == SyntaxKind::kAttribute && head.children[0]->text == "target";
    return is_target || is_one_of(head.text, {"PassContext", "Target", "target", "tgt", "TemporaryDirectory", "cuda",
                                              "llvm", "tag_scope"});
  });
  Line& result = kept_->line();
  result = line;
  for (auto& [item, target] : result.items) {
    PythonValue value = eval(*item);
    if (is_frame(value) && line.items.size() == 1) return with_frame(value, target, line);
    item = lift(value, *item);
    if (!target) continue;
    auto is_plain_name = [](const Syntax* each) { return is_name(*each); };
    const bool are_names = is_list(*target) && std::ranges::all_of(target->children, is_plain_name);
    if (!is_context && are_names) {  // with T.grid(4, 8) as (i, j):
      std::vector<const Syntax*> names;
      for (const Syntax* each : target->children) {
        names.push_back(name_value(written_name(each->text), *each).syntax);
        bind(each->text, PythonValue{.kind = Kind::kSyntax, .syntax = names.back()});
      }
      target = node_like(*target, names, heap_).syntax;
    } else if (is_context || !is_name(*target)) {
      std::set<std::string_view> names;
      add_names(target, names);
      for (std::string_view name : names) is_context ? bind(name, value) : forget(name, line);
      PythonEffects effects;
      effects.add_changed(*target, false);
      forget_effects(effects, scope_, line);
    } else {
      target = name_value(written_name(target->text), *target).syntax;
      bind(line.items[0].second->text, PythonValue{.kind = Kind::kSyntax, .syntax = target});
    }
  }
  if (is_context || holds_definition(line)) return run(line.body);
  if (!writes_) throw PythonUnknown();
  may_raise_ = true;
  Flow flow;
  Lines body;
  {
    Temporarily inner(out_, &body);
    flow = run(line.body);
  }
  result.body = std::move(body);
  write(result);
  return flow;
}

// A try around steps on a schedule is one of the schedule's statements: a step may be refused. Where the body returns,
// as in `return sch.mod`, its steps have to fit.
Python::Flow Python::attempt_steps(const Line& line) {
  Line& result = kept_->line();
  result = line;
  auto run_in = [&](const Lines& lines, Lines& out) {
    out.clear();
    Temporarily inside(out_, &out);
    return run(lines);
  };
  if (Flow flow = run_in(line.body, result.body); flow != Flow::kNext) {
    out_->insert(out_->end(), result.body.begin(), result.body.end());
    return flow;
  }
  std::set<std::string_view> bound;
  for (const Line*& clause : result.otherwise) {
    Line& copy = kept_->line();
    copy = *clause;
    for (const Line* inner : clause->body) add_bound_names(*inner, bound, false);
    if (run_in(clause->body, copy.body) != Flow::kNext) throw PythonUnknown();
    clause = &copy;
  }
  write(result);
  for (std::string_view name : bound) forget(name, line);
  return Flow::kNext;
}

// Where something that is not known may raise an exception, what the clauses and the body bind is not known.
Python::Flow Python::attempt(const Line& line) {
  PythonEffects steps;
  for (const Line* inner : line.body) steps.add(*inner);
  if (writes_ && holds_clause(line, "except") && names_schedule(steps)) return attempt_steps(line);
  std::set<std::string_view> names, before;
  for (const Line* inner : line.body) add_bound_names(*inner, names, false);
  for (std::string_view name : names) {
    if (find(name).value) before.insert(name);
  }
  bool outside = std::exchange(may_raise_, false);
  Flow flow = Flow::kNext;
  std::optional<PythonRaised> raised;
  try {
    flow = run(line.body);
  } catch (const PythonRaised& error) {
    raised = error;
  }
  bool unsure = std::exchange(may_raise_, outside || may_raise_) && holds_clause(line, "except");
  if (unsure && (raised || flow != Flow::kNext)) throw PythonUnknown();
  if (raised) {
    const Line* clause = clause_for(line, raised->type);
    if (clause && clause->target) forget(clause->target->text, *clause);
    if (clause) flow = run(clause->body);
    if (clause) raised.reset();
  } else if (flow == Flow::kNext) {
    for (const Line* clause : line.otherwise) {
      if (clause->text == "else") flow = run(clause->body);
    }
  }
  if (unsure) {
    PythonEffects effects;
    for (const Line* clause : line.otherwise) {
      if (clause->text == "finally") continue;
      effects.add(*clause);
      add_bound_names(*clause, before, false);
    }
    for (std::string_view name : before) {
      Found found = find(name);
      bool is_definition =
          found.value && found.value->is(Kind::kSyntax) && definitions_.contains(found.value->syntax->text);
      if (!is_definition) forget(name, line);
    }
    forget_effects(effects, scope_, line);
  }
  for (const Line* clause : line.otherwise) {
    Flow last = clause->text == "finally" ? run(clause->body) : Flow::kNext;
    if (last != Flow::kNext) return last;
  }
  if (raised) throw *raised;
  return flow;
}

bool Python::holds_clause(const Line& line, std::string_view text) {
  return std::ranges::any_of(line.otherwise, [&](const Line* clause) { return clause->text == text; });
}

// Returns the clause that handles an exception of this class; null without one.
const Line* Python::clause_for(const Line& line, std::string_view type) {
  for (const Line* clause : line.otherwise) {
    if (clause->text != "except") continue;
    if (!clause->value) return clause;
    std::vector<const Syntax*> wanted = {clause->value};
    if (is_list(*clause->value)) wanted.assign(clause->value->children.begin(), clause->value->children.end());
    for (const Syntax* each : wanted) {
      if (is_exception(type, each->text)) return clause;
    }
  }
  return nullptr;
}

// Returns whether statements use a schedule, or what its steps made.
bool Python::names_schedule(const PythonEffects& effects) {
  return std::ranges::any_of(effects.uses, [&](std::string_view name) {
    Found found = find(name);
    return schedules_.contains(found.value && found.value->syntax ? found.value->syntax->text : name);
  });
}

// Leaves the statement to the readers of what Python writes: of schedules, of te. What it binds is not known.
Python::Flow Python::left_as_it_is(const Line& line) {
  if (!writes_) throw PythonUnknown();
  may_raise_ = true;
  std::set<std::string_view> names;
  if (line.kind == LineKind::kFunction || line.kind == LineKind::kClass) {
    names.insert(line.text);
  } else {
    add_bound_names(line, names, false);
  }
  PythonEffects effects;
  effects.add(line);
  const bool is_step = names_schedule(effects);
  for (std::string_view name : effects.changes) {  // parts.append(loop)
    Found found = find(name);
    if (is_step && found.value && found.value->is(Kind::kList)) names.insert(name);
  }
  for (std::string_view name : names) {
    Found found = find(name);
    bool is_value = is_step && found.value && !found.value->is(Kind::kSyntax) && !found.value->is(Kind::kFunction);
    bool is_written = found.value && found.value->is(Kind::kSyntax) && is_name(*found.value->syntax);
    std::string_view now = is_step ? written_name(name) : is_written ? found.value->syntax->text : name;
    if (is_value) write(assignment(line, now, *found.value));
    bind(name, name_value(now, line));
  }
  if (line.kind != LineKind::kFunction) forget_effects(effects, scope_, line);
  if (line.kind == LineKind::kExpression || line.kind == LineKind::kAssign) forget_arguments(line);
  Line& result = kept_->line();
  result = written(line);
  bool counts = is_step;  // other statements without calls do nothing but bind names
  for_each(line, [&](const Syntax& at) { counts = counts || is_call(at); });
  if (!counts && !holds_errors(line)) result.body = result.otherwise = {};
  write(result);
  for (std::string_view name : names) {
    if (!is_step) forget(name, line);
  }
  return Flow::kNext;
}

// A statement of which not all is run may change the lists in it.
void Python::forget_arguments(const Line& line) {
  for_each(line, [&](const Syntax& at) {
    Found found = is_name(at) ? find(at.text) : Found();
    if (found.value) forget_value(*found.value, line);
  });
}

// ---- What is written

void Python::write(const Line& line) {
  if (!writes_) throw PythonUnknown();
  heap_.spend(80);
  out_->push_back(&line);
}

const Line& Python::assignment(const Place& at, std::string_view name, const PythonValue& value) {
  Line& line = kept_->line();
  static_cast<Place&>(line) = heap_.place(at);
  line.kind = LineKind::kAssign;
  line.target = name_value(name, at).syntax;
  line.value = lift(value, at);
  return line;
}

}  // namespace relaxc::text
