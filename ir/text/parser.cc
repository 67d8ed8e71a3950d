// Reads the definitions of a module one after the other: their order, errors, names, and the arguments of calls.
#include "ir/text/parser.h"

#include <algorithm>
#include <ranges>

#include "ir/text/names.h"
#include "ir/text/parsing.h"

namespace relaxc {

IRModule parse_module(std::string_view text, std::string filename, const OpTable& ops, Diagnostics& diagnostics) {
  auto origin = std::make_shared<Origin>();
  origin->file = std::move(filename);
  origin->text = std::make_shared<const std::string>(text);
  return text::Parser(std::move(origin), ops, diagnostics).run();
}

namespace text {

// Returns whether the line is @S.schedule("f"), @S.rule("op") or S.intrin(...), which tir/schedule/script.h reads.
static bool is_schedule(const Line& line) {
  auto is_ours = [](const Syntax& call) {
    if (!is_call(call) || call.children[0]->kind != SyntaxKind::kAttribute) return false;
    const Syntax& object = *call.children[0]->children[0];
    return is_name(object) && object.text == "S";
  };
  if (line.kind == LineKind::kExpression) return is_ours(*line.value);
  return line.kind == LineKind::kFunction &&
         std::ranges::any_of(line.decorators, [&](const Syntax* each) { return is_ours(*each); });
}

static bool is_rewriter(const Line& line) {
  return line.kind == LineKind::kClass && std::ranges::any_of(line.decorators, [](const Syntax* decorator) {
           return decorator->kind == SyntaxKind::kAttribute && decorator->text == "rewriter";
         });
}

Parser::Parser(std::shared_ptr<const Origin> origin, const OpTable& ops, Diagnostics& diagnostics)
    : origin_(std::move(origin)), ops_(ops), diagnostics_(diagnostics) {
  prefixes_ = {{"I", "I"}, {"T", "T"}, {"R", "R"}, {"ir", "I"}, {"tir", "T"}, {"tirx", "T"}, {"relax", "R"}};
  scopes_.enter();
}

IRModule Parser::run() {
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
    });
    if (!sound || errors() > before) failed_.insert(function.name);
  }
  drop_failed();
  return std::move(module_);
}

// Tensor programs become nodes at once, and their syntax is dropped, so a large text needs little additional memory.
void Parser::read_definitions() {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  std::string_view text = *origin_->text;
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  SyntaxReader reader(Source{origin_, text}, diagnostics_);
  tree_ = &trees_.emplace_back();
  bool ignored = false;  // members of a class that is not the module
  Lines lines;
  size_t before = diagnostics_.all().size();
  for (; reader.next(*tree_, lines); before = diagnostics_.all().size()) {
    lines_sound_ = diagnostics_.all().size() == before;
    if (!reader.in_class()) ignored = false;
    bool keep = false;
    for (const Line* line : lines) {
      if (ignored) continue;
      bool top = !reader.in_class();
      if (top && is_rewriter(*line)) {  // its functions are not the module's (passes/kernel_rules.h)
        ignored = true;
        continue;
      }
      if (!guarded([&] { definition(*line, top, keep); })) ignored = top && line->kind == LineKind::kClass;
    }
    dotted_at_ = nullptr;
    if (keep) {
      tree_ = &trees_.emplace_back();
    } else {
      tree_->clear();
    }
  }
}

// Sets `keep` when its syntax is needed later.
void Parser::definition(const Line& line, bool top, bool& keep) {
  if (line.kind == LineKind::kImport) return imports(line);
  if (top && is_schedule(line)) return;
  if (is_docstring(line) || line.kind == LineKind::kPass || type_variables(line)) return;
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
    Pending pending{std::string(line.text), &line};
    if (!guarded([&] { pending = declare(line); })) {
      if (!declared_.contains(pending.name)) unknown_.insert(pending.name);
      return;
    }
    pending.sound = lines_sound_;
    if (pending.is_program && !tree_->names_module) return define_program(pending);
    pending_.push_back(std::move(pending));
    keep = true;
    return;
  }
  if (top && line.kind == LineKind::kAssign && line.target->text == "metadata") {
    keep = true;
    if (!guarded([&] { metadata(line); })) unknown_.emplace("metadata");
    return;
  }
  if (line.kind == LineKind::kClass) {
    if (!top) fail(line, "a class cannot stand inside of a class");
    if (in_class_) fail(line, "a text has one module, and this is a second one");
    class_head(line);
    for (const Line* member : line.body) guarded([&] { definition(*member, false, keep); });
    return;
  }
  if (top)
    fail({line, {}, "computations around a module are not run; write out their values, and remove the rest"},
         "expected a class or a function here");
  if (guarded([&] { module_line(line); })) return;
  if (line.kind == LineKind::kAssign && is_name(*line.target)) unknown_.emplace(line.target->text);
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
  if (target->kind == SyntaxKind::kTuple || target->kind == SyntaxKind::kStarred) {
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

// ---- Names

Expr Parser::name(const Syntax& at) {
  const Entity* entity = lookup(at.text);
  if (entity && entity->is_module) fail(at, "'{}' is the module; name one of its functions: {}.f", at.text, at.text);
  if (entity && entity->form == Entity::Form::kThread)
    fail(at, "'{}' is a thread axis that is not launched here; T.launch_thread gives it a value", at.text);
  if (entity && !entity->expr) throw Failed();  // reported where it was defined
  if (entity) return *entity->expr;
  if (const std::string* function = early_ && in_graph_ ? function_named(at.text) : nullptr)
    return global_var(*function, declared_.at(*function));
  std::string text(at.text);
  if (unknown_.contains(text)) throw Failed();
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
  Diagnostic& diagnostic = report({at, hint}, "undefined name '{}'", text);
  if (hidden != hidden_.end()) diagnostic.notes.push_back(hidden->second);
  // A name is reported once per function.
  scopes_.define(text, Entity{}, Scopes::kOfFunction);
  throw Failed();
}

std::string Parser::dotted(const Syntax& at) const {
  // `range` is Python's loop helper.
  bool is_builtin = is_name(at) && (at.text == "range" || at.text == "float") && !lookup(at.text);
  if (is_builtin) return std::string(at.text);
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
  if (!is_name(*node) || lookup(node->text)) return {};
  parts.push_back(node->text);
  // The prefixes are tvm.script.tir.x and tvm.tir.x.
  if (node->text == "tvm") {
    parts.pop_back();
    if (parts.back() == "script" && parts.size() > 1) parts.pop_back();
  }
  auto prefix = prefixes_.find(parts.back());
  if (prefix == prefixes_.end()) return {};
  std::string path = prefix->second;
  for (size_t i = parts.size() - 1; i-- > 0;) {
    path += '.';
    path += parts[i];
  }
  if (path.starts_with("T.tir.")) path.erase(2, 4);
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
