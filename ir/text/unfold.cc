#include "ir/text/unfold.h"

#include <algorithm>
#include <ranges>

namespace relaxc::text {

namespace {

constexpr int kDeepestValue = 200;     // of an expression that calls are written out as
constexpr size_t kMostNodes = 10'000;  // of such an expression

template <class... Names>
bool is_one_of(std::string_view name, const Names&... names) {
  return ((name == names) || ...);
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

Replacements without(const Replacements& names, const std::set<std::string_view>& hidden) {
  Replacements result = names;
  for (std::string_view name : hidden) result.erase(name);
  return result;
}

}  // namespace

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

bool computes_with_te(const Line& line) {
  bool result = false;
  for_each(line, [&](const Syntax& at) {
    bool of_tvm = at.kind == SyntaxKind::kAttribute && at.children[0]->text == "tvm" &&
                  is_one_of(at.text, "te", "compute", "placeholder", "reduce_axis", "extern", "scan");
    result = result || of_tvm || (is_name(at) && at.text == "te");
  });
  return result;
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
  if (at->kind == SyntaxKind::kConditional && result.children[1]->kind == SyntaxKind::kConstant) {  // a if True else b
    if (result.children[1]->text == "True") return result.children[0];
    if (result.children[1]->text == "False") return result.children[2];
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
    tree.names_module = true;  // statements of functions may name what stands further down
    call_only_function(out);
    // Functions that nothing calls are Python that is not run.
    for (const std::string& name : order_) {
      auto function = functions_.find(name);
      if (function != functions_.end() && !function->second.used) out.push_back(function->second.line);
    }
    return !out.empty();
  }
  has_module_ = has_module_ || reader_.in_class();
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
  has_module_ = has_module_ || holds_definition(line) || (line.kind != LineKind::kFunction && computes_with_te(line));
  if (line.kind == LineKind::kFunction && keeps(line)) return;
  if (line.kind == LineKind::kTry) return all(line.body);
  if (line.kind == LineKind::kIf &&
      std::ranges::none_of(line.body, [](const Line* inner) { return inner->kind == LineKind::kReturn; })) {
    if (std::optional<bool> test = truth(*line.value)) return all(*test ? line.body : line.otherwise);
  }
  if (line.kind == LineKind::kWith) {
    bool is_context = std::ranges::all_of(line.items, [](const auto& item) {
      const Syntax& head = head_of(*item.first);
      std::string_view name = head.text;
      bool is_target = name == "create" && head.kind == SyntaxKind::kAttribute && head.children[0]->text == "target";
      return is_target ||
             is_one_of(name, "PassContext", "Target", "target", "tgt", "TemporaryDirectory", "cuda", "llvm");
    });
    if (is_context) return all(line.body);
  }
  const Line* now = &with_functions(with_workload(line));
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
  bool is_lambda =
      now->kind == LineKind::kAssign && now->value && is_name(*now->target) && now->value->kind == SyntaxKind::kLambda;
  if (is_lambda) {  // as def f(i): return value
    Function function{nullptr, {}};
    function.lambda = with_names(now->value, {}, *kept_);
    function.used = true;
    functions_.insert_or_assign(std::string(now->target->text), std::move(function));
  }
  bool is_constant = now->kind == LineKind::kAssign && now->value && is_name(*now->target) &&
                     now->value->kind > SyntaxKind::kName && now->value->kind <= SyntaxKind::kConstant;
  if (is_constant) constants_.insert_or_assign(std::string(now->target->text), with_names(now->value, {}, *kept_));
  out.push_back(now);
}

// Where nothing of the text is a program, the one function that computes with te and takes no values is called, as a
// test would be.
void Unfolder::call_only_function(Lines& out) {
  const Line* only = nullptr;
  for (const auto& [name, function] : functions_) {
    if (!function.of_te || !function.unfolds || function.called) continue;
    auto is_open = [](const Param& param) { return !param.otherwise; };
    if (only || std::ranges::any_of(function.line->params, is_open)) return;
    only = function.line;
  }
  if (!only || has_module_) return;
  has_module_ = true;
  Syntax &call = made(SyntaxKind::kCall, *only), &callee = made(SyntaxKind::kName, *only, only->text);
  call.children.push_back(&callee);
  Line& line = tree_->line();
  static_cast<Place&>(line) = *only;
  line.kind = LineKind::kExpression;
  line.value = &call;
  statement(line, out);
}

// Returns task = f(512, 512) for task = auto_scheduler.SearchTask(func=f, args=(512, 512), target="llvm").
const Line& Unfolder::with_workload(const Line& line) {
  bool makes_task =
      line.value && is_call(*line.value) && is_one_of(callee_name(*line.value), "SearchTask", "create_task");
  if (!makes_task) return line;
  const Syntax *function = nullptr, *args = nullptr;
  for (const Syntax::Keyword& keyword : line.value->keywords) {
    if (keyword.name == "func") function = keyword.value;
    if (keyword.name == "args") args = keyword.value;
  }
  auto operands = line.value->operands();
  if (!function && !operands.empty()) function = operands[0];
  if (!args && operands.size() > 1) args = operands[1];
  if (!function || !args || !is_name(*function) || !is_list(*args) || !functions_.contains(function->text)) return line;
  Syntax& call = made(SyntaxKind::kCall, *line.value);
  call.children.push_back(function);
  call.children.insert(call.children.end(), args->children.begin(), args->children.end());
  call.depth = line.value->depth;
  Line& result = tree_->line();
  result = line;
  result.value = &call;
  return result;
}

// Keeps a function of Python that is to be written out where it is called. Others stay where they stand.
bool Unfolder::keeps(const Line& line) {
  add_globals(line);
  auto is_plain = [](const Syntax* decorator) {  // of tuners and tests
    const Syntax& head = head_of(*decorator);
    return is_one_of(head.text, "register_workload", "template") || head.text.starts_with("requires_");
  };
  if (is_script_function(line) || !std::ranges::all_of(line.decorators, is_plain)) return false;
  Function function{&line, errors_};
  function.of_te = computes_with_te(line);
  function.unfolds = std::ranges::any_of(line.body, [&](const Line* inner) { return unfolds(*inner, line); });
  bool makes_programs = function.unfolds;
  if (!function.unfolds) function.lambda = as_lambda(line);
  if (!function.unfolds && !function.lambda) function.unfolds = function.of_te;
  if (!function.unfolds && !function.lambda) return false;
  bool stays = function.of_te && !makes_programs && line.decorators.empty();
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
  if (is_one_of(callee.text, "Schedule", "create_prim_func", "BlockBuilder") ||
      (known != functions_.end() && known->second.unfolds))
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
