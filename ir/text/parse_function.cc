// Reads graph functions from the syntax tree: signatures, bindings, branches, nested functions. Values are in
// parse_call.cc.
#include <algorithm>

#include "ir/text/names.h"
#include "ir/text/parsing.h"
#include "ir/visit.h"

namespace relaxc::text {

// ---- Signatures

Parser::Signature Parser::read_signature(const Line& line) {
  in_graph_ = true;
  default_int_ = kInt64;
  Signature result;
  NameScope scope(scopes_);
  bool sound = true;
  for (std::string_view dim : line.type_params)
    scopes_.define(dim, Entity{make_var(std::string(dim), prim_type(kInt64), span(line)), false, true});
  // Scalar params are read first, since types of other params may name them.
  for (const Param& param : line.params) {
    bool read = guarded([&] {
      if (!param.annotation) {
        report(param, "parameter '{}' has no type", param.name)
            .notes.push_back("write `name: R.Tensor((\"n\", 4), dtype=\"float32\")`");
        throw Failed();
      }
      if (scopes_.find_here(param.name)) fail(param, "parameter '{}' is given twice", param.name);
      const Syntax& at = *param.annotation;
      std::string path = type_name(at);
      if (path != "R.Prim" && !path.starts_with("T.")) return;
      // In x: R.Prim(value="n"), x is the dim n.
      const Syntax* value = path == "R.Prim" && at.kind == SyntaxKind::kCall ? keyword(at, "value") : nullptr;
      std::string dim = value && value->kind == SyntaxKind::kString ? string(*value) : "";
      bool names_dim = !dim.empty() && is_identifier(dim) && !lookup(dim);
      VarRef var = make_var(std::string(param.name), names_dim ? prim_type(kInt64) : type(at), span(param));
      define(param.name, var);
      if (names_dim) scopes_.define(dim, Entity{var, false, true});
    });
    if (!read && !scopes_.find_here(param.name)) scopes_.define(param.name, Entity{});
    sound &= read;
  }
  quoted_ = true;
  std::vector<std::string_view> unknown;
  for (const Param& param : line.params) {
    bool read = guarded([&] {
      const Entity* scalar_param = scopes_.find_here(param.name);
      if (scalar_param && !scalar_param->expr) throw Failed();  // reported
      if (scalar_param && !scalar_param->is_dim) {
        result.params.push_back(cast<Var>(*scalar_param->expr));
        return;
      }
      VarRef var = make_var(std::string(param.name), type(*param.annotation), span(param));
      result.params.push_back(var);
      define(param.name, var);
    });
    if (!read) unknown.push_back(param.name);
    sound &= read;
  }
  for (std::string_view name : unknown) {
    if (!scopes_.find_here(name)) scopes_.define(name, Entity{});
  }
  if (line.annotation) sound &= guarded([&] { result.result = type(*line.annotation); });
  quoted_ = false;
  result.names = scopes_.here();
  result.sound = sound;
  return result;
}

void Parser::signature(const Pending& pending) {
  Signature signature = read_signature(*pending.line);
  if (signature.sound) {
    declared_.insert_or_assign(pending.name, make(function_type(signature, pending.pure)));
  } else {
    unknown_.insert(pending.name);
  }
  signatures_.insert_or_assign(pending.name, std::move(signature));
}

FuncType Parser::function_type(const Signature& signature, bool pure) {
  std::vector<Type> params;
  for (const VarRef& param : signature.params) params.push_back(param.type());
  return {std::move(params), signature.result.value_or(object_type()), pure, {}};
}

FunctionRef Parser::graph_function(const Pending& pending, Signature signature, bool nested) {
  const Line& line = *pending.line;
  in_graph_ = true;
  default_int_ = kInt64;
  if (!nested) hidden_.clear();
  NameScope scope(scopes_);
  for (const auto& [name, entity] : signature.names) scopes_.define(name, entity);
  // The result's type may name the parameters; that of a nested function also the names around it.
  std::vector<VarRef> visible;
  for (const auto& [name, entity] : scopes_.visible()) {
    if (entity->expr && entity->expr->is<Var>()) visible.push_back(cast<Var>(*entity->expr));
  }
  size_t errors_before = errors();
  Body body;
  Body* outer = std::exchange(body_, &body);
  relax_lines(line.body, body);
  body_ = outer;
  if (!body.result) {
    if (pending.sound && errors() == errors_before) fail(line, "function '{}' does not return a value", line.text);
    throw Failed();
  }
  Attrs attributes = body.attrs;
  if (pending.is_private && attributes.has("global_symbol"))
    fail(line, "function '{}' is private and has a global_symbol", line.text);
  if (!pending.is_private && !nested && !attributes.has("global_symbol"))
    attributes.set("global_symbol", std::string(line.text));
  // Texts from before purity was introduced may call impure functions anywhere.
  bool calls_out = false;
  if (early_) {
    for (const BindingBlock& block : body.blocks) {
      for (const Binding& b : block.bindings) {
        const Call* call = b.value.as<Call>();
        calls_out = calls_out || (call && !call->callee.is<OpRef>());
      }
    }
  }
  Type result = signature.result ? *signature.result : without_unbound_dims(body.result->type(), visible);
  return make_function({std::move(signature.params), seq_expr(std::move(body.blocks), *body.result, span(line)), result,
                        pending.pure && !body.impure && !calls_out, std::move(attributes)},
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
      if (body.in_dataflow && body.outputs_given && line->kind != LineKind::kPass)
        fail(*line, "R.output ends a dataflow block; this stands after it");
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
      return relax_assign(line);
    case LineKind::kIf:
      if (body.in_dataflow) fail(line, "a dataflow block has no branches");
      return relax_if(line, body);
    case LineKind::kWith: {
      const Syntax& item = *line.items[0].first;
      std::string path = called(item);
      if (path.starts_with("T.")) fail(item, "'{}' belongs to tensor programs; expected R.dataflow()", path);
      // Any other form after `with` is treated as a dataflow block, too.
      if (path != "R.dataflow") report(item, "expected R.dataflow() after 'with'");
      if (body.in_dataflow) fail(line, "a dataflow block inside of another");
      return dataflow(line, body);
    }
    case LineKind::kReturn: {
      if (body.in_dataflow) fail(line, "'return' inside of a dataflow block");
      if (body.result) fail(line, "a function returns once, at its end");
      body.result = line.value ? leaf({as_argument(*line.value)}, *line.value) : tuple({}, span(line));
      return;
    }
    case LineKind::kFunction:
      return nested_function(line);
    case LineKind::kImport:
      return imports(line);
    case LineKind::kBroken:
      throw Failed();
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

// A function in a body is a binding; it may call itself.
void Parser::nested_function(const Line& line) {
  Pending pending{std::string(line.text), &line};
  bool known = false;
  for (const Syntax* decorator : line.decorators) {
    bool is_call = decorator->kind == SyntaxKind::kCall;
    std::string path = dotted(is_call ? *decorator->children[0] : *decorator);
    if (path == "T.prim_func") fail(*decorator, "a tensor program inside of a graph function; define it in the module");
    known = known || path == "R.function";
    const Syntax* flag = is_call ? keyword(*decorator, "pure") : nullptr;
    if (flag) pending.pure = constant_bool(*flag);
  }
  if (!known) fail(line, "expected @R.function before a nested function");
  Signature signature = read_signature(line);
  bool stated = signature.result.has_value();
  VarRef self = make_var(pending.name, make(function_type(signature, pending.pure)), span(line));
  std::optional<FunctionRef> function;
  {
    NameScope scope(scopes_);
    define(line.text, self);
    std::optional<Type> wanted = std::exchange(wanted_, std::nullopt);
    function = graph_function(pending, std::move(signature), true);
    wanted_ = wanted;
  }
  std::vector<VarRef> captured = free_vars(*function);
  bool recursive =
      std::any_of(captured.begin(), captured.end(), [&](const VarRef& var) { return same_node(var, self); });
  // A more precise result type is known now. It is used where no call relies on the earlier one.
  if (!recursive && !stated) self = make_var(pending.name, function->type(), span(line));
  bind({*function, std::nullopt, self});
  define(line.text, self);
}

// Reads R.match_cast(value, type) and the form of 2022, R.match_shape(value, (n, 4)); nullopt for other syntax.
std::optional<Binding> Parser::match_binding(const Syntax& at, const std::string& name, std::optional<Type> annotated) {
  std::string path = called(at);
  if (path != "R.match_cast" && path != "R.match_shape") return std::nullopt;
  bool early = path == "R.match_shape";
  const Syntax& value_at = required(at, 0, "value");
  const Syntax& wanted = required(at, 1, early ? "shape" : "struct_info");
  Expr value = as_argument(value_at);
  std::optional<Type> cast;
  if (early) {
    bool outer_early = std::exchange(early_, true), outer_quoted = std::exchange(quoted_, true);
    std::vector<Expr> values = graph_dims(wanted);
    early_ = outer_early;
    quoted_ = outer_quoted;
    cast = value.type().is<ShapeType>() ? shape_type(values) : tensor_type(values, tensor_dtype(value.type()));
  } else if (type_name(wanted) == "R.Prim" && wanted.kind == SyntaxKind::kCall && keyword(wanted, "value")) {
    // A scalar's value defines a new dim.
    if (!value.type().is<PrimType>()) fail(value_at, "expected a scalar");
    const Syntax& dim = *keyword(wanted, "value");
    Expr var = expr(dim);
    const Entity* named = dim.kind == SyntaxKind::kName ? lookup(dim.text) : nullptr;
    bool is_new = named && !named->is_dim && var.is<Var>() && undefined_.erase(var.get());
    if (is_new) return Binding{value, std::nullopt, cast_handle<VarRef>(var)};
    cast = type(wanted);
  } else {
    cast = type(wanted);
  }
  return Binding{value, cast, make_var(name, annotated.value_or(*cast), span(at))};
}

// Reads cls = Module
bool Parser::names_module(const Line& line) {
  const Syntax& at = *line.value;
  bool is_class = at.kind == SyntaxKind::kName && !lookup(at.text) && (at.text == class_name_ || at.text == "Module");
  if (is_class) scopes_.define(name_of_target(*line.target), Entity{std::nullopt, true});
  return is_class;
}

void Parser::relax_assign(const Line& line) {
  if (!line.value) fail(line, "expected a value");
  if (define_free_vars(line)) return;
  const Syntax& at = *line.value;
  if (names_module(line)) return;
  if (is_list(*line.target)) return unpack(line);
  std::string var_name = name_of_target(*line.target);
  std::optional<Type> annotated;
  if (line.annotation) annotated = type(*line.annotation);
  if (std::optional<Binding> match = match_binding(at, var_name, annotated)) {
    bind(*match);
    define(var_name, match->var);
    return;
  }
  wanted_ = annotated;
  Value value = eval(at);
  wanted_.reset();
  if (value.literal && annotated) {
    if (const PrimType* prim = annotated->as<PrimType>()) value.expr = adapt(value, prim->dtype, at);
  }
  VarRef var = make_var(var_name, annotated.value_or(value.expr.type()), span(*line.target));
  bind({value.expr, std::nullopt, var});
  define(var_name, var);
}

// Reads a, b = t: the items of a tuple.
void Parser::unpack(const Line& line) {
  if (line.annotation) fail(*line.annotation, "several names have no common type");
  std::vector<const Syntax*> targets = items(*line.target);
  Expr value = as_argument(*line.value);
  const TupleType* type = value.type().as<TupleType>();
  if (!type || type->items.size() != targets.size())
    fail(line, "{} names for {}", targets.size(),
         type ? fmt::format("a tuple of {}", type->items.size()) : "what is no tuple");
  for (size_t i = 0; i < targets.size(); ++i) {
    std::string var_name = name_of_target(*targets[i]);
    const Tuple* several = value.as<Tuple>();
    Expr item = several ? several->items[i] : tuple_get(value, static_cast<int64_t>(i), span(*targets[i]));
    VarRef var = make_var(var_name, item.type(), span(*targets[i]));
    bind({item, std::nullopt, var});
    define(var_name, var);
  }
}

void Parser::relax_call_line(const Line& line, Body& body) {
  const Syntax& at = *line.value;
  if (at.kind == SyntaxKind::kConstant && at.text == "...") return;
  if (at.kind != SyntaxKind::kCall) fail(line, "this expression does nothing; bind it to a name");
  std::string path = called(at);
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
    body.outputs_given = true;
    bool sound = true;
    for (size_t i = 1; i < at.children.size(); ++i) {
      sound &= guarded([&] {
        Expr value = expr(*at.children[i]);
        if (!value.is<Var>()) fail(*at.children[i], "expected a variable");
        std::vector<VarRef>& outputs = body.blocks.back().outputs;
        bool bound_here = false;
        for (const Binding& binding : body.blocks.back().bindings)
          bound_here = bound_here || same_node(binding.var, value);
        if (!bound_here) fail(*at.children[i], "'{}' is not bound in this dataflow block", value.as<Var>()->name);
        outputs.push_back(cast<Var>(value));
      });
    }
    body.outputs_sound = sound;
    if (!sound) throw Failed();
    return;
  }
  if (std::optional<Binding> match = match_binding(at, "_", std::nullopt)) return bind(*match);
  wanted_ = tuple_type({});
  Expr value = expr(at);
  wanted_.reset();
  if (const TupleType* nothing = value.type().as<TupleType>(); !nothing || !nothing->items.empty())
    fail(at, "the value of this call is lost; bind it to a name");
  bind({value, std::nullopt, make_var("_", value.type(), span(line))});
}

void Parser::dataflow(const Line& line, Body& body) {
  body.in_dataflow = true;
  body.outputs_given = false;
  body.outputs_sound = true;
  body.blocks.push_back({true, {}, {}});
  size_t errors_before = errors();
  std::map<std::string, Entity> local;
  {
    NameScope scope(scopes_);
    relax_lines(line.body, body);
    local = scopes_.here();
  }
  body.in_dataflow = false;
  bool outputs_known = body.outputs_given ? body.outputs_sound : errors() == errors_before;
  // Outputs stay visible, and so do names whose definition failed.
  const BindingBlock& block = body.blocks.back();
  for (auto& [name, entity] : local) {
    bool visible = !entity.expr || entity.is_module || entity.expr->type().is<PrimType>();
    for (const VarRef& output : block.outputs) visible = visible || (entity.expr && same_node(output, *entity.expr));
    if (visible) {
      scopes_.define(name, entity);
    } else if (!outputs_known) {
      poison(name);
    } else if (!lookup(name)) {
      hidden_.insert_or_assign(name, fmt::format("'{}' is local to a dataflow block; list it in R.output", name));
    }
  }
}

Expr Parser::relax_branch(const Lines& lines, const Line& line, std::string& target, std::optional<Type>& annotation) {
  NameScope scope(scopes_);
  Body branch;
  Body* outer = std::exchange(body_, &branch);
  struct Restore {
    Body*& slot;
    Body* value;
    ~Restore() { slot = value; }
  } restore{body_, outer};
  if (lines.empty()) fail(line, "both branches are needed, and both end by assigning the same name");
  const Line& last = *lines.back();
  // A call that returns nothing may stand last.
  bool is_call = last.kind == LineKind::kExpression && last.value->kind == SyntaxKind::kCall;
  if (last.kind == LineKind::kBroken) {
    relax_lines(lines, branch);
    throw Failed();
  }
  if (last.kind != LineKind::kAssign && last.kind != LineKind::kIf && !is_call)
    fail(last, "a branch ends by assigning its value to a name");
  size_t errors_before = errors();
  relax_lines(lines, branch);
  if (errors() > errors_before) throw Failed();
  // The last binding gives the branch's value; its variable is dropped when the value is a leaf.
  if (branch.blocks.empty() || branch.blocks.back().bindings.empty()) throw Failed();
  BindingBlock& block = branch.blocks.back();
  Binding final = block.bindings.back();
  if (!target.empty() && target != final.var->name)
    fail(last, "the branches assign different names: '{}' and '{}'", target, final.var->name);
  target = final.var->name;
  annotation = annotation ? common_type(*annotation, final.var.type()) : final.var.type();
  Expr result = final.var;
  if (is_leaf(final.value) && !final.cast) {
    result = final.value;
    block.bindings.pop_back();
    if (block.bindings.empty()) branch.blocks.pop_back();
  }
  return seq_expr(std::move(branch.blocks), result, span(line));
}

void Parser::relax_if(const Line& line, Body&) {
  std::string target;
  std::optional<Type> annotation;
  std::optional<Expr> test, then_branch, else_branch;
  // The errors of each part are reported.
  bool sound = guarded([&] { test = leaf({as_argument(*line.value)}, *line.value); });
  sound &= guarded([&] { then_branch = relax_branch(line.body, line, target, annotation); });
  sound &= guarded([&] { else_branch = relax_branch(line.otherwise, line, target, annotation); });
  if (!sound) throw Failed();
  VarRef var = make_var(target, *annotation, span(line));
  bind({make(If{*test, *then_branch, *else_branch}, *annotation, span(line)), std::nullopt, var});
  define(target, var);
}

}  // namespace relaxc::text
