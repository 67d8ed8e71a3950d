// Expects: any module. Guarantees: no function is defined inside of another. A local function becomes a private
// function of the module, named after both, with the values that it captures as further params at the end: those that
// are not dims, then one shape of the dims that no other param binds. Its calls pass them; where it is used as a value,
// a closure (R.make_closure) holds them. What depends on constants alone is computed in the function again, where it is
// folded, so that weights of a loop's body are constants of it. (Johnsson, "Lambda Lifting", 1985; TVM's LambdaLift.)
#include <algorithm>

#include "ir/attr_names.h"
#include "ir/op_names.h"
#include "passes/graph_rewriter.h"
#include "support/lists.h"

namespace relaxc {

namespace {

// A local function after it has been lifted.
struct Lifted {
  Expr callee;                 // in the module
  std::vector<Expr> captured;  // arguments after those that the calls give
};

Expr call_of(const Lifted& lifted, const Ref<Call>& node) {
  Call copy = *node;
  copy.callee = lifted.callee;
  copy.args.insert(copy.args.end(), lifted.captured.begin(), lifted.captured.end());
  return make(std::move(copy), node.type(), node.span());
}
// Returns the function as a value.
Expr value_of(const Lifted& lifted, const Type& type, const Span& span) {
  if (lifted.captured.empty()) return lifted.callee;
  return call(op_ref(ops::kMakeClosure), {lifted.callee, tuple(lifted.captured)}, {}, type, span);
}

// Adds the dims that occur in the types of the node's variables.
void add_dims_of_types(const NodeRef& node, VarSet& dims) {
  walk_nodes(node, [&](const NodeRef& part) {
    if (is_type_kind(part.kind())) {
      for (const VarRef& var : free_vars(part)) dims.insert(var.get());
    }
    return true;
  });
}

auto is_same(const VarRef& var) {
  return [&var](const VarRef& other) { return same_node(var, other); };
}

class Lifter final : public GraphRewriter {
 public:
  Lifter(const OpTable& ops, const std::string& name, const FunctionRef& function, IRModule& module)
      : GraphRewriter(ops), name_(name), module_(module) {
    for (const VarRef& param : function->params) add_dims_of_types(param.type(), outer_dims_);
    note_scalars(*function);
    for_each_binding(function->body, [&](const Binding& binding) {
      scalars_.insert(binding.var.get());
      if (const Function* local = binding.value.as<Function>()) note_scalars(*local);
    });
  }

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder& builder) override {
    note_constant(binding);
    if (auto function = try_cast<Function>(binding.value)) {
      Lifted lifted = lift(binding.var, with_constants(*function));
      Expr value = value_of(lifted, binding.var.type(), binding.var.span());
      if (!is_leaf(value)) value = builder.emit(value, binding.var->name);
      lifted_.emplace(value.get(), std::move(lifted));
      kept_.push_back(value);
      return value;
    }
    auto node = try_cast<Call>(binding.value);
    const Lifted* callee = node ? find_value(lifted_, (*node)->callee.get()) : nullptr;
    if (!callee || callee->captured.empty()) return std::nullopt;
    builder.keep({call_of(*callee, *node), binding.cast, binding.var});
    return binding.var;
  }

