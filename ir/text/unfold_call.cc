// Writes out calls of Python's functions: the arguments, the statements that run, and the names of variables.
#include <algorithm>

#include "ir/text/unfold.h"

namespace relaxc::text {

static bool holds_errors(const Line& line) {
  auto any = [](const Lines& lines) {
    return std::ranges::any_of(lines, [](const Line* l) { return holds_errors(*l); });
  };
  return line.kind == LineKind::kBroken || any(line.body) || any(line.otherwise);
}

// Returns the first call of a function that is written out; those in arguments come first.
const Syntax* Unfolder::find_call(const Syntax* at) const {
  if (!at || at->kind == SyntaxKind::kLambda) return nullptr;
  for (const Syntax* child : at->children) {
    if (const Syntax* found = find_call(child)) return found;
  }
  for (const Syntax::Keyword& keyword : at->keywords) {
    if (const Syntax* found = find_call(keyword.value)) return found;
  }
  auto known = is_call(*at) && is_name(*at->children[0]) ? functions_.find(at->children[0]->text) : functions_.end();
  return known != functions_.end() && known->second.unfolds && !known->second.active ? at : nullptr;
}

// Writes out the call in the statement, and the statement with the call's result. Returns whether it could.
bool Unfolder::unfold(const Line& line, const Syntax& call, Lines& out) {
  Function& function = functions_.find(callee_name(call))->second;
  if (depth_ >= kDeepest || produced_ > kMostLines) return false;
  Replacements params;
  Lines body, flat;
  if (!bind_params(function, call, params, body)) return false;
  for (const Line* inner : function.line->body) body.push_back(&with_names(*inner, params, *tree_));
  const Syntax* result = nullptr;
  bool returned = false;
  if (!flatten(body, flat, result, returned)) return false;
  if (std::ranges::any_of(flat, [](const Line* each) { return holds_definition(*each) && holds_errors(*each); }))
    for (const Diagnostic& error : std::exchange(function.errors, {})) diagnostics_.add(error);
  produced_ += flat.size();
  tree_->names_module = true;  // the definitions may name what stands further down
  bool whole = line.value == &call;
  bool assigns = whole && line.kind == LineKind::kAssign;
  Replacements locals;
  rename_locals(flat, result, assigns ? line.target : nullptr, locals);
  Temporarily deeper(depth_, depth_ + 1);
  Temporarily active(function.active, true);
  function.used = function.called = true;
  for (const Line* each : flat) statement(with_names(*each, locals, *tree_), out);
  result = with_names(result, locals, *tree_);
  Line& last = tree_->line();
  last = line;
  if (whole &&
      (!result || (is_name(*result) && (!assigns || (is_name(*line.target) && line.target->text == result->text)))))
    return true;
  if (!result) result = &made(SyntaxKind::kConstant, call, "None");
  std::function<const Syntax*(const Syntax*)> put = [&](const Syntax* at) -> const Syntax* {
    if (!at || at == &call) return at ? result : at;
    Syntax& copy = made(at->kind, *at, at->text);
    for (const Syntax* child : at->children) copy.children.push_back(put(child));
    copy.keywords.assign(at->keywords.begin(), at->keywords.end());
    for (Syntax::Keyword& keyword : copy.keywords) keyword.value = put(keyword.value);
    for (const Syntax* child : copy.children) copy.depth = std::max(copy.depth, child ? child->depth + 1 : 1);
    for (const Syntax::Keyword& keyword : copy.keywords) copy.depth = std::max(copy.depth, keyword.value->depth + 1);
    return &copy;
  };
  last.value = put(line.value);
  statement(last, out);
  return true;
}

// Gives each param its argument: names and constants in place of it, others by an assignment.
bool Unfolder::bind_params(Function& function, const Syntax& call, Replacements& names, Lines& assigned) {
  const std::vector<Param>& params = function.line->params;
  std::set<std::string_view> rebound;
  for (const Line* line : function.line->body) add_bound_names(*line, rebound, false);
  auto args = call.operands();
  if (args.size() > params.size() ||
      std::ranges::any_of(args, [](const Syntax* arg) { return arg->kind == SyntaxKind::kStarred; }))
    return false;
  for (const Syntax::Keyword& keyword : call.keywords) {
    if (std::ranges::find(params, keyword.name, &Param::name) == params.end()) return false;
  }
  for (size_t i = 0; i < params.size(); ++i) {
    if (!params[i].stars.empty()) return false;
    const Syntax* value = i < args.size() ? args[i] : nullptr;
    for (const Syntax::Keyword& keyword : call.keywords) {
      if (keyword.name == params[i].name) value = keyword.value;
    }
    if (!value) value = params[i].otherwise;
    if (!value) return false;
    bool computes = false;
    for_each(value, [&](const Syntax& at) { computes = computes || is_call(at); });
    if (!computes && !rebound.contains(params[i].name)) {
      names.emplace(params[i].name, value);
    } else {
      assigned.push_back(assignment(call, &made(SyntaxKind::kName, call, params[i].name), value));
    }
  }
  return true;
}

// Returns whether the statement is `if not tvm.runtime.enabled("llvm"): return`, by which tests end early.
static bool is_guard(const Line& line) {
  auto is_end = [](const Line* inner) {
    return (inner->kind == LineKind::kReturn && !inner->value) || inner->kind == LineKind::kExpression;
  };
  return line.kind == LineKind::kIf && line.otherwise.empty() && std::ranges::all_of(line.body, is_end) &&
         line.body.back()->kind == LineKind::kReturn;
}

// Appends the statements that run, up to the return. Returns false where that depends on what Python computes.
bool Unfolder::flatten(const Lines& body, Lines& out, const Syntax*& result, bool& returned) const {
  auto returns = [](const auto& self, const Line& line) -> bool {
    auto any = [&](const Lines& lines) {
      return std::ranges::any_of(lines, [&](const Line* inner) { return self(self, *inner); });
    };
    return line.kind == LineKind::kReturn ||
           (line.kind != LineKind::kFunction && (any(line.body) || any(line.otherwise)));
  };
  for (const Line* line : body) {
    if (returned) return true;
    std::optional<bool> test = line->kind == LineKind::kIf ? truth(*line->value) : std::nullopt;
    if (line->kind == LineKind::kReturn) {
      result = line->value;
      returned = true;
    } else if (test) {
      if (!flatten(*test ? line->body : line->otherwise, out, result, returned)) return false;
    } else if (line->kind == LineKind::kTry) {
      if (!flatten(line->body, out, result, returned)) return false;
    } else if (line->kind == LineKind::kWith && returns(returns, *line)) {
      if (!flatten(line->body, out, result, returned)) return false;
    } else if (is_guard(*line)) {
      continue;
    } else if (returns(returns, *line)) {
      return false;
    } else if (!is_docstring(*line)) {
      out.push_back(line);
    }
  }
  return true;
}

// Names of the function that stand for others outside get new ones; what it returns gets the name of the target.
void Unfolder::rename_locals(const Lines& body, const Syntax* result, const Syntax* target, Replacements& names) {
  std::set<std::string_view> locals, definitions;
  for (const Line* line : body) {
    bool defines = line->kind == LineKind::kFunction || line->kind == LineKind::kClass;
    add_bound_names(*line, defines ? definitions : locals, false);
  }
  auto give = [&](const Syntax& local, const Syntax& outer) {
    if (is_name(local) && is_name(outer) && locals.contains(local.text)) names.emplace(local.text, &outer);
  };
  if (result && target) {
    give(*result, *target);
    if (is_list(*result) && is_list(*target) && result->children.size() == target->children.size()) {
      for (size_t i = 0; i < result->children.size(); ++i) give(*result->children[i], *target->children[i]);
    }
  }
  std::set<std::string> taken = bound_;
  for (const auto& [local, outer] : names) taken.emplace(outer->text);
  for (std::string_view local : locals) {
    if (names.contains(local) || definitions.contains(local) || !taken.contains(std::string(local))) continue;
    std::string fresh(local);
    for (int i = 1; taken.contains(fresh) || locals.contains(fresh); ++i) fresh = fmt::format("{}_{}", local, i);
    taken.insert(fresh);
    names.emplace(local, &made(SyntaxKind::kName, *body.front(), kept_->text(fresh)));
  }
}

}  // namespace relaxc::text
