#include <algorithm>

#include "ir/arith.h"
#include "ir/builder.h"
#include "ir/text/printer.h"
#include "ir/verify/internal.h"

namespace relaxc {

namespace {

bool dims_may_agree(const Expr& a, const Expr& b) {
  if (structural_equal(a, b)) return true;
  auto difference = as_int(simplify(cast_to(a, kInt64) - cast_to(b, kInt64)));
  return !difference || *difference == 0;
}

bool functions_may_agree(const FuncType& wanted, const FuncType& given);

// The dims that stand bare in `pattern`, in terms of `type`.
void bind_dims(const Type& pattern, const Type& type, VarMap& dims) {
  const TupleType* items = pattern.as<TupleType>();
  const TupleType* others = type.as<TupleType>();
  if (items && others && items->items.size() == others->items.size()) {
    for (size_t i = 0; i < items->items.size(); ++i) bind_dims(items->items[i], others->items[i], dims);
  }
  const std::vector<Expr>* wanted = known_shape(pattern);
  const std::vector<Expr>* given = known_shape(type);
  if (!wanted || !given || wanted->size() != given->size()) return;
  for (size_t d = 0; d < wanted->size(); ++d) {
    if ((*wanted)[d].is<Var>()) dims.emplace((*wanted)[d].get(), (*given)[d]);
  }
}

// Whether a value of type `given` may stand where `wanted` is declared: nothing known contradicts.
bool may_agree(const Type& wanted, const Type& given) {
  if (wanted.is<ObjectType>() || given.is<ObjectType>()) return true;
  if (wanted.kind() != given.kind()) return false;
  if (const PrimType* type = wanted.as<PrimType>()) {
    const PrimType& other = *given.as<PrimType>();
    return type->dtype == other.dtype && (!type->value || !other.value || dims_may_agree(*type->value, *other.value));
  }
  if (const TupleType* type = wanted.as<TupleType>()) {
    const TupleType& other = *given.as<TupleType>();
    if (type->items.size() != other.items.size()) return false;
    for (size_t i = 0; i < other.items.size(); ++i) {
      if (!may_agree(type->items[i], other.items[i])) return false;
    }
    return true;
  }
  if (const FuncType* type = wanted.as<FuncType>()) return functions_may_agree(*type, *given.as<FuncType>());
  if (const DTensorType* type = wanted.as<DTensorType>()) {
    const DTensorType& other = *given.as<DTensorType>();
    return type->mesh == other.mesh && type->placement == other.placement && may_agree(type->tensor, other.tensor);
  }
  auto x = tensor_dtype(wanted), y = tensor_dtype(given);
  if (x && y && *x != *y) return false;
  int64_t rank = known_rank(wanted), other_rank = known_rank(given);
  if (rank >= 0 && other_rank >= 0 && rank != other_rank) return false;
  const std::vector<Expr>* dims = known_shape(wanted);
  const std::vector<Expr>* others = known_shape(given);
  if (!dims || !others) return true;
  for (size_t d = 0; d < dims->size(); ++d) {
    if (!dims_may_agree((*dims)[d], (*others)[d])) return false;
  }
  return true;
}

// The dims of each are its own; only what does not depend on them is compared.
bool functions_may_agree(const FuncType& wanted, const FuncType& given) {
  if (wanted.pure && !given.pure) return false;
  if (!wanted.params || !given.params) return true;
  if (wanted.params->size() != given.params->size()) return false;
  VarMap dims;
  for (size_t i = 0; i < wanted.params->size(); ++i) {
    bind_dims((*given.params)[i], (*wanted.params)[i], dims);
    if (!may_agree(substitute((*given.params)[i], dims), (*wanted.params)[i])) return false;
  }
  return may_agree(wanted.result, substitute(given.result, dims));
}

// What each device holds of a distributed tensor: its shape is the program's affair.
Type without_shape(const DTensorType& type) {
  TensorType local = *type.tensor.as<TensorType>();
  local.shape.reset();
  return make(std::move(local));
}

// A kernel called in destination-passing form: it writes to memory made for it.
bool is_kernel_call(const Expr& call) {
  const Call* node = call.as<Call>();
  const TupleType* nothing = call.type().as<TupleType>();
  return nothing && nothing->items.empty() && !node->args.empty() && node->args.back().is<ShapeExpr>();
}

class GraphVerifier {
 public:
  GraphVerifier(const IRModule& module, const OpTable& ops, DefinedVars& defined, Diagnostics& diagnostics)
      : module_(module), ops_(ops), defined_(defined), diagnostics_(diagnostics) {}