 private:
  // Notes what an operator makes of constants. A scalar may be a dim in the type of a captured value, of which there is
  // one: it is captured.
  void note_constant(const Binding& binding) {
    const Call* node = binding.value.as<Call>();
    bool is_scalar = binding.var.type().is<PrimType>();
    if (!node || !node->callee.is<OpRef>() || binding.cast || is_scalar || !is_pure(*node, ops_)) return;
    bool has_constant = false;
    walk_nodes(binding.value, [&](const NodeRef& part) {
      const Constant* constant = part.as<Constant>();
      return has_constant = has_constant || (constant && constant->data.ndim() > 0), !part.is<Constant>();
    });
    std::vector<VarRef> used = free_vars(binding.value);
    bool is_known = std::ranges::all_of(used, [&](const VarRef& var) { return constants_.contains(var.get()); });
    if (is_known && (has_constant || !used.empty())) constants_.emplace(binding.var.get(), binding);
  }
  // Returns the function with bindings of its own for the constants that it captures.
  FunctionRef with_constants(const FunctionRef& function) const {
    BindingBlock block;
    VarMap own;
    std::function<void(const VarRef&)> add = [&](const VarRef& var) {
      const Binding* binding = find_value(constants_, var.get());
      if (!binding || own.contains(var.get())) return;
      for (const VarRef& used : free_vars(binding->value)) add(used);
      VarRef copy = make_var(var->name, var.type(), var.span());
      block.bindings.push_back({substitute(binding->value, own), std::nullopt, copy});
      own.emplace(var.get(), copy);
    };
    for (const VarRef& captured : free_vars(function)) add(captured);
    if (own.empty()) return function;
    FunctionRef renamed = cast<Function>(substitute(function, own));
    Function result = *renamed;
    SeqExpr seq = *result.body.as<SeqExpr>();
    seq.blocks.insert(seq.blocks.begin(), std::move(block));
    result.body = with_type(seq_expr(std::move(seq.blocks), seq.body, result.body.span()), result.body.type());
    return make_function(std::move(result), function.span());
  }

  void note_scalars(const Function& function) {
    for (const VarRef& param : function.params) scalars_.insert(param.get());
  }

  Lifted lift(const VarRef& var, const FunctionRef& function) {
    std::string name = module_.fresh_name(fmt::format("{}_{}", name_, var->name));
    std::vector<VarRef> values, dims;
    VarSet in_types;
    add_dims_of_types(function, in_types);
    for (const VarRef& captured : free_vars(function)) {
      if (same_node(captured, var)) continue;
      bool is_dim =
          captured.type().is<PrimType>() && in_types.contains(captured.get()) && !scalars_.contains(captured.get());
      (is_dim ? dims : values).push_back(captured);
      add_dims_of_types(captured.type(), in_types);
    }
    // Where the function's params and casts name dims of the function around it, they are compared with those.
    for (const VarRef& dim : bound_dims(function)) {
      bool is_own = std::ranges::any_of(function->params, is_same(dim));
      bool is_scalar = scalars_.contains(dim.get()) && !is_own;
      std::vector<VarRef>& list = is_scalar ? values : dims;
      if ((is_scalar || outer_dims_.contains(dim.get())) && std::ranges::none_of(list, is_same(dim)))
        list.push_back(dim);
    }
    // The types of captured values may have dims that the function does not mention.
    for (const VarRef& captured : std::vector(values)) {
      for (const VarRef& dim : free_vars(captured.type())) {
        std::vector<VarRef>& list = scalars_.contains(dim.get()) ? values : dims;
        if (std::ranges::none_of(list, is_same(dim))) list.push_back(dim);
      }
    }
    // Scalars come before the values whose types mention them.
    std::ranges::stable_partition(values, [](const VarRef& value) { return value.type().is<PrimType>(); });
    return make_global(name, var, function, values, dims);
  }
  // Returns the dims that the types of params and casts bind, or compare where they are scalars from outside. Scalars
  // that the function computes are its own already.
  static std::vector<VarRef> bound_dims(const FunctionRef& function) {
    std::vector<VarRef> result;
    VarSet computed;
    for_each_binding(function->body, [&](const Binding& binding) { computed.insert(binding.var.get()); });
    auto add = [&](const Type& type) {
      walk(type, [&](const Ref<Var>& var) {
        bool is_new = !computed.contains(var.get()) && std::ranges::none_of(result, is_same(var));
        if (var.type().is<PrimType>() && is_new) result.push_back(var);
      });
    };
    for (const VarRef& param : function->params) add(param.type());
    for_each_binding(function->body, [&](const Binding& binding) {
      if (binding.cast) add(*binding.cast);
    });
    return result;
  }

