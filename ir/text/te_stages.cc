// Reads the stages of te: te.compute, its reductions, and the loops and blocks that come out.
#include <algorithm>
#include <ranges>

#include "ir/regions.h"
#include "ir/text/parse_te.h"

namespace relaxc::text {

namespace {

// A reduction: what a value is combined with at first, and how.
struct Reducer {
  std::string_view path;
  Expr (*identity)(DType dtype, const std::function<Expr(bool)>& limit);
  BinaryOp op;
};
constexpr Reducer kReducers[] = {
    {"T.sum", [](DType dtype, const std::function<Expr(bool)>&) { return scalar_imm(0, dtype); }, BinaryOp::kAdd},
    {"T.max", [](DType, const std::function<Expr(bool)>& limit) { return limit(true); }, BinaryOp::kMax},
    {"T.min", [](DType, const std::function<Expr(bool)>& limit) { return limit(false); }, BinaryOp::kMin}};

}  // namespace

Parser::TeReader::Loop Parser::TeReader::loop(const std::string& name, const Range& domain, IterKind kind,
                                              const Span& at) {
  Type type = prim_type(dtype_of(domain.extent));
  VarRef loop = make_var(name, type, at), axis = make_var("v_" + name, type, at);
  return {loop, {axis, domain, kind, loop}};
}

// Reads te.compute((n, m), lambda i, j: ..., name="C").
const Parser::TeReader::Stage& Parser::TeReader::compute(const Syntax& call) {
  in.check_signature("T.compute", call);
  std::vector<Expr> shape;
  {
    Temporarily te(in.in_te_, true);
    shape = in.dims(in.required(call, 0, "shape"), kInt32);
  }
  const Syntax& given = in.required(call, 1, "fcompute");
  const Line* const* named = is_name(given) ? find_value(functions_, given.text) : nullptr;
  Lines before;
  const Syntax& function = named ? as_lambda(**named, before) : given;
  if (function.kind != SyntaxKind::kLambda) in.require_defined(function);
  if (function.kind != SyntaxKind::kLambda) in.fail(function, "expected a lambda from the indices to a value");
  const Syntax* stated = in.arg(call, 2, "name");
  Stage stage = stage_of(function, before, stated ? in.string(*stated) : "compute", shape);
  return stages_.emplace_back(std::move(stage));
}

// Returns def f(i, j): ... return value as a lambda, and the statements before its value.
const Syntax& Parser::TeReader::as_lambda(const Line& function, Lines& before) {
  Syntax& result = in.tree_->node();
  static_cast<Place&>(result) = function;
  result.kind = SyntaxKind::kLambda;
  auto named = [&](const Param& param) {
    Syntax& name = in.tree_->node();
    static_cast<Place&>(name) = param;
    name.kind = SyntaxKind::kName;
    name.text = param.name;
    return &name;
  };
  for (const Param& param : function.params) {
    const Syntax* child = named(param);
    if (param.stars == "*") {
      Syntax& starred = in.tree_->node();
      static_cast<Place&>(starred) = param;
      starred.kind = SyntaxKind::kStarred;
      starred.children.push_back(child);
      child = &starred;
    }
    result.children.push_back(child);
  }
  for (const Line* line : function.body) {
    if (in.is_docstring(*line)) continue;
    if (line->kind == LineKind::kReturn && line->value) {
      result.children.push_back(line->value);
      return result;
    }
    if (line->kind != LineKind::kAssign || !line->value)
      in.fail(*line, "a function of te is made of assignments and a return; this needs a Python interpreter");
    before.push_back(line);
  }
  in.fail(function, "'{}' returns nothing", function.text);
}

Parser::TeReader::Stage Parser::TeReader::stage_of(const Syntax& function, const Lines& before, const std::string& name,
                                                   const std::vector<Expr>& shape) {
  NameScope scope(in.scopes_);
  Temporarily te(in.in_te_, true);
  Stage stage;
  std::vector<Loop> loops;
  std::vector<Expr> indices;
  const Syntax& body = *indices_of(function, shape, loops, indices);
  for (const Line* line : before) evaluate(*line);
  Pieces pieces = pieces_of(body, loops);
  Span place = in.span(body);
  for (const Expr& value : pieces.values) {
    std::string own = pieces.values.size() == 1 ? name : fmt::format("{}_v{}", name, stage.buffers.size());
    stage.buffers.push_back(make_buffer(own, dtype_of(value), shape, "global", place));
  }
  Block block{.name = unique(name), .body = no_op()};
  if (pieces.combine) {
    std::vector<Expr> before;
    for (const Buffer& buffer : stage.buffers) before.push_back(relaxc::load(buffer, indices, place));
    block.init = stores(stage.buffers, pieces.identity, indices, place);
    pieces.values = pieces.combine(before, pieces.values);
  }
  block.body = stores(stage.buffers, pieces.values, indices, place);
  VarMap of_loops;  // the domain of a reduction may depend on an element: that of the loop around it
  for (const Loop& each : loops) {
    block.iter_vars.push_back(each.axis);
    Range& domain = block.iter_vars.back().domain;
    domain = {substitute(domain.min, of_loops), substitute(domain.extent, of_loops)};
    of_loops.emplace(each.axis.var.get(), each.var);
  }
  Accesses found = find_accesses(block.body, block.init);
  block.reads = std::move(found.reads);
  block.writes = std::move(found.writes);
  Stmt stmt = make(std::move(block), place);
  for (const Loop& each : loops | std::views::reverse)
    stmt = make(For{.var = each.var,
                    .min = substitute(each.axis.domain.min, of_loops),
                    .extent = substitute(each.axis.domain.extent, of_loops),
                    .body = stmt},
                place);
  stage.stmt = stmt;
  return stage;
}

// Stores a value to each buffer. Of several, all are computed before the first is stored.
Stmt Parser::TeReader::stores(const std::vector<Buffer>& buffers, std::vector<Expr> values,
                              const std::vector<Expr>& indices, const Span& place) {
  std::vector<Stmt> stmts;
  for (size_t i = 0; i < values.size() && values.size() > 1; ++i) {
    if (values[i].is<IntImm>() || values[i].is<FloatImm>()) continue;
    VarRef var = make_var(fmt::format("v{}", i), values[i].type(), place);
    stmts.push_back(make(Bind{var, values[i]}, place));
    values[i] = var;
  }
  for (size_t i = 0; i < values.size(); ++i) stmts.push_back(relaxc::store(buffers[i], values[i], indices, place));
  return seq(std::move(stmts), place);
}

// Defines the lambda's params as the axes of loops, and returns its body.
const Syntax* Parser::TeReader::indices_of(const Syntax& function, const std::vector<Expr>& shape,
                                           std::vector<Loop>& loops, std::vector<Expr>& indices) {
  size_t count = function.children.size() - 1;
  bool many = count == 1 && function.children[0]->kind == SyntaxKind::kStarred;
  if (!many && count != shape.size())
    in.fail(function, "the lambda has {} parameters for {} dims", count, shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    const Syntax& param = *function.children[many ? 0 : d];
    std::string name = many ? fmt::format("{}{}", in.name_of_target(*param.children[0]), d) : in.name_of_target(param);
    loops.push_back(loop(name, whole_range(shape[d]), IterKind::kSpatial, in.span(param)));
    indices.push_back(loops.back().axis.var);
    if (!many) in.define(name, indices.back());
  }
  if (many) in.define(in.name_of_target(*function.children[0]->children[0]), tuple(indices, in.span(function)));
  return function.children.back();
}

// Reads the value of a stage: te.sum(A[i, k], axis=k) or a similar reduction, or values without one.
Parser::TeReader::Pieces Parser::TeReader::pieces_of(const Syntax& at, std::vector<Loop>& loops) {
  std::string path = callee(at);
  const Reducer* row = find_item(kReducers, std::string_view(path), &Reducer::path);
  auto own = is_call(at) && is_name(*at.children[0]) ? reducers_.find(at.children[0]->text) : reducers_.end();
  const Syntax* reducer = own != reducers_.end() ? own->second : nullptr;
  bool is_written_here = is_call(at) && callee(*at.children[0]) == "T.comm_reducer";
  if (is_written_here) in.check_signature("T.comm_reducer", *at.children[0]);
  if (is_written_here) reducer = at.children[0];
  const Syntax* over = row || reducer ? in.arg(at, 1, "axis") : nullptr;
  bool reduces = over && std::ranges::all_of(in.items(*over), [&](const Syntax* item) {
                   const Entity* entity = is_name(*item) ? in.lookup(item->text) : nullptr;
                   return entity && entity->expr && axes_.contains(entity->expr->get());
                 });
  auto parts_of = [&](const Syntax& value) {
    return in.read_each(value.kind == SyntaxKind::kTuple ? in.items(value) : std::vector{&value}, &Parser::scalar);
  };
  if (!reduces && reducer) in.fail(at, "expected axis=k, of k = te.reduce_axis((0, n))");
  if (!reduces) return {parts_of(at), {}, nullptr};
  in.check_keywords(at, {"expr", "axis", "where", "init"});
  VarMap of_axes;  // a value that was computed before names the axis itself
  for (const Syntax* item : in.items(*over)) {
    const Axis& axis = axes_.at(in.lookup(item->text)->expr->get());
    loops.push_back(loop(axis.var->name, axis.domain, IterKind::kReduce, in.span(*item)));
    in.define(item->text, loops.back().axis.var);
    of_axes.emplace(axis.var.get(), loops.back().axis.var);
  }
  Pieces result{parts_of(in.required(at, 0, "expr")), {}, nullptr};
  if (row && result.values.size() != 1) in.fail(at, "{} takes one value", path);
  if (row) {
    DType dtype = dtype_of(result.values[0]);
    result.identity = {row->identity(dtype, [&](bool low) { return in.limit(dtype, low, false, at); })};
    result.combine = [op = row->op](const std::vector<Expr>& before, const std::vector<Expr>& value) {
      return std::vector{relaxc::binary(op, before[0], value[0])};
    };
  } else {
    own_reducer(*reducer, at, result);
  }
  if (const Syntax* where = in.arg(at, 2, "where"); !is_none(where)) {
    Expr test = in.condition(*where);
    for (size_t i = 0; i < result.values.size(); ++i)
      result.values[i] = if_then_else(test, result.values[i], result.identity[i]);
    if (!row) result.combine = combine_where(substitute(test, of_axes), std::move(result.combine));
  }
  for (Expr& value : result.values) value = substitute(value, of_axes);
  if (const Syntax* init = in.arg(at, 3, "init"); !is_none(init)) {
    std::vector<const Syntax*> firsts = init->kind == SyntaxKind::kTuple ? in.items(*init) : std::vector{init};
    if (firsts.size() != result.identity.size())
      in.fail(*init, "{} initial values for {}", firsts.size(), result.identity.size());
    for (size_t i = 0; i < firsts.size(); ++i)
      result.identity[i] = in.adapt(in.scalar_value(*firsts[i]), dtype_of(result.values[i]), *firsts[i]);
  }
  return result;
}

// Returns a reducer that leaves out what fails the test, whatever its identity is.
Parser::TeReader::Combine Parser::TeReader::combine_where(const Expr& test, Combine combine) {
  return [=](const std::vector<Expr>& before, const std::vector<Expr>& value) {
    std::vector<Expr> result = combine(before, value);
    for (size_t i = 0; i < result.size(); ++i) result[i] = select(test, result[i], before[i]);
    return result;
  };
}

// Reads te.comm_reducer(lambda x, y: x * y, lambda t: tvm.tir.const(1, t), name="prod").
void Parser::TeReader::own_reducer(const Syntax& reducer, const Syntax& at, Pieces& pieces) {
  const Syntax &combine = in.required(reducer, 0, "combiner"), &identity = in.required(reducer, 1, "identity");
  for (const Syntax* function : {&combine, &identity})
    if (function->kind != SyntaxKind::kLambda) in.fail(*function, "expected a lambda");
  std::vector<const Syntax*> params(combine.children.begin(), combine.children.end() - 1);
  std::vector<const Syntax*> dtype_params(identity.children.begin(), identity.children.end() - 1);
  size_t count = pieces.values.size();
  if (params.size() != 2) in.fail(combine, "expected a lambda of two parameters, got {}", params.size());
  if (dtype_params.size() != count) in.fail(identity, "{} parameters for {} values", dtype_params.size(), count);
  auto dtype_text = [&](const Syntax& name) -> const Syntax* {
    for (size_t i = 0; i < count; ++i) {
      if (dtype_params[i]->text == name.text) return in.syntax_of(to_string(dtype_of(pieces.values[i])), name);
    }
    return nullptr;
  };
  const Syntax& first = *in.replaced(identity.children.back(), dtype_text);
  std::vector<const Syntax*> firsts = first.kind == SyntaxKind::kTuple ? in.items(first) : std::vector{&first};
  if (firsts.size() != count) in.fail(identity, "{} identities for {} values", firsts.size(), count);
  for (size_t i = 0; i < count; ++i)
    pieces.identity.push_back(in.adapt(in.scalar_value(*firsts[i]), dtype_of(pieces.values[i]), *firsts[i]));
  pieces.combine = [this, &combine, &at, params, count](const std::vector<Expr>& before,
                                                        const std::vector<Expr>& value) {
    NameScope scope(in.scopes_);
    // x[0] is an item of the params of a reducer of several values.
    in.define(params[0]->text, count == 1 ? before[0] : tuple(before, in.span(at)));
    in.define(params[1]->text, count == 1 ? value[0] : tuple(value, in.span(at)));
    const Syntax& body = *combine.children.back();
    std::vector<const Syntax*> results = body.kind == SyntaxKind::kTuple ? in.items(body) : std::vector{&body};
    if (results.size() != count) in.fail(body, "{} results for {} values", results.size(), count);
    return in.read_each(results, &Parser::scalar);
  };
}

// Blocks of a program have different names, as in TVM.
std::string Parser::TeReader::unique(const std::string& name) {
  auto is_taken = [&](const std::string& wanted) {
    return std::ranges::any_of(block_names_, [&](const std::string& known) { return known == wanted; });
  };
  std::string result = name;
  for (int64_t i = 1; is_taken(result); ++i) result = fmt::format("{}_{}", name, i);
  block_names_.push_back(result);
  return result;
}

}  // namespace relaxc::text