  void run(const FunctionRef& function) {
    Scope scope(*this);
    Span outer_place = std::exchange(place_, function.span() ? function.span() : place_);
    bool forced = function->attrs.get_bool("relax.force_pure", false);
    if (forced && !function->pure) error(function.span(), "relax.force_pure of a function that is not pure [G16]");
    bool outer_pure = std::exchange(pure_, function->pure && !forced);
    bool outer_forced = std::exchange(forced_, forced);
    for (const VarRef& param : function->params) define(param);
    for (const VarRef& param : function->params) bind_dims(param.type());
    for (const VarRef& param : function->params) use_type(param.type(), param.span());
    use_type(function->result, function.span());
    sequence(function->body);
    if (!may_agree(function->result, function->body.type()))
      error(function.span(), "the function returns {}, declared is {} [G14]", print_type(function->body.type()),
            print_type(function->result));
    place_ = outer_place;
    pure_ = outer_pure;
    forced_ = outer_forced;
  }

 private:
  template <class... Args>
  void error(const Span& span, fmt::format_string<Args...> format, Args&&... args) {
    diagnostics_.error(span ? span : place_, "{}", fmt::format(format, std::forward<Args>(args)...));
  }

  // ---- Scope

  void define(const VarRef& var) {
    if (!defined_.insert(var.get()).second) error(var.span(), "'{}' is defined twice [G2]", var->name);
    enter(var.get());
  }
  void enter(const NodeHeader* var) {
    if (scope_.insert(var).second) order_.push_back(var);
  }
  struct Scope {
    explicit Scope(GraphVerifier& v) : verifier(v), size(v.order_.size()) {}
    ~Scope() {
      for (; verifier.order_.size() > size; verifier.order_.pop_back()) verifier.scope_.erase(verifier.order_.back());
    }
    GraphVerifier& verifier;
    size_t size;
  };

  // Dims that stand bare in the type of a param or cast are bound by it.
  void bind_dims(const Type& type) {
    walk_nodes(type, [&](const NodeRef& node) {
      if (node.is<FuncType>()) return false;
      visit_children(node, [&](const NodeRef& dim, Slot) {
        bool bare = dim.is<Var>() && (is_type_kind(node.kind()) || node.is<ShapeExpr>());
        if (bare && cast<Var>(dim).type().is<PrimType>() && !scope_.contains(dim.get())) define(cast<Var>(dim));
      });
      return true;
    });
  }

  void use(const VarRef& var, const Span& span) {
    if (scope_.contains(var.get())) return;
    if (var.type().is<PrimType>()) {
      error(place_of(var->name, span ? span : place_), "the dim '{}' is not bound here [G7]", var->name);
    } else {
      error(span, "'{}' is not defined here [{}]", var->name, hidden_.contains(var.get()) ? "G4" : "G1");
    }
    enter(var.get());  // one report
  }
  void use_type(const Type& type, const Span& span) {
    for (const VarRef& var : free_vars(type)) use(var, span);
  }

  // ---- Bodies

  void sequence(const Expr& body) {
    const SeqExpr* seq = body.as<SeqExpr>();
    if (!seq) return error(body.span(), "a body is a {}, expected bindings and a value [G3]", kind_name(body.kind()));
    const BindingBlock* before = nullptr;
    for (const BindingBlock& block : seq->blocks) {
      bool plain = !block.dataflow;
      if (plain && (block.bindings.empty() || (before && !before->dataflow)))
        error(body.span(), "plain binding blocks {} [G15]",
              block.bindings.empty() ? "may not be empty" : "follow each other");
      before = &block;
      binding_block(block);
    }
    leaf(seq->body, "the result");
    value(seq->body);
  }

