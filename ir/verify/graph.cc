#include <algorithm>

#include "ir/attr_names.h"
#include "ir/builder.h"
#include "ir/kernel_call.h"
#include "ir/op_names.h"
#include "ir/text/printer.h"
#include "ir/verify/internal.h"
#include "support/diagnostic.h"

namespace relaxc {

namespace {

bool contradicts(const Type& wanted, const Type& given) { return fits(wanted, given) == Verdict::kContradicted; }

class GraphVerifier : ScopedVerifier {
 public:
  GraphVerifier(const IRModule& module, const OpTable& ops, DefinedVars& defined, Diagnostics& diagnostics)
      : ScopedVerifier("G2", defined, diagnostics), module_(module), ops_(ops) {}

  void run(const FunctionRef& function) {
    Scope scope(*this);
    Temporarily place(place_, function.span() ? function.span() : place_);
    bool forced = function->attrs.get_bool(attr_names::kForcePure, false);
    if (forced && !function->pure) error(function.span(), "relax.force_pure of a function that is not pure [G16]");
    Temporarily pure(pure_, function->pure && !forced), impure_allowed(forced_, forced);
    for (const VarRef& param : function->params) define(param);
    for (const VarRef& param : function->params) bind_dims(param.type());
    for (const VarRef& param : function->params) use_type(param.type(), param.span());
    use_type(function->result, function.span());
    sequence(function->body);
    if (contradicts(function->result, function->body.type()))
      error(function.span(), "the function returns {}, but its declared result is {} [G14]",
            print_type(function->body.type()), print_type(function->result));
  }

 private:
  // Dims that stand bare in the type of a param or cast are bound by it.
  void bind_dims(const Type& type) {
    walk_nodes(type, [&](const NodeRef& node) {
      bool binds = !node.is<FuncType>() && !node.is<SequenceType>() && !node.is<OptionalType>() && !node.is<MapType>();
      if (!binds) return false;
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
      error(
          place_of(var->name, span ? span : place_),
          "the dim '{}' is not bound here [G7]; a dim of a tensor or shape param and R.match_cast bind it, and dims of "
          "the items of a sequence, optional or map do not: state their rank there, R.Tensor(ndim=1)",
          var->name);
    } else {
      error(span, "'{}' is not defined here [{}]", var->name, hidden_.contains(var.get()) ? "G4" : "G1");
    }
    enter(var.get());  // it is reported once
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
    // Only outputs stay visible, and scalars, which are dims from here on.
    VarSet bound, hides;
    for (const Binding& b : block.bindings) {
      bound.insert(b.var.get());
      if (!b.var.type().is<PrimType>()) hides.insert(b.var.get());
    }
    for (const VarRef& output : block.outputs) {
      if (!bound.contains(output.get()))
        error(output.span(), "output '{}' is not bound in its dataflow block [G4]", output->name);
      hides.erase(output.get());
    }
    auto left = std::ranges::stable_partition(order_.begin() + static_cast<std::ptrdiff_t>(start), order_.end(),
                                              [&](const NodeHeader* var) { return !hides.contains(var); });
    for (const NodeHeader* var : left) {
      scope_.erase(var);
      hidden_.insert(var);
    }
    order_.erase(left.begin(), left.end());
  }

  void binding(const Binding& b, bool dataflow) {
    Temporarily place(place_, b.var.span() ? b.var.span() : place_);
    // The span of a variable is that of its definition, so it does not tell where this binding is.
    const Span& span = b.value.span() && !b.value.is<Var>() ? b.value.span() : b.var.span();
    if (const If* branch = b.value.as<If>()) {
      if (dataflow) error(span, "a dataflow block holds no branches [G5]");
      if_branches(b, *branch, span);
    } else if (auto function = try_cast<Function>(b.value)) {
      enter(b.var.get());  // it may call itself
      run(*function);
    } else {
      bool sound = operands(b.value);
      value(b.value);
      if (b.value.is<Call>() && sound) {
        effects(b.value, dataflow, span);
        call_type(b, span);
      } else if (!b.cast) {
        declared(b, b.value.type(), span);
      }
    }
    const PrimType* scalar = b.var.type().as<PrimType>();
    if (scalar && scalar->value && b.value.type().is<PrimType>() &&
        equal_dims(*scalar->value, b.value) == Verdict::kContradicted)
      error(span, "'{}' is declared {}, its value is {} [G11]", b.var->name, print_type(b.var.type()),
            print_expr(b.value));
    if (b.cast) {
      bind_dims(*b.cast);
      use_type(*b.cast, span);
      if (contradicts(b.var.type(), *b.cast))
        error(span, "'{}' is declared {}, but the cast is to {} [G11]", b.var->name, print_type(b.var.type()),
              print_type(*b.cast));
    }
    if (!b.var.type().is<FuncType>()) use_type(b.var.type(), span);
    if (b.value.is<Function>()) {
      defined_.insert(b.var.get());
    } else {
      define(b.var);
    }
  }

  void declared(const Binding& b, const Type& type, const Span& span) {
    if (contradicts(b.var.type(), type))
      error(span, "'{}' is declared {}, its value is {} [G11]", b.var->name, print_type(b.var.type()),
            print_type(type));
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
      if (contradicts(b.var.type(), branch->type()))
        error(span, "a branch gives {}, but '{}' is declared {} [G13]", print_type(branch->type()), b.var->name,
              print_type(b.var.type()));
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
    if (const Call* node = e.as<Call>()) {
      bool sound = true;
      for (const Expr& arg : node->args) sound &= leaf(arg, "an argument");
      return sound;
    }
    const TupleGetItem* node = e.as<TupleGetItem>();
    if (!node) return leaf(e, "a value");
    const Type& whole = node->tuple.type();
    const TupleType* type = whole.as<TupleType>();
    if (!type && !whole.is<ObjectType>()) {
      error(e.span(), "{} has no items [G12]", print_type(whole));
    } else if (node->index < 0 || (type && node->index >= std::ssize(type->items))) {
      error(e.span(), "item {} is out of range for a tuple of {} items [G12]", node->index,
            type ? type->items.size() : 0);
    }
    return leaf(node->tuple, "the tuple");
  }

  // Checks that everything that a value mentions is defined.
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
      pure = pure || !ops_.find(name);  // infer reports the unknown name
    } else if (const ExternFunc* callee = node.callee.as<ExternFunc>()) {
      pure = pure || as_kernel_call(call, module_);
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
    if (auto kernel = as_kernel_call(b.value, module_)) {
      kernel_call(*kernel, op, span);
      if (kernel->has_destinations && kernel->callee.is<GlobalVar>()) return;  // the call has no value
    }
    if (node.callee.is<GlobalVar>() && !module_.find(node.callee.as<GlobalVar>()->name)) return;  // reported
    if (auto program = called_program(node.callee, module_)) return scalar_call(node, **program, b.value.type(), span);
    if (const FuncType* type = node.callee.type().as<FuncType>(); type && type->params) arguments(*type, node, span);
    const OpRow* row = op.empty() ? nullptr : ops_.find(op);
    if (row && !is_normal(*row, node)) error(span, "the call of {} is not in normal form [G10]", op);
    if (b.cast) return;
    try {
      Type inferred = infer_call_type(node, span, ops_);
      declared(b, inferred, span);
    } catch (const CompileError& failure) {
      for (Diagnostic& diagnostic : with_place(failure.diagnostics(), place_)) {
        diagnostic.message += " [G10]";
        diagnostics_.add(std::move(diagnostic));
      }
    }
  }

