// Handles the consequences of an error: hints, names whose definition failed, functions that are left out of the
// module.
#include "ir/text/parsing.h"
#include "ir/visit.h"

namespace relaxc::text {

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
  for (const auto& [kind, words] : kWords) {
    if (at.kind == kind) return words;
  }
  return "an expression";
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
  for (const auto& [name, function] : module_.functions) {
    walk(function, [&, caller = &name](const GlobalVar& callee) { callers[callee.name].push_back(*caller); });
  }
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

}  // namespace relaxc::text