  Lifted make_global(const std::string& name, const VarRef& var, const FunctionRef& function,
                     const std::vector<VarRef>& values, const std::vector<VarRef>& dims) {
    // The captured variables stay in the function around it, so that the new function has its own.
    VarMap own;
    for (const VarRef& dim : dims) own.emplace(dim.get(), make_dim(dim->name, dim.span()));
    for (const VarRef& dim : bound_dims(function)) {
      if (std::ranges::none_of(values, is_same(dim))) own.try_emplace(dim.get(), make_dim(dim->name, dim.span()));
    }
    std::vector<VarRef> params;
    for (const VarRef& value : values) {
      params.push_back(make_var(value->name, substitute(value.type(), own), value.span()));
      own.emplace(value.get(), params.back());
    }
    Lifted outside{global_var(name, object_type()), {values.begin(), values.end()}};
    VarSet bound;  // by the types of captured tensors
    for (const VarRef& value : values) {
      for (const Expr& dim : value.type().is<TensorType>() && known_shape(value.type()) ? *known_shape(value.type())
                                                                                        : std::vector<Expr>{}) {
        if (dim.is<Var>()) bound.insert(dim.get());
      }
    }
    std::vector<Expr> rest;
    for (const VarRef& dim : dims) {
      if (!bound.contains(dim.get())) rest.emplace_back(dim);
    }
    if (!rest.empty()) {
      outside.captured.push_back(shape_expr(rest));
      params.push_back(make_var("dims", substitute(shape_type(rest), own)));
    }
    Function result = *function;
    result.attrs = result.attrs.without(attr_names::kGlobalSymbol);
    std::vector<VarRef> all = function->params;
    all.insert(all.end(), params.begin(), params.end());
    // Its own name means the new function with the same captured values.
    Type type = function_type(all, function->result, function->pure);
    outside.callee = global_var(name, substitute(type, own));
    result.body = with_recursion(function->body, var, outside);
    FunctionRef renamed = cast<Function>(substitute(make_function(std::move(result), function.span()), own));
    Function whole = *renamed;
    whole.params.insert(whole.params.end(), params.begin(), params.end());
    FunctionRef global = make_function(std::move(whole), function.span());
    outside.callee = global_var(name, global.type());
    module_.functions.emplace(name, global);
    return outside;
  }

  // Replaces the function's own name in its body.
  static Expr with_recursion(const Expr& body, const VarRef& var, const Lifted& lifted) {
    if (!uses_var(body, var)) return body;
    Expr result = rewrite(body, [&](const Ref<Call>& node) -> std::optional<Expr> {
      return same_node(node->callee, var) ? std::optional(call_of(lifted, node)) : std::nullopt;
    });
    if (!uses_var(result, var)) return result;
    Expr value = value_of(lifted, var.type(), var.span());
    if (is_leaf(value)) return substitute(result, {{var.get(), value}});
    VarRef self = make_var(var->name, var.type(), var.span());
    SeqExpr seq = *substitute(result, {{var.get(), self}}).as<SeqExpr>();
    seq.blocks.insert(seq.blocks.begin(), BindingBlock{false, {{value, std::nullopt, self}}, {}});
    return with_type(seq_expr(std::move(seq.blocks), seq.body, body.span()), body.type());
  }

  const std::string& name_;
  IRModule& module_;
  VarSet outer_dims_;  // bound by the params of the function around
  VarSet scalars_;     // variables that have values of their own, which may be negative
  std::unordered_map<const NodeHeader*, Lifted> lifted_;      // by the leaf that stands for the function
  std::vector<Expr> kept_;                                    // keeps the keys of lifted_ alive
  std::unordered_map<const NodeHeader*, Binding> constants_;  // by variable: those that depend on constants alone
};

}  // namespace

IRModule lambda_lift(IRModule module, PassContext& context) {
  const std::map<std::string, Expr> before = module.functions;
  for (const auto& [name, function] : before) {
    auto graph = try_cast<Function>(function);
    if (graph && holds<Function>((*graph)->body))
      module.functions.insert_or_assign(name, Lifter(context.ops, name, *graph, module).run(*graph));
  }
  return module;
}

}  // namespace relaxc
