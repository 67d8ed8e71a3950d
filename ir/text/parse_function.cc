// Graph functions from the syntax tree: signatures, bindings, the call forms, constants. Above 600 lines because each
// call form of Relax has a spelling of its own; splitting those out is the next step when the language grows.
#include <algorithm>
#include <bit>
#include <cmath>

#include "ir/text/parsing.h"
#include "support/checked_math.h"

namespace relaxc::text {

// ---- Signatures

Parser::Signature Parser::read_signature(const Line& line) {
  in_graph_ = true;
  default_int_ = kInt64;
  Signature result;
  NameScope scope(*this);
  bool sound = true;
  // Scalar params first: types of other params may name them.
  for (const Param& param : line.params) {
    sound &= guarded([&] {
      if (!param.annotation) {
        report(param, "parameter '{}' has no type", param.name)
            .notes.push_back("write `name: R.Tensor((\"n\", 4), dtype=\"float32\")`");
        throw Failed();
      }
      if (scopes_.back().contains(param.name)) fail(param, "parameter '{}' is given twice", param.name);
      const Syntax& at = *param.annotation;
      std::string path = dotted(at.kind == SyntaxKind::kCall ? *at.children[0] : at);
      if (path == "R.Prim" || path.starts_with("T."))
        define(param.name, make_var(std::string(param.name), type(at), span(param)));
    });
  }
  quoted_ = true;
  for (const Param& param : line.params) {
    sound &= guarded([&] {
      if (!param.annotation) throw Failed();
      auto scalar_param = scopes_.back().find(param.name);
      if (scalar_param != scopes_.back().end() && scalar_param->second.expr && !scalar_param->second.is_dim) {
        result.params.push_back(cast<Var>(*scalar_param->second.expr));
        return;
      }
      VarRef var = make_var(std::string(param.name), type(*param.annotation), span(param));
      result.params.push_back(var);
      define(param.name, var);
    });
  }
  if (line.annotation) sound &= guarded([&] { result.result = type(*line.annotation); });
  quoted_ = false;
  for (auto& [name, entity] : scopes_.back()) result.names.emplace(name, entity);
  if (!sound) throw Failed();
  return result;
}

void Parser::signature(const Pending& pending) {
  Signature signature = read_signature(*pending.line);
  std::vector<Type> params;
  for (const VarRef& param : signature.params) params.push_back(param.type());
  Type result = signature.result.value_or(object_type());
  declared_.insert_or_assign(pending.name, make(FuncType{std::move(params), result, pending.pure}));
  signatures_.insert_or_assign(pending.name, std::move(signature));
}

FunctionRef Parser::graph_function(const Line& line, bool is_private, bool pure, bool nested) {
  in_graph_ = true;
  default_int_ = kInt64;
  if (!nested) hidden_.clear();
  Signature signature = nested ? read_signature(line) : signatures_.at(std::string(line.text));
  NameScope scope(*this);
  for (const auto& [name, entity] : signature.names) scopes_.back().insert_or_assign(name, entity);
  Body body;
  Body* outer = std::exchange(body_, &body);
  relax_lines(line.body, body);
  body_ = outer;
  if (!body.result) {
    if (!diagnostics_.has_errors()) fail(line, "function '{}' does not return a value", line.text);
    throw Failed();
  }
  Attrs attributes = body.attrs;
  if (!is_private && !nested && !attributes.has("global_symbol"))
    attributes.set("global_symbol", std::string(line.text));
  Type result = signature.result.value_or(body.result->type());
  return make_function({std::move(signature.params), seq_expr(std::move(body.blocks), *body.result, span(line)), result,
                        pure && !body.impure, std::move(attributes)},
                       span(line));
}

// ---- Statements

void Parser::bind(Binding binding) {
  std::vector<BindingBlock>& blocks = body_->blocks;
  if (blocks.empty() || blocks.back().dataflow != body_->in_dataflow) blocks.push_back({body_->in_dataflow, {}, {}});
  blocks.back().bindings.push_back(std::move(binding));
}

Expr Parser::leaf(Value value, const Syntax& at) {
  if (is_leaf(value.expr)) return value.expr;
  const std::string& op = op_name(value.expr);
  VarRef var = make_var(op.empty() ? "v" : op.substr(op.rfind('.') + 1), value.expr.type(), span(at));
  bind({std::move(value.expr), std::nullopt, var});
  return var;
}

void Parser::relax_lines(const Lines& lines, Body& body) {
  bool ended = false;
  for (const Line* line : lines) {
    bool sound = guarded([&] {
      if (ended) fail(*line, "statements after 'return' never run");
      relax_line(*line, body);
    });
    if (!sound) poison_line(*line);
    ended = ended || line->kind == LineKind::kReturn;
  }
}

void Parser::relax_line(const Line& line, Body& body) {
  switch (line.kind) {
    case LineKind::kPass:
      return;
    case LineKind::kExpression:
      if (is_docstring(line)) return;
      return relax_call_line(line, body);
    case LineKind::kAssign:
      return relax_assign(line, body);
    case LineKind::kIf:
      if (body.in_dataflow) fail(line, "a dataflow block has no branches");
      return relax_if(line, body);
    case LineKind::kWith: {
      const Syntax& item = *line.items[0].first;
      std::string path = item.kind == SyntaxKind::kCall ? dotted(*item.children[0]) : "";
      if (path != "R.dataflow")
        fail_with_hint(item, "expected R.dataflow() after 'with'", path.empty() ? "" : "R.dataflow()");
      if (body.in_dataflow) fail(line, "a dataflow block inside of another");
      return dataflow(line, body);
    }
    case LineKind::kReturn: {
      if (body.in_dataflow) fail(line, "'return' inside of a dataflow block");
      if (body.result) fail(line, "a function returns once, at its end");
      body.result = line.value ? leaf({as_argument(*line.value)}, *line.value) : tuple({}, span(line));
      return;
    }
    case LineKind::kFunction: {
      bool pure = true, known = false;
      for (const Syntax* decorator : line.decorators) {
        bool is_call = decorator->kind == SyntaxKind::kCall;
        known = known || dotted(is_call ? *decorator->children[0] : *decorator) == "R.function";
        const Syntax* flag = is_call ? keyword(*decorator, "pure") : nullptr;
        if (flag) pure = constant_bool(*flag);
      }
      if (!known) fail(line, "expected @R.function before a nested function");
      FunctionRef function = graph_function(line, true, pure, true);
      VarRef var = make_var(std::string(line.text), function.type(), span(line));
      bind({function, std::nullopt, var});
      define(line.text, var);
      return;
    }
    case LineKind::kImport:
      return imports(line);
    case LineKind::kAssert:
    case LineKind::kAugmented:
    case LineKind::kFor:
    case LineKind::kWhile:
    case LineKind::kBreak:
    case LineKind::kContinue:
    case LineKind::kClass:
      fail(line,
           "this statement has no meaning in a graph function; expected a binding, 'if', 'with R.dataflow()' or "
           "'return'");
  }
}

void Parser::relax_assign(const Line& line, Body& body) {
  if (!line.value) fail(line, "expected a value");
  if (define_free_vars(line)) return;
  // cls = Module
  if (line.value->kind == SyntaxKind::kName && !lookup(line.value->text) &&
      (line.value->text == class_name_ || line.value->text == "Module")) {
    scopes_.back().insert_or_assign(name_of_target(*line.target), Entity{std::nullopt, true});
    return;
  }
  std::string var_name = name_of_target(*line.target);
  std::optional<Type> annotated;
  if (line.annotation) annotated = type(*line.annotation);
  const Syntax& at = *line.value;
  bool is_cast = at.kind == SyntaxKind::kCall && dotted(*at.children[0]) == "R.match_cast";
  if (is_cast) {
    Expr value = leaf({as_argument(required(at, 0, "value"))}, at);
    Type cast_type = type(required(at, 1, "ty"));
    VarRef var = make_var(var_name, annotated.value_or(cast_type), span(*line.target));
    bind({value, cast_type, var});
    define(var_name, var);
    return;
  }
  wanted_ = annotated;
  Value value = eval(at);
  wanted_.reset();
  (void)body;
  if (value.literal && annotated) {
    if (const PrimType* prim = annotated->as<PrimType>()) value.expr = adapt(value, prim->dtype, at);
  }
  VarRef var = make_var(var_name, annotated.value_or(value.expr.type()), span(*line.target));
  bind({value.expr, std::nullopt, var});
  define(var_name, var);
}

void Parser::relax_call_line(const Line& line, Body& body) {
  const Syntax& at = *line.value;
  if (at.kind != SyntaxKind::kCall) fail(line, "this expression does nothing; bind it to a name");
  std::string path = dotted(*at.children[0]);
  if (path == "R.func_attr") {
    for (const auto& [key, value] : attrs(required(at, 0, "attrs"))) body.attrs.set(key, value);
    return;
  }
  if (path == "R.is_impure") {
    body.impure = true;
    return;
  }
  if (path == "R.output") {
    if (!body.in_dataflow) fail(line, "R.output stands at the end of a dataflow block");
    for (size_t i = 1; i < at.children.size(); ++i) {
      Expr value = expr(*at.children[i]);
      if (!value.is<Var>()) fail(*at.children[i], "expected a variable");
      std::vector<VarRef>& outputs = body.blocks.back().outputs;
      bool bound_here = false;
      for (const Binding& binding : body.blocks.back().bindings)
        bound_here = bound_here || same_node(binding.var, value);
      if (!bound_here) fail(*at.children[i], "'{}' is not bound in this dataflow block", value.as<Var>()->name);
      outputs.push_back(cast<Var>(value));
    }
    return;
  }
  wanted_ = tuple_type({});
  Expr value = expr(at);
  wanted_.reset();
  bind({value, std::nullopt, make_var("_", value.type(), span(line))});
}

void Parser::dataflow(const Line& line, Body& body) {
  body.in_dataflow = true;
  body.blocks.push_back({true, {}, {}});
  std::map<std::string, Entity, std::less<>> local;
  {
    NameScope scope(*this);
    relax_lines(line.body, body);
    local = scopes_.back();
  }
  body.in_dataflow = false;
  // Outputs stay visible, and so do names whose definition failed.
  const BindingBlock& block = body.blocks.back();
  for (auto& [name, entity] : local) {
    bool visible = !entity.expr || entity.is_module || entity.expr->type().is<PrimType>();
    for (const VarRef& output : block.outputs) visible = visible || (entity.expr && same_node(output, *entity.expr));
    if (visible) {
      scopes_.back().insert_or_assign(name, entity);
    } else if (!lookup(name)) {
      hidden_.insert_or_assign(name, fmt::format("'{}' is local to a dataflow block; list it in R.output", name));
    }
  }
}

Expr Parser::relax_branch(const Lines& lines, const Line& line, std::string& target, std::optional<Type>& annotation) {
  NameScope scope(*this);
  Body branch;
  Body* outer = std::exchange(body_, &branch);
  struct Restore {
    Body*& slot;
    Body* value;
    ~Restore() { slot = value; }
  } restore{body_, outer};
  if (lines.empty()) fail(line, "both branches are needed, and both end by assigning the same name");
  const Line& last = *lines.back();
  if (last.kind != LineKind::kAssign && last.kind != LineKind::kIf)
    fail(last, "a branch ends by assigning its value to a name");
  relax_lines(lines, branch);
  // The last binding gives the branch's value; its own variable vanishes when the value is a leaf.
  if (branch.blocks.empty() || branch.blocks.back().bindings.empty()) throw Failed();
  BindingBlock& block = branch.blocks.back();
  Binding final = block.bindings.back();
  if (!target.empty() && target != final.var->name)
    fail(last, "the branches assign different names: '{}' and '{}'", target, final.var->name);
  target = final.var->name;
  if (!annotation) annotation = final.var.type();
  Expr result = final.var;
  if (is_leaf(final.value) && !final.cast) {
    result = final.value;
    block.bindings.pop_back();
    if (block.bindings.empty()) branch.blocks.pop_back();
  }
  return seq_expr(std::move(branch.blocks), result, span(line));
}

void Parser::relax_if(const Line& line, Body&) {
  Expr test = leaf({as_argument(*line.value)}, *line.value);
  std::string target;
  std::optional<Type> annotation;
  Expr then_branch = relax_branch(line.body, line, target, annotation);
  Expr else_branch = relax_branch(line.otherwise, line, target, annotation);
  VarRef var = make_var(target, *annotation, span(line));
  bind({make(If{test, then_branch, else_branch}, *annotation, span(line)), std::nullopt, var});
  define(target, var);
}

// ---- Values

// A leaf in an argument's place.
Expr Parser::as_argument(const Syntax& at) {
  std::optional<Type> wanted = std::exchange(wanted_, std::nullopt);
  Expr result = leaf(eval(at), at);
  wanted_ = wanted;
  return result;
}

Value Parser::tensor_operator(std::string_view op, Value a, Value b, const Syntax& at) {
  constexpr std::pair<std::string_view, const char*> kSugar[] = {
      {"+", "relax.add"},           {"-", "relax.subtract"},    {"*", "relax.multiply"}, {"/", "relax.divide"},
      {"//", "relax.floor_divide"}, {"%", "relax.floor_mod"},   {"**", "relax.power"},   {"@", "relax.matmul"},
      {"<", "relax.less"},          {"<=", "relax.less_equal"}, {">", "relax.greater"},  {">=", "relax.greater_equal"},
      {"==", "relax.equal"},        {"!=", "relax.not_equal"}};
  // A number beside a tensor is a constant of the tensor's dtype.
  auto lift = [&](Value& value, const Value& other) {
    if (!value.expr.type().is<PrimType>()) return;
    std::optional<DType> dtype = tensor_dtype(other.expr.type());
    if (!value.literal || !dtype) fail(at, "expected tensors on both sides of '{}'", op);
    Expr scalar = adapt(value, *dtype, at);
    Tensor data = Tensor::empty({}, *dtype);
    if (const IntImm* imm = scalar.as<IntImm>()) data.set_int(0, imm->value);
    if (const FloatImm* imm = scalar.as<FloatImm>()) data.set_double(0, imm->value);
    value = {relaxc::constant(data, span(at))};
  };
  lift(a, b);
  lift(b, a);
  for (const auto& [symbol, name] : kSugar) {
    if (op != symbol) continue;
    Call call{op_ref(name), {leaf(a, at), leaf(b, at)}, {}, {}};
    return typed_call(std::move(call), at);
  }
  fail(at, "'{}' of tensors", op);
}

std::vector<Type> Parser::type_list(const Syntax& at) {
  std::vector<Type> result;
  for (const Syntax* item : items(at)) result.push_back(type(*item));
  return result;
}
void Parser::set_type_args(const Syntax& at, Call& call) {
  if (const Syntax* types = keyword(at, "sinfo_args")) call.type_args = type_list(*types);
}

// The call with its inferred type; the annotation's where nothing can be inferred.
Value Parser::typed_call(Call call, const Syntax& at) {
  std::optional<Type> wanted = std::exchange(wanted_, std::nullopt);
  const GlobalVar* callee = call.callee.as<GlobalVar>();
  const Expr* target = callee ? module_.find(callee->name) : nullptr;
  Type result = object_type();
  if (target && target->is<PrimFunc>()) {
    result = tuple_type({});  // a kernel writes to its arguments
  } else {
    result = infer_call_type(call, span(at), ops_);
  }
  if (wanted && result.is<ObjectType>()) result = *wanted;
  return {make(std::move(call), result, span(at))};
}

Value Parser::function_call(Expr callee, const Syntax& at) {
  check_keywords(at, {"sinfo_args"});
  Call call{callee, {}, {}, {}};
  for (size_t i = 1; i < at.children.size(); ++i) call.args.push_back(as_argument(*at.children[i]));
  set_type_args(at, call);
  return typed_call(std::move(call), at);
}

// call_packed("symbol", args..., sinfo_args=(...)) and call_pure_packed.
Value Parser::packed_call(const std::string& form, const Syntax& at) {
  const Syntax& symbol = required(at, 0, "func");
  Expr function = extern_func(string(symbol), span(symbol));
  bool pure = form == "R.call_pure_packed";
  Call call{pure ? op_ref("relax.call_pure_packed") : function, {}, {}, {}};
  if (pure) call.args.push_back(function);
  for (size_t i = 2; i < at.children.size(); ++i) call.args.push_back(as_argument(*at.children[i]));
  for (const Keyword& keyword : at.keywords) {
    bool types = keyword.name == "sinfo_args" || keyword.name == "ty_args";
    if (!types) call.attrs.set(std::string(keyword.name), attr_value(*keyword.value));
  }
  set_type_args(at, call);
  return typed_call(std::move(call), at);
}

Value Parser::call_tir(const std::string& form, const Syntax& at) {
  const Syntax& function = required(at, 0, "func");
  Expr callee = form == "R.call_dps_packed" && function.kind == SyntaxKind::kString
                    ? extern_func(string(function), span(function))
                    : expr(function);
  bool right = callee.is<GlobalVar>() || (form == "R.call_dps_packed" && callee.is<ExternFunc>());
  if (!right)
    fail(function, "expected {}",
         form == "R.call_dps_packed" ? "the name of a kernel in quotes" : "a tensor program of the module: cls.f");
  Call call{op_ref("relax." + form.substr(2)), {callee}, {}, {}};
  const Syntax& inputs = required(at, 1, "args");
  Expr given = as_argument(inputs);
  // One tensor stands for a tuple of one.
  if (given.type().is<TensorType>()) given = tuple({given}, span(inputs));
  call.args.push_back(given);
  const Syntax* outputs = arg(at, 2, "out_sinfo");
  if (!outputs) fail(at, "the output type is missing: out_sinfo=R.Tensor((n, 4), dtype=\"float32\")");
  bool early = (outputs->kind == SyntaxKind::kTuple || outputs->kind == SyntaxKind::kList) && keyword(at, "dtype");
  if (early) {
    // The form of 2022: shape and dtype.
    call.type_args = {relaxc::tensor_type(dims(*outputs, kInt64), dtype(*keyword(at, "dtype")), span(*outputs))};
  } else {
    call.type_args = type_list(*outputs);
  }
  if (const Syntax* scalars = keyword(at, "tir_vars"); scalars && scalars->text != "None") {
    Expr value = as_argument(*scalars);
    if (const Tuple* several = value.as<Tuple>()) value = shape_expr(several->items, span(*scalars));
    call.args.push_back(value);
  }
  for (const Keyword& keyword : at.keywords) {
    constexpr std::string_view kOwn[] = {"out_sinfo", "out_ty", "tir_vars", "args", "func"};
    bool own = std::find(std::begin(kOwn), std::end(kOwn), keyword.name) != std::end(kOwn) ||
               (early && keyword.name == "dtype");
    if (!own) call.attrs.set(std::string(keyword.name), attr_value(*keyword.value));
  }
  return typed_call(std::move(call), at);
}

Value Parser::relax_call(const std::string& form, const Syntax& at) {
  if (form.starts_with("R.call_tir") || form == "R.call_dps_packed") return call_tir(form, at);
  if (form == "R.call_packed" || form == "R.call_pure_packed") return packed_call(form, at);
  if (form == "R.const") return constant(at);
  if (form == "R.shape") {
    std::vector<Expr> values;
    for (const Syntax* item : items(required(at, 0, "value"))) values.push_back(dim(*item, kInt64));
    return {shape_expr(std::move(values), span(at))};
  }
  if (form == "R.prim_value") {
    Value value = eval(required(at, 0, "value"));
    if (!value.expr.type().is<PrimType>()) fail(at, "expected a scalar");
    return {value.expr};
  }
  if (form == "R.tuple" || form == "R.Tuple") {
    std::vector<Expr> values;
    for (size_t i = 1; i < at.children.size(); ++i) values.push_back(as_argument(*at.children[i]));
    return {tuple(std::move(values), span(at))};
  }
  if (form == "R.str") return {string_imm(string(required(at, 0, "value")), span(at))};
  if (form == "R.dtype") return {make(DTypeImm{dtype(at)}, object_type(), span(at))};
  if (form == "R.ExternFunc") return {extern_func(string(required(at, 0, "name")), span(at))};
  if (form == "I.Op") return {op_ref(string(required(at, 0, "name")))};
  if (form == "R.match_cast") fail(at, "R.match_cast stands alone on the right of '='");
  const OpRow* row = ops_.find("relax." + form.substr(2));
  if (!row) {
    std::vector<std::string> known;
    for (const OpRow& candidate : ops_.rows()) known.push_back("R." + candidate.name.substr(6));
    for (const char* other : {"R.const", "R.shape", "R.prim_value", "R.call_packed", "R.match_cast", "R.tuple"})
      known.emplace_back(other);
    std::optional<std::string> near = nearest(form, known);
    fail_with_hint(*at.children[0], fmt::format("unknown operator '{}'", form), near.value_or(""));
  }
  return operator_call(*row, at);
}

Value Parser::operator_call(const OpRow& row, const Syntax& at) {
  Call call{op_ref(row.name), {}, {}, {}};
  bool variadic = !row.inputs.empty() && row.inputs.back().arity == OpInput::Arity::kVariadic;
  size_t given = positional(at);
  auto input = [&](const Syntax& value) {
    // A tuple of numbers and dims is a shape.
    bool dims_only = (value.kind == SyntaxKind::kTuple || value.kind == SyntaxKind::kList) && !value.children.empty();
    std::vector<Expr> items;
    if (dims_only) {
      for (const Syntax* item : value.children) {
        bool boxed = item->kind == SyntaxKind::kCall && dotted(*item->children[0]) == "R.prim_value";
        Expr part = boxed ? expr(*item) : as_argument(*item);
        dims_only = dims_only && !boxed && part.type().is<PrimType>();
        items.push_back(part);
      }
    } else {
      return as_argument(value);
    }
    if (!dims_only) return tuple(std::move(items), span(value));
    return shape_expr(std::move(items), span(value));
  };
  for (size_t i = 0; i < given; ++i) {
    const Syntax& value = *at.children[i + 1];
    if (i == 0 && value.kind == SyntaxKind::kString && !row.inputs.empty() &&
        row.inputs[0].name == std::string("func")) {
      call.args.push_back(extern_func(string(value), span(value)));
    } else if (i < row.inputs.size() || variadic) {
      call.args.push_back(input(value));
    } else if (i - row.inputs.size() < row.attrs.size()) {
      const OpAttr& attr = row.attrs[i - row.inputs.size()];
      call.attrs.set(attr.name, normalize_attr(attr, attr_value(value)));
    } else {
      fail(value, "{} takes {} inputs and {} attributes", row.name, row.inputs.size(), row.attrs.size());
    }
  }
  // Inputs by name follow the positional ones, in order.
  for (size_t i = given; i < row.inputs.size(); ++i) {
    const Syntax* value = keyword(at, row.inputs[i].name);
    if (!value || value->text == "None") break;
    call.args.push_back(input(*value));
  }
  for (const Keyword& keyword : at.keywords) {
    if (keyword.name == "sinfo_args" || keyword.name == "ty_args") continue;
    bool is_input =
        std::any_of(row.inputs.begin(), row.inputs.end(), [&](const OpInput& in) { return keyword.name == in.name; });
    auto attr =
        std::find_if(row.attrs.begin(), row.attrs.end(), [&](const OpAttr& a) { return keyword.name == a.name; });
    if (attr == row.attrs.end()) {
      if (is_input) continue;
      std::vector<std::string> known;
      for (const OpAttr& a : row.attrs) known.emplace_back(a.name);
      Syntax place(SyntaxKind::kName, keyword.line, keyword.column, keyword.name.size());
      std::optional<std::string> near = nearest(keyword.name, known);
      fail_with_hint(place, fmt::format("{} has no attribute '{}'", row.name, keyword.name), near.value_or(""));
    }
    if (call.attrs.has(keyword.name)) fail(*keyword.value, "attribute '{}' is given twice", keyword.name);
    call.attrs.set(attr->name, normalize_attr(*attr, attr_value(*keyword.value)));
  }
  set_type_args(at, call);
  // A dim of -1 is written as what it stands for.
  const ShapeExpr* shape = row.name == "relax.reshape" && call.args.size() > 1 ? call.args[1].as<ShapeExpr>() : nullptr;
  if (shape && std::any_of(shape->values.begin(), shape->values.end(), [](const Expr& d) { return is_int(d, -1); })) {
    Type type = infer_call_type(call, span(at), ops_);
    const std::vector<Expr>* dims = known_shape(type);
    if (!dims) fail(at, "the dim of -1 is not determined: the shape of x is not known");
    call.args[1] = shape_expr(*dims, call.args[1].span());
  }
  return typed_call(std::move(call), at);
}

// ---- Constants

namespace {

// Shape of nested lists from their first elements.
void list_shape(const Syntax& at, std::vector<int64_t>& shape) {
  if (at.kind != SyntaxKind::kList && at.kind != SyntaxKind::kTuple) return;
  shape.push_back(static_cast<int64_t>(at.children.size()));
  if (!at.children.empty()) list_shape(*at.children[0], shape);
}

}  // namespace

Value Parser::constant(const Syntax& at) {
  check_keywords(at, {"value", "dtype", "shape", "encoding"});
  const Syntax& value = required(at, 0, "value");
  const Syntax* stated = arg(at, 1, "dtype");
  std::optional<DType> wanted = stated ? std::optional(dtype(*stated)) : std::nullopt;
  std::vector<int64_t> shape;
  list_shape(value, shape);
  const Syntax* stated_shape = keyword(at, "shape");
  if (stated_shape) {
    std::vector<int64_t> dims;
    for (const Syntax* item : items(*stated_shape)) dims.push_back(constant_int(*item));
    shape = dims;
  }
  std::optional<int64_t> count = element_count(shape);
  if (!count) fail(at, "the shape has no size of 64 bits");
  if (const Syntax* encoding = keyword(at, "encoding")) {
    if (string(*encoding) != "hex" || !wanted || !stated_shape)
      fail(at, "expected a dtype, a shape and encoding=\"hex\"");
    std::string hex = string(value);
    auto bytes = checked_mul(*count, wanted->bytes());
    if (!bytes || static_cast<size_t>(*bytes) * 2 != hex.size())
      fail(value, "expected {} bytes, got {} hexadecimal digits", bytes.value_or(0), hex.size());
    Tensor data = Tensor::empty(shape, *wanted);
    unsigned char* out = static_cast<unsigned char*>(data.raw());
    for (size_t i = 0; i < hex.size(); i += 2) {
      auto digit = [&](char c) {
        if (c >= '0' && c <= '9') return c - '0';
        if (c >= 'a' && c <= 'f') return c - 'a' + 10;
        fail(value, "'{}' is no hexadecimal digit", c);
      };
      out[i / 2] = static_cast<unsigned char>(digit(hex[i]) * 16 + digit(hex[i + 1]));
    }
    return {relaxc::constant(data, span(at))};
  }
  // The elements in order; every list of a level has the same length.
  std::vector<AttrValue> elements;
  std::function<void(const Syntax&, size_t)> visit = [&](const Syntax& node, size_t depth) {
    bool is_list = node.kind == SyntaxKind::kList || node.kind == SyntaxKind::kTuple;
    if (depth == shape.size()) {
      if (is_list) fail(node, "the lists are nested unevenly");
      elements.push_back(attr_value(node));
      return;
    }
    if (!is_list || static_cast<int64_t>(node.children.size()) != shape[depth])
      fail(node, "the lists are nested unevenly: expected {} items", shape[depth]);
    for (const Syntax* item : node.children) visit(*item, depth + 1);
  };
  if (stated_shape) {
    if (*count != 0 || !items(value).empty())
      fail(at, "a shape is given for empty constants only; got {} elements", *count);
  } else {
    visit(value, 0);
  }
  if (!wanted) {
    bool real = false, truth = !elements.empty();
    for (const AttrValue& element : elements) {
      real = real || element.as<double>();
      truth = truth && element.as<bool>();
    }
    wanted = truth ? kBool : real || elements.empty() ? kFloat32 : kInt32;
  }
  if (wanted->is_handle() || wanted->lanes != 1) fail(at, "a constant of {}", to_string(*wanted));
  Tensor data = Tensor::empty(shape, *wanted);
  for (size_t i = 0; i < elements.size(); ++i) {
    int64_t whole = 0;
    double real = 0;
    if (wanted->is_float()) {
      if (!from_attr(elements[i], real)) fail(value, "expected numbers, got {}", to_string(elements[i]));
      data.set_double(static_cast<int64_t>(i), real);
    } else {
      if (!from_attr(elements[i], whole))
        fail(value, "expected elements of {}, got {}", to_string(*wanted), to_string(elements[i]));
      data.set_int(static_cast<int64_t>(i), whole);
    }
  }
  return {relaxc::constant(data, span(at))};
}

}  // namespace relaxc::text
