// Reads topi's functions and the arithmetic of tensors in te: C = topi.nn.relu(A) is the stages that the operator
// R.nn.relu becomes, D = A + B a stage of its own.
#include <algorithm>
#include <ranges>

#include "ir/op_names.h"
#include "ir/regions.h"
#include "ir/text/parse_te.h"
#include "support/lists.h"

namespace relaxc::text {

namespace {

bool is_arithmetic(const Syntax& at) { return at.kind == SyntaxKind::kBinary || at.kind == SyntaxKind::kUnary; }
// The blocks that have the name of the operator here, and "compute" where topi makes them by te.compute without a name.
constexpr std::string_view kComputes[] = {
    "T_abs",   "T_acos",    "T_acosh", "T_asin", "T_asinh", "T_atan",      "T_atanh", "T_cast",     "T_ceil", "T_clip",
    "T_cos",   "T_cosh",    "T_erf",   "T_exp",  "T_floor", "T_leakyrelu", "T_log",   "T_negative", "T_relu", "T_round",
    "T_rsqrt", "T_sigmoid", "T_sign",  "T_sin",  "T_sinh",  "T_sqrt",      "T_tan",   "T_tanh",     "T_trunc"};
// Returns the name that topi gives a stage, of which the first tensor is `source`: topi.sum(A) is A_red.
std::string name_in_tvm(const std::string& block, const std::string& source) {
  if (std::ranges::find(kComputes, block) != std::end(kComputes)) return "compute";
  constexpr std::string_view kReductions[] = {"T_sum_red", "T_max_red", "T_min_red", "T_prod_red"};
  const bool reduces = std::ranges::find(kReductions, block) != std::end(kReductions);
  return reduces && !source.empty() ? source + "_red" : block;
}

bool is_tensor(const Expr& value) { return value.is<Var>() && value.type().is<BufferType>(); }

}  // namespace

// Returns whether the expression is one of whole tensors: a name of one, a call that makes one, or arithmetic of
// them.
bool Parser::TeReader::is_of_tensors(const Syntax& at) {
  if (makes_stage(at)) return true;
  if (at.kind == SyntaxKind::kConditional) return is_of_tensors(*at.children[0]) || is_of_tensors(*at.children[2]);
  if (is_arithmetic(at))
    return std::ranges::any_of(at.children, [&](const Syntax* part) { return is_of_tensors(*part); });
  const Syntax& name = at.kind == SyntaxKind::kSubscript ? *at.children[0] : at;
  const Entity* entity = is_name(name) ? in.lookup(name.text) : nullptr;
  if (!entity || !entity->expr) return false;
  const Tuple* several = entity->expr->as<Tuple>();
  if (&name != &at || several)
    return several && !several->items.empty() && std::ranges::all_of(several->items, is_tensor);
  return is_tensor(*entity->expr);
}

// Returns the tensors of an argument; none where it is something else.
std::vector<Expr> Parser::TeReader::inner_values(const Syntax& at) {
  Temporarily graph(in.in_graph_, false);
  Temporarily ints(in.default_int_, kInt32);
  if (!is_of_tensors(at)) return {};
  if (at.kind != SyntaxKind::kSubscript) return values_of(at, "");
  return {in.expr(at)};
}

// Returns the argument with names of the graph in place of te's tensors, of which the stages so far are made.
const Syntax* Parser::TeReader::with_graph_names(const Syntax& at, VarMap& of_tensors) {
  auto node = [&](SyntaxKind kind) -> Syntax& {
    Syntax& result = in.tree_->node();
    static_cast<Place&>(result) = at;
    result.kind = kind;
    return result;
  };
  auto named = [&](const Expr& tensor) -> const Syntax* {
    const BufferType& type = buffer_type(cast<Var>(tensor));
    Syntax& name = made_name(at, "tensor");
    VarRef var =
        make_var(tensor.as<Var>()->name,
                 tensor_type(map_each(type.shape, [](const Expr& dim) { return cast_to(dim, kInt64); }), type.dtype));
    of_tensors.emplace(var.get(), tensor);
    in.define(name.text, var);
    kept_.push_back(var);
    return &name;
  };
  if (!is_list(at)) {
    std::vector<Expr> tensors = inner_values(at);
    if (tensors.size() == 1 && is_tensor(tensors[0])) return named(tensors[0]);
    const Tuple* several = tensors.size() == 1 ? tensors[0].as<Tuple>() : nullptr;
    if (several) tensors = several->items;
    if (tensors.empty() || !std::ranges::all_of(tensors, is_tensor)) return &at;
    Syntax& list = node(SyntaxKind::kTuple);
    for (const Expr& tensor : tensors) list.children.push_back(named(tensor));
    return &list;
  }
  Syntax& result = node(at.kind);
  result.text = at.text;
  result.depth = at.depth;
  for (const Syntax* child : at.children) result.children.push_back(with_graph_names(*child, of_tensors));
  return &result;
}

// Reads topi.nn.dense(A, B) and other products as the one stage that they are in TVM, which schedules name; nullopt
// where they are more.
std::optional<Buffer> Parser::TeReader::product_stage(const std::string& name, const Syntax& at) {
  constexpr std::tuple<std::string_view, std::string_view, bool> kProducts[] = {
      {"matmul", "T_matmul", false},
      {"nn.batch_matmul", "T_batch_matmul_", true},
      {"nn.dense", "T_matmul_", true},
      {"nn.matmul", "T_matmul_", false}};
  const auto* row = std::ranges::find(kProducts, name, [](const auto& each) { return std::get<0>(each); });
  if (row == std::end(kProducts) || in.positional(at) != 2) return std::nullopt;
  bool swaps_a = false, swaps_b = std::get<2>(*row);
  for (const Keyword& each : at.keywords) {
    bool* flag = each.name == "transpose_a" || each.name == "transp_a"   ? &swaps_a
                 : each.name == "transpose_b" || each.name == "transp_b" ? &swaps_b
                                                                         : nullptr;
    if (!flag || each.value->kind != SyntaxKind::kConstant) return std::nullopt;
    *flag = each.value->text == "True";
  }
  std::vector<Expr> first = inner_values(*at.children[1]), second = inner_values(*at.children[2]);
  if (first.size() != 1 || second.size() != 1 || !is_tensor(first[0]) || !is_tensor(second[0])) return std::nullopt;
  Buffer a = cast<Var>(first[0]), b = cast<Var>(second[0]);
  const BufferType &of_a = buffer_type(a), &of_b = buffer_type(b);
  const size_t rank = name == "nn.batch_matmul" ? 3 : 2;
  if (of_a.shape.size() != rank || of_b.shape.size() != rank || of_a.dtype != of_b.dtype) return std::nullopt;
  const Expr &inner = of_a.shape[rank - (swaps_a ? 2 : 1)], &other = of_b.shape[rank - (swaps_b ? 1 : 2)];
  auto same = [](const Expr& x, const Expr& y) { return structural_equal(cast_to(x, kInt64), cast_to(y, kInt64)); };
  if (!same(inner, other) || (rank == 3 && !same(of_a.shape[0], of_b.shape[0]))) return std::nullopt;
  std::vector<Expr> shape(of_a.shape.begin(), of_a.shape.begin() + static_cast<long>(rank) - 2);
  shape.push_back(of_a.shape[rank - (swaps_a ? 1 : 2)]);
  shape.push_back(of_b.shape[rank - (swaps_b ? 2 : 1)]);
  std::string own(std::get<1>(*row));
  if (own.ends_with('_')) own += fmt::format("{}{}", swaps_a ? 'T' : 'N', swaps_b ? 'T' : 'N');
  Span place = in.span(at);
  auto element = [&](const Buffer& buffer, const std::vector<Expr>& at_axes, const Expr& row_axis, const Expr& column,
                     bool swaps) {
    std::vector<Expr> indices(at_axes.begin(), at_axes.begin() + static_cast<long>(rank) - 2);
    indices.push_back(swaps ? column : row_axis);
    indices.push_back(swaps ? row_axis : column);
    return relaxc::load(buffer, indices, place);
  };
  return elementwise(
      own.c_str(), shape,
      [&](const std::vector<Expr>& axes) {
        const Expr &i = axes[rank - 2], &j = axes[rank - 1], &k = axes[rank];
        return element(a, axes, i, k, swaps_a) * element(b, axes, k, j, swaps_b);
      },
      place, inner);
}

// Reads topi.shape(A) and topi.ndarray_size(A): a tensor of dims, which may be symbolic.
Buffer Parser::TeReader::dims_stage(const std::string& name, const Syntax& at) {
  std::vector<Expr> tensors = inner_values(in.required(at, 0, "array"));
  if (tensors.size() != 1 || !is_tensor(tensors[0])) in.fail(at, "topi.{} takes a tensor", name);
  const Syntax* stated = in.arg(at, 1, "dtype");
  const DType dtype = is_none(stated) ? kInt32 : in.dtype(*stated);
  const std::vector<Expr>& dims = buffer_type(cast<Var>(tensors[0])).shape;
  if (name == "ndarray_size") {
    Expr size = int_imm(1, kInt64);
    for (const Expr& dim : dims) size = size * dim;
    return elementwise("ndarray_size", {}, [&](const std::vector<Expr>&) { return cast_to(size, dtype); }, in.span(at));
  }
  auto dim_at = [&](const std::vector<Expr>& place) {
    Expr result = int_imm(0, dtype);
    for (size_t d = dims.size(); d-- > 0;)
      result = if_then_else(equal(place[0], int_imm(static_cast<int64_t>(d), dtype_of(place[0]))),
                            cast_to(dims[d], dtype), result);
    return result;
  };
  return elementwise("T_shape", {int_imm(std::ssize(dims), kInt32)}, dim_at, in.span(at));
}

// Reads C = topi.nn.relu(A) in te: stages with the loops that the operator R.nn.relu becomes.
std::vector<Expr> Parser::TeReader::topi_stages(const Syntax& at) {
  const std::string name = name_in_topi(spelling(*at.children[0]));
  if (name == "shape" || name == "ndarray_size") return {dims_stage(name, at)};
  if (std::optional<Buffer> product = product_stage(name, at)) return {*product};
  VarMap of_tensors;  // the graph's variable of each tensor, and the tensor
  Parser::Body none;
  Temporarily body(in.body_, &none);
  Temporarily graph(in.in_graph_, true);
  Temporarily ints(in.default_int_, kInt64);
  std::optional<Value> value;
  {
    NameScope scope(in.scopes_);
    Syntax call = at;
    for (const Syntax*& arg : call.children | std::views::drop(1)) arg = with_graph_names(*arg, of_tensors);
    for (Keyword& keyword : call.keywords) keyword.value = with_graph_names(*keyword.value, of_tensors);
    value = topi(name, call, true);
  }
  if (!value)
    in.fail({at, {}, "write it with te.compute, or as R.nn.relu(x) or a similar operator of a @R.function"},
            "{} is not known in te programs here", spelling(*at.children[0]));
  for (const BindingBlock& block : none.blocks) {
    for (const Binding& binding : block.bindings) add_graph_value(binding.var, binding.value, of_tensors, at);
  }
  return graph_stages(value->expr, of_tensors, at);
}

// Remembers the tensor, or the tuple of tensors, that a variable of the graph is.
void Parser::TeReader::add_graph_value(const VarRef& var, const Expr& value, VarMap& of_tensors, const Syntax& at) {
  std::vector<Expr> made = graph_stages(value, of_tensors, at);
  of_tensors.insert_or_assign(var.get(), made.size() == 1 ? made[0] : tuple(made, in.span(at)));
  kept_.push_back(var);
}

// Adds the stages that an expression of the graph becomes, and returns its tensors.
std::vector<Expr> Parser::TeReader::graph_stages(const Expr& value, VarMap& of_tensors, const Syntax& at) {
  if (const Expr* known = find_value(of_tensors, value.get())) {
    const Tuple* several = known->as<Tuple>();
    return several ? several->items : std::vector{*known};
  }
  if (const TupleGetItem* item = value.as<TupleGetItem>())
    return {graph_stages(item->tuple, of_tensors, at).at(static_cast<size_t>(item->index))};
  const OpRow* row = in.ops_.find(op_name(value));
  if (!row) in.fail(at, "{} is not known in te programs here", spelling(at));
  Call call = *value.as<Call>();
  auto as_variable = [&](const Expr& arg) -> Expr {
    bool is_inner = (arg.is<Call>() || arg.is<TupleGetItem>()) && arg.type().is<TensorType>();
    if (!is_inner) return arg;
    VarRef var = make_var("inner", arg.type(), in.span(at));
    add_graph_value(var, arg, of_tensors, at);
    return var;
  };
  for (Expr& arg : call.args) {
    const Tuple* several = arg.as<Tuple>();
    arg = several ? tuple(map_each(several->items, as_variable), arg.span()) : as_variable(arg);
  }
  Span place = in.span(at);
  if (row->legalize) return add_stages(row->legalize(OpCall{call, place}), call, of_tensors, place);
  const Expr* source = row->view ? find_value(of_tensors, call.args[0].get()) : nullptr;
  if (source) return {reshaped(cast<Var>(*source), *known_shape(value.type()), place)};
  if (!row->decompose) in.fail(at, "{} is not known in te programs here", spelling(at));
  Builder builder(in.ops_);
  builder.set_span(place);
  Expr whole = builder.finish(row->decompose(OpCall{call, place}, builder));
  const SeqExpr* sequence = whole.as<SeqExpr>();
  for (const BindingBlock& block : sequence ? sequence->blocks : std::vector<BindingBlock>()) {
    for (const Binding& binding : block.bindings) add_graph_value(binding.var, binding.value, of_tensors, at);
  }
  return graph_stages(sequence ? sequence->body : whole, of_tensors, at);
}

// Adds the blocks of the operator's program, whose first params are the tensors of the call.
std::vector<Expr> Parser::TeReader::add_stages(const PrimFuncRef& program, const Call& call, const VarMap& of_tensors,
                                               const Span& place) {
  std::vector<Expr> tensors;
  for (const Expr& arg : call.args) {
    const Tuple* several = arg.as<Tuple>();
    for (const Expr& item : several ? several->items : std::vector{arg}) {
      if (item.type().is<TensorType>()) tensors.push_back(item);
    }
  }
  const Block* root = program->body.as<Block>();
  RELAXC_CHECK(root, "the program of {} has a root block", op_name(call.callee));
  VarMap renamed;
  std::unordered_map<const NodeHeader*, double> numbers;  // by param, what it stands for
  Stage stage;
  size_t read = 0;
  for (const VarRef& param : program->params) {
    if (!param.type().is<BufferType>())
      relaxc::fail(place, "operators with symbolic dims are not known in te programs");
    if (read == tensors.size()) {
      stage.buffers.push_back(param);
      continue;
    }
    const Expr& tensor = tensors[read++];
    const Expr* buffer = find_value(of_tensors, tensor.get());
    const Constant* number = tensor.as<Constant>();
    bool is_known = buffer || (number && number->data.size() == 1);
    if (!is_known) relaxc::fail(place, "only numbers and tensors are arguments in te programs");
    if (buffer) renamed.emplace(param.get(), *buffer);
    if (!buffer) numbers.emplace(param.get(), number->data.as_double(0));
  }
  const Expr* first = tensors.empty() ? nullptr : find_value(of_tensors, tensors[0].get());
  const std::string source = first ? first->as<Var>()->name : "";
  size_t outputs = stage.buffers.size();
  stage.buffers.insert(stage.buffers.end(), root->alloc_buffers.begin(), root->alloc_buffers.end());
  Stmt stmt = rewrite(root->body, [&](const Ref<BufferLoad>& load) -> std::optional<Expr> {
    const double* number = find_value(numbers, load->buffer.get());
    if (!number) return std::nullopt;
    DType dtype = dtype_of(load);
    return dtype.is_float() ? float_imm(*number, dtype) : int_imm(static_cast<int64_t>(*number), dtype);
  });
  stmt = rewrite(stmt, [&](const Ref<Block>& block) -> std::optional<Stmt> {
    Block copy = *block;
    std::erase_if(copy.reads, [&](const BufferRegion& region) { return numbers.contains(region.buffer.get()); });
    copy.name = unique(name_in_tvm(block->name, source));
    return make(std::move(copy), block.span());
  });
  stage.stmt = substitute(stmt, renamed);
  stages_.push_back(std::move(stage));
  const std::vector<Buffer>& made = stages_.back().buffers;
  return {made.begin(), made.begin() + static_cast<std::ptrdiff_t>(outputs)};
}

// Adds a stage that computes each element from its indices; with an extent it is the sum over a further index.
Buffer Parser::TeReader::elementwise(const char* name, const std::vector<Expr>& shape,
                                     const std::function<Expr(const std::vector<Expr>&)>& value_at, const Span& place,
                                     const std::optional<Expr>& sum_over) {
  std::vector<Loop> loops;
  std::vector<Expr> indices;
  for (size_t d = 0; d < shape.size(); ++d) {
    loops.push_back(loop(fmt::format("ax{}", d), whole_range(shape[d]), IterKind::kSpatial, place));
    indices.push_back(loops.back().axis.var);
  }
  std::vector<Expr> all = indices;
  if (sum_over) {
    loops.push_back(loop("k", whole_range(*sum_over), IterKind::kReduce, place));
    all.push_back(loops.back().axis.var);
  }
  Expr value = value_at(all);
  Buffer result = make_buffer(name, dtype_of(value), shape, "global", place);
  Block block{.name = unique(name), .body = no_op()};
  if (sum_over) {
    block.init = relaxc::store(result, scalar_imm(0, dtype_of(value)), indices, place);
    value = relaxc::load(result, indices, place) + value;
  }
  block.body = relaxc::store(result, value, indices, place);
  for (const Loop& each : loops) block.iter_vars.push_back(each.axis);
  Accesses found = find_accesses(block.body, block.init);
  block.reads = std::move(found.reads);
  block.writes = std::move(found.writes);
  Stmt stmt = make(std::move(block), place);
  for (const Loop& each : loops | std::views::reverse)
    stmt =
        make(For{.var = each.var, .min = each.axis.domain.min, .extent = each.axis.domain.extent, .body = stmt}, place);
  stages_.push_back({{result}, stmt});
  return result;
}

// Reads A + B of tensors, which are broadcast, and A * 2 of a tensor and a number or a scalar.
Expr Parser::TeReader::tensor_arithmetic(const Syntax& at) {
  constexpr std::pair<std::string_view, const char*> kNames[] = {{"+", "T_add"},           {"-", "T_subtract"},
                                                                 {"*", "T_multiply"},      {"/", "T_divide"},
                                                                 {"//", "T_floor_divide"}, {"%", "T_mod"}};
  const char* const* name = at.kind == SyntaxKind::kUnary ? nullptr : row_of(kNames, std::string_view(at.text));
  bool negates = at.kind == SyntaxKind::kUnary && at.text == "-";
  if (!name && !negates) in.fail(at, "'{}' cannot take tensors of te", at.text);
  std::vector<Value> operands;
  std::vector<Expr> shape;
  for (const Syntax* part : at.children) {
    if (!is_of_tensors(*part)) {
      operands.push_back(in.scalar_value(*part));
      continue;
    }
    std::vector<Expr> values = values_of(*part, "");
    if (values.size() != 1 || !is_tensor(values[0])) in.fail(*part, "expected a tensor");
    operands.push_back({values[0]});
    std::vector<Expr> own = buffer_type(cast<Var>(values[0])).shape;
    if (own.size() > shape.size()) std::swap(own, shape);
    for (size_t d = 0; d < own.size(); ++d) {
      Expr &dim = shape[shape.size() - 1 - d], other = own[own.size() - 1 - d];
      if (is_int(dim, 1)) dim = other;
      std::optional<int64_t> whole = as_int(dim), of_other = as_int(other);
      bool fits = !whole || !of_other || *whole == *of_other || *of_other == 1;
      if (!fits) in.fail(at, "the tensors do not broadcast: dims {} and {}", to_string(dim), to_string(other));
    }
  }
  auto element = [&](const Value& operand, const std::vector<Expr>& indices) -> Value {
    if (!is_tensor(operand.expr)) return operand;
    Buffer buffer = cast<Var>(operand.expr);
    const std::vector<Expr>& own = buffer_type(buffer).shape;
    std::vector<Expr> places(indices.end() - std::ssize(own), indices.end());
    for (size_t d = 0; d < own.size(); ++d) {
      if (is_int(own[d], 1)) places[d] = int_imm(0, dtype_of(places[d]));
    }
    return {relaxc::load(buffer, places, in.span(at))};
  };
  Temporarily te(in.in_te_, true);
  return elementwise(
      negates ? "T_negative" : *name, shape,
      [&](const std::vector<Expr>& indices) -> Expr {
        Value first = element(operands[0], indices);
        if (negates) return first.expr * scalar_imm(-1, dtype_of(first.expr));
        return in.binary(*operator_of(at.text), first, element(operands[1], indices), at, false).expr;
      },
      in.span(at));
}

// Adds a stage that copies the elements, in row-major order, to a buffer of this shape.
Buffer Parser::TeReader::reshaped(const Buffer& source, const std::vector<Expr>& shape, const Span& place) {
  const std::vector<Expr>& from = buffer_type(source).shape;
  auto value_at = [&](const std::vector<Expr>& indices) {
    Expr position = int_imm(0, kInt64);
    for (size_t d = 0; d < shape.size(); ++d) position = position * shape[d] + indices[d];
    std::vector<Expr> of_source(from.size(), int_imm(0, kInt64));
    for (size_t d = from.size(); d-- > 0;) {
      Expr dim = cast_to(from[d], kInt64);
      of_source[d] = d == 0 ? position : relaxc::binary(BinaryOp::kFloorMod, position, dim);
      position = relaxc::binary(BinaryOp::kFloorDiv, position, dim);
    }
    return relaxc::load(source, of_source, place);
  };
  return elementwise("T_reshape", shape, value_at, place);
}

}  // namespace relaxc::text
