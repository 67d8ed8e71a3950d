// Expects: call_tir and call_dps_packed on tensors of known shape. Guarantees: none is left. Each output is allocated
// by relax.builtin.alloc_tensor and the kernel is called as callee(inputs..., outputs..., R.shape([scalars])), where
// the scalars are the values of scalar_arguments(callee) in order; the bindings stand in impure blocks.
#include "ir/text/printer.h"
#include "passes/graph.h"

namespace relaxc {

namespace {

class DestinationPasser {
 public:
  explicit DestinationPasser(const IRModule& module) : module_(module) {}

  Expr sequence(const Expr& seq) {
    const SeqExpr* node = seq.as<SeqExpr>();
    std::vector<Binding> bindings;
    for (const BindingBlock& block : node->blocks) {
      for (const Binding& binding : block.bindings) visit(binding, bindings);
    }
    return seq_expr({{false, std::move(bindings), {}}}, replaced_(node->body), seq.span());
  }

 private:
  void visit(const Binding& original, std::vector<Binding>& out) {
    Binding binding = original;
    if (const If* branch = original.value.as<If>()) {
      binding.value =
          make(If{replaced_(branch->condition), sequence(branch->then_branch), sequence(branch->else_branch)},
               original.value.type(), original.value.span());
      out.push_back(std::move(binding));
      return;
    }
    binding.value = replaced_(original.value);
    std::optional<CallTir> call_tir = match_call_tir(binding.value);
    if (as_call(binding.value, "relax.call_tir_inplace"))
      fail_unsupported(binding.value.span() ? binding.value.span() : original.var.span(),
                       "relax.call_tir_inplace cannot be compiled yet; call_tir with a new output can");
    if (!call_tir) {
      out.push_back(std::move(binding));
      return;
    }
    const Span& span = binding.value.span() ? binding.value.span() : original.var.span();
    std::vector<Expr> args = call_tir->tensors, results;
    for (const Expr& arg : args) {
      if (!arg.type().is<TensorType>())
        fail_unsupported(span, "an argument of type {} cannot be passed to a kernel yet", print_type(arg.type()));
    }
    for (size_t i = 0; i < call_tir->outputs.size(); ++i) {
      const Type& type = call_tir->outputs[i];
      const std::vector<Expr>* shape = known_shape(type);
      std::optional<DType> dtype = tensor_dtype(type);
      if (!shape || !dtype)
        fail(span, "the shape or dtype of an output of call_tir is not known; give both in out_sinfo");
      Expr alloc = call(op_ref("relax.builtin.alloc_tensor"),
                        {shape_expr(*shape), make(DTypeImm{*dtype}, object_type())}, {}, type, span);
      VarRef var = make_var(
          call_tir->outputs.size() == 1 ? original.var->name : fmt::format("{}_{}", original.var->name, i), type, span);
      out.push_back({alloc, std::nullopt, var});
      args.push_back(var);
      results.push_back(var);
    }
    if (const GlobalVar* callee = call_tir->callee.as<GlobalVar>()) {
      PrimFuncRef program = module_.prim_func(callee->name);
      VarMap values = bind_scalars(program, *call_tir);
      std::vector<Expr> scalars;
      for (const VarRef& var : scalar_arguments(program)) {
        auto it = values.find(var.get());
        if (it == values.end())
          fail(span, "call_tir of '{}': the value of '{}' does not follow from the arguments; pass it in tir_vars",
               callee->name, var->name);
        scalars.push_back(simplify(it->second));
      }
      args.push_back(shape_expr(std::move(scalars)));
    } else {
      args.push_back(shape_expr(call_tir->scalars));
    }
    Expr kernel_call = call(call_tir->callee, std::move(args), {}, tuple_type({}), span);
    out.push_back({kernel_call, std::nullopt, make_var("_", tuple_type({}), span)});
    replaced_.add(original.var, call_tir->outputs.size() == 1 ? results[0] : tuple(results));
  }

  const IRModule& module_;
  Substitution replaced_;
};

}  // namespace

IRModule destination_passing(IRModule module, PassContext&) {
  IRModule before = module;
  return map_functions(std::move(module), [&](const FunctionRef& function) {
    Function copy = *function;
    copy.body = DestinationPasser(before).sequence(function->body);
    return make_function(std::move(copy), function.span());
  });
}

}  // namespace relaxc
