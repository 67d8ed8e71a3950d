// Reads tensor programs from the syntax tree: params, blocks and statements. parse_assign.cc reads assignments.
// parse_scoped.cc reads loops, and the forms that hold for the statements below or after them.
#include <algorithm>

#include "ir/attr_names.h"
#include "ir/op_names.h"
#include "ir/regions.h"
#include "ir/text/bare_values.h"
#include "ir/text/parsing.h"
#include "ir/text/python_lines.h"
#include "ir/text/python_value.h"

namespace relaxc::text {

PrimFuncRef Parser::prim_func(const Pending& pending) {
  const Line& line = *pending.line;
  in_graph_ = false;
  default_int_ = kInt32;
  params_.clear();
  handles_.clear();
  func_attrs_ = {};
  root_allocations_.clear();
  undefined_.clear();
  loops_.clear();
  hidden_.clear();
  NameScope scope(scopes_);
  for (std::string_view dim : line.type_params) define_dim(dim, kInt64, line);
  program_params(line);
  std::optional<DType> result_type;
  if (!is_none(line.annotation))
    result_type = scalar_type(*line.annotation, "a scalar type or None").as<PrimType>()->dtype;
  cells_.clear();
  bound_scalars_.clear();
  loop_starts_.clear();
  reducers_.clear();
  if (mutable_scalars_) find_cells(line.body, {});

  has_blocks_ = !pending.states_scalars && text::holds(line, [](const Line& each) {
    return each.kind == LineKind::kWith && is_one_of(head_of(*each.items[0].first).text, {"block", "sblock"});
  });
  BlockState root(kRootBlock);
  blocks_ = {&root};
  std::vector<Stmt> body = stmts(line.body);
  blocks_.clear();
  std::optional<std::vector<VarRef>> params = all_or_none(params_, std::identity());
  if (!params) throw Failed();
  Attrs attributes = func_attrs_;
  if (!pending.is_private && !attributes.has(attr_names::kGlobalSymbol))
    attributes.set(attr_names::kGlobalSymbol, pending.name);
  Stmt result = below_root(std::move(body), std::move(root.block), line);
  return make_prim_func({std::move(*params), result, std::move(attributes), result_type}, span(line));
}

// Defines the params and fills params_; a param with an error stays absent.
void Parser::program_params(const Line& line) {
  auto is_buffer = [&](const Param& param) { return dotted(head_of(*param.annotation)) == "T.Buffer"; };
  auto value = [&](size_t i) -> std::optional<VarRef> {
    const Param& param = line.params[i];
    if (is_buffer(param)) return std::nullopt;
    Type stated = scalar_type(*param.annotation, "T.Buffer, T.handle or a scalar type");
    return stated.as<PrimType>()->dtype.is_handle() ? std::nullopt : std::optional(define_param(param, stated));
  };
  auto other = [&](size_t i) {
    const Param& param = line.params[i];
    if (!is_buffer(param)) handles_.emplace(std::string(param.name), i);
    return std::optional(define_param(param, type(*param.annotation)));
  };
  params_ = read_params(line, "write `name: T.Buffer((128,), \"float32\")`, `name: T.handle` or `name: T.int64`", value,
                        other);
}

// Puts the blocks below a root block; the text leaves it out when it holds no information.
Stmt Parser::below_root(std::vector<Stmt> body, Block root, const Line& line) {
  const Block* only = body.size() == 1 ? body[0].as<Block>() : nullptr;
  bool has_root = only && is_root(*only) && root_allocations_.empty();
  bool needs_root = std::ranges::any_of(body, [](const Stmt& each) { return relaxc::holds<Block>(each); }) && !has_root;
  // Allocations that a block cannot hold come first; without a root block all allocations do.
  auto stays = [&](const Stmt& alloc) { return !needs_root || !alloc.as<AllocBuffer>()->annotations.empty(); };
  auto held = std::stable_partition(root_allocations_.begin(), root_allocations_.end(), stays);
  for (auto it = held; it != root_allocations_.end(); ++it) root.alloc_buffers.push_back(it->as<AllocBuffer>()->buffer);
  body.insert(body.begin(), root_allocations_.begin(), held);
  if (!needs_root) return seq(std::move(body), span(line));
  root.body = seq(std::move(body), span(line));
  return make(std::move(root), span(line));
}

void Parser::append(std::vector<Stmt> stmts) { out_->insert(out_->end(), stmts.begin(), stmts.end()); }

Stmt Parser::body(const Lines& lines) {
  NameScope scope(scopes_);
  return seq(stmts(lines));
}

Stmt Parser::loop_body(const Lines& lines) {
  loop_starts_.push_back(++scalar_time_);
  Stmt result = body(lines);
  loop_starts_.pop_back();
  return result;
}

std::vector<Stmt> Parser::stmts(const Lines& lines, size_t first) {
  std::vector<Stmt> result;
  Temporarily outer(out_, &result);
  for (size_t i = first; i < lines.size(); ++i) {
    const Line& line = *lines[i];
    bool at_head = blocks_.back()->at_head;
    if (guarded([&] { tir_line(lines, i); })) continue;
    poison_line(line);
    blocks_.back()->at_head = at_head;
  }
  return result;
}

void Parser::tir_line(const Lines& lines, size_t& index) {
  const Line& line = *lines[index];
  Temporarily depth(statement_depth_, statement_depth_ + 1);
  if (statement_depth_ > kDeepestStatement)
    fail(line, "statements are nested deeper than {} levels", kDeepestStatement);
  // A call may hold for the rest of the block.
  Rest rest = [&] {
    size_t first = std::exchange(index, lines.size()) + 1;
    return stmts(lines, first);
  };
  bool may_hold = line.kind == LineKind::kExpression || line.kind == LineKind::kAssign;
  // A bare return at the end says nothing: the function returns there anyway.
  bool ends = line.kind == LineKind::kReturn && statement_depth_ == 1 && index + 1 == lines.size();
  if (line.kind == LineKind::kPass || is_docstring(line) || (ends && is_none(line.value))) return;
  if (may_hold && line.value && scoped_form(*line.value, line.target, line, Style::kConcise, rest)) return;
  static constexpr std::pair<LineKind, LineReader Parser::*> kReaders[] = {
      {LineKind::kExpression, &Parser::tir_call_line},
      {LineKind::kAssign, &Parser::tir_assign},
      {LineKind::kAugmented, &Parser::augmented_line},
      {LineKind::kFor, &Parser::tir_for},
      {LineKind::kWhile, &Parser::tir_condition},
      {LineKind::kIf, &Parser::tir_condition},
      {LineKind::kWith, &Parser::tir_with},
      {LineKind::kAssert, &Parser::tir_assert},
      {LineKind::kBreak, &Parser::tir_jump},
      {LineKind::kContinue, &Parser::tir_jump},
      {LineKind::kReturn, &Parser::tir_jump},
      {LineKind::kImport, &Parser::imports}};
  if (auto* read = row_of(kReaders, line.kind)) return (this->**read)(line);
  if (line.kind == LineKind::kBroken) throw Failed();
  if (line.kind == LineKind::kTry) fail(line, "'try' has no meaning in a module");
  fail(line, "a definition cannot stand inside of a tensor program");
}

void Parser::tir_assert(const Line& line) {
  body_starts();
  out_->push_back(assertion(*line.value, line.extra, line));
}

// Reads break, continue, and a return with or without a value.
void Parser::tir_jump(const Line& line) {
  body_starts();
  OpName op = line.kind == LineKind::kBreak      ? ops::kBreakLoop
              : line.kind == LineKind::kContinue ? ops::kContinueLoop
                                                 : ops::kRet;
  std::vector<Expr> values;
  if (!is_none(line.value)) values.push_back(scalar(*line.value));
  DType dtype = values.empty() ? DType::void_() : dtype_of(values[0]);
  out_->push_back(evaluate(intrinsic(op, std::move(values), dtype, span(line)), span(line)));
}

// From here on, forms that must precede the statements of a block are errors.
void Parser::body_starts() { blocks_.back()->at_head = false; }

void Parser::augmented_line(const Line& line) {
  body_starts();
  std::optional<BinaryOp> op = operator_of(line.text);
  const Entity* entity = is_name(*line.target) ? lookup(line.target->text) : nullptr;
  if (entity && entity->form != Entity::Form::kCell && named_buffer(*line.target))
    fail({*line.target, {}, "name one of its elements"}, "'{}' is a buffer, and '{}=' changes a number",
         line.target->text, line.text);
  Value a = eval(*line.target), b = eval(*line.value);
  auto is_float = [](const Value& value) {
    const PrimType* type = value.expr.type().as<PrimType>();
    return type && type->dtype.is_float();
  };
  if (!op || (*op == BinaryOp::kDiv && !is_float(a) && !is_float(b)))
    fail({*line.value, "//="}, "'{}=' of integers is ambiguous", line.text);
  Value result = binary(*op, a, b, *line.value, false);
  if (is_name(*line.target)) return assign_scalar(*line.target, result, result.expr.type(), *line.target);
  if (line.target->kind != SyntaxKind::kSubscript) fail(*line.target, "expected an element of a buffer or a name");
  store(*line.target, *line.value, result);
}

// Reads `if` and `while`.
void Parser::tir_condition(const Line& line) {
  bool is_if = line.kind == LineKind::kIf;
  if (is_if && line.value->kind == SyntaxKind::kConstant && (line.value->text == "True" || line.value->text == "False"))
    // Python evaluates the condition before there is a program.
    return append(stmts(line.value->text == "True" ? line.body : line.otherwise));
  body_starts();
  // The statements below are read even when the condition is wrong.
  std::optional<Expr> test;
  guarded([&] { test = truth(*line.value); });
  Stmt inner = is_if ? body(line.body) : loop_body(line.body);
  std::optional<Stmt> else_body;
  if (!line.otherwise.empty()) else_body = body(line.otherwise);
  if (!test) throw Failed();
  out_->push_back(is_if ? Stmt(make(IfThenElse{*test, inner, else_body}, span(line)))
                        : Stmt(make(While{*test, inner}, span(line))));
}

// ---- Calls as statements

BufferRegion Parser::region(const Syntax& at) {
  if (is_name(at)) {
    Buffer named = buffer(at);
    return {named, map_each(buffer_type(named).shape, whole_range)};
  }
  if (at.kind != SyntaxKind::kSubscript) fail(at, "expected a region of a buffer: A[0:4, j]");
  Buffer source = buffer(*at.children[0]);
  return {source, ranges(source, at)};
}
std::vector<BufferRegion> Parser::regions(const Syntax& call) {
  std::vector<BufferRegion> result;
  for (const Syntax* given : call.operands()) {
    for (const Syntax* item : items(given->kind == SyntaxKind::kStarred ? *given->children[0] : *given))
      result.push_back(region(*item));
  }
  return result;
}

// Reads reducer.step(C[vi], A[vi, vk]), the form of 2020: the block's first step gives C[vi] the reducer's identity.
void Parser::reduction_step(const Syntax& reducer, const Syntax& call) {
  if (positional(call) != 2 || call.children[1]->kind != SyntaxKind::kSubscript)
    fail(call, "expected an element of a buffer and a value: reducer.step(C[vi], A[vi, vk])");
  const Syntax &target = *call.children[1], &value = *call.children[2];
  const Syntax& combiner = required(reducer, 0, "combiner");
  std::vector<const Syntax*> identity = items(required(reducer, 1, "identity"));
  if (combiner.kind != SyntaxKind::kLambda || combiner.children.size() != 3 || identity.size() != 1)
    fail(combiner, "a step takes a reducer of one value: T.comm_reducer(lambda x, y: x + y, [T.float32(0)])");
  std::vector<Stmt> first;
  {
    Temporarily init(out_, &first);
    store(target, *identity[0], std::nullopt);
  }
  blocks_.back()->block.init = seq(std::move(first), span(call));
  const Syntax& combined = *replaced(combiner.children[2], [&](const Syntax& name) -> const Syntax* {
    return name.text == combiner.children[0]->text   ? &target
           : name.text == combiner.children[1]->text ? &value
                                                     : nullptr;
  });
  store(target, combined, std::nullopt);
}

void Parser::tir_call_line(const Line& line) {
  if (line.value->kind == SyntaxKind::kConstant && line.value->text == "...") return;
  bool calls = false;
  for_each(line.value, [&](const Syntax& part) { calls = calls || is_call(part); });
  if (!is_call(*line.value)) {
    body_starts();
    // Only a call may do something: cls.f(A[0]) + cls.f(A[1])
    return evaluate_line(calls ? std::optional(scalar(*line.value)) : std::nullopt, line);
  }
  const Syntax& call = *line.value;
  const Syntax& callee = *call.children[0];
  std::string path = dotted(callee);
  if (head_form(path, call, line)) return;
  body_starts();
  if (path == "T.preflattened_buffer")
    return;  // a form of 2022, which states the shape of a param before it was flattened
  if (path == "T.store") return pointer_store(call);
  if (path == "T.buffer_store") {
    Syntax target = element_at(call, required(call, 0, "buffer"), required(call, 2, "indices"));
    return store(target, required(call, 1, "value"), std::nullopt, arg(call, 3, "predicate"));
  }
  if (callee.kind == SyntaxKind::kAttribute && callee.text == "vstore") return vector_store(call);
  bool is_step = callee.kind == SyntaxKind::kAttribute && callee.text == "step" && is_name(*callee.children[0]);
  if (const Syntax* const* reducer = is_step ? find_value(reducers_, callee.children[0]->text) : nullptr)
    return reduction_step(**reducer, call);
  if (path == "T.print_buffer") {
    diagnostics_.warning(span(line), "T.print_buffer prints from a GPU; it is left out");
    return;
  }
  if (path == "T.masked_store" && positional(call) >= 4) {  // of a buffer, a value, indices and a mask
    std::span<const Syntax* const> args = call.operands();
    Syntax target = subscript_of(call, *args[0], args.subspan(2, args.size() - 3));
    return store(target, *args[1], std::nullopt, args.back());
  }
  if (path != "T.evaluate") return evaluate_line(scalar(call), line);
  Expr value = call_argument(required(call, 0, "value"));
  if (value.type().is<BufferType>())
    fail(call, "T.evaluate takes a value, got a buffer; index it, or give its pointer: {}.data", value.as<Var>()->name);
  out_->push_back(evaluate(value, span(line)));
}

void Parser::evaluate_line(const std::optional<Expr>& value, const Line& line) {
  if (!value || !may_stand_alone(*value)) fail(line, "this expression does nothing; expected a statement");
  out_->push_back(evaluate(*value, span(line)));
}

// Reads the forms that precede the statements of a function or block; each may occur once.
bool Parser::head_form(const std::string& path, const Syntax& call, const Line& line) {
  BlockState& state = *blocks_.back();
  bool in_block = blocks_.size() >= 2;
  if (path == "T.func_attr") {
    if (in_block || !state.at_head) fail(line, "T.func_attr stands at the head of the function");
    add_attrs(call, func_attrs_);
    return true;
  }
  if (path == "T.bind" && keyword(call, "var")) {
    body_starts();
    let_statement(call, nullptr, required(call, 0, "value"), line);
    return true;
  }
  if (path == "T.bind" && positional(call) == 2) {
    bind_axis(call);
    return true;
  }
  bool is_init = path == "T.init" && line.kind == LineKind::kWith;
  if (!is_init && path != "T.where" && path != "T.reads" && path != "T.writes" && path != "T.block_attr") return false;
  if (!in_block) fail(line, "{} belongs in a block", path);
  if (!state.at_head) fail(line, "{} stands before the statements of a block", path);
  if (!state.given.insert(path).second && path != "T.block_attr") fail(line, "{} is given twice", path);
  if (path == "T.where") state.block.predicate = condition(required(call, 0, "predicate"));
  if (path == "T.reads") state.block.reads = regions(call);
  if (path == "T.writes") state.block.writes = regions(call);
  if (path == "T.block_attr") {
    for (const auto& [key, value] : annotations(&required(call, 0, "attrs"))) {
      const AttrValue* before = state.block.annotations.find(key);
      if (before && *before != value)
        fail(line, "key '{}' is given twice, as {} and {}", key, to_string(*before), to_string(value));
      state.block.annotations.set(key, value);
    }
  }
  if (is_init) {
    state.block.init = body(line.body);
    state.at_head = true;
  }
  return true;
}

// Reads A.vstore([i], value, predicate)
void Parser::vector_store(const Syntax& call) {
  check_keywords(call, {"indices", "value", "predicate"});
  Syntax target = element_at(call, *call.children[0]->children[0], required(call, 0, "indices"));
  store(target, required(call, 1, "value"), std::nullopt, arg(call, 2, "predicate"));
}

// Reads T.store(A.data, i, value, predicate), the store to flat memory of 2022.
void Parser::pointer_store(const Syntax& call) {
  const Syntax& pointer = required(call, 0, "var");
  if (!named_buffer(pointer)) fail(call, "expected the pointer of a buffer");
  Syntax target = element_at(call, pointer, required(call, 1, "index"));
  const Syntax* mask = arg(call, 3, "predicate");
  store(target, required(call, 2, "value"), std::nullopt, lane_mask(mask) ? mask : nullptr);
}

// Reads the axes of 2020: with T.block([16, 16, T.reduce_axis(0, 16)], "update") as [vi, vj, vk].
void Parser::early_axes(const Syntax& domains, const Syntax& targets) {
  constexpr std::pair<std::string_view, IterKind> kForms[] = {{"T.range", IterKind::kSpatial},
                                                              {"T.reduce_axis", IterKind::kReduce},
                                                              {"T.scan_axis", IterKind::kScan},
                                                              {"T.opaque_axis", IterKind::kOpaque}};
  std::vector<const Syntax*> names = items(targets);
  if (names.size() != domains.children.size())
    fail(targets, "{} names for {} axes", names.size(), domains.children.size());
  for (size_t i = 0; i < names.size(); ++i) {
    const Syntax& at = *domains.children[i];
    const IterKind* kind = row_of(kForms, callee_path(at));
    if (kind && positional(at) == 0) fail(at, "expected the domain of the axis: {}(0, 16)", callee_path(at));
    Range domain = !kind                ? axis_domain(at, default_int_)
                   : positional(at) > 1 ? loop_range(at.children[1], *at.children[2], at)
                                        : axis_domain(*at.children[1], default_int_);
    Expr unbound = domain.min;
    add_axis(*names[i], std::move(domain), std::nullopt, kind ? *kind : IterKind::kSpatial, unbound);
  }
}

// Reads T.bind(vi, i * 4 + j) in a block of 2020.
void Parser::bind_axis(const Syntax& call) {
  BlockState& state = *blocks_.back();
  const Syntax& target = *call.children[1];
  if (!state.early || !state.at_head)
    fail(call, "T.bind(axis, value) stands at the head of a block `with T.block([n, m]) as [i, j]`");
  Expr axis = name(target);
  auto it = std::ranges::find_if(state.block.iter_vars, [&](const IterVar& each) { return same_node(each.var, axis); });
  if (it == state.block.iter_vars.end()) fail(target, "'{}' is not an axis of this block", target.text);
  if (!state.bound.insert(axis.get()).second) fail(target, "axis '{}' is bound twice", target.text);
  it->value = adapt(scalar_value(*call.children[2]), dtype_of(it->var), *call.children[2]);
}

std::vector<Parser::LoopHead> Parser::complete_axes(BlockState& state, const Syntax& at) {
  std::vector<IterVar>& axes = state.block.iter_vars;
  const std::vector<VarRef>& loops = blocks_.back()->loops;
  std::vector<LoopHead> made;
  if (!state.early || axes.empty()) return made;
  if (!state.bound.empty()) {
    for (const IterVar& axis : axes)
      if (!state.bound.contains(axis.var.get())) fail(at, "T.bind gives axis '{}' no value", axis.var->name);
    return made;
  }
  if (!loops.empty() && loops.size() != axes.size())
    fail(at, "{} axes in {} loops: T.bind(axis, value) says which value each axis has", axes.size(), loops.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    if (loops.empty()) {
      VarRef var = make_var(fmt::format("i{}", i), axes[i].var.type(), span(at));
      made.push_back({var, axes[i].domain, &at});
    }
    axes[i].value = loops.empty() ? Expr(made.back().var) : Expr(loops[i]);
  }
  return made;
}

Stmt Parser::block(const Line& line, const Syntax& call, const Syntax* target) {
  NameScope scope(scopes_);
  bool early = positional(call) > 0 && is_list(*call.children[1]);
  const bool names_axes = target && !(is_list(*target) && target->children.empty());  // as []: it has none
  if (names_axes && !early) fail(*target, "a block has no value: write `with T.block(\"name\"):`");
  const Syntax* name = early ? arg(call, 1, "name") : arg(call, 0, keyword(call, "name") ? "name" : "name_hint");
  BlockState state(name ? string(*name) : "");
  state.early = early;
  blocks_.push_back(&state);
  static const Syntax kNoNames(SyntaxKind::kList, {});
  bool sound = !early || guarded([&] { early_axes(*call.children[1], target ? *target : kNoNames); });
  if (!sound) poison(target);
  std::vector<Stmt> stmts = this->stmts(line.body);
  blocks_.pop_back();
  if (!sound) throw Failed();
  std::vector<LoopHead> loops = complete_axes(state, call);
  Block result = std::move(state.block);
  result.body = seq(std::move(stmts), span(line));
  // A variable that T.LetStmt(value, var=v) binds inside of the block says nothing outside: any element may be meant.
  auto is_inner = [&](const VarRef& var) { return undefined_.contains(var.get()); };
  for (std::vector<BufferRegion>* list : {&result.reads, &result.writes}) {
    for (BufferRegion& region : *list) {
      for (size_t d = 0; d < region.ranges.size(); ++d) {
        Range& range = region.ranges[d];
        bool is_open = std::ranges::any_of(free_vars(range.min), is_inner) ||
                       std::ranges::any_of(free_vars(range.extent), is_inner);
        if (is_open) range = whole_range(buffer_type(region.buffer).shape[d]);
      }
    }
  }
  if (!state.given.contains("T.reads") || !state.given.contains("T.writes")) {
    Accesses found = find_accesses(result.body, result.init);
    for (std::vector<BufferRegion>* list : {&found.reads, &found.writes}) {
      std::erase_if(*list, [&](const BufferRegion& region) {
        return std::ranges::any_of(result.alloc_buffers, [&](const Buffer& b) { return same_node(b, region.buffer); });
      });
      // An access through a window is one of its source.
      for (BufferRegion& region : *list) {
        for (const MatchBuffer& window : result.match_buffers) {
          if (same_node(window.buffer, region.buffer)) region = BufferRegion(window.source);
        }
      }
    }
    if (!state.given.contains("T.reads")) result.reads = std::move(found.reads);
    if (!state.given.contains("T.writes")) result.writes = std::move(found.writes);
  }
  Stmt stmt = make(std::move(result), span(call));
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop)
    stmt = make(For{.var = loop->var, .min = loop->range.min, .extent = loop->range.extent, .body = stmt}, span(call));
  return stmt;
}

}  // namespace relaxc::text
