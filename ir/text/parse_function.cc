// Reads graph functions: signatures, bindings, branches, nested functions. parse_call.cc reads their values.
#include <algorithm>

#include "ir/attr_names.h"
#include "ir/text/names.h"
#include "ir/text/parse_te.h"
#include "ir/text/printer.h"
#include "ir/type_relation.h"
#include "ir/visit.h"

namespace relaxc::text {

// ---- Signatures

// Reads the params of a function: first those for which `first` returns a variable, then the others, since types of the
// others may name the first. A param with an error stays absent, and its name is poisoned.
std::vector<std::optional<VarRef>> Parser::read_params(const Line& line, const char* form, const ParamReader& first,
                                                       const ParamReader& second) {
  std::vector<std::optional<VarRef>> result(line.params.size());
  std::vector<bool> sound(line.params.size(), true);
  for (const ParamReader* read : {&first, &second}) {
    for (size_t i = 0; i < result.size(); ++i) {
      const Param& param = line.params[i];
      auto has_its_name = [&](const Param& other) { return other.name == param.name; };
      if (result[i] || !sound[i]) continue;
      sound[i] = guarded([&] {
        if (!param.annotation) fail({param, {}, form}, "parameter '{}' has no type", param.name);
        if (std::any_of(line.params.begin(), line.params.begin() + static_cast<int64_t>(i), has_its_name))
          fail(param, "parameter '{}' is given twice", param.name);
        result[i] = (*read)(i);
      });
      if (!sound[i]) poison(param.name);
    }
  }
  return result;
}

Parser::Signature Parser::read_signature(const Line& line) {
  in_graph_ = true;
  default_int_ = kInt64;
  Signature result;
  NameScope scope(scopes_);
  for (std::string_view dim : line.type_params) define_dim(dim, kInt64, line);
  std::vector<std::pair<std::string, VarRef>> scalars;  // that are dims
  auto scalar = [&](size_t i) -> std::optional<VarRef> {
    const Param& param = line.params[i];
    const Syntax& at = *param.annotation;
    std::string path = type_name(at);
    if (path != "R.Prim" && !path.starts_with("T.")) return std::nullopt;
    // In x: R.Prim(value="n"), x is the dim n.
    const Syntax* value = path == "R.Prim" && is_call(at) ? keyword(at, "value") : nullptr;
    std::string dim = value && value->kind == SyntaxKind::kString ? string(*value) : "";
    if (value && is_name(*value) && type_variables_.contains(value->text)) dim = value->text;
    bool names_dim = !dim.empty() && identifier(dim) == dim && !lookup(dim);
    VarRef var = define_param(param, names_dim ? prim_type(kInt64) : type(at));
    if (names_dim) scopes_.define(dim, Entity{.expr = var, .is_dim = true});
    if (names_dim) scalars.emplace_back(dim, var);
    return var;
  };
  auto other = [&](size_t i) {
    Temporarily quoted(quoted_, true);
    return std::optional(define_param(line.params[i], type(*line.params[i].annotation)));
  };
  for (const auto& param : read_params(line, "write `name: R.Tensor((\"n\", 4), dtype=\"float32\")`", scalar, other)) {
    if (param) result.params.push_back(*param);
    result.sound &= param.has_value();
  }
  VarSet dims_of_tensors;
  for (const VarRef& param : result.params) {
    if (!param.type().is<PrimType>() && !param.type().is<ShapeType>()) add_free_vars(param.type(), dims_of_tensors);
  }
  for (const auto& [dim, var] : scalars) {
    if (!dims_of_tensors.contains(var.get()))
      scopes_.define(dim, Entity{.expr = var, .is_dim = true, .may_be_negative = true});
  }
  Temporarily quoted(quoted_, true);
  if (line.annotation) result.sound &= guarded([&] { result.result = type(*line.annotation); });
  result.names = scopes_.here();
  return result;
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
  {
    Temporarily outer(body_, &body);
    relax_lines(line.body);
  }
  if (!body.result && !body.blocks.empty() && body.blocks.back().dataflow) body.result = body.block_result;
  if (!body.result) {
    if (pending.sound && errors() == errors_before) fail(line, "function '{}' does not return a value", line.text);
    throw Failed();
  }
  Attrs attributes = body.attrs;
  if (pending.is_private && attributes.has(attr_names::kGlobalSymbol))
    fail(line, "function '{}' is private and has a global_symbol", line.text);
  if (!pending.is_private && !nested && !attributes.has(attr_names::kGlobalSymbol))
    attributes.set(attr_names::kGlobalSymbol, std::string(line.text));
  // Texts from before purity was introduced may call impure functions anywhere.
  auto calls_function = [](const Binding& binding) {
    bool found = false;
    walk(binding.value, [&](const Call& call) { found = found || !call.callee.is<OpRef>(); });
    return found;
  };
  bool calls_out = before_purity_ && std::ranges::any_of(body.blocks, [&](const BindingBlock& block) {
                     return std::ranges::any_of(block.bindings, calls_function);
                   });
  Type known = without_unbound_dims(body.result->type(), visible), result = signature.result.value_or(known);
  // TVM reads such a function, too. Its callers would rely on the declared type (check_declared_results).
  if (!nested && fits(result, known) == Verdict::kContradicted) {
    wrong_results_.emplace(pending.name,
                           Diagnostic{Severity::kWarning,
                                      ErrorKind::kInvalid,
                                      span(line),
                                      fmt::format("the function returns {}, but its declared result is {}",
                                                  print_type(known), print_type(result)),
                                      {}});
    result = known;
  }
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

void Parser::relax_lines(const Lines& lines) {
  bool ended = false;
  for (const Line* line : lines) {
    bool sound = guarded([&] {
      if (ended && line->kind != LineKind::kPass) fail(*line, "statements after 'return' never run");
      if (body_->in_dataflow && body_->outputs_given && line->kind != LineKind::kPass)
        fail(*line, "R.output ends a dataflow block; this stands after it");
      relax_line(*line);
    });
    if (!sound) poison_line(*line);
    ended = ended || line->kind == LineKind::kReturn;
  }
}

void Parser::relax_line(const Line& line) {
  if (line.kind == LineKind::kBroken) throw Failed();
  if (line.kind == LineKind::kPass || is_docstring(line)) return;
  static constexpr std::pair<LineKind, LineReader Parser::*> kReaders[] = {
      {LineKind::kExpression, &Parser::relax_call_line},
      {LineKind::kAssign, &Parser::relax_assign},
      {LineKind::kIf, &Parser::relax_if},
      {LineKind::kWith, &Parser::dataflow},
      {LineKind::kReturn, &Parser::relax_return},
      {LineKind::kFunction, &Parser::nested_function},
      {LineKind::kImport, &Parser::imports}};
  if (auto* read = row_of(kReaders, line.kind)) return (this->**read)(line);
  if (line.kind == LineKind::kTry) fail(line, "'try' has no meaning in a module");
  fail(line,
       "this statement has no meaning in a graph function; expected a binding, 'if', 'with R.dataflow()' or 'return'");
}

void Parser::relax_return(const Line& line) {
  if (body_->in_dataflow) return dataflow_return(line);
  if (body_->result) fail(line, "a function returns once, at its end");
  body_->result = line.value ? leaf({as_argument(*line.value)}, *line.value) : tuple({}, span(line));
}

// Reads `return y, z` at the end of a dataflow block: its outputs, and the function's result if the block is its last.
void Parser::dataflow_return(const Line& line) {
  if (!line.value) fail(line, "expected the outputs of the dataflow block");
  std::vector<Expr> results;
  for (const Syntax* item : items(*line.value)) {
    Expr result = as_argument(*item);
    auto binds = [&](const Binding& binding) { return same_node(binding.var, result); };
    BindingBlock& block = body_->blocks.back();
    if (std::ranges::none_of(block.bindings, binds)) {
      VarRef var = make_var("gv", result.type(), span(*item));
      bind({result, std::nullopt, var});
      result = var;
    }
    body_->blocks.back().outputs.push_back(cast<Var>(result));
    results.push_back(result);
  }
  body_->outputs_given = true;
  body_->block_result = is_list(*line.value) ? tuple(results, span(line)) : results[0];
}

// A function in a body is a binding; it may call itself.
void Parser::nested_function(const Line& line) {
  if (line.decorators.empty() && !early_) fail(line, "expected @R.function before a nested function");
  Pending pending = read_decorators(line);
  if (pending.is_program) return nested_program(pending);
  Signature signature = read_signature(line);
  bool stated = signature.result.has_value();
  VarRef self = make_var(pending.name, signature.type(pending.pure), span(line));
  auto read = [&] {
    NameScope scope(scopes_);
    define(line.text, self);
    Temporarily wanted(wanted_, std::optional<Type>());
    return graph_function(pending, std::move(signature), true);
  };
  FunctionRef function = read();
  // A more precise result type is known now. It is used where no call relies on the earlier one.
  if (!stated && !uses_var(function, self)) self = make_var(pending.name, function.type(), span(line));
  bind({function, std::nullopt, self});
  define(line.text, self);
}

// A tensor program in a body becomes one of the module.
void Parser::nested_program(const Pending& pending) {
  std::optional<PrimFuncRef> program;
  {
    Temporarily graph(in_graph_, true);
    Temporarily ints(default_int_, default_int_);
    Temporarily names(hidden_, hidden_);
    Temporarily dims(undefined_, undefined_);
    NameScope scope(scopes_);
    for (const auto& [name, entity] : scopes_.visible()) {  // n = T.int64() in the program is a dim of its own
      if (entity->is_dim) scopes_.define(name, Entity{.expr = entity->expr});
    }
    program = prim_func(pending);
  }
  std::string name = te_->add_program(pending.name, *program);
  define(pending.name, global_var(name, (*program).type()));
}

// Reads R.match_cast(value, type) and the form of 2022, R.match_shape(value, (n, 4)); nullopt for other syntax.
std::optional<Binding> Parser::match_binding(const Syntax& at, const std::string& name, std::optional<Type> annotated) {
  std::string path = called(at);
  if (path != "R.match_cast" && path != "R.match_shape") return std::nullopt;
  bool early = path == "R.match_shape";
  const Syntax *first = &required(at, 0, "value"), *second = &required(at, 1, early ? "shape" : "struct_info");
  if (early && is_list(*first)) std::swap(first, second);  // the order of 2021
  const Syntax &value_at = *first, &wanted = *second;
  Expr value = as_argument(value_at);
  std::optional<Type> cast;
  if (early) {
    Temporarily early_form(early_, true), quoted(quoted_, true);
    std::vector<Expr> values = graph_dims(wanted);
    cast = value.type().is<ShapeType>() ? shape_type(values) : tensor_type(values, tensor_dtype(value.type()));
  } else if (type_name(wanted) == "R.Prim" && is_call(wanted) && keyword(wanted, "value")) {
    // A scalar's value defines a new name, value=j or value="j". It is that of a scalar and not of a dim: any integer.
    if (!value.type().is<PrimType>()) fail(value_at, "expected a scalar");
    const Syntax& stated = *keyword(wanted, "value");
    const bool is_quoted = stated.kind == SyntaxKind::kString;
    const std::string new_name = is_quoted ? string(stated) : is_name(stated) ? std::string(stated.text) : "";
    const Entity* known = identifier(new_name) == new_name ? lookup(new_name) : nullptr;
    const bool is_dim = known && known->is_dim;
    Expr var = is_quoted ? quoted_dim(stated, kInt64) : expr(stated);
    const bool is_new = !is_dim && var.is<Var>() && undefined_.erase(var.get()) > 0;
    if (is_new && is_quoted) scopes_.define(new_name, Entity{.expr = var});
    if (is_new) return Binding{value, std::nullopt, cast_handle<VarRef>(var)};
  }
  if (!cast) cast = type(wanted);
  refine_measured(value_at, *cast, at);
  return Binding{value, cast, make_var(name, annotated.value_or(*cast), span(at))};
}

// Where the dims of x.shape or R.shape_of(x) are matched, and x is of no known shape, x has these dims from here on.
void Parser::refine_measured(const Syntax& measured, const Type& cast, const Syntax& at) {
  bool is_property = measured.kind == SyntaxKind::kAttribute && measured.text == "shape";
  bool is_call_of = callee_path(measured) == "R.shape_of" && positional(measured) == 1;
  const Syntax* owner = is_property ? measured.children[0] : is_call_of ? measured.children[1] : nullptr;
  const Entity* named = owner && is_name(*owner) ? lookup(owner->text) : nullptr;
  const std::vector<Expr>* dims = known_shape(cast);
  bool refines =
      dims && named && named->expr && named->expr->type().is<TensorType>() && !known_shape(named->expr->type());
  if (!refines) return;
  Expr tensor = *named->expr;
  Type type = tensor_type(*dims, tensor_dtype(tensor.type()));
  VarRef var = make_var(std::string(owner->text), type, span(at));
  bind({tensor, type, var});
  define(owner->text, var);
}

// Reads cls = Module
bool Parser::names_module(const Line& line) {
  const Syntax& at = *line.value;
  bool is_class = is_name(at) && !lookup(at.text) && (at.text == class_name_ || at.text == "Module");
  if (is_class) scopes_.define(name_of_target(*line.target), Entity{.is_module = true});
  return is_class;
}

void Parser::relax_assign(const Line& line) {
  if (!line.value) fail(line, "expected a value");
  if (!line.text.empty()) fail(line, "an assignment has one target");
  if (define_free_vars(line) || names_module(line)) return;
  if (is_list(*line.target)) return unpack(line);
  const Syntax& at = *line.value;
  std::string var_name = name_of_target(*line.target);
  std::optional<Type> annotated;
  std::string path = callee_path(at);
  bool defines_dims = path == "R.match_shape";  // which its annotation may name
  // Until 2022 the annotation of what a packed function returns names new dims.
  bool matches = early_ && path == "R.call_packed" && line.annotation && names_new_dim(*line.annotation);
  if (line.annotation && !defines_dims) {
    Temporarily quoted(quoted_, quoted_ || matches);
    annotated = type(*line.annotation);
  }
  if (matches) {
    VarRef var = make_var(var_name, *annotated, span(at));
    bind({as_argument(at), annotated, var});
    return define(var_name, var);
  }
  if (std::optional<Binding> match = match_binding(at, var_name, annotated)) {
    bind(*match);
    define(var_name, match->var);
    return;
  }
  bool is_shape = annotated && annotated->is<ShapeType>() && is_list(at);  // s: R.Shape = (n, 4)
  Value value = is_shape ? Value{shape_expr(graph_dims(at), span(at))} : eval_as(annotated, at);
  const PrimType* prim = annotated ? annotated->as<PrimType>() : nullptr;
  if (value.literal && prim) value.expr = adapt(value, prim->dtype, at);
  const TensorType* stated = annotated ? annotated->as<TensorType>() : nullptr;
  if (stated && stated->shape && !stated->dtype) {  // what is known of the value stays known
    TensorType known = *stated;
    known.dtype = tensor_dtype(value.expr.type());
    annotated = make(std::move(known), annotated->span());
  }
  bind_to(*line.target, value.expr, is_shape ? value.expr.type() : annotated.value_or(value.expr.type()));
}

bool Parser::names_new_dim(const Syntax& annotation) const {
  const Syntax* shape = &head_of(annotation) == &annotation ? nullptr : arg(annotation, 0, "shape");
  return shape && is_list(*shape) && std::ranges::any_of(shape->children, [&](const Syntax* item) {
           return is_name(*item) && !lookup(item->text);
         });
}

void Parser::bind_to(const Syntax& target, Expr value, Type type) {
  VarRef var = define_var(target, std::move(type));
  bind({std::move(value), std::nullopt, var});
}

// Reads a, b = t: the items of a tuple.
void Parser::unpack(const Line& line) {
  if (line.annotation) fail(*line.annotation, "several names have no common type");
  std::vector<const Syntax*> targets = items(*line.target);
  Expr value = as_argument(*line.value);
  const TupleType* type = value.type().as<TupleType>();
  if (!type) fail(line, "{} names for a value that is not a tuple", targets.size());
  if (type->items.size() != targets.size())
    fail(line, "{} names for a tuple of {}", targets.size(), type->items.size());
  const Tuple* several = value.as<Tuple>();
  for (size_t i = 0; i < targets.size(); ++i) {
    Expr item = several ? several->items[i] : tuple_get(value, static_cast<int64_t>(i), span(*targets[i]));
    bind_to(*targets[i], item, item.type());
  }
}

// Reads R.output(x, y).
void Parser::output(const Line& line) {
  if (!body_->in_dataflow) fail(line, "R.output stands at the end of a dataflow block");
  body_->outputs_given = true;
  BindingBlock& block = body_->blocks.back();
  for (const Syntax* at : line.value->operands()) {
    body_->outputs_sound &= guarded([&] {
      Expr value = expr(*at);
      if (!value.is<Var>()) fail(*at, "expected a variable");
      auto binds = [&](const Binding& binding) { return same_node(binding.var, value); };
      if (std::ranges::none_of(block.bindings, binds))
        fail(*at, "'{}' is not bound in this dataflow block", value.as<Var>()->name);
      block.outputs.push_back(cast<Var>(value));
    });
  }
  if (!body_->outputs_sound) throw Failed();
}

void Parser::relax_call_line(const Line& line) {
  const Syntax& at = *line.value;
  if (!is_call(at)) fail(line, "this expression does nothing; bind it to a name");
  std::string path = called(at);
  if (path == "R.output") return output(line);
  if (path == "R.func_attr") return add_attrs(at, body_->attrs);
  if (path == "R.is_impure") {
    body_->impure = true;
    return;
  }
  if (std::optional<Binding> match = match_binding(at, "_", std::nullopt)) return bind(*match);
  Expr value = eval_as(tuple_type({}), at).expr;
  if (const TupleType* nothing = value.type().as<TupleType>(); !nothing || !nothing->items.empty())
    fail(at, "the value of this call is lost; bind it to a name");
  bind({value, std::nullopt, make_var("_", value.type(), span(line))});
}

void Parser::dataflow(const Line& line) {
  Body& body = *body_;
  const Syntax& item = *line.items[0].first;
  std::string path = called(item);
  if (path.starts_with("T.")) fail(item, "'{}' belongs to tensor programs; expected R.dataflow()", path);
  // Any other form after `with` is treated as a dataflow block, too.
  if (path != "R.dataflow") report(item, "expected R.dataflow() after 'with'");
  if (body.in_dataflow) fail(line, "a dataflow block cannot stand inside of another");
  body.in_dataflow = true;
  body.outputs_given = false;
  body.outputs_sound = true;
  body.blocks.push_back({true, {}, {}});
  size_t errors_before = errors();
  std::map<std::string, Entity> local;
  {
    NameScope scope(scopes_);
    relax_lines(line.body);
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
  Temporarily outer(body_, &branch);
  if (lines.empty()) fail(line, "both branches are needed, and both end by assigning the same name");
  const Line& last = *lines.back();
  // A call that returns nothing may stand last.
  bool ends = last.kind == LineKind::kAssign || last.kind == LineKind::kIf || last.kind == LineKind::kBroken ||
              (last.kind == LineKind::kExpression && is_call(*last.value));
  if (!ends) fail(last, "a branch ends by assigning its value to a name");
  size_t errors_before = errors();
  relax_lines(lines);
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

void Parser::relax_if(const Line& line) {
  if (body_->in_dataflow) fail(line, "a dataflow block has no branches");
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