  void binding_block(const BindingBlock& block) {
    size_t start = order_.size();
    for (const Binding& b : block.bindings) binding(b, block.dataflow);
    if (!block.dataflow) return;
    for (const VarRef& output : block.outputs) {
      bool bound = std::any_of(block.bindings.begin(), block.bindings.end(),
                               [&](const Binding& b) { return same_node(b.var, output); });
      if (!bound) error(output.span(), "output '{}' is not bound in its dataflow block [G4]", output->name);
    }
    // Only outputs stay, and scalars, which are dims from here on.
    std::vector<const NodeHeader*> kept;
    for (size_t i = start; i < order_.size(); ++i) {
      const NodeHeader* var = order_[i];
      bool stays = std::any_of(block.outputs.begin(), block.outputs.end(),
                               [&](const VarRef& output) { return output.get() == var; });
      bool is_tensor = std::any_of(block.bindings.begin(), block.bindings.end(), [&](const Binding& b) {
        return b.var.get() == var && !b.var.type().is<PrimType>();
      });
      if (stays || !is_tensor) {
        kept.push_back(var);
      } else {
        scope_.erase(var);
        hidden_.insert(var);
      }
    }
    order_.resize(start);
    order_.insert(order_.end(), kept.begin(), kept.end());
  }

  void binding(const Binding& b, bool dataflow) {
    Span outer_place = std::exchange(place_, b.var.span() ? b.var.span() : place_);
    // A variable's span is its definition.
    const Span& span = b.value.span() && !b.value.is<Var>() ? b.value.span() : b.var.span();
    bool sound = true;
    if (const If* branch = b.value.as<If>()) {
      if (dataflow) error(span, "a dataflow block holds no branches [G5]");
      if_branches(b, *branch, span);
    } else if (auto function = try_cast<Function>(b.value)) {
      enter(b.var.get());  // it may call itself
      run(*function);
    } else {
      sound = operands(b.value);
      value(b.value);
      if (b.value.is<Call>() && sound) {
        effects(b.value, dataflow, span);
        call_type(b, span);
      } else if (!b.cast && !may_agree(b.var.type(), b.value.type())) {
        error(span, "'{}' is declared {}, its value is {} [G11]", b.var->name, print_type(b.var.type()),
              print_type(b.value.type()));
      }
    }
    const PrimType* scalar = b.var.type().as<PrimType>();
    if (scalar && scalar->value && b.value.type().is<PrimType>() && !dims_may_agree(*scalar->value, b.value))
      error(span, "'{}' is declared {}, its value is {} [G11]", b.var->name, print_type(b.var.type()),
            print_expr(b.value));
    if (b.cast) {
      bind_dims(*b.cast);
      use_type(*b.cast, span);
      if (!may_agree(b.var.type(), *b.cast))
        error(span, "'{}' is declared {}, cast is to {} [G11]", b.var->name, print_type(b.var.type()),
              print_type(*b.cast));
    }
    if (!b.var.type().is<FuncType>()) use_type(b.var.type(), span);
    if (b.value.is<Function>()) {
      defined_.insert(b.var.get());
    } else {
      define(b.var);
    }
    place_ = outer_place;
  }

  void if_branches(const Binding& b, const If& node, const Span& span) {
    leaf(node.condition, "the condition");
    value(node.condition);
    const Type& type = node.condition.type();
    const PrimType* prim = type.as<PrimType>();
    bool is_bool = prim ? prim->dtype == kBool
                        : type.is<TensorType>() && tensor_dtype(type).value_or(kBool) == kBool && known_rank(type) <= 0;
    if (!is_bool) error(span, "the condition is {}, expected a bool scalar [G13]", print_type(type));
    for (const Expr* branch : {&node.then_branch, &node.else_branch}) {
      Scope scope(*this);
      sequence(*branch);
      if (!may_agree(b.var.type(), branch->type()))
        error(span, "a branch gives {}, declared is {} [G13]", print_type(branch->type()), print_type(b.var.type()));
    }
  }

