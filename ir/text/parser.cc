// Reads the definitions of a module one after the other: their order, errors, names, and the arguments of calls.
#include "ir/text/parser.h"

#include <algorithm>
#include <ranges>

#include "ir/attr_names.h"
#include "ir/text/block_builder.h"
#include "ir/text/names.h"
#include "ir/text/parse_te.h"
#include "ir/text/python_lines.h"
#include "ir/text/python_run.h"
#include "support/joined.h"

namespace relaxc {

IRModule parse_module(std::string_view text, std::string filename, const OpTable& ops, Diagnostics& diagnostics,
                      const std::string& module_name) {
  auto origin = std::make_shared<Origin>();
  origin->file = std::move(filename);
  origin->text = std::make_shared<const std::string>(text);
  return text::Parser(std::move(origin), ops, diagnostics, module_name).run();
}

namespace text {

// Returns whether the line is @S.schedule("f"), @S.rule("op") or S.intrin(...), which tir/schedule/script.h reads.
static bool is_schedule(const Line& line) {
  auto is_ours = [](const Syntax& at) {
    const Syntax& callee = head_of(at);
    return callee.kind == SyntaxKind::kAttribute && is_name(*callee.children[0]) && callee.children[0]->text == "S";
  };
  if (line.kind == LineKind::kExpression) return is_call(*line.value) && is_ours(*line.value);
  return line.kind == LineKind::kFunction &&
         std::ranges::any_of(line.decorators, [&](const Syntax* each) { return is_ours(*each); });
}

// Returns whether the line is a function of Python in a module, @I.pyfunc, whose syntax need not be known.
static bool is_pyfunc(const Line& line) {
  if (line.kind == LineKind::kBroken)
    return line.text.starts_with("@") && line.text.find(".pyfunc") < line.text.find("def ");
  return line.kind == LineKind::kFunction && std::ranges::any_of(line.decorators, [](const Syntax* decorator) {
           return head_of(*decorator).text == "pyfunc";
         });
}

Parser::Parser(std::shared_ptr<const Origin> origin, const OpTable& ops, Diagnostics& diagnostics, std::string wanted)
    : origin_(std::move(origin)), ops_(ops), diagnostics_(diagnostics), wanted_module_(std::move(wanted)) {
  prefixes_ = {{"I", "I"},     {"T", "T"},    {"R", "R"},  {"ir", "I"}, {"tir", "T"},        {"tirx", "T"},
               {"relax", "R"}, {"rx", "R"},   {"ty", "T"}, {"te", "T"}, {kRelaxPrefix, "R"}, {kProgramPrefix, "T"},
               {"Ts", "T"},    {"s_tir", "T"}};
  scopes_.enter();
  te_ = std::make_unique<TeReader>(*this);
  builder_ = std::make_unique<BuilderReader>(*this);
}
Parser::~Parser() = default;

IRModule Parser::run() {
  // Texts of 2022 name new dims without quotes.
  early_ =
      origin_->text->find("match_shape(") != std::string::npos || origin_->text->find("Tensor[") != std::string::npos;
  before_purity_ = early_ || origin_->text->find("DynTensorType") != std::string::npos ||
                   origin_->text->find("type_args=") != std::string::npos ||
                   origin_->text->find("relax.vm.build(") != std::string::npos;
  constexpr size_t kMostBytes = size_t{1} << 30;
  if (origin_->text->size() > kMostBytes) {
    diagnostics_.error({origin_}, "the text has {} bytes; at most {} are read", origin_->text->size(), kMostBytes);
    return std::move(module_);
  }
  read_definitions();
  // A tensor program that calls another waits until all are declared. The graph needs all signatures before any body.
  auto graph = std::ranges::stable_partition(pending_, &Pending::is_program);
  std::for_each(pending_.begin(), graph.begin(), [&](const Pending& program) { define_program(program); });
  for (Pending& function : graph) {
    guarded([&] { function.signature = read_signature(*function.line); });
    if (function.signature && function.signature->sound) {
      declared_.insert_or_assign(function.name, function.signature->type(function.pure));
    } else {
      unknown_.insert(function.name);
    }
  }
  for (const Pending& function : graph) {
    if (!function.signature) continue;
    // The errors of a body are reported even when its signature is wrong.
    size_t before = errors();
    bool sound = function.sound && function.signature->sound;
    guarded([&] {
      FunctionRef result = graph_function(function, *function.signature, false);
      if (function.signature->sound) module_.functions.insert_or_assign(function.name, result);
      // What a builder makes has the type of its value, which those that it makes later rely on.
      if (built_.contains(function.name)) declared_.insert_or_assign(function.name, result.type());
    });
    if (!sound || errors() > before) failed_.insert(function.name);
  }
  // A function may be wrong for an error in what was taken for Python.
  if (!failed_.empty() && !diagnostics_.has_errors()) {
    for (const Diagnostic& error : python_errors_) diagnostics_.add(error);
  }
  check_declared_results();
  drop_failed();
  if (!others_.empty() && module_.functions.empty() && !diagnostics_.has_errors())
    diagnostics_.error({origin_}, "the text has no module '{}'; it has: {}", wanted_module_, joined(others_));
  drop_intrin_parts();
  if (!in_class_) name_lone_functions();
  guarded([&] { te_->finish(); });
  report_python();
  return std::move(module_);
}

// Tensor programs become nodes at once, and their syntax is dropped, so a large text needs little additional memory.
void Parser::read_definitions() {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  std::string_view text = *origin_->text;
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  Diagnostics in_syntax;
  Python reader(Source{origin_, text}, in_syntax, model_types());
  python_tree_ = reader.kept();
  tree_ = &trees_.emplace_back();
  bool ignored = false;    // members of a class that is not the module
  bool of_python = false;  // it is a class of Python, such as one of tests, which may hold modules
  Lines lines;
  size_t before = 0;
  for (; reader.next(*tree_, lines); before = in_syntax.all().size()) {
    lines_sound_ = in_syntax.all().size() == before;
    bool top = !reader.in_class();
    if (top) ignored = false;
    // Python that is not run need not be of the part of it that this reader knows.
    bool python = (!lines.empty() || reader.withheld()) && std::ranges::all_of(lines, [&](const Line* line) {
                    return top ? is_python(*line) : is_pyfunc(*line);
                  });
    for (size_t i = before; i < in_syntax.all().size() && !ignored; ++i) {
      const Diagnostic& error = in_syntax.all()[i];
      python ? python_errors_.push_back(error) : void(diagnostics_.add(error));
    }
    bool keep = false;
    python_functions_ = reader.uncalled();
    for (const Line* function : reader.take_functions()) {
      if (!te_->function(*function)) python_line(*function);
    }
    for (const Line* line : lines) {
      if (line->kind == LineKind::kBroken) unread_lines_.insert(line->line);
      if (ignored && of_python && holds_definition(*line) && !is_other_module(*line))
        guarded([&] { definition(*line, true, keep); });
      if (ignored) continue;
      bool is_head = line->body.empty();  // its body follows
      if (top && is_rewriter(*line)) {    // its functions are not the module's (passes/kernel_rules.h)
        ignored = is_head;
        of_python = false;
        continue;
      }
      if (!top && python && line->kind == LineKind::kBroken) continue;
      if (top && line->kind == LineKind::kClass && !is_head && !is_python(*line) && is_other_module(*line)) continue;
      ignored = top && line->kind == LineKind::kClass && is_head && (python || is_other_module(*line));
      of_python = python;
      if (ignored && !python) continue;
      if (!guarded([&] { definition(*line, top, keep); })) ignored = top && is_head && line->kind == LineKind::kClass;
    }
    dotted_at_ = nullptr;
    if (keep) {
      tree_ = &trees_.emplace_back();
    } else {
      tree_->clear();
    }
  }
  model_errors(reader.take_errors());
  if (reader.macro() && !python_from_) python_from_ = reader.macro();
  if (reader.exceeded()) report_text(*reader.exceeded(), "Python around the module runs longer than it is followed");
}

// Reports why models could not be exported. That may be an error of syntax in what was taken for Python; a statement
// with one needs no second error.
void Parser::model_errors(std::vector<Diagnostic> errors) {
  if (errors.empty()) return;
  const std::vector<Diagnostic> in_syntax = std::exchange(python_errors_, {});
  for (const Diagnostic& error : in_syntax) diagnostics_.add(error);
  for (Diagnostic& error : errors) {
    auto is_there = [&](const Diagnostic& other) { return other.span.line == error.span.line; };
    if (std::ranges::none_of(in_syntax, is_there)) diagnostics_.add(std::move(error));
  }
}

// Reads a function that Python builds: by a builder, of nodes, or of a model. Returns false for other statements.
bool Parser::built_definition(const Line& line, bool& keep) {
  const Line* built = builder_->function(line);
  if (!built) built = builder_->built_function(line);
  if (Lines framed = builder_->frames(line); !framed.empty()) {
    keep = true;
    for (const Line* each : framed) function_definition(*each, keep);
    return true;
  }
  bool is_exported = line.kind == LineKind::kFunction && !line.decorators.empty() &&
                     root_name(head_of(*line.decorators[0])) == kRelaxPrefix;
  if (is_exported && wanted_module_.empty() && !built) built = &line;
  if (!built) return false;
  keep = true;
  for (const Line* inner : builder_->take_nested()) {
    if (declared_.contains(inner->text)) continue;
    built_.emplace(inner->text);
    function_definition(*inner, keep);
  }
  if (declared_.contains(built->text) && wanted_module_.empty()) {  // what Python builds is another module
    diagnostics_.warning(span(line), "'{}' that Python builds is left out: the text has another '{}' above",
                         built->text, built->text);
    return true;
  }
  built_.emplace(built->text);
  function_definition(*built, keep);
  return true;
}

// Sets `keep` when its syntax is needed later.
void Parser::definition(const Line& read, bool top, bool& keep) {
  const Line& line = with_arrays(read);
  if (line.kind == LineKind::kImport) return imports(line);
  if (top && is_schedule(line)) return;
  if (is_docstring(line) || line.kind == LineKind::kPass) return;
  bool is_kept = top && (te_->defines(line) || te_->function(line) || builder_->defines(line));
  keep |= is_kept;
  if (top && built_definition(line, keep)) return;
  if (top && builder_->keeps_expression(line)) {
    keep = true;
    return;
  }
  const bool names = top && names_functions(line);
  if (type_variables(line) || is_kept) return;
  const bool creates = top && te_->creates(line);
  if (creates) is_schedule_step(line);  // sch = tvm.tir.Schedule(te.create_prim_func([A, B])) names a schedule, too
  if (creates || names) return;
  bool is_metadata = line.kind == LineKind::kAssign && line.target->text == "metadata";
  if (top && !is_metadata && is_python(line)) return python_line(line);
  if (line.kind == LineKind::kBroken) {
    for (std::string_view name : line.names) unknown_.emplace(name);
    if (line.names.empty()) broken_infos_.insert("");
    // The unreadable statement may have been the class.
    for (const Line* member : line.body) {
      if (member->kind == LineKind::kFunction) guarded([&] { definition(*member, false, keep); });
    }
    return;
  }
  if (line.kind == LineKind::kFunction) {
    if (!top) members_.emplace(line.text);
    if (!top && built_.erase(std::string(line.text)) > 0) {
      diagnostics_.warning(span(line), "'{}' that Python builds is left out: the text has another '{}' in a module",
                           line.text, line.text);
      forget_function(std::string(line.text));
    }
    if (top && !in_class_ && declared_.contains(line.text) && is_script_function(line)) {
      diagnostics_.warning(span(line), "'{}' is defined twice; as in Python the later definition counts", line.text);
      forget_function(std::string(line.text));
    }
    if (!top || !is_other_module(line)) function_definition(line, keep);
    return;
  }
  if (top && line.kind == LineKind::kAssign && line.target->text == "metadata") {
    keep = true;
    if (!guarded([&] { metadata(line); })) unknown_.emplace("metadata");
    return;
  }
  if (line.kind == LineKind::kClass) {
    if (!top) fail(line, "a class cannot stand inside of a class");
    if (in_class_ && line.text == wanted_module_) forget_module();  // Python's later definition replaces it
    if (in_class_)
      fail({line, {}, "name one behind the file: file.py::Module"}, "a text has one module; '{}' stands after '{}'",
           line.text, class_name_);
    class_head(line);
    for (const Line* member : line.body) guarded([&] { definition(*member, false, keep); });
    return;
  }
  if (guarded([&] { module_line(line); })) return;
  if (line.kind == LineKind::kAssign && is_name(*line.target)) unknown_.emplace(line.target->text);
}

void Parser::function_definition(const Line& line, bool& keep) {
  if (is_pyfunc(line)) {
    computed_.insert_or_assign(std::string(line.text), line.line);
    diagnostics_.warning(span(line), "'{}' is a function of Python, which is left out", line.text);
    return;
  }
  Pending pending{std::string(line.text), &line};
  if (!guarded([&] { pending = declare(line); })) {
    if (!declared_.contains(pending.name)) unknown_.insert(pending.name);
    return;
  }
  pending.sound = lines_sound_;
  if (pending.is_program && !tree_->names_module) return define_program(pending);
  pending_.push_back(std::move(pending));
  keep = true;
}

void Parser::forget_module() {
  in_class_ = false;
  module_.attrs = {};
  module_.global_infos.clear();
  for (const std::string& name : std::exchange(members_, {})) forget_function(name);
}

void Parser::forget_function(const std::string& name) {
  module_.functions.erase(name);
  declared_.erase(name);
  program_results_.erase(name);
  unknown_.erase(name);
  failed_.erase(name);
  wrong_results_.erase(name);
  std::erase_if(pending_, [&](const Pending& pending) { return pending.name == name; });
}

// Returns whether the definition is left out because another module of the text is wanted.
bool Parser::is_other_module(const Line& line) {
  if (wanted_module_.empty() || line.text == wanted_module_) return false;
  others_.emplace_back(line.text);
  return true;
}

void Parser::define_program(const Pending& pending) {
  size_t before = errors();
  guarded([&] {
    PrimFuncRef program = prim_func(pending);
    declared_.insert_or_assign(pending.name, program.type());
    module_.functions.insert_or_assign(pending.name, program);
  });
  if (!pending.sound || errors() > before) failed_.insert(pending.name);
}

// ---- Errors and their consequences

Diagnostic& Parser::report_text(const ErrorPlace& at, std::string message) {
  Diagnostic error{Severity::kError, at.kind, span(at), std::move(message), {}};
  if (!at.hint.empty()) error.notes.push_back(fmt::format("did you mean `{}`?", at.hint));
  if (at.note) error.notes.push_back(at.note);
  return diagnostics_.add(std::move(error));
}

std::string spelling(const Syntax& at) {
  if (at.kind <= SyntaxKind::kConstant) return std::string(at.text);  // names, numbers, strings
  if (at.kind == SyntaxKind::kAttribute) return fmt::format("{}.{}", spelling(*at.children[0]), at.text);
  if (at.kind == SyntaxKind::kSubscript) return spelling(*at.children[0]) + "[...]";
  if (at.kind == SyntaxKind::kCall) return spelling(*at.children[0]) + "(...)";
  constexpr std::pair<SyntaxKind, const char*> kWords[] = {
      {SyntaxKind::kLambda, "a lambda"}, {SyntaxKind::kTuple, "a tuple"},
      {SyntaxKind::kList, "a list"},     {SyntaxKind::kDict, "a dictionary"},
      {SyntaxKind::kSlice, "a range"},   {SyntaxKind::kStarred, "a starred expression"}};
  const char* const* words = row_of(kWords, at.kind);
  return words ? *words : "an expression";
}

void Parser::poison(const Syntax* target) {
  if (!target) return;
  if (is_name(*target)) poison(target->text);
  if (is_list(*target) || target->kind == SyntaxKind::kStarred) {
    for (const Syntax* item : target->children) poison(item);
  }
}
void Parser::poison(std::string_view name) {
  // A name that is assigned more than once, or that means a dim of the signature, keeps its meaning.
  const Entity* known = lookup(name);
  if (!known || (known->form != Entity::Form::kCell && !known->is_dim)) scopes_.define(name, Entity{});
}
void Parser::poison_line(const Line& line) {
  if (line.kind == LineKind::kAssign || line.kind == LineKind::kFor) poison(line.target);
  if (line.kind == LineKind::kFunction) return poison(line.text);
  // A '=' may be missing: `y, R.exp(x)`.
  if (line.kind == LineKind::kExpression) {
    for (const Syntax* item : items(*line.value)) {
      if (is_name(*item) && !lookup(item->text)) poison(item);
    }
  }
  for (std::string_view name : line.names) poison(name);
  for (const auto& [item, target] : line.items) poison(target);
  for (const Lines* lines : {&line.body, &line.otherwise}) {
    for (const Line* inner : *lines) poison_line(*inner);
  }
}

// A declared result that differs from what the function returns is a warning where nothing relies on it.
void Parser::check_declared_results() {
  if (wrong_results_.empty()) return;
  for (const auto& [name, function] : module_.functions) {
    walk(function, [&](const GlobalVar& callee) {
      auto wrong = wrong_results_.find(callee.name);
      if (wrong == wrong_results_.end()) return;
      wrong->second.severity = Severity::kError;
      wrong->second.notes = {"other functions of the module call it and rely on the declared type"};
    });
  }
  for (auto& [name, diagnostic] : wrong_results_) {
    if (diagnostic.severity == Severity::kWarning) diagnostic.notes = {"the type of what it returns counts"};
    diagnostics_.add(diagnostic);
  }
}

// Keeps the functions that were read and depend only on functions that were read, so that they can be verified.
void Parser::drop_failed() {
  std::set<std::string> gone = failed_;
  gone.insert(unknown_.begin(), unknown_.end());
  if (gone.empty()) return;
  std::map<std::string, std::vector<std::string>> callers;
  for (const auto& [name, function] : module_.functions)
    walk(function, [&, caller = &name](const GlobalVar& callee) { callers[callee.name].push_back(*caller); });
  std::vector<std::string> work(gone.begin(), gone.end());
  while (!work.empty()) {
    std::string callee = std::move(work.back());
    work.pop_back();
    for (const std::string& caller : callers[callee]) {
      if (gone.insert(caller).second) work.push_back(caller);
    }
  }
  std::erase_if(module_.functions, [&](const auto& entry) { return gone.contains(entry.first); });
}

// Drops the parts of tensor intrinsics, which schedules read: in TVM they are not part of the module.
void Parser::drop_intrin_parts() {
  std::set<std::string> called;
  for (const auto& [name, function] : module_.functions)
    walk(function, [&](const GlobalVar& callee) { called.insert(callee.name); });
  for (const std::string& name : intrin_parts_) {
    if (!called.contains(name)) module_.functions.erase(name);
  }
}

// ---- Names

void Parser::refuse_computed(const Syntax& at, uint32_t line) {
  if (unread_lines_.contains(line)) {  // the error of its syntax is enough
    for (const Diagnostic& error : std::exchange(python_errors_, {})) diagnostics_.add(error);
    throw Failed();
  }
  if (const std::string_view* function = find_value(python_functions_, line))
    fail({at, {}, "call it below with values: mod = f(128, \"float32\")"},
         "'{}' gets its value when Python calls '{}', which the text does not do", at.text, *function);
  fail({at, {}, computed_hint()}, "'{}' is computed by Python in line {}, which is not run",
       python_tree_->written(at.text), line);
}

// Returns the remedy for a value that only Python knows.
const char* Parser::computed_hint() const {
  return in_graph_ ? "write out its value; make a tensor a parameter, which --bind NAME=FILE.npy turns into a constant"
                   : "write out its value";
}

Expr Parser::name(const Syntax& at) {
  if (at.computed != 0) refuse_computed(at, at.computed);
  const Entity* entity = lookup(at.text);
  if (entity && entity->is_module) fail(at, "'{}' is the module; name one of its functions: {}.f", at.text, at.text);
  if (entity && entity->form == Entity::Form::kThread)
    fail(at, "'{}' is a thread axis that is not launched here; T.launch_thread gives it a value", at.text);
  if (entity && !entity->expr) throw Failed();  // reported where it was defined
  if (entity && !in_graph_) read_scalar(at, *entity->expr);
  if (entity) return *entity->expr;
  const PythonArray* made = in_graph_ ? find_value(arrays_, at.text) : nullptr;
  if (made && callee_path(*made->value) == "R.const") {  // w = relax.const(np.ones(4)) above
    std::erase(python_lines_, made->line);
    return constant(*made->value).expr;
  }
  if (const std::string* function = in_graph_ ? function_named(at.text) : nullptr)
    return global_var(*function, declared_.at(*function));
  fail_undefined(at);
}

// Says of a name that nothing here defines why that is so.
void Parser::fail_undefined(const Syntax& at) {
  if (const PythonArray* array = find_value(arrays_, at.text))
    fail({at, {}, computed_hint()}, "'{}' is computed by Python in line {}, which is not run",
         at.text.substr(0, at.text.find('<')), array->line);
  std::string text(at.text);
  if (unknown_.contains(text)) throw Failed();
  if (auto computed = computed_.find(text); computed != computed_.end()) refuse_computed(at, computed->second);
  auto hidden = hidden_.find(text);
  std::string hint = hidden == hidden_.end() && declared_.contains(text) ? "cls." + text : "";
  std::vector<std::string> names;
  // Hints do not help where nearly every name is wrong.
  constexpr size_t kHints = 500;
  if (hidden == hidden_.end() && hint.empty() && diagnostics_.all().size() <= kHints) {
    for (const auto& [known, meaning] : scopes_.visible()) {
      if (meaning->expr || meaning->is_module) names.push_back(known);
    }
    hint = nearest(text, names);
  }
  constexpr std::string_view kOfPython[] = {"hasattr", "getattr", "isinstance", "len",    "str",  "int",   "list",
                                            "dict",    "zip",     "enumerate",  "sorted", "type", "print", "super"};
  if (std::ranges::find(kOfPython, text) != std::end(kOfPython))
    fail({at, {}, "write out its result"}, "'{}' is a function of Python, which is not known for this argument", text);
  Diagnostic& diagnostic = report({at, hint}, "undefined name '{}'", text);
  if (hidden != hidden_.end()) diagnostic.notes.push_back(hidden->second);
  if (hidden == hidden_.end() && hint.empty())
    diagnostic.notes.push_back(fmt::format(
        "TVM's script takes such a name from the Python around: write `{} = ...` above, or make it a parameter{}", text,
        blocks_.empty()
            ? fmt::format("; a dim that the caller decides stands in quotes: T.Buffer((\"{}\",), ...)", text)
            : ""));
  // A name is reported once per function.
  scopes_.define(text, Entity{}, Scopes::kOfFunction);
  throw Failed();
}

void Parser::require_defined(const Syntax& at) {
  const Syntax& owner = at.kind == SyntaxKind::kSubscript || at.kind == SyntaxKind::kAttribute ? *at.children[0] : at;
  bool is_form = is_name(owner) && (prefixes_.contains(owner.text) || !bare_form(owner).empty());
  if (is_name(owner) && !lookup(owner.text) && !is_form) name(owner);
}

std::string Parser::dotted(const Syntax& at) const {
  // `range` is Python's loop helper.
  bool is_builtin = is_name(at) && (at.text == "range" || at.text == "float") && !lookup(at.text);
  if (is_builtin) return std::string(at.text);
  if (is_name(at)) return at.computed != 0 ? "" : bare_form(at);
  if (at.kind != SyntaxKind::kAttribute) return {};
  // The callee of one call is requested several times per statement, so the last answer is kept.
  if (&at != dotted_at_) {
    dotted_path_ = resolve(at);
    dotted_at_ = &at;
  }
  return dotted_path_;
}

std::string Parser::resolve(const Syntax& at) const {
  std::vector<std::string_view> parts;
  const Syntax* node = &at;
  for (; node->kind == SyntaxKind::kAttribute; node = node->children[0]) parts.push_back(node->text);
  if (!is_name(*node) || node->computed != 0 || lookup(node->text)) return {};
  parts.push_back(node->text);
  // The prefixes are tvm.script.tir.x and tvm.tir.x.
  if (node->text == "tvm") {
    parts.pop_back();
    if (parts.back() == "script" && parts.size() > 1) parts.pop_back();
  }
  if (node->text == "tvm" && parts.size() == 1 && is_early_te(parts.back()))
    return canonical_form(fmt::format("T.{}", parts.back()));
  auto prefix = prefixes_.find(parts.back());
  bool is_bare = leaves_out_prefixes() && prefix == prefixes_.end() && (parts.back() == "axis" || parts.back() == "nn");
  if (is_bare) parts.push_back("");
  if (prefix == prefixes_.end() && !is_bare) return {};
  std::string path = is_bare ? (in_graph_ ? "R" : "T") : prefix->second;
  for (size_t i = parts.size() - 1; i-- > 0;) {
    path += '.';
    path += parts[i];
  }
  if (path.starts_with("T.tir.")) path.erase(2, 4);
  if (path.starts_with("R.op.")) path = fmt::format("R.{}", path_of_operator(std::string_view(path).substr(5)));
  if (path.starts_with("R.")) path = fmt::format("R.{}", without_python_file(std::string_view(path).substr(2)));
  return canonical_form(std::move(path));
}

const std::string* Parser::function_named(std::string_view name) const {
  auto it = declared_.find(name);
  return it == declared_.end() || lookup(name) ? nullptr : &it->first;
}

const std::string* Parser::function_name(const Syntax& at) {
  if (at.kind != SyntaxKind::kAttribute || !is_name(*at.children[0])) return nullptr;
  std::string_view owner = at.children[0]->text;
  const Entity* entity = lookup(owner);
  bool is_module = entity ? entity->is_module : owner == class_name_ || owner == "cls" || owner == "Module";
  if (!is_module) return nullptr;
  auto it = declared_.find(at.text);
  if (unknown_.contains(at.text)) throw Failed();
  if (it != declared_.end()) return &it->first;
  auto names = std::views::keys(declared_);
  std::string near = nearest(at.text, {names.begin(), names.end()});
  fail({at, near.empty() ? "" : fmt::format("{}.{}", owner, near)}, "the module has no function '{}'", at.text);
}

VarRef Parser::define_var(const Syntax& target, Type type, Entity::Form form) {
  VarRef var = make_var(name_of_target(target), std::move(type), span(target));
  scopes_.define(var->name, Entity{.expr = var, .form = form});
  return var;
}
VarRef Parser::define_param(const Param& param, Type type) {
  VarRef var = make_var(std::string(param.name), std::move(type), span(param));
  define(param.name, var);
  return var;
}

// ---- Arguments

const Syntax* Parser::keyword(const Syntax& call, std::string_view name) const {
  for (const Keyword& keyword : call.keywords) {
    if (canonical_keyword(keyword.name) == name) return keyword.value;
  }
  return nullptr;
}
const Syntax* Parser::arg(const Syntax& call, size_t i, std::string_view name) const {
  return i < positional(call) ? call.children[i + 1] : keyword(call, name);
}
const Syntax& Parser::required(const Syntax& call, size_t i, std::string_view name) {
  const Syntax* value = arg(call, i, name);
  if (!value) fail(call, "argument '{}' is missing", name);
  return *value;
}
std::vector<const Syntax*> Parser::items(const Syntax& at) const {
  if (is_list(at)) return {at.children.begin(), at.children.end()};
  return {&at};
}

}  // namespace text

}  // namespace relaxc
