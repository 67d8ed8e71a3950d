// Reads R.emit_te(f, x): a call of the tensor program that a function of te makes, or an operator like topi's.
#include <algorithm>

#include "ir/op_names.h"
#include "ir/text/parse_te.h"
#include "ir/visit.h"

namespace relaxc::text {

namespace {

constexpr std::string_view kOfPrograms[] = {"primfunc_attrs", "primfunc_name_hint"};

// Returns whether the argument of a function of te is part of the program: a number or a text.
bool is_fixed(const Expr& arg) { return arg.is<IntImm>() || arg.is<FloatImm>() || arg.is<StringImm>(); }

}  // namespace

// Reads R.emit_te(lambda x: x + 1, y): what the lambda says of the tensors.
Value Parser::TeReader::emit_lambda(const Syntax& at) {
  const Syntax& lambda = *at.children[1];
  size_t count = lambda.children.size() - 1;
  if (count != in.positional(at) - 1)
    in.fail(at, "the lambda takes {} arguments, got {}", count, in.positional(at) - 1);
  const Syntax& body = *lambda.children.back();
  bool of_topi = is_call(body) && spelling(*body.children[0]).find("topi.") != std::string::npos;
  if (has_stages(body)) {
    Line &function = in.tree_->line(), &result = in.tree_->line();
    static_cast<Place&>(function) = static_cast<Place&>(result) = lambda;
    result.kind = LineKind::kReturn;
    result.value = &body;
    for (size_t i = 0; i < count; ++i)
      function.params.push_back({*lambda.children[i], lambda.children[i]->text, nullptr});
    function.body.push_back(&result);
    return emit(at, function, "te_compute");
  }
  std::vector<Expr> args = in.read_each(at.operands().subspan(1), &Parser::as_argument);
  NameScope scope(in.scopes_);
  for (size_t i = 0; i < count; ++i) in.define(lambda.children[i]->text, args[i]);
  if (!of_topi) return in.eval(body);
  Syntax inner = body;
  inner.children.insert(inner.children.begin(), at.children[0]);
  return emit(inner);
}

// Returns whether the text has a schedule, which may name the programs that TVM makes of topi's functions.
bool Parser::TeReader::is_scheduled() const {
  auto has = [&](const char* part) { return in.origin_->text->find(part) != std::string::npos; };
  return has("tir.Schedule(") && (has("func_name") || has("work_on("));
}

// Returns the argument of a function of topi with params in the place of tensors, which are added to the call.
const Syntax* Parser::TeReader::with_params(const Syntax* at, Line& function, Syntax& call) {
  if (is_list(*at)) return &with_parts(*at, [&](const Syntax* part) { return with_params(part, function, call); });
  const bool is_constant = at->kind != SyntaxKind::kName && at->kind != SyntaxKind::kCall;
  if (is_constant || !in.as_argument(*at).type().is<TensorType>()) return at;
  constexpr std::string_view kNames = "ABCDEFGHIJ";
  const size_t i = function.params.size();
  Syntax& name = in.tree_->node();
  static_cast<Place&>(name) = *at;
  name.kind = SyntaxKind::kName;
  name.text = in.tree_->text(i < kNames.size() ? std::string(1, kNames[i]) : fmt::format("X{}", i));
  function.params.push_back({*at, name.text, nullptr});
  call.children.push_back(at);
  return &name;
}

// Reads R.emit_te(topi.nn.dense, x, y) as the call of a program, as TVM does; otherwise it is an operator, which can be
// fused.
Value Parser::TeReader::emit_topi(const Syntax& topi_call, const Syntax& at, const std::string& name) {
  Line &function = in.tree_->line(), &result = in.tree_->line();
  static_cast<Place&>(function) = static_cast<Place&>(result) = at;
  Syntax &body = in.tree_->node(), call = at;
  body = topi_call;
  call.children.resize(2);
  std::erase_if(body.keywords, [](const Keyword& each) { return std::ranges::count(kOfPrograms, each.name) > 0; });
  std::erase_if(call.keywords, [](const Keyword& each) { return std::ranges::count(kOfPrograms, each.name) == 0; });
  std::vector<const Syntax*> parts = {body.children[0]};
  for (const Syntax* arg : body.operands()) parts.push_back(with_params(arg, function, call));
  body.children.assign(parts.begin(), parts.end());
  for (Keyword& each : body.keywords) each.value = with_params(each.value, function, call);
  result.kind = LineKind::kReturn;
  result.value = &body;
  function.body.push_back(&result);
  return emit(call, function, name.substr(name.rfind('.') + 1));
}

// Reads R.emit_te(f, x, y): a call of the tensor program that f makes of tensors like these.
Value Parser::TeReader::emit(const Syntax& at) {
  const Syntax& callee_at = in.required(at, 0, "func");
  if (callee_at.kind == SyntaxKind::kLambda && in.positional(at) > 0) return emit_lambda(at);
  const Line* const* function = is_name(callee_at) ? find_value(functions_, callee_at.text) : nullptr;
  if (std::string name = name_in_topi(spelling(callee_at)); !function && !name.empty()) {
    Syntax call = at;
    call.children.erase(call.children.begin());
    if (is_scheduled()) return emit_topi(call, at, name);
    if (std::optional<Value> value = topi(name, call, false)) return *value;
  }
  if (!function)
    in.fail({at, {}, "define a function of te.compute above the module, or call a tensor program with R.call_tir"},
            "R.emit_te needs a Python interpreter for '{}'", spelling(callee_at));
  return emit(at, **function, std::string(callee_at.text));
}

// Returns the arguments of R.emit_te(f, x, y=z) in the order of the function's params.
std::vector<Expr> Parser::TeReader::arguments_of(const Syntax& at, const Line& function, const std::string& name) {
  std::vector<Expr> args = in.read_each(at.operands().subspan(1), &Parser::as_argument);
  std::vector<std::string> known(std::begin(kOfPrograms), std::end(kOfPrograms));
  for (const Param& param : function.params) known.emplace_back(param.name);
  in.check_keywords(at, known);
  for (size_t i = args.size(); i < function.params.size(); ++i) {
    if (const Syntax* value = in.keyword(at, function.params[i].name)) args.push_back(in.as_argument(*value));
  }
  if (args.size() != function.params.size())
    in.fail(at, "'{}' takes {} arguments, got {}", name, function.params.size(), args.size());
  return args;
}

// Returns what the function of te is called with: tensors like the arguments, numbers and texts as they are, and for
// other numbers the name of the same dim of a tensor, or else a param.
std::vector<Expr> Parser::TeReader::inner_arguments(const std::vector<Expr>& args, const Line& function,
                                                    Emission& made) {
  std::vector<Expr> result;
  for (size_t i = 0; i < args.size(); ++i) {
    result.push_back(args[i]);
    if (is_fixed(args[i]) || args[i].type().is<PrimType>()) continue;
    made.params.push_back(placeholder_like(args[i], function.params[i], made.dims));
    made.tensors.push_back(args[i]);
    result.back() = made.params.back();
  }
  for (size_t i = 0; i < args.size(); ++i) {
    if (is_fixed(args[i]) || !args[i].type().is<PrimType>()) continue;
    auto known = std::ranges::find_if(made.dims, [&](const auto& dim) { return structural_equal(dim.first, args[i]); });
    if (known == made.dims.end())
      made.scalars.emplace_back(args[i],
                                make_var(std::string(function.params[i].name), args[i].type(), args[i].span()));
    result[i] = known == made.dims.end() ? Expr(made.scalars.back().second) : Expr(known->second);
  }
  return result;
}

// Gives the dims of the graph names in the program: a function of Python may name them, also those that its tensors do
// not have. Returns the latter.
std::vector<std::pair<Expr, VarRef>> Parser::TeReader::define_dims(const Emission& made) {
  std::vector<std::pair<Expr, VarRef>> around;
  for (const auto& [name, entity] : in.scopes_.visible()) {
    if (!entity->is_dim || !entity->expr || !entity->expr->is<Var>()) continue;
    auto is_it = [&](const auto& each) { return same_node(each.first, *entity->expr); };
    if (std::ranges::none_of(made.dims, is_it)) around.emplace_back(*entity->expr, make_dim(name));
  }
  for (const auto* all : {&made.dims, &std::as_const(around)}) {
    for (const auto& [dim, var] : *all) {
      if (dim.is<Var>()) in.define(dim.as<Var>()->name, var);
    }
  }
  return around;
}

PrimFuncRef Parser::TeReader::emitted(const std::vector<Expr>& args, const Line& function, const Syntax& at,
                                      Emission& made) {
  Temporarily graph(in.in_graph_, false);
  Temporarily ints(in.default_int_, kInt32);
  NameScope scope(in.scopes_);
  begin_program();
  std::vector<Expr> inner = inner_arguments(args, function, made);
  std::vector<std::pair<Expr, VarRef>> around = define_dims(made);
  made.outputs = run(function, inner, at);
  for (const Expr& output : made.outputs) {
    if (!output.is<Var>() || !output.type().is<BufferType>()) in.fail(at, "expected a tensor of te.compute");
    made.params.push_back(cast<Var>(output));
  }
  VarSet used;
  for (const Stage& stage : stages_) {
    if (stage.stmt) add_free_vars(*stage.stmt, used);
  }
  std::ranges::copy_if(around, std::back_inserter(made.scalars),
                       [&](const auto& each) { return used.contains(each.second.get()); });
  for (const auto& [value, param] : made.scalars) made.params.push_back(param);
  return program(made.params, at);
}

Value Parser::TeReader::emit(const Syntax& at, const Line& function, const std::string& function_name) {
  Emission emission;
  PrimFuncRef made = emitted(arguments_of(at, function, function_name), function, at, emission);
  VarMap outside;
  for (const auto* all : {&emission.scalars, &emission.dims}) {
    for (const auto& [dim, var] : *all) outside.emplace(var.get(), dim);
  }
  Call call{op_ref(ops::kCallTir), {}, {}, {}};
  const Syntax* hint = in.keyword(at, "primfunc_name_hint");
  if (const Syntax* given = in.keyword(at, "primfunc_attrs")) {
    PrimFunc with_attrs = *made;
    for (const auto& [key, value] : in.attrs(*given)) with_attrs.attrs.set(key, value);
    made = make_prim_func(std::move(with_attrs), made.span());
  }
  std::string name = add_program(hint ? in.string(*hint) : function_name, made);
  call.args = {global_var(name, made.type()), tuple(emission.tensors, in.span(at))};
  std::vector<Expr> scalars = map_each(emission.scalars, [](const auto& each) { return each.first; });
  if (!scalars.empty()) call.args.push_back(shape_expr(std::move(scalars), in.span(at)));
  for (const Expr& output : emission.outputs) {
    const BufferType& type = buffer_type(cast<Var>(output));
    call.type_args.push_back(tensor_type(
        map_each(type.shape, [&](const Expr& dim) { return cast_to(substitute(dim, outside), kInt64); }), type.dtype));
  }
  return in.typed_call(std::move(call), at);
}

VarRef Parser::TeReader::placeholder_like(const Expr& arg, const Param& param,
                                          std::vector<std::pair<Expr, VarRef>>& dims) {
  const std::vector<Expr>* shape = known_shape(arg.type());
  std::optional<DType> dtype = tensor_dtype(arg.type());
  if (!shape || !dtype) in.fail(param, "the shape and dtype of argument '{}' are not known", param.name);
  auto inside = [&](const Expr& dim) -> Expr {
    if (dim.is<IntImm>()) return dim;
    auto known = std::ranges::find_if(dims, [&](const auto& each) { return structural_equal(each.first, dim); });
    if (known != dims.end()) return known->second;
    const Var* var = dim.as<Var>();
    return dims.emplace_back(dim, make_dim(var ? var->name : fmt::format("d{}", dims.size()))).second;
  };
  return placeholder(std::string(param.name), *dtype, map_each(*shape, inside), in.span(param));
}

std::string Parser::TeReader::add_program(const std::string& wanted, const PrimFuncRef& program) {
  for (const auto& [name, known] : emitted_) {
    if (structural_equal(known, program)) return name;
  }
  std::string name = wanted;
  for (int64_t i = 1; in.declared_.contains(name) || in.unknown_.contains(name); ++i)
    name = fmt::format("{}{}", wanted, i);
  in.declared_.emplace(name, program.type());
  in.module_.functions.emplace(name, program);
  emitted_.emplace_back(name, program);
  return name;
}

}  // namespace relaxc::text