  // ---- Values

  bool leaf(const Expr& e, std::string_view what) {
    if (is_leaf(e)) return true;
    error(e.span(), "{} is a {}, expected a variable, constant, scalar, shape or tuple of them [G3]", what,
          kind_name(e.kind()));
    return false;
  }

  bool operands(const Expr& e) {
    bool sound = true;
    if (const Call* node = e.as<Call>()) {
      for (const Expr& arg : node->args) sound &= leaf(arg, "an argument");
    } else if (const TupleGetItem* node = e.as<TupleGetItem>()) {
      sound = leaf(node->tuple, "the tuple");
      const TupleType* type = node->tuple.type().as<TupleType>();
      if (!type && !node->tuple.type().is<ObjectType>()) {
        error(e.span(), "an item of {} [G12]", print_type(node->tuple.type()));
      } else if (node->index < 0 || (type && node->index >= static_cast<int64_t>(type->items.size()))) {
        error(e.span(), "item {} of a tuple of {} [G12]", node->index, type ? type->items.size() : 0);
      }
    } else {
      sound = leaf(e, "a value");
    }
    return sound;
  }

  // Everything that a value mentions is defined.
  void value(const Expr& e) {
    for (const VarRef& var : free_vars(e)) use(var, e.span() ? e.span() : place_);
    walk(e, [&](const Ref<GlobalVar>& callee) {
      if (!module_.find(callee->name))
        error(callee.span() ? callee.span() : e.span(), "the module has no function '{}' [G8]", callee->name);
    });
  }

  void effects(const Expr& call, bool dataflow, const Span& span) {
    const Call& node = *call.as<Call>();
    bool pure = is_pure(node, ops_);
    std::string name = op_name(call);
    if (node.callee.is<OpRef>()) {
      pure = pure || !ops_.find(name);  // infer reports it
    } else if (const ExternFunc* callee = node.callee.as<ExternFunc>()) {
      pure = pure || is_kernel_call(call);
      name = callee->symbol;
    } else if (const GlobalVar* global = node.callee.as<GlobalVar>()) {
      const Expr* target = module_.find(global->name);
      if (const Function* graph = target ? target->as<Function>() : nullptr) pure = graph->pure;
      pure = pure || !target || target->is<PrimFunc>();
      name = global->name;
    } else {
      pure = pure || node.callee.type().is<ObjectType>();
    }
    if (pure || forced_) return;
    if (dataflow) {
      error(span, "a call of '{}', which has side effects, in a dataflow block [G5]", name);
    } else if (pure_) {
      error(span, "a call of '{}', which has side effects, in a pure function [G6]", name);
    }
  }

  void call_type(const Binding& b, const Span& span) {
    const Call& node = *b.value.as<Call>();
    const std::string& op = op_name(b.value);
    if (op.starts_with("relax.call_tir") || op == "relax.call_dps_packed") call_tir(node, op, span);
    if (const GlobalVar* callee = node.callee.as<GlobalVar>()) {
      const Expr* target = module_.find(callee->name);
      if (!target) return;  // reported
      if (auto program = try_cast<PrimFunc>(*target)) return kernel_call(callee->name, *program, node, span);
    }
    if (const FuncType* type = node.callee.type().as<FuncType>(); type && type->params) arguments(*type, node, span);
    const OpRow* row = op.empty() ? nullptr : ops_.find(op);
    if (row && !is_normal(*row, node)) error(span, "the call of {} is not in normal form [G10]", op);
    if (b.cast) return;
    try {
      Type inferred = infer_call_type(node, span, ops_);
      if (!may_agree(b.var.type(), inferred))
        error(span, "'{}' is declared {}, its value is {} [G11]", b.var->name, print_type(b.var.type()),
              print_type(inferred));
    } catch (const CompileError& failure) {
      for (Diagnostic diagnostic : failure.diagnostics()) {
        diagnostic.message += " [G10]";
        if (!diagnostic.span) diagnostic.span = place_;
        diagnostics_.add(std::move(diagnostic));
      }
    }
  }

