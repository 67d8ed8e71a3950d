// Reads loops, and statements that hold for others: for the body of a `with`, or (concise) for those after them.
#include <algorithm>

#include "ir/text/parsing.h"
#include "support/joined.h"

namespace relaxc::text {

// ---- Loops

Parser::LoopHeads Parser::loop_heads(const Line& line) {
  std::string path = callee_path(*line.value);
  std::optional<ForKind> kind;
  if (path == "range" || path == "T.range") {
    kind = ForKind::kSerial;
  } else if (path.starts_with("T.")) {
    kind = kind_named(kForKinds, std::string_view(path).substr(2));
  }
  if (kind == ForKind::kLaunchThread) kind.reset();  // it is a statement, not a loop
  if (!kind && path != "T.grid")
    fail({head_of(*line.value), near_form(path)}, "expected a loop: range(n), T.grid(m, n), T.parallel(n)");
  LoopHeads result = kind ? range_head(line, *kind) : grid_heads(line);
  std::set<std::string_view> names;
  for (const LoopHead& head : result.heads) {
    const std::string& name = head.var->name;
    if (name != "_" && !names.insert(name).second) fail(*head.target, "loop variable '{}' is given twice", name);
  }
  if (statement_depth_ + std::ssize(result.heads) > kDeepestStatement)
    fail(line, "statements are nested deeper than {} levels", kDeepestStatement);
  return result;
}

// `start` may be null, which means 0.
Range Parser::loop_range(const Syntax* start, const Syntax& stop, const Syntax& at) {
  Value end = eval(stop), min = start ? eval(*start) : Value{int_imm(0, default_int_), true};
  match_operands(min, end, at);
  DType dtype = dtype_of(end.expr);
  if (!dtype.is_integral() || dtype.lanes != 1) fail(stop, "expected an integer extent, got {}", to_string(dtype));
  return {min.expr, extent_of(min.expr, end.expr, at)};
}

// Reads for i, j in T.grid(m, (1, n)). A starred name takes the remaining loops.
// Returns whether a target of a loop names all loops that are left: *i, and i in `for i in T.grid(m, n)`.
bool Parser::takes_several(const Syntax& target, const Line& line) const {
  if (target.kind == SyntaxKind::kStarred) return true;
  const Syntax& call = *line.value;
  bool one_extent = positional(call) == 1 && call.children[1]->kind != SyntaxKind::kStarred;
  return is_name(*line.target) && callee_path(call) == "T.grid" && !one_extent;
}

Parser::LoopHeads Parser::grid_heads(const Line& line) {
  const Syntax& call = *line.value;
  std::vector<const Syntax*> targets = items(*line.target);
  check_keywords(call, {});
  std::vector<Range> extents;
  for (const Syntax* extent : call.operands()) {
    bool pair = extent->kind == SyntaxKind::kTuple && extent->children.size() == 2;
    if (extent->kind == SyntaxKind::kStarred) {  // T.grid(*A.shape)
      for (const Expr& dim : dims(*extent->children[0], default_int_)) extents.push_back(whole_range(dim));
    } else {
      extents.push_back(
          loop_range(pair ? extent->children[0] : nullptr, pair ? *extent->children[1] : *extent, *extent));
    }
  }
  size_t count = extents.size();
  if (count == 0) fail(call, "T.grid without extents");
  auto is_starred = [&](const Syntax* target) { return takes_several(*target, line); };
  bool starred = std::ranges::any_of(targets, is_starred);
  if (starred ? targets.size() > count + 1 : targets.size() != count)
    fail(*line.target, "{} loop variables for {} extents", targets.size(), count);
  size_t left_over = starred ? count + 1 - targets.size() : 0, next = 0;
  LoopHeads result;
  for (const Syntax* target : targets) {
    bool many = is_starred(target);
    std::string name = name_of_target(target->kind == SyntaxKind::kStarred ? *target->children[0] : *target);
    for (size_t i = 0; i < (many ? left_over : 1); ++i)
      result.add(*target, many ? fmt::format("{}_{}", name, i) : name, std::move(extents[next++]), span(*target));
  }
  return result;
}

// Reads for i in range(n), T.serial(start, stop, step), T.thread_binding(32, "threadIdx.x").
Parser::LoopHeads Parser::range_head(const Line& line, ForKind kind) {
  const Syntax& call = *line.value;
  std::vector<const Syntax*> targets = items(*line.target);
  check_keywords(call, {"start", "stop", "thread", "annotations", "step", "unroll", "dtype"});
  LoopHeads result;
  const Syntax* unroll = keyword(call, "unroll");
  result.kind = unroll && constant_bool(*unroll) ? ForKind::kUnrolled : kind;
  // T.range(0, 32, "parallel") is a spelling of 2020.
  bool names_kind = callee_path(call) == "T.range" && positional(call) == 3;
  if (names_kind) {
    std::optional<ForKind> named = kind_named(kForKinds, string(*call.children[3]));
    if (!named) fail(*call.children[3], "unknown kind of loop; expected \"parallel\", \"vectorized\" or \"unroll\"");
    result.kind = *named;
  }
  if (targets.size() != 1)
    fail(*line.target, "{} loop variables for one range; T.grid makes several loops", targets.size());
  std::vector<const Syntax*> bounds(call.operands().begin(), call.operands().end() - names_kind);
  const Syntax* axis = keyword(call, "thread");
  bool ends_in_axis =
      result.kind == ForKind::kThreadBinding && bounds.size() > 1 && bounds.back()->kind == SyntaxKind::kString;
  if (!axis && ends_in_axis) {
    axis = bounds.back();
    bounds.pop_back();
  }
  const Syntax* stop = bounds.size() > 1 ? bounds[1] : bounds.size() == 1 ? bounds[0] : nullptr;
  const Syntax* start = bounds.size() > 1 ? bounds[0] : nullptr;
  if (const Syntax* named = keyword(call, "stop")) {
    if (bounds.size() == 1) start = stop;
    stop = named;
  }
  if (const Syntax* named = keyword(call, "start")) start = named;
  if (!stop || bounds.size() > 3)
    fail(call, "expected an extent, or start, stop and step; got {} arguments", bounds.size());
  Range range = loop_range(start, *stop, call);
  if (const Syntax* stated = keyword(call, "dtype"))
    range = {cast_to(range.min, dtype(*stated)), cast_to(range.extent, dtype(*stated))};
  const Syntax* step = bounds.size() == 3 ? bounds[2] : keyword(call, "step");
  if (!is_none(step)) result.step = loop_step(*step, dtype_of(range.extent));
  result.add(*targets[0], name_of_target(*targets[0]), std::move(range), span(*targets[0]));
  if (axis) result.thread = thread_tag(*axis);
  if ((result.kind == ForKind::kThreadBinding) != !result.thread.empty())
    fail(call, "'thread' belongs to T.thread_binding, and is required there");
  result.annotations = annotations(keyword(call, "annotations"));
  return result;
}

// Returns nullopt for a step of 1.
std::optional<Expr> Parser::loop_step(const Syntax& at, DType dtype) {
  Expr step = adapt(eval(at), dtype, at);
  if (dtype_of(step) != dtype) fail(at, "the step is {}, expected {}", to_string(dtype_of(step)), to_string(dtype));
  std::optional<int64_t> known = as_int(step);
  if (known && *known < 1) fail(at, "expected a positive step, got {}", *known);
  return known == 1 ? std::nullopt : std::optional(step);
}

void Parser::tir_for(const Line& line) {
  body_starts();
  NameScope scope(scopes_);
  LoopHeads loops;
  bool sound = guarded([&] { loops = loop_heads(line); });
  std::map<const Syntax*, std::vector<Expr>> starred;
  for (const auto& [var, range, target] : loops.heads) {
    if (!loops.step) loops_.insert_or_assign(var.get(), range);
    define(var->name, var);
    bound_scalars_.insert_or_assign(var.get(), BoundScalar{line.line, scalar_time_ + 1});  // by its own loop
    blocks_.back()->loops.push_back(var);
    if (takes_several(*target, line)) starred[target].push_back(var);
  }
  for (const Syntax* target : items(*line.target)) {
    if (sound && takes_several(*target, line))
      define(name_of_target(target->kind == SyntaxKind::kStarred ? *target->children[0] : *target),
             tuple(starred[target], span(*target)));
  }
  if (!sound) poison(line.target);
  Temporarily depth(statement_depth_, statement_depth_ + static_cast<int>(loops.heads.size()));
  Stmt inner = loop_body(line.body);
  std::vector<VarRef>& open = blocks_.back()->loops;
  open.erase(open.end() - std::ssize(loops.heads), open.end());
  if (!sound) throw Failed();
  for (auto head = loops.heads.rbegin(); head != loops.heads.rend(); ++head) {
    const auto& [var, range, target] = *head;
    loops_.erase(var.get());
    inner = make(For{var, range.min, range.extent, loops.kind, loops.thread, loops.annotations, inner, loops.step},
                 span(line));
  }
  out_->push_back(inner);
}

// ---- Threads

// Targets define further tags; a tag that is close to a known one is a mistake.
std::string Parser::thread_tag(const Syntax& at) {
  std::string tag = string(at);
  std::string near = nearest(tag, {std::begin(kThreadAxes), std::end(kThreadAxes)});
  if (!near.empty() && near != tag) fail({at, string_literal(near)}, "unknown thread axis '{}'", tag);
  return tag;
}

Stmt Parser::thread_loop(std::string name, std::string thread, Expr extent, const Syntax& at, const Rest& rest) {
  DType dtype = dtype_of(extent);
  if (!dtype.is_integral() || dtype.lanes != 1) fail(at, "expected an integer extent, got {}", to_string(dtype));
  VarRef var = make_var(name, prim_type(dtype), span(at));
  define(name, var);
  For loop{var, int_imm(0, dtype), extent, ForKind::kLaunchThread, std::move(thread), {}, seq(rest())};
  return make(std::move(loop), span(at));
}

// Reads T.launch_thread("threadIdx.x", 128) as tx, or the form with an axis that T.env_thread named.
Stmt Parser::launch_thread(const Syntax& call, const Syntax* target, const Rest& rest) {
  const Syntax& axis = required(call, 0, "thread");
  Expr extent = scalar(required(call, 1, "extent"));
  if (axis.kind == SyntaxKind::kString) {
    std::string thread = thread_tag(axis);
    std::string name = target ? name_of_target(*target) : thread;
    std::replace(name.begin(), name.end(), '.', '_');
    return thread_loop(name, thread, extent, call, rest);
  }
  const Entity* known = is_name(axis) ? lookup(axis.text) : nullptr;
  bool poisoned = known && !known->expr && !known->is_module && known->form == Entity::Form::kValue;
  if (poisoned) throw Failed();  // reported where it was defined
  if (!known || known->thread.empty()) fail(axis, "expected a thread axis, such as \"threadIdx.x\"");
  std::string thread = known->thread;
  scopes_.define(axis.text, *known);
  Stmt result = thread_loop(std::string(axis.text), thread, extent, call, rest);
  // The axis can be launched again.
  scopes_.define(axis.text, Entity{.form = Entity::Form::kThread, .thread = thread});
  return result;
}

Stmt Parser::attr_stmt(const Syntax& call, const Line& line, const Rest& rest) {
  if (positional(call) == 1 && call.children[1]->kind == SyntaxKind::kDict) {
    // The form gives several facts at once; the first is the outermost.
    const Syntax& facts = *call.children[1];
    std::vector<std::pair<std::string, Expr>> entries;
    for (size_t i = 0; i + 1 < facts.children.size(); i += 2)
      entries.emplace_back(string(*facts.children[i]), call_argument(*facts.children[i + 1]));
    Stmt result = seq(rest());
    for (size_t i = entries.size(); i-- > 0;)
      result = make(AttrStmt{int_imm(0, kInt32), entries[i].first, entries[i].second, result}, span(line));
    return result;
  }
  const Syntax& about = required(call, 0, "node");
  std::string key = string(required(call, 1, "attr_key"));
  const Syntax& value_at = required(call, 2, "value");
  const Entity* axis = is_name(about) ? lookup(about.text) : nullptr;
  std::string thread = axis ? axis->thread : "";
  // The tag tells that a launch is of a virtual thread.
  if (key == "virtual_thread" && !thread.empty() && !thread.starts_with("vthread"))
    fail(unsupported(call), "virtual threads of the axis '{}' are not supported yet", thread);
  // A thread axis with its extent is a launch.
  if ((key == "thread_extent" || key == "virtual_thread") && !thread.empty())
    return thread_loop(std::string(about.text), thread, scalar(value_at), call, rest);
  if (key == "thread_extent" && callee_path(about) == "T.iter_var") {
    const Syntax& var = required(about, 0, "var");
    std::string name = var.kind == SyntaxKind::kString ? string(var) : name_of_target(var);
    return thread_loop(name, string(required(about, 3, "thread_tag")), scalar(value_at), call, rest);
  }
  Expr node = is_none(&about) ? int_imm(0, kInt32) : call_argument(about);
  return make(AttrStmt{node, key, call_argument(value_at), seq(rest())}, span(line));
}

// ---- Memory and assertions

// Reads T.realize(A[0:16, 0:16], "") of 2020: from here on, A has memory of its own. Its elements have the positions of
// the whole buffer, which is given memory for all of them.
void Parser::realize(const Syntax& call) {
  const Syntax& at = required(call, 0, "bounds");
  if (at.kind != SyntaxKind::kSubscript || !is_name(*at.children[0])) fail(at, "expected a region of a buffer: A[0:4]");
  Buffer whole = region(at).buffer;
  body_starts();
  if (std::ranges::any_of(params_,
                          [&](const std::optional<VarRef>& param) { return param && same_node(*param, whole); }))
    return;
  out_->push_back(make(AllocBuffer{define_var(*at.children[0], whole.type()), {}}, span(call)));
}

// Reads p = T.allocate([128], "float32", "global") and p = T.allocate_const([1, 2], "int32", [2]); p is a pointer.
void Parser::allocate(const Syntax& call, const Syntax& target) {
  bool is_const = dotted(*call.children[0]) == "T.allocate_const";
  BufferType type{};
  type.dtype = dtype(required(call, 1, "dtype"));
  type.shape = dims(required(call, is_const ? 2 : 0, "extents"), kInt32);
  Attrs annotations = this->annotations(arg(call, is_const ? 3 : 4, "annotations"));
  std::optional<Expr> contents;
  if (is_const) {
    contents = relaxc::constant(allocated_contents(call, type), span(call));
  } else {
    if (const Syntax* scope = arg(call, 2, "scope"); scope && !string(*scope).empty()) type.scope = string(*scope);
    const Syntax* condition = arg(call, 3, "condition");
    if (!is_none(condition) && !is_int(scalar(*condition), 1))
      report(unsupported(*condition), "an allocation under a condition is not supported yet");
  }
  VarRef var = define_var(target, make(std::move(type), span(call)), Entity::Form::kPointer);
  out_->push_back(make(AllocBuffer{var, std::move(annotations), contents}, span(call)));
}

// Reads the elements of T.allocate_const, for memory of this type.
Tensor Parser::allocated_contents(const Syntax& call, const BufferType& type) {
  std::optional<std::vector<int64_t>> shape = all_or_none(type.shape, as_int);
  if (!shape) fail(call, "expected constant extents");
  std::vector<int64_t> nested;
  const Syntax& data = required(call, 0, "data");
  std::vector<AttrValue> values = elements_of(data, nested);
  if (element_count(*shape) != std::ssize(values))
    fail(call, "{} values for the extents [{}]", values.size(), joined(*shape));
  return tensor_of(values, *shape, type.dtype, data);
}

// Reads the later form of the message, which is a kind and the parts of the text, followed by the values of its `{}`.
Stmt Parser::assertion(const Syntax& test, const Syntax* message, const Line& line) {
  Assert result{condition(test), {}};
  if (message && message->kind == SyntaxKind::kTuple) {
    if (message->children.size() != 2) fail(*message, "expected (kind, [parts of the message])");
    const Syntax& kind = *message->children[0];
    if (!is_none(&kind)) result.kind = string(kind);
    if (result.kind == "RuntimeError") result.kind.clear();
    for (const Syntax* part : items(*message->children[1])) {
      bool is_text = part->kind == SyntaxKind::kString;
      if (is_text) result.message.push_back(string(*part));
      if (!is_text) result.values.push_back(scalar(*part));
    }
  } else if (message) {
    result.message.push_back(string(*message));
  }
  return make(std::move(result), span(line));
}

// ---- With

bool Parser::scoped_form(const Syntax& call, const Syntax* target, const Line& line, Style style, const Rest& rest) {
  std::string path = called(call);
  bool with = style == Style::kWith;
  if (path == "T.prefetch") fail(unsupported(call), "{} is not supported yet", path);
  if (path == "T.realize") {
    realize(call);
    if (with) append(rest());
    return true;
  }
  if (path == "T.env_thread" && target) {
    std::string thread = thread_tag(required(call, 0, "thread_tag"));
    scopes_.define(name_of_target(*target), Entity{.form = Entity::Form::kThread, .thread = thread});
    return true;
  }
  if (path == "T.attr" || path == "T.launch_thread") {
    body_starts();
    out_->push_back(path == "T.attr" ? attr_stmt(call, line, rest) : launch_thread(call, target, rest));
    return true;
  }
  // The other forms are flat: the statements for which they hold follow them. with T.let(v, e): is of 2022.
  bool early_let = with && path == "T.Let" && positional(call) == 2 && is_name(*call.children[1]);
  bool allocates = path == "T.allocate" || path == "T.allocate_const";
  bool declares = with && (path == "T.decl_buffer" || path == "T.alloc_buffer");
  if ((allocates || declares) && !target) fail(call, "the memory has no name");
  if (early_let) {
    let_statement(call, call.children[1], *call.children[2], line);
  } else if (path == "T.LetStmt") {
    let_statement(call, target, required(call, 0, "value"), line);
  } else if (allocates) {
    allocate(call, *target);
  } else if (declares) {
    define_buffer(*target, call);
  } else if (path == "T.Assert") {
    out_->push_back(assertion(required(call, 0, "condition"), arg(call, 1, "message"), line));
  } else {
    return false;
  }
  body_starts();
  if (with) append(rest());
  return true;
}

// Reads v = T.LetStmt(value), with T.LetStmt(value, var=v):, with T.let(v, value):
void Parser::let_statement(const Syntax& call, const Syntax* target, const Syntax& value_at, const Line& line) {
  if (const Syntax* var = keyword(call, "var")) target = var;
  if (!target) fail(call, "the value has no name");
  Expr value = scalar(value_at);
  const Syntax* annotation = line.kind == LineKind::kAssign ? line.annotation : nullptr;
  if (const Syntax* stated = keyword(call, "type_annotation")) annotation = stated;
  Type var_type = annotation ? type(*annotation) : value.type();
  out_->push_back(make(Bind{define_var(*target, var_type), value}, span(line)));
}

void Parser::with_items(const Line& line, size_t first) {
  if (first == line.items.size()) return append(stmts(line.body));
  const auto& [item, target] = line.items[first];
  std::string path = called(*item);
  if (path == "T.block") {
    if (line.items.size() != 1) fail(line, "a block stands alone after 'with'");
    out_->push_back(block(line, *item, target));
    return;
  }
  if (path == "T.If" && line.items.size() == 1) return branch_frame(line, *item);
  if (path == "T.grid" && target && line.items.size() == 1) {  // with T.grid(n) as i: is of 2022
    Line loop = line;
    loop.kind = LineKind::kFor;
    loop.value = item;
    loop.target = target;
    loop.items.clear();
    return tir_for(loop);
  }
  NameScope scope(scopes_);
  bool read = false;
  Rest rest = [&] {
    read = true;
    std::vector<Stmt> held;
    Temporarily outer(out_, &held);
    with_items(line, first + 1);
    return held;
  };
  bool known = false;
  bool sound = guarded([&] {
    known = scoped_form(*item, target, line, Style::kWith, rest);
    if (known) return;
    fail({head_of(*item), near_form(path)}, "expected T.block, T.init or T.attr after 'with'");
  });
  if (sound) return;
  // The errors of the body are reported too. The unknown form may have been meant as a block.
  if (!read) {
    poison(target);
    BlockState state("");
    if (!known) blocks_.push_back(&state);
    guarded(rest);
    if (!known) blocks_.pop_back();
  }
  throw Failed();
}

// Reads with T.If(c): with T.Then(): ... with T.Else(): ..., the frames of which Python builds a condition.
void Parser::branch_frame(const Line& line, const Syntax& call) {
  Line branch = line;
  branch.kind = LineKind::kIf;
  branch.value = &required(call, 0, "condition");
  branch.items.clear();
  branch.body.clear();
  for (const Line* inner : line.body) {
    std::string path = inner->kind == LineKind::kWith ? called(*inner->items[0].first) : "";
    if (path != "T.Then" && path != "T.Else") fail(*inner, "below T.If stand with T.Then(): and with T.Else():");
    (path == "T.Then" ? branch.body : branch.otherwise) = inner->body;
  }
  if (branch.body.empty()) fail(call, "T.If has no with T.Then(): below it");
  tir_condition(branch);
}

void Parser::tir_with(const Line& line) {
  const Syntax& item = *line.items[0].first;
  if (called(item) == "T.init" && head_form("T.init", item, line)) return;
  body_starts();
  with_items(line, 0);
}

}  // namespace relaxc::text