  // Checks the call of a tensor program for the scalar that it returns.
  void scalar_call(const Call& node, const PrimFunc& program, const Type& type, const Span& span) {
    const std::string& name = node.callee.as<GlobalVar>()->name;
    const PrimType* result = type.as<PrimType>();
    if (!program.result || !result || result->dtype != *program.result)
      return error(span, "'{}' returns {}, used as {} [G9]", name,
                   program.result ? to_string(*program.result) : "nothing", print_type(type));
    if (node.args.size() != program.params.size())
      return error(span, "'{}' takes {} arguments, got {} [G9]", name, program.params.size(), node.args.size());
    for (size_t i = 0; i < node.args.size(); ++i) {
      bool is_buffer = program.params[i].type().is<BufferType>(), is_scalar = node.args[i].type().is<PrimType>();
      if (is_buffer == is_scalar)
        error(span, "argument {} of '{}' is {}, expected a {} [G9]", i, name, print_type(node.args[i].type()),
              is_buffer ? "tensor" : "scalar");
    }
  }

  // Checks each argument against the parameter's type, with dims in the caller's terms.
  void arguments(const FuncType& type, const Call& node, const Span& span) {
    if (type.params->size() != node.args.size()) return;  // infer reports it
    VarMap dims;
    for (size_t i = 0; i < node.args.size(); ++i) relaxc::bind_dims((*type.params)[i], node.args[i].type(), dims);
    for (size_t i = 0; i < node.args.size(); ++i) {
      Type wanted = substitute((*type.params)[i], dims);
      if (contradicts(wanted, node.args[i].type()))
        error(span, "argument {} is {}, expected {} [G10]", i, print_type(node.args[i].type()), print_type(wanted));
    }
  }

  // Returns the program that is called by name; an external function is known only when the program runs.
  std::optional<PrimFuncRef> program_of(const KernelCall& call, const std::string& op, const Span& span) {
    bool may_be_external = call.has_destinations || op == ops::kCallDpsPacked;
    if (!call.callee.is<GlobalVar>()) {
      if (!may_be_external || !call.callee.is<ExternFunc>())
        error(span, "{} calls a {}, expected a function by name [G9]", op, kind_name(call.callee.kind()));
      return std::nullopt;
    }
    std::optional<PrimFuncRef> program = called_program(call.callee, module_);
    if (!program && !may_be_external && module_.find(call.name()))
      error(span, "'{}' is not a tensor program [G9]", call.name());
    return program;
  }

  void kernel_call(const KernelCall& call, const std::string& op, const Span& span) {
    std::optional<PrimFuncRef> program = program_of(call, op, span);
    if (!program) return;
    KernelMatch match = match_kernel(call, *program);
    for (const std::string& contradiction : match.contradictions) error(span, "{} [G9]", contradiction);
    for (const KernelDim& dim : unproven_dims(match)) {
      if (dim.verdict != Verdict::kContradicted) continue;
      error(span, "dim {} of {} {} of '{}' is {}, expected {} [G9]", dim.dim, dim.operand->role, dim.operand->number,
            call.name(), print_expr(dim.given), print_expr(dim.wanted));
    }
  }

  const IRModule& module_;
  const OpTable& ops_;
  bool pure_ = true, forced_ = false;  // forced: impure calls are taken for pure
  VarSet hidden_;                      // bound in a dataflow block that has ended
};

}  // namespace

void verify_graph(const FunctionRef& function, const IRModule& module, const OpTable& ops, DefinedVars& defined,
                  Diagnostics& diagnostics) {
  GraphVerifier(module, ops, defined, diagnostics).run(function);
}

}  // namespace relaxc