  // Each argument against the parameter's type, dims in the caller's terms.
  void arguments(const FuncType& type, const Call& node, const Span& span) {
    if (type.params->size() != node.args.size()) return;  // infer reports it
    VarMap dims;
    for (size_t i = 0; i < node.args.size(); ++i) relaxc::bind_dims((*type.params)[i], node.args[i].type(), dims);
    for (size_t i = 0; i < node.args.size(); ++i) {
      Type wanted = substitute((*type.params)[i], dims);
      if (!may_agree(wanted, node.args[i].type()))
        error(span, "argument {} is {}, expected {} [G10]", i, print_type(node.args[i].type()), print_type(wanted));
    }
  }

  // Parameters that nothing matches may stand for any tensors.
  static bool takes_raw_handles(const PrimFuncRef& program) {
    return std::any_of(program->params.begin(), program->params.end(), [](const VarRef& param) {
      const PrimType* scalar = param.type().as<PrimType>();
      return scalar && scalar->dtype.is_handle();
    });
  }

  // Tensors, then the values of scalar_arguments() as a shape.
  void kernel_call(const std::string& name, const PrimFuncRef& program, const Call& node, const Span& span) {
    if (takes_raw_handles(program)) return;
    size_t tensors = node.args.size(), scalars = 0;
    if (!node.args.empty() && node.args.back().is<ShapeExpr>()) {
      --tensors;
      scalars = node.args.back().as<ShapeExpr>()->values.size();
    }
    size_t wanted = buffer_params(program).size(), wanted_scalars = scalar_arguments(program).size();
    if (tensors != wanted) error(span, "'{}' takes {} tensors, got {} [G9]", name, wanted, tensors);
    if (scalars != wanted_scalars) error(span, "'{}' takes {} scalars, got {} [G9]", name, wanted_scalars, scalars);
  }

