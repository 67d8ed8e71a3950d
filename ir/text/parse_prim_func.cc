// Tensor programs from the syntax tree: params, blocks, loops, statements. One scope and one table of statement forms
// serve them all, so it stays one file although it is above 600 lines.
#include <algorithm>

#include "ir/regions.h"
#include "ir/text/parsing.h"

namespace relaxc::text {

// The block whose body is being read.
struct Parser::BlockState {
  explicit BlockState(std::string name)
      : block{.name = std::move(name),
              .iter_vars = {},
              .predicate = {},
              .reads = {},
              .writes = {},
              .annotations = {},
              .alloc_buffers = {},
              .match_buffers = {},
              .init = {},
              .body = no_op()} {}
  Block block;
  bool has_reads = false, has_writes = false, has_where = false, has_attrs = false;
  bool at_head = true;  // nothing but axes, annotations and allocations so far
};

namespace {

constexpr int kDeepestStatement = 256;

bool holds_block(const std::vector<Stmt>& stmts) {
  bool found = false;
  for (const Stmt& stmt : stmts) walk(stmt, [&](const Block&) { found = true; });
  return found;
}

std::optional<ForKind> loop_kind(std::string_view name) {
  if (name == "range" || name == "T.serial") return ForKind::kSerial;
  if (name == "T.parallel") return ForKind::kParallel;
  if (name == "T.vectorized") return ForKind::kVectorized;
  if (name == "T.unroll") return ForKind::kUnrolled;
  if (name == "T.thread_binding") return ForKind::kThreadBinding;
  return std::nullopt;
}
std::optional<IterKind> axis_kind(std::string_view name) {
  if (name == "T.axis.spatial") return IterKind::kSpatial;
  if (name == "T.axis.reduce") return IterKind::kReduce;
  if (name == "T.axis.scan") return IterKind::kScan;
  if (name == "T.axis.opaque") return IterKind::kOpaque;
  return std::nullopt;
}

}  // namespace

PrimFuncRef Parser::prim_func(const Pending& pending) {
  const Line& line = *pending.line;
  in_graph_ = false;
  default_int_ = kInt32;
  params_.clear();
  handles_.clear();
  func_attrs_ = {};
  root_allocations_.clear();
  loops_.clear();
  hidden_.clear();
  NameScope scope(*this);
  bool sound = true;
  // Scalars first: buffer types may use those that come later.
  std::vector<std::optional<Type>> types(line.params.size());
  for (size_t i = 0; i < line.params.size(); ++i) {
    const Param& param = line.params[i];
    sound &= guarded([&] {
      for (size_t j = 0; j < i; ++j) {
        if (line.params[j].name == param.name) fail(param, "parameter '{}' is given twice", param.name);
      }
      if (!param.annotation) {
        report(param, "parameter '{}' has no type", param.name)
            .notes.push_back("write `name: T.Buffer((128,), \"float32\")`, `name: T.handle` or `name: T.int64`");
        throw Failed();
      }
      const Syntax& at = *param.annotation;
      bool is_call = at.kind == SyntaxKind::kCall;
      std::string path = dotted(is_call ? *at.children[0] : at);
      if (path == "T.Buffer") return;
      Type annotated = path == "T.handle" ? prim_type(DType::handle()) : type(at);
      if (!annotated.is<PrimType>()) fail(at, "expected T.Buffer, T.handle or a scalar type");
      types[i] = annotated;
      if (path != "T.handle") define(param.name, make_var(std::string(param.name), annotated, span(param)));
    });
  }
  for (size_t i = 0; i < line.params.size(); ++i) {
    const Param& param = line.params[i];
    params_.emplace_back();
    bool is_handle = types[i] && dtype_of(make_var("", *types[i])).is_handle();
    if (is_handle) {
      handles_.emplace(std::string(param.name), i);
      params_[i] = make_var(std::string(param.name), *types[i], span(param));
      define(param.name, *params_[i]);
    } else if (types[i]) {
      params_[i] = cast<Var>(*lookup(param.name)->expr);
    } else if (sound && param.annotation) {
      sound &= guarded([&] {
        params_[i] = make_var(std::string(param.name), type(*param.annotation), span(param));
        define(param.name, *params_[i]);
      });
    }
    if (!params_[i]) scopes_.back().insert_or_assign(std::string(param.name), Entity{});
  }

  BlockState root("root");
  blocks_ = {&root};
  std::vector<Stmt> body = stmts(line.body);
  blocks_.clear();
  for (const auto& param : params_) {
    if (!param) throw Failed();
  }
  // Blocks stand below a root block; text leaves it out unless it says something.
  const Block* only = body.size() == 1 ? body[0].as<Block>() : nullptr;
  bool has_root = only && only->name == "root" && only->iter_vars.empty();
  Stmt result = no_op();
  if (holds_block(body) && !has_root) {
    size_t first = 0;
    for (; first < body.size(); ++first) {
      const AllocBuffer* alloc = body[first].as<AllocBuffer>();
      if (!alloc || !root_allocations_.contains(alloc->buffer.get())) break;
      root.block.alloc_buffers.push_back(alloc->buffer);
    }
    body.erase(body.begin(), body.begin() + static_cast<ptrdiff_t>(first));
    root.block.body = seq(std::move(body), span(line));
    result = make(std::move(root.block), span(line));
  } else {
    result = seq(std::move(body), span(line));
  }
  Attrs attributes = func_attrs_;
  if (!pending.is_private && !attributes.has("global_symbol")) attributes.set("global_symbol", pending.name);
  std::vector<VarRef> params;
  for (const auto& param : params_) params.push_back(*param);
  return make_prim_func({std::move(params), result, std::move(attributes)}, span(line));
}

Stmt Parser::body(const Lines& lines) {
  NameScope scope(*this);
  return seq(stmts(lines));
}

std::vector<Stmt> Parser::stmts(const Lines& lines, size_t first) {
  std::vector<Stmt> result;
  for (size_t i = first; i < lines.size(); ++i) {
    const Line& line = *lines[i];
    if (!guarded([&] { tir_line(lines, i, result); })) poison_line(line);
  }
  return result;
}

void Parser::tir_line(const Lines& lines, size_t& index, std::vector<Stmt>& out) {
  const Line& line = *lines[index];
  struct Depth {
    explicit Depth(int& d) : depth(d) { ++depth; }
    ~Depth() { --depth; }
    int& depth;
  } depth(statement_depth_);
  if (statement_depth_ > kDeepestStatement)
    fail(line, "statements are nested deeper than {} levels", kDeepestStatement);
  // What may stand before the statements of a block.
  auto body_starts = [&] { blocks_.back()->at_head = false; };
  switch (line.kind) {
    case LineKind::kPass:
      return;
    case LineKind::kExpression:
      if (is_docstring(line)) return;
      if (line.value->kind == SyntaxKind::kCall && dotted(*line.value->children[0]) == "T.attr") {
        // Without `with`, T.attr holds for the rest of the block.
        const Syntax& call = *line.value;
        body_starts();
        Expr value = scalar(required(call, 2, "value"));
        std::string key = string(required(call, 1, "key"));
        std::vector<Stmt> rest = stmts(lines, index + 1);
        index = lines.size();
        out.push_back(make(AttrStmt{key, value, seq(std::move(rest))}, span(line)));
        return;
      }
      return tir_call_line(line, out);
    case LineKind::kAssign:
      return tir_assign(line, out);
    case LineKind::kAugmented: {
      body_starts();
      BinaryOp op = line.text == "+" ? BinaryOp::kAdd : line.text == "-" ? BinaryOp::kSub : BinaryOp::kMul;
      if (line.text != "+" && line.text != "-" && line.text != "*")
        fail(line, "'{}=' is not known; write the operation out", line.text);
      if (line.target->kind != SyntaxKind::kSubscript) fail(*line.target, "expected an element of a buffer");
      Value sum = binary(op, eval(*line.target), eval(*line.value), *line.value, false);
      return store(*line.target, *line.value, sum, out);
    }
    case LineKind::kFor:
      body_starts();
      return tir_for(line, out);
    case LineKind::kWhile: {
      body_starts();
      Expr test = condition(*line.value);
      out.push_back(make(While{test, body(line.body)}, span(line)));
      return;
    }
    case LineKind::kIf: {
      body_starts();
      std::optional<Expr> test;
      // The branches are read even when the condition is wrong.
      bool sound = guarded([&] { test = condition(*line.value); });
      Stmt then_body = body(line.body);
      std::optional<Stmt> else_body;
      if (!line.otherwise.empty()) else_body = body(line.otherwise);
      if (!sound) throw Failed();
      out.push_back(make(IfThenElse{*test, then_body, else_body}, span(line)));
      return;
    }
    case LineKind::kWith:
      return tir_with(line, out);
    case LineKind::kAssert: {
      body_starts();
      Expr test = condition(*line.value);
      std::string message;
      if (line.extra) {
        // The later form is a kind and the parts of the message.
        if (line.extra->kind == SyntaxKind::kTuple) {
          for (const Syntax* part : items(*line.extra->children.back())) message += string(*part);
        } else {
          message = string(*line.extra);
        }
      }
      out.push_back(make(Assert{test, message}, span(line)));
      return;
    }
    case LineKind::kReturn:
      if (!line.value || (line.value->kind == SyntaxKind::kConstant && line.value->text == "None")) return;
      fail(line, "a tensor program returns nothing; it writes to its buffers");
    case LineKind::kBreak:
    case LineKind::kContinue:
      fail(line, "'{}' is not supported in a tensor program yet", line.kind == LineKind::kBreak ? "break" : "continue");
    case LineKind::kFunction:
    case LineKind::kClass:
      fail(line, "a definition inside of a tensor program");
    case LineKind::kImport:
      return imports(line);
  }
}

// ---- Assignments

// n = T.int64(); m, n = T.int64(), T.int64().
bool Parser::define_free_vars(const Line& line) {
  if (!line.value || line.annotation) return false;
  std::vector<const Syntax*> targets = items(*line.target), values = items(*line.value);
  std::vector<DType> dtypes;
  for (const Syntax* value : values) {
    if (value->kind != SyntaxKind::kCall || !value->keywords.empty()) return false;
    std::string path = dotted(*value->children[0]);
    if (path == "T.var" && positional(*value) == 1) {
      dtypes.push_back(dtype(*value->children[1]));
      continue;
    }
    auto parsed = path.starts_with("T.") && positional(*value) == 0 ? parse_dtype(std::string_view(path).substr(2))
                                                                    : std::nullopt;
    if (!parsed) return false;
    dtypes.push_back(*parsed);
  }
  if (targets.size() != values.size()) fail(line, "{} names for {} values", targets.size(), values.size());
  for (size_t i = 0; i < targets.size(); ++i) {
    std::string var_name = name_of_target(*targets[i]);
    const Entity* known = lookup(var_name);
    if (known && known->is_dim && known->expr) {
      if (dtype_of(*known->expr) != dtypes[i])
        fail(*targets[i], "'{}' is {} in the signature", var_name, to_string(dtype_of(*known->expr)));
      continue;
    }
    define(var_name, make_var(var_name, prim_type(dtypes[i]), span(*targets[i])));
  }
  return true;
}

bool Parser::define_axis(const Line& line) {
  if (!line.value || line.value->kind != SyntaxKind::kCall) return false;
  const Syntax& call = *line.value;
  std::string path = dotted(*call.children[0]);
  if (!path.starts_with("T.axis.")) return false;
  BlockState& state = *blocks_.back();
  if (blocks_.size() < 2) fail(line, "axes belong into a block: with T.block(\"name\"):");
  if (!state.at_head) fail(line, "axes stand before the statements of a block");
  std::vector<const Syntax*> targets = items(*line.target);
  auto add = [&](const Syntax& target, Range domain, IterKind kind, Expr value) {
    std::string var_name = name_of_target(target);
    DType type = dtype_of(domain.extent);
    domain.min = cast_to(domain.min, type);
    VarRef var = make_var(var_name, prim_type(type), span(target));
    state.block.iter_vars.push_back({var, std::move(domain), kind, std::move(value)});
    define(var_name, var);
  };
  if (path == "T.axis.remap") {
    std::string letters = string(required(call, 0, "kinds"));
    std::vector<const Syntax*> bindings = items(required(call, 1, "bindings"));
    if (letters.size() != bindings.size())
      fail(call, "{} letters for {} loop variables", letters.size(), bindings.size());
    if (targets.size() != bindings.size()) fail(line, "{} names for {} axes", targets.size(), bindings.size());
    for (size_t i = 0; i < letters.size(); ++i) {
      if (letters[i] != 'S' && letters[i] != 'R')
        fail(*call.children[1], "unknown axis kind '{}'; expected S (spatial) or R (reduce)", letters[i]);
    }
    for (size_t i = 0; i < letters.size(); ++i) {
      Expr value = scalar(*bindings[i]);
      auto loop = loops_.find(value.get());
      if (loop == loops_.end()) fail(*bindings[i], "expected a loop variable");
      add(*targets[i], loop->second, letters[i] == 'S' ? IterKind::kSpatial : IterKind::kReduce, value);
    }
    return true;
  }
  std::optional<IterKind> kind = axis_kind(path);
  if (!kind) {
    std::optional<std::string> near =
        nearest(path, {"T.axis.spatial", "T.axis.reduce", "T.axis.scan", "T.axis.opaque", "T.axis.remap"});
    fail_with_hint(*call.children[0], fmt::format("unknown kind of axis '{}'", path.substr(7)), near.value_or(""));
  }
  if (targets.size() != 1) fail(line, "one name per axis; got {}", targets.size());
  const Syntax& dom = required(call, 0, "dom");
  const Syntax& binding = required(call, 1, "binding");
  Value value = eval(binding);
  if (!value.expr.type().is<PrimType>()) fail(binding, "expected a scalar");
  auto bound = [&](const Syntax& at) {
    Value v = eval(at);
    if (!v.expr.type().is<PrimType>()) fail(at, "expected a scalar");
    DType wanted = value.literal ? default_int_ : dtype_of(value.expr);
    // A bare number takes the loop variable's dtype.
    Expr result = v.literal && wanted.is_integral() ? adapt(v, wanted, at) : v.expr;
    if (!dtype_of(result).is_integral()) fail(at, "expected an integer, got {}", to_string(dtype_of(result)));
    return result;
  };
  Range domain{int_imm(0), int_imm(0)};
  if (dom.kind == SyntaxKind::kTuple || dom.kind == SyntaxKind::kList) {
    if (dom.children.size() != 2) fail(dom, "expected (min, max)");
    Value min{bound(*dom.children[0])}, max{bound(*dom.children[1])};
    match_operands(min, max, dom);
    domain = {min.expr, extent_of(min.expr, max.expr, dom)};
  } else {
    domain.extent = bound(dom);
    domain.min = int_imm(0, dtype_of(domain.extent));
  }
  Expr position = value.literal ? adapt(value, dtype_of(domain.extent), binding) : value.expr;
  add(*targets[0], domain, *kind, position);
  return true;
}

// A = T.match_buffer(a, ...), where `a` is a handle param.
void Parser::match_param(const Line& line, const Syntax& call) {
  const Syntax& handle = required(call, 0, "param");
  auto it = handle.kind == SyntaxKind::kName ? handles_.find(handle.text) : handles_.end();
  if (it == handles_.end()) fail(handle, "expected a parameter of type T.handle, or a region of a buffer");
  VarRef& param = *params_[it->second];
  if (param.type().is<BufferType>()) fail(handle, "'{}' is matched twice", handle.text);
  std::string buffer_name = name_of_target(*line.target);
  VarRef var = make_var(buffer_name, make(buffer_type_of(call, 1), span(*line.value)), span(*line.target));
  param = var;
  define(buffer_name, var);
}

bool Parser::define_buffer(const Line& line, std::vector<Stmt>& out) {
  if (!line.value || line.value->kind != SyntaxKind::kCall) return false;
  const Syntax& call = *line.value;
  std::string path = dotted(*call.children[0]);
  BlockState& state = *blocks_.back();
  if (path == "T.match_buffer") {
    const Syntax& source = required(call, 0, "param");
    if (source.kind != SyntaxKind::kSubscript) {
      match_param(line, call);
      return true;
    }
    if (blocks_.size() < 2 || !state.at_head) fail(line, "a window of a buffer stands at the head of a block");
    BufferRegion window = region(source);
    std::string buffer_name = name_of_target(*line.target);
    VarRef var = make_var(buffer_name, make(buffer_type_of(call, 1), span(call)), span(*line.target));
    state.block.match_buffers.push_back({std::move(window), var});
    define(buffer_name, var);
    return true;
  }
  bool in_block = path == "T.alloc_buffer";
  if (!in_block && path != "T.decl_buffer") return false;
  std::string buffer_name = name_of_target(*line.target);
  VarRef var = make_var(buffer_name, make(buffer_type_of(call, 0), span(call)), span(*line.target));
  const Syntax* notes = keyword(call, "annotations");
  Attrs annotations = notes ? attrs(*notes) : Attrs();
  define(buffer_name, var);
  if (in_block && blocks_.size() >= 2 && state.at_head && annotations.empty()) {
    state.block.alloc_buffers.push_back(var);
    return true;
  }
  if (in_block && blocks_.size() == 1 && state.at_head) root_allocations_.insert(var.get());
  out.push_back(make(AllocBuffer{var, std::move(annotations)}, span(line)));
  return true;
}

void Parser::store(const Syntax& target, const Syntax& value_at, std::optional<Value> value, std::vector<Stmt>& out) {
  Buffer destination = buffer(*target.children[0]);
  BufferStore payload{destination, int_imm(0), indices(destination, target), std::nullopt};
  int index_lanes = payload.indices.empty() ? 1 : dtype_of(payload.indices.back()).lanes;
  DType element = buffer_type(destination).dtype;
  DType wanted = element.with_lanes(element.lanes * index_lanes);
  if (!value) value = eval(value_at);
  if (!value->expr.type().is<PrimType>()) fail(value_at, "expected a scalar");
  payload.value = value->literal ? adapt(*value, wanted, value_at) : value->expr;
  DType got = dtype_of(payload.value);
  if (got.lanes == 1 && wanted.lanes > 1) {
    payload.value = broadcast(payload.value, wanted.lanes, span(value_at));
    got = dtype_of(payload.value);
  }
  if (got != wanted) {
    auto number = [](DType d) { return d.is_integral() || d.is_float(); };
    bool narrows = got.is_float() && !wanted.is_float();
    if (got.lanes != wanted.lanes || !number(got) || !number(wanted) || narrows) {
      report(value_at, "{} stored to '{}', which holds {}", to_string(got), destination->name, to_string(wanted))
          .notes.push_back(fmt::format("convert it: T.Cast(\"{}\", ...)", to_string(wanted)));
      throw Failed();
    }
    payload.value = cast_to(payload.value, wanted, span(value_at));
  }
  out.push_back(make(std::move(payload), span(target)));
}

void Parser::tir_assign(const Line& line, std::vector<Stmt>& out) {
  if (!line.value) fail(line, "expected a value");
  if (define_free_vars(line) || define_axis(line) || define_buffer(line, out)) return;
  blocks_.back()->at_head = false;
  if (line.target->kind == SyntaxKind::kSubscript) return store(*line.target, *line.value, std::nullopt, out);
  std::string var_name = name_of_target(*line.target);
  Value value = eval(*line.value);
  if (value.expr.type().is<BufferType>()) {
    define(var_name, value.expr);  // another name for a buffer
    return;
  }
  if (!value.expr.type().is<PrimType>()) fail(*line.value, "expected a scalar");
  if (line.annotation) {
    // x: T.let[T.int32] = e is the later spelling of x: T.int32 = e.
    const Syntax* stated = line.annotation;
    if (stated->kind == SyntaxKind::kSubscript && dotted(*stated->children[0]) == "T.Let" &&
        stated->children.size() == 2)
      stated = stated->children[1];
    Type annotated = type(*stated);
    const PrimType* prim = annotated.as<PrimType>();
    if (!prim) fail(*stated, "expected a scalar type");
    value.expr = adapt(value, prim->dtype, *line.value);
    if (dtype_of(value.expr) != prim->dtype)
      fail(*line.value, "'{}' is {}, got {}", var_name, to_string(prim->dtype), to_string(dtype_of(value.expr)));
  }
  VarRef var = make_var(var_name, value.expr.type(), span(*line.target));
  out.push_back(make(Bind{var, value.expr}, span(line)));
  define(var_name, var);
}

// ---- Calls as statements

BufferRegion Parser::region(const Syntax& at) {
  if (at.kind == SyntaxKind::kName) {
    Buffer whole = buffer(at);
    BufferRegion result{whole, {}};
    for (const Expr& extent : buffer_type(whole).shape) result.ranges.push_back({int_imm(0, dtype_of(extent)), extent});
    return result;
  }
  if (at.kind != SyntaxKind::kSubscript) fail(at, "expected a region of a buffer: A[0:4, j]");
  Buffer source = buffer(*at.children[0]);
  return {source, ranges(source, at)};
}
std::vector<BufferRegion> Parser::regions(const Syntax& call) {
  std::vector<BufferRegion> result;
  for (size_t i = 1; i < call.children.size(); ++i) {
    for (const Syntax* item : items(*call.children[i])) result.push_back(region(*item));
  }
  return result;
}

void Parser::tir_call_line(const Line& line, std::vector<Stmt>& out) {
  if (line.value->kind != SyntaxKind::kCall) fail(line, "this expression does nothing; expected a statement");
  const Syntax& call = *line.value;
  const Syntax& callee = *call.children[0];
  std::string path = dotted(callee);
  BlockState& state = *blocks_.back();
  bool in_block = blocks_.size() >= 2;
  auto head_only = [&](bool& given) {
    if (!in_block) fail(line, "{} belongs into a block", path);
    if (!state.at_head) fail(line, "{} stands before the statements of a block", path);
    if (std::exchange(given, true)) fail(line, "{} is given twice", path);
  };
  if (path == "T.func_attr") {
    if (in_block || !state.at_head) fail(line, "T.func_attr stands at the head of the function");
    func_attrs_ = attrs(required(call, 0, "attrs"));
    return;
  }
  if (path == "T.where") {
    head_only(state.has_where);
    state.block.predicate = condition(required(call, 0, "predicate"));
    return;
  }
  if (path == "T.reads") {
    head_only(state.has_reads);
    state.block.reads = regions(call);
    return;
  }
  if (path == "T.writes") {
    head_only(state.has_writes);
    state.block.writes = regions(call);
    return;
  }
  if (path == "T.block_attr") {
    head_only(state.has_attrs);
    state.block.annotations = attrs(required(call, 0, "attrs"));
    return;
  }
  state.at_head = false;
  if (path == "T.evaluate") {
    const Syntax& value = required(call, 0, "value");
    out.push_back(evaluate(scalar(value), span(line)));
    return;
  }
  if (callee.kind == SyntaxKind::kAttribute && callee.text == "vstore") {
    check_keywords(call, {"indices", "value", "predicate"});
    Syntax target(SyntaxKind::kSubscript, call.line, call.column, call.length);
    target.children.push_back(callee.children[0]);
    for (const Syntax* item : items(required(call, 0, "indices"))) target.children.push_back(item);
    store(target, required(call, 1, "value"), std::nullopt, out);
    if (const Syntax* mask = arg(call, 2, "predicate")) {
      BufferStore payload = *out.back().as<BufferStore>();
      payload.predicate = condition(*mask);
      out.back() = make(std::move(payload), span(line));
    }
    return;
  }
  out.push_back(evaluate(scalar(call), span(line)));
}

// ---- Loops and with

void Parser::tir_for(const Line& line, std::vector<Stmt>& out) {
  if (line.value->kind != SyntaxKind::kCall)
    fail(*line.value, "expected a loop: range(n), T.grid(m, n), T.parallel(n)");
  const Syntax& call = *line.value;
  std::string path = dotted(*call.children[0]);
  std::vector<const Syntax*> targets = items(*line.target);
  struct LoopHead {
    std::string name;
    Span span;
    Range range;
  };
  std::vector<LoopHead> heads;
  ForKind kind = ForKind::kSerial;
  std::string thread;
  Attrs annotations;
  NameScope scope(*this);
  bool sound = guarded([&] {
    if (path == "T.grid") {
      check_keywords(call, {});
      if (positional(call) == 0) fail(call, "T.grid without extents");
      if (targets.size() != positional(call))
        fail(line, "{} loop variables for {} extents", targets.size(), positional(call));
      for (size_t i = 0; i < targets.size(); ++i) {
        Expr extent = scalar(*call.children[i + 1]);
        heads.push_back({name_of_target(*targets[i]),
                         span(*targets[i]),
                         {int_imm(0, dtype_of(extent).is_integral() ? dtype_of(extent) : kInt32), extent}});
      }
    } else {
      std::optional<ForKind> known = loop_kind(path);
      if (!known) {
        std::optional<std::string> near =
            path.empty()
                ? std::nullopt
                : nearest(path, {"T.grid", "T.serial", "T.parallel", "T.vectorized", "T.unroll", "T.thread_binding"});
        fail_with_hint(*call.children[0], "expected a loop: range(n), T.grid(m, n), T.parallel(n)", near.value_or(""));
      }
      kind = *known;
      check_keywords(call, {"start", "stop", "thread", "annotations"});
      if (targets.size() != 1)
        fail(line, "{} loop variables for one range; T.grid makes several loops", targets.size());
      size_t count = positional(call);
      if (count < 1 || count > 2) fail(call, "expected an extent, or start and stop; got {} arguments", count);
      Value end = eval(*call.children[count]);
      Value min = count == 2 ? eval(*call.children[1]) : Value{int_imm(0, default_int_), true};
      match_operands(min, end, call);
      heads.push_back(
          {name_of_target(*targets[0]), span(*targets[0]), {min.expr, extent_of(min.expr, end.expr, call)}});
      if (const Syntax* axis = keyword(call, "thread")) thread = string(*axis);
      if ((kind == ForKind::kThreadBinding) != !thread.empty())
        fail(call, "'thread' belongs to T.thread_binding, and is required there");
      if (const Syntax* notes = keyword(call, "annotations")) annotations = attrs(*notes);
    }
    for (size_t i = 0; i < heads.size(); ++i) {
      DType dtype = dtype_of(heads[i].range.extent);
      if (!dtype.is_integral() || dtype.lanes != 1)
        fail(*call.children[std::min(i + 1, call.children.size() - 1)], "expected an integer extent, got {}",
             to_string(dtype));
      for (size_t j = 0; j < i; ++j) {
        if (heads[j].name == heads[i].name && heads[i].name != "_")
          fail(*targets[i], "loop variable '{}' is given twice", heads[i].name);
      }
    }
    if (statement_depth_ + static_cast<int>(heads.size()) > kDeepestStatement)
      fail(line, "statements are nested deeper than {} levels", kDeepestStatement);
  });
  std::vector<VarRef> vars;
  if (sound) {
    for (const LoopHead& head : heads) {
      vars.push_back(make_var(head.name, prim_type(dtype_of(head.range.extent)), head.span));
      loops_.insert_or_assign(vars.back().get(), head.range);
      define(head.name, vars.back());
    }
  } else {
    poison(line.target);
  }
  statement_depth_ += static_cast<int>(heads.size());
  Stmt inner = body(line.body);
  statement_depth_ -= static_cast<int>(heads.size());
  for (const VarRef& var : vars) loops_.erase(var.get());
  if (!sound) throw Failed();
  for (size_t i = vars.size(); i-- > 0;) {
    inner = make(For{vars[i], heads[i].range.min, heads[i].range.extent, kind, thread, annotations, inner}, span(line));
  }
  out.push_back(inner);
}

Stmt Parser::block(const Line& line, const Syntax& call) {
  std::string block_name = positional(call) > 0 ? string(*call.children[1]) : "";
  check_keywords(call, {"no_realize", "name_hint", "exec_scope"});
  NameScope scope(*this);
  BlockState state(block_name);
  blocks_.push_back(&state);
  std::vector<Stmt> stmts = this->stmts(line.body);
  blocks_.pop_back();
  Block result = std::move(state.block);
  result.body = seq(std::move(stmts), span(line));
  if (!state.has_reads || !state.has_writes) {
    Accesses found = find_accesses(result.body, result.init);
    auto own = [&](const BufferRegion& region) {
      for (const Buffer& buffer : result.alloc_buffers) {
        if (same_node(buffer, region.buffer)) return true;
      }
      return false;
    };
    std::erase_if(found.reads, own);
    std::erase_if(found.writes, own);
    // An access through a window is one of its source.
    for (std::vector<BufferRegion>* list : {&found.reads, &found.writes}) {
      for (BufferRegion& region : *list) {
        for (const MatchBuffer& window : result.match_buffers) {
          if (same_node(window.buffer, region.buffer)) region = BufferRegion(window.source);
        }
      }
    }
    if (!state.has_reads) result.reads = std::move(found.reads);
    if (!state.has_writes) result.writes = std::move(found.writes);
  }
  return make(std::move(result), span(line));
}

void Parser::tir_with(const Line& line, std::vector<Stmt>& out) {
  if (line.items.size() != 1) fail(line, "one item per 'with'");
  const Syntax& item = *line.items[0].first;
  std::string path = item.kind == SyntaxKind::kCall ? dotted(*item.children[0]) : "";
  if (path == "T.init") {
    BlockState& state = *blocks_.back();
    if (blocks_.size() < 2) fail(line, "T.init belongs into a block");
    if (!state.at_head) fail(line, "T.init stands before the statements of a block");
    if (state.block.init) fail(line, "T.init is given twice");
    Stmt init = body(line.body);
    state.block.init = init;
    state.at_head = true;
    return;
  }
  blocks_.back()->at_head = false;
  if (path == "T.block") {
    out.push_back(block(line, item));
    return;
  }
  if (path == "T.attr") {
    Expr value = scalar(required(item, 2, "value"));
    std::string key = string(required(item, 1, "key"));
    out.push_back(make(AttrStmt{key, value, body(line.body)}, span(line)));
    return;
  }
  std::optional<std::string> near = path.empty() ? std::nullopt : nearest(path, {"T.block", "T.init", "T.attr"});
  fail_with_hint(item, "expected T.block, T.init or T.attr after 'with'", near.value_or(""));
}

}  // namespace relaxc::text
