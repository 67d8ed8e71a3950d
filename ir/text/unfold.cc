#include "ir/text/unfold.h"

#include <algorithm>
#include <ranges>

namespace relaxc::text {

namespace {

constexpr int kDeepest = 16;           // calls in calls
constexpr size_t kMostLines = 20'000;  // that calls are written out as
constexpr int kDeepestValue = 200;     // of an expression that calls are written out as
constexpr size_t kMostNodes = 10'000;  // of such an expression

template <class... Names>
bool is_one_of(std::string_view name, const Names&... names) {
  return ((name == names) || ...);
}

// Returns what is called: "Schedule" of tvm.tir.Schedule(f).
std::string_view callee_name(const Syntax& call) { return call.children[0]->text; }

void for_each(const Syntax* at, const std::function<void(const Syntax&)>& visit) {
  if (!at) return;
  visit(*at);
  for (const Syntax* child : at->children) for_each(child, visit);
  for (const Syntax::Keyword& keyword : at->keywords) for_each(keyword.value, visit);
}
void for_each(const Line& line, const std::function<void(const Syntax&)>& visit) {
  for (const Syntax* part : {line.target, line.value, line.extra}) for_each(part, visit);
  for (const auto& [item, target] : line.items) for_each(item, visit);
  for (const Lines* lines : {&line.body, &line.otherwise}) {
    for (const Line* inner : *lines) for_each(*inner, visit);
  }
}

// Returns the number of nodes, or one beyond the limit. A node that stands twice counts twice.
size_t size_of(const Syntax& at, size_t limit = kMostNodes) {
  size_t size = 1;
  auto add = [&](const Syntax* part) {
    if (part && size <= limit) size += size_of(*part, limit - size);
  };
  for (const Syntax* child : at.children) add(child);
  for (const Syntax::Keyword& keyword : at.keywords) add(keyword.value);
  return size;
}
bool is_small(const Syntax& at) { return at.depth <= kDeepestValue && size_of(at) <= kMostNodes; }

bool is_docstring(const Line& line) {
  return line.kind == LineKind::kExpression && line.value->kind == SyntaxKind::kString;
}

bool holds_errors(const Line& line) {
  auto any = [](const Lines& lines) {
    return std::ranges::any_of(lines, [](const Line* l) { return holds_errors(*l); });
  };
  return line.kind == LineKind::kBroken || any(line.body) || any(line.otherwise);
}

Replacements without(const Replacements& names, const std::set<std::string_view>& hidden) {
  Replacements result = names;
  for (std::string_view name : hidden) result.erase(name);
  return result;
}

}  // namespace

void add_names(const Syntax* target, std::set<std::string_view>& names) {
  if (!target) return;
  if (is_name(*target)) names.insert(target->text);
  if (is_list(*target) || target->kind == SyntaxKind::kStarred) {
    for (const Syntax* item : target->children) add_names(item, names);
  }
}

void add_bound_names(const Line& line, std::set<std::string_view>& names, bool within) {
  if (line.kind == LineKind::kAssign || line.kind == LineKind::kFor || line.kind == LineKind::kAugmented)
    add_names(line.target, names);
  bool is_scope = line.kind == LineKind::kFunction || line.kind == LineKind::kClass;
  if (is_scope) names.insert(line.text);
  if (is_scope && !within) return;
  for (const Param& param : line.params) names.insert(param.name);
  names.insert(line.type_params.begin(), line.type_params.end());
  names.insert(line.names.begin(), line.names.end());
  for (const auto& [item, target] : line.items) add_names(target, names);
  for (const Lines* lines : {&line.body, &line.otherwise}) {
    for (const Line* inner : *lines) add_bound_names(*inner, names, within);
  }
}

const Syntax* with_names(const Syntax* at, const Replacements& names, SyntaxTree& tree) {
  if (!at) return at;
  auto found = is_name(*at) ? names.find(at->text) : names.end();
  if (found != names.end()) return found->second;
  Replacements inner;
  if (at->kind == SyntaxKind::kLambda) {
    std::set<std::string_view> own;
    for (size_t i = 0; i + 1 < at->children.size(); ++i) add_names(at->children[i], own);
    inner = without(names, own);
  }
  const Replacements& used = at->kind == SyntaxKind::kLambda ? inner : names;
  Syntax& result = tree.node();
  static_cast<Place&>(result) = *at;
  result.kind = at->kind;
  result.text = at->text;
  for (const Syntax* child : at->children) {
    result.children.push_back(with_names(child, used, tree));
    if (result.children.back()) result.depth = std::max(result.depth, result.children.back()->depth + 1);
  }
  result.keywords.assign(at->keywords.begin(), at->keywords.end());
  for (Syntax::Keyword& keyword : result.keywords) {
    keyword.value = with_names(keyword.value, used, tree);
    result.depth = std::max(result.depth, keyword.value->depth + 1);
  }
  return &result;
}

const Line& with_names(const Line& line, const Replacements& outer, SyntaxTree& tree) {
  Line& result = tree.line();
  result = line;
  bool is_scope = line.kind == LineKind::kFunction || line.kind == LineKind::kClass;
  for (const Syntax*& decorator : result.decorators) decorator = with_names(decorator, outer, tree);
  for (Param& param : result.params) {
    param.annotation = with_names(param.annotation, outer, tree);
    param.otherwise = with_names(param.otherwise, outer, tree);
  }
  std::set<std::string_view> own;
  if (is_scope) add_bound_names(line, own);
  const Replacements names = is_scope ? without(outer, own) : outer;
  for (const Syntax** part : {&result.target, &result.annotation, &result.value, &result.extra})
    *part = with_names(*part, names, tree);
  for (auto& [item, target] : result.items) {
    item = with_names(item, names, tree);
    target = with_names(target, names, tree);
  }
  for (Lines* lines : {&result.body, &result.otherwise}) {
    for (const Line*& inner : *lines) inner = &with_names(*inner, names, tree);
  }
  return result;
}

// ---- Statements

bool Unfolder::next(SyntaxTree& tree, Lines& out) {
  tree_ = &tree;
  withheld_ = false;
  size_t before = diagnostics_.all().size();
  if (!reader_.next(tree, out)) {
    if (std::exchange(ended_, true)) return false;
    out.clear();
    // Functions that nothing calls are Python that is not run.
    for (const std::string& name : order_) {
      auto function = functions_.find(name);
      if (function != functions_.end() && !function->second.used) out.push_back(function->second.line);
    }
    return !out.empty();
  }
  if (reader_.in_class()) {
    for (const Line*& line : out) line = &with_functions(*line);
    return true;
  }
  errors_.assign(diagnostics_.all().begin() + static_cast<long>(before), diagnostics_.all().end());
  Lines read = std::exchange(out, {});
  for (const Line* line : read) statement(*line, out);
  withheld_ = out.empty() && !read.empty();
  return true;
}

void Unfolder::statement(const Line& line, Lines& out) {
  auto all = [&](const Lines& lines) {
    for (const Line* inner : lines) statement(*inner, out);
  };
  if (line.kind == LineKind::kFunction && keeps(line)) return;
  if (line.kind == LineKind::kTry) return all(line.body);
  if (line.kind == LineKind::kIf &&
      std::ranges::none_of(line.body, [](const Line* inner) { return inner->kind == LineKind::kReturn; })) {
    if (std::optional<bool> test = truth(*line.value)) return all(*test ? line.body : line.otherwise);
  }
  if (line.kind == LineKind::kWith) {
    bool is_context = std::ranges::all_of(line.items, [](const auto& item) {
      std::string_view name = head_of(*item.first).text;
      return is_one_of(name, "PassContext", "Target", "target", "tgt", "TemporaryDirectory", "cuda", "llvm");
    });
    if (is_context) return all(line.body);
  }
  const Line* now = &with_functions(line);
  const Syntax* call = now->kind == LineKind::kFunction ? nullptr : find_call(now->value);
  if (call && unfold(*now, *call, out)) return;
  std::set<std::string_view> names;
  add_bound_names(*now, names, false);
  for (std::string_view name : names) {
    bound_.emplace(name);
    constants_.erase(std::string(name));
    auto other = now->kind == LineKind::kFunction ? functions_.end() : functions_.find(name);
    if (other != functions_.end() && !other->second.active)
      functions_.erase(other);  // the name means something else now
  }
  bool is_constant = now->kind == LineKind::kAssign && now->value && is_name(*now->target) &&
                     now->value->kind > SyntaxKind::kName && now->value->kind <= SyntaxKind::kConstant;
  if (is_constant) constants_.insert_or_assign(std::string(now->target->text), with_names(now->value, {}, *kept_));
  out.push_back(now);
}

// Keeps a function of Python that is to be written out where it is called. Others stay where they stand.
bool Unfolder::keeps(const Line& line) {
  add_globals(line);
  if (is_script_function(line) || !line.decorators.empty()) return false;
  Function function{&line, errors_};
  function.unfolds = std::ranges::any_of(line.body, [&](const Line* inner) { return unfolds(*inner, line); });
  if (!function.unfolds) function.lambda = as_lambda(line);
  if (!function.unfolds && !function.lambda) return false;
  for_each(line, [&](const Syntax& at) { function.of_te = function.of_te || (is_name(at) && at.text == "te"); });
  bool stays = function.lambda && function.of_te;
  function.line = &with_names(line, {}, *kept_);
  if (function.lambda) function.lambda = as_lambda(*function.line);
  function.used = stays;
  std::string name(line.text);
  if (!functions_.contains(name)) order_.push_back(name);
  functions_.insert_or_assign(name, std::move(function));
  return !stays;
}

// Names that a function may change are not constants.
void Unfolder::add_globals(const Line& line) {
  if (line.kind == LineKind::kBroken && line.text.starts_with("global")) {
    for (std::string_view name : line.names) changed_.emplace(name);
  }
  for (const Lines* lines : {&line.body, &line.otherwise}) {
    for (const Line* inner : *lines) add_globals(*inner);
  }
}

// Returns whether the statement of the function is one for which the function is written out.
bool Unfolder::unfolds(const Line& line, const Line& function) const {
  if (holds_definition(line)) return true;
  bool worth = false;
  for_each(line, [&](const Syntax& at) { worth = worth || calls_worth(&at, function); });
  return worth;
}

bool Unfolder::calls_worth(const Syntax* at, const Line& function) const {
  if (!is_call(*at)) return false;
  const Syntax& callee = *at->children[0];
  auto known = is_name(callee) ? functions_.find(callee.text) : functions_.end();
  if (is_one_of(callee.text, "Schedule", "create_prim_func") || (known != functions_.end() && known->second.unfolds))
    return true;
  bool of_param =
      callee.kind == SyntaxKind::kAttribute && is_name(*callee.children[0]) &&
      std::ranges::any_of(function.params, [&](const Param& param) { return param.name == callee.children[0]->text; });
  return of_param && is_one_of(callee.text, "get_loops", "get_block", "get_sblock", "get_child_blocks", "cache_read",
                               "cache_write", "compute_at", "reverse_compute_at", "compute_inline", "split", "fuse",
                               "reorder", "vectorize", "parallel", "unroll", "bind", "annotate", "tensorize",
                               "transform_layout", "decompose_reduction", "rfactor");
}

// ---- Functions of one expression

// Returns lambda i, j: (j, i) for def f(i, j): return (j, i); null for functions with other statements.
const Syntax* Unfolder::as_lambda(const Line& function) {
  Replacements values;  // of its variables
  const Syntax* value = nullptr;
  for (const Line* line : function.body) {
    if (is_docstring(*line)) continue;
    if (value || !line->value || (line->kind != LineKind::kReturn && line->kind != LineKind::kAssign)) return nullptr;
    bool defines = false;  // a variable that stands for one thing, wherever it is used
    for_each(line->value, [&](const Syntax& at) {
      defines =
          defines || (is_call(at) && is_one_of(callee_name(at), "reduce_axis", "placeholder", "compute", "extern"));
    });
    const Syntax* now = with_names(line->value, values, *kept_);
    if (defines || !is_small(*now)) return nullptr;
    if (line->kind == LineKind::kReturn) {
      value = now;
    } else if (is_name(*line->target)) {
      values.insert_or_assign(line->target->text, now);
    } else {
      return nullptr;
    }
  }
  if (!value) return nullptr;
  Syntax& result = kept_->node();
  static_cast<Place&>(result) = function;
  result.kind = SyntaxKind::kLambda;
  for (const Param& param : function.params) {
    Syntax& name = kept_->node();
    static_cast<Place&>(name) = param;
    name.kind = SyntaxKind::kName;
    name.text = param.name;
    Syntax* child = &name;
    if (param.stars.size() > 1 || param.otherwise) return nullptr;
    if (!param.stars.empty()) {
      child = &kept_->node();
      static_cast<Place&>(*child) = param;
      child->kind = SyntaxKind::kStarred;
      child->children.push_back(&name);
    }
    result.children.push_back(child);
  }
  result.children.push_back(value);
  result.depth = value->depth + 1;
  return &result;
}

// Returns the argument of each param; nullopt where they do not fit.
std::optional<Replacements> Unfolder::arguments_of(const Syntax& lambda, const std::vector<const Syntax*>& call,
                                                   const std::vector<Syntax::Keyword>& keywords) {
  size_t count = lambda.children.size() - 1;
  Replacements values;
  for (size_t i = 0; i < count; ++i) {
    const Syntax& param = *lambda.children[i];
    if (!is_name(param)) return std::nullopt;
    if (i + 1 < call.size()) values.emplace(param.text, call[i + 1]);
    for (const Syntax::Keyword& keyword : keywords) {
      if (keyword.name == param.text) values.emplace(param.text, keyword.value);
    }
  }
  bool spreads = std::ranges::any_of(call, [](const Syntax* arg) { return arg->kind == SyntaxKind::kStarred; });
  bool fits = !spreads && call.size() - 1 + keywords.size() == count && values.size() == count;
  return fits ? std::optional(values) : std::nullopt;
}

// Returns the expression with functions as lambdas where a call takes them, te.compute(shape, f), and with calls of
// them as their values.
const Syntax* Unfolder::with_functions(const Syntax* at, bool in_lambda) {
  if (!at || functions_.empty()) return at;
  bool takes = is_call(*at) && is_one_of(callee_name(*at), "compute", "extern", "comm_reducer", "transform_layout",
                                         "from_func", "transform_block_layout", "IndexMap", "index_map");
  in_lambda = in_lambda || at->kind == SyntaxKind::kLambda;
  bool changed = false;
  auto part = [&](const Syntax* child, bool is_argument) {
    auto found = child && is_argument && is_name(*child) ? functions_.find(child->text) : functions_.end();
    bool is_lambda = found != functions_.end() && found->second.lambda;
    const Syntax* now = is_lambda ? found->second.lambda : with_functions(child, in_lambda);
    if (is_lambda) found->second.used = true;
    changed = changed || now != child;
    return now;
  };
  std::vector<const Syntax*> children;
  for (const Syntax* child : at->children) children.push_back(part(child, takes && !children.empty()));
  std::vector<Syntax::Keyword> keywords(at->keywords.begin(), at->keywords.end());
  for (Syntax::Keyword& keyword : keywords) keyword.value = part(keyword.value, takes);
  auto called = is_call(*at) && is_name(*at->children[0]) ? functions_.find(at->children[0]->text) : functions_.end();
  const Syntax* lambda = called == functions_.end() ? nullptr : called->second.lambda;
  bool applies = lambda && (in_lambda || !called->second.of_te) && !called->second.active && produced_ < kMostLines;
  if (std::optional<Replacements> values = applies ? arguments_of(*lambda, children, keywords) : std::nullopt) {
    Temporarily active(called->second.active, true);
    const Syntax* body = with_functions(lambda->children.back(), in_lambda);
    const Syntax* value = with_names(body, *values, *tree_);
    ++produced_;
    called->second.used = true;
    if (is_small(*value)) return value;
  }
  if (!changed) return at;
  Syntax& result = made(at->kind, *at, at->text);
  result.children.assign(children.begin(), children.end());
  result.keywords.assign(keywords.begin(), keywords.end());
  for (const Syntax* child : children) result.depth = std::max(result.depth, child ? child->depth + 1 : 1);
  for (const Syntax::Keyword& keyword : keywords) result.depth = std::max(result.depth, keyword.value->depth + 1);
  return &result;
}

const Line& Unfolder::with_functions(const Line& line) {
  bool any = false;  // of the functions is named
  if (!functions_.empty())
    for_each(line, [&](const Syntax& at) { any = any || (is_name(at) && functions_.contains(at.text)); });
  if (!any) return line;
  Line& result = tree_->line();
  result = line;
  for (const Syntax** part : {&result.value, &result.extra}) *part = with_functions(*part);
  for (auto& [item, target] : result.items) item = with_functions(item);
  if (result.target && result.target->kind == SyntaxKind::kSubscript) result.target = with_functions(result.target);
  for (Lines* lines : {&result.body, &result.otherwise}) {
    for (const Line*& inner : *lines) inner = &with_functions(*inner);
  }
  return result;
}

// ---- Calls

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
  bool whole = line.value == &call;
  bool assigns = whole && line.kind == LineKind::kAssign;
  Replacements locals;
  rename_locals(flat, result, assigns ? line.target : nullptr, locals);
  Temporarily deeper(depth_, depth_ + 1);
  Temporarily active(function.active, true);
  function.used = true;
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

// ---- Values

const Syntax* Unfolder::known(const Syntax& at) const {
  if (!is_name(at)) return &at;
  auto found = constants_.find(at.text);
  return found == constants_.end() || changed_.contains(found->first) ? nullptr : found->second;
}

std::optional<bool> Unfolder::truth(const Syntax& at) const {
  if (at.kind == SyntaxKind::kUnary && at.text == "not") {
    std::optional<bool> value = truth(*at.children[0]);
    return value ? std::optional(!*value) : std::nullopt;
  }
  if (at.kind == SyntaxKind::kBool) {
    std::optional<bool> a = truth(*at.children[0]), b = truth(*at.children[1]);
    bool decides = at.text == "or";
    if (a == decides || b == decides) return decides;
    return a && b ? std::optional(!decides) : std::nullopt;
  }
  auto is_literal = [](const Syntax* value) {
    return value && value->kind > SyntaxKind::kName && value->kind <= SyntaxKind::kConstant;
  };
  if (at.kind == SyntaxKind::kCompare) {
    bool is_main = is_name(*at.children[0]) && at.children[0]->text == "__name__" && at.text == "==";
    if (is_main) return at.children[1]->text == "\"__main__\"" || at.children[1]->text == "'__main__'";
    const Syntax *a = known(*at.children[0]), *b = known(*at.children[1]);
    bool same = at.text == "==" || at.text == "is", differ = at.text == "!=" || at.text == "is not";
    if (!is_literal(b) || !a || !(same || differ)) return std::nullopt;
    bool is_value = is_literal(a) || is_list(*a) || a->kind == SyntaxKind::kDict || a->kind == SyntaxKind::kLambda;
    if (!is_value) return std::nullopt;
    auto text_of = [](const Syntax& value) {
      std::string error;
      return value.kind == SyntaxKind::kString ? "'" + unquote(value.text, error) : std::string(value.text);
    };
    return (a->kind == b->kind && text_of(*a) == text_of(*b)) == same;
  }
  const Syntax* value = known(at);
  if (!is_literal(value)) return std::nullopt;
  if (value->kind == SyntaxKind::kConstant && value->text != "...") return value->text == "True";
  if (value->kind == SyntaxKind::kInt) return value->text != "0";
  return std::nullopt;
}

const Line* Unfolder::assignment(const Place& at, const Syntax* target, const Syntax* value) {
  Line& line = tree_->line();
  static_cast<Place&>(line) = at;
  line.kind = LineKind::kAssign;
  line.target = target;
  line.value = value;
  return &line;
}

Syntax& Unfolder::made(SyntaxKind kind, const Place& at, std::string_view text) {
  Syntax& result = tree_->node();
  static_cast<Place&>(result) = at;
  result.kind = kind;
  result.text = text;
  return result;
}

}  // namespace relaxc::text