  void call_tir(const Call& node, const std::string& op, const Span& span) {
    if (node.args.size() < 2 || node.type_args.empty()) return;  // infer reports it
    bool packed = op == "relax.call_dps_packed";
    if (!node.args[0].is<GlobalVar>()) {
      if (!packed || !node.args[0].is<ExternFunc>())
        error(span, "{} calls a {}, expected a function by name [G9]", op, kind_name(node.args[0].kind()));
      return;
    }
    const std::string& name = node.args[0].as<GlobalVar>()->name;
    const Expr* target = module_.find(name);
    if (!target) return;
    auto program = try_cast<PrimFunc>(*target);
    if (!program) {
      if (!packed) error(span, "'{}' is no tensor program [G9]", name);
      return;
    }
    std::vector<Type> types;
    const TupleType* inputs = node.args[1].type().as<TupleType>();
    if (!inputs) return;
    types = inputs->items;
    size_t given_scalars = std::erase_if(types, [](const Type& type) { return type.is<PrimType>(); });
    std::vector<Type> outputs = node.type_args;
    if (outputs.size() == 1 && outputs[0].is<TupleType>())
      outputs = std::vector<Type>(outputs[0].as<TupleType>()->items);
    // What is written in place is an input already.
    std::vector<int64_t> in_place;
    const AttrValue* indices = node.attrs.find("inplace_indices");
    if (indices && from_attr(*indices, in_place) && in_place.size() == outputs.size()) {
      for (size_t i = outputs.size(); i-- > 0;) {
        int64_t index = in_place[i];
        if (index < 0 || index >= static_cast<int64_t>(types.size())) continue;
        if (!may_agree(types[static_cast<size_t>(index)], outputs[i]))
          error(span, "output {} of '{}' is {}, written in place of {} [G9]", i, name, print_type(outputs[i]),
                print_type(types[static_cast<size_t>(index)]));
        outputs.erase(outputs.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    for (Type& type : types) {
      if (const DTensorType* spread = type.as<DTensorType>()) type = without_shape(*spread);
    }
    for (Type& type : outputs) {
      if (const DTensorType* spread = type.as<DTensorType>()) type = without_shape(*spread);
    }
    if (takes_raw_handles(*program)) return;
    std::vector<Buffer> buffers = buffer_params(*program);
    if (buffers.size() != types.size() + outputs.size())
      return error(span, "'{}' has {} buffers, got {} inputs and {} outputs [G9]", name, buffers.size(), types.size(),
                   outputs.size());
    size_t input_count = types.size();
    types.insert(types.end(), outputs.begin(), outputs.end());
    size_t wanted_scalars = (*program)->params.size() - buffers.size();
    const ShapeExpr* scalars = node.args.size() > 2 ? node.args[2].as<ShapeExpr>() : nullptr;
    given_scalars += scalars ? scalars->values.size() : 0;
    if (wanted_scalars != given_scalars)
      error(span, "'{}' takes {} scalars in tir_vars, got {} [G9]", name, wanted_scalars, given_scalars);
    VarMap dims;  // the program's dims in the caller's terms
    for (size_t i = 0, k = 0; i < (*program)->params.size(); ++i) {
      const VarRef& param = (*program)->params[i];
      if (param.type().is<PrimType>() && scalars && k < scalars->values.size())
        dims.emplace(param.get(), cast_to(scalars->values[k++], dtype_of(static_cast<const Expr&>(param))));
    }
    struct DimPlace {
      Expr wanted, given;
      std::string place;
    };
    std::vector<DimPlace> places;
    for (size_t i = 0; i < types.size(); ++i) {
      const BufferType& buffer = buffer_type(buffers[i]);
      const char* role = i < input_count ? "input" : "output";
      size_t number = i < input_count ? i : i - input_count;
      auto dtype = tensor_dtype(types[i]);
      if (dtype && *dtype != buffer.dtype)
        error(span, "{} {} of '{}' is {}, expected {} [G9]", role, number, name, to_string(*dtype),
              to_string(buffer.dtype));
      int64_t rank = known_rank(types[i]);
      if (rank >= 0 && rank != static_cast<int64_t>(buffer.shape.size())) {
        error(span, "{} {} of '{}' has rank {}, expected {} [G9]", role, number, name, rank, buffer.shape.size());
        continue;
      }
      const std::vector<Expr>* shape = known_shape(types[i]);
      for (size_t d = 0; shape && d < shape->size(); ++d) {
        const Expr& wanted = buffer.shape[d];
        if (wanted.is<Var>()) dims.emplace(wanted.get(), cast_to((*shape)[d], dtype_of(wanted)));
        places.push_back({wanted, (*shape)[d], fmt::format("dim {} of {} {}", d, role, number)});
      }
    }
    // Compound dims once all bare ones are known.
    for (const auto& [wanted, given, place] : places) {
      Expr expected = simplify(cast_to(substitute(wanted, dims), kInt64));
      if (!dims_may_agree(expected, given))
        error(span, "{} of '{}' is {}, expected {} [G9]", place, name, print_expr(given), print_expr(expected));
    }
  }

  const IRModule& module_;
  const OpTable& ops_;
  DefinedVars& defined_;
  Diagnostics& diagnostics_;
  Span place_;
  bool pure_ = true, forced_ = false;  // forced: impure calls are taken for pure
  std::unordered_set<const NodeHeader*> scope_, hidden_;
  std::vector<const NodeHeader*> order_;
};

}  // namespace

void verify_graph(const FunctionRef& function, const IRModule& module, const OpTable& ops, DefinedVars& defined,
                  Diagnostics& diagnostics) {
  GraphVerifier(module, ops, defined, diagnostics).run(function);
}

}  // namespace relaxc
