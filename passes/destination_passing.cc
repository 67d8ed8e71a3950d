// Expects: call_tir and call_dps_packed on tensors of known shape. Guarantees: none is left. Each output is allocated
// by relax.builtin.alloc_tensor and the kernel is called as callee(inputs..., outputs..., R.shape([scalars])), where
// the scalars are the values of scalar_arguments(callee) in order; the bindings are in plain blocks, not dataflow.
#include <algorithm>

#include "ir/attr_names.h"
#include "ir/op_names.h"
#include "ir/sequence.h"
#include "ir/text/printer.h"
#include "passes/graph_rewriter.h"
#include "support/lists.h"

namespace relaxc {

namespace {

class DestinationPasser final : public GraphRewriter {
 public:
  DestinationPasser(const OpTable& ops, const IRModule& module, const Function& function)
      : GraphRewriter(ops), module_(module), updated_(updated_params(function)) {}

 protected:
  bool keeps_dataflow() const override { return false; }

  std::optional<Expr> visit(const Binding& binding, Builder& builder) override {
    // An item of a call's outputs is that output.
    const TupleGetItem* item = binding.value.as<TupleGetItem>();
    if (const Tuple* written = item ? item->tuple.as<Tuple>() : nullptr)
      return written->items[static_cast<size_t>(item->index)];
    std::optional<KernelCall> kernel = as_spread_kernel_call(binding.value, module_);
    if (!kernel) return std::nullopt;
    const Span& span = span_of(binding);
    if (kernel->has_destinations) {
      const std::vector<Expr>& args = binding.value.as<Call>()->args;
      bool is_explicit = kernel->scalars.empty() || args.back().is<ShapeExpr>();
      if (is_explicit) return std::nullopt;
      return call_with_destinations(kernel->callee, kernel->tensors, kernel->scalars, span);
    }
    auto is_tensor = [](const Expr& e) { return e.type().is<TensorType>(); };
    const bool is_external = kernel->callee.is<ExternFunc>();
    if (is_external && !std::ranges::all_of(kernel->tensors, is_tensor)) return call_host(*kernel, binding, builder);
    for (const Expr& tensor : kernel->tensors) {
      if (!tensor.type().is<TensorType>())
        fail_unsupported(span, "an argument of type {} cannot be passed to a kernel yet", print_type(tensor.type()));
    }
    builder.set_span(span);
    std::vector<Expr> scalars = scalars_of(*kernel, span), results, made;
    std::vector<Expr> tensors = kernel->tensors;
    for (size_t i = 0; i < kernel->outputs.size(); ++i) {
      const std::string& name = binding.var->name;
      std::string hint = kernel->outputs.size() == 1 ? name : fmt::format("{}_{}", name, i);
      int64_t input = kernel->in_place.empty() ? -1 : kernel->in_place[i];
      if (input < 0) {
        results.push_back(made.emplace_back(
            allocate(kernel->outputs[i], hint, is_external ? "call_dps_packed" : "call_tir", builder)));
      } else {
        // The program overwrites a copy: the tensor itself may be the caller's, a constant, or used again.
        Expr& tensor = tensors[static_cast<size_t>(input)];
        if (updated_.contains(tensor.get())) {
          results.push_back(tensor);
          continue;
        }
        std::vector<Expr> args = {extern_func("vm.builtin.copy"), tensor};
        tensor = builder.emit(
            call(op_ref(ops::kCallPurePacked), std::move(args), {}, kernel->outputs[i], span, {kernel->outputs[i]}),
            hint);
        results.push_back(tensor);
      }
    }
    tensors.insert(tensors.end(), made.begin(), made.end());
    builder.emit(call_with_destinations(kernel->callee, std::move(tensors), std::move(scalars), span), "_");
    return results.size() == 1 ? results[0] : tuple(results);
  }

 private:
  // A kernel of the host that takes more than tensors and integers is called as functions of R.call_packed are.
  static Expr call_host(const KernelCall& kernel, const Binding& binding, Builder& builder) {
    const Span& span = span_of(binding);
    builder.set_span(span);
    const Tuple* written = binding.value.as<Call>()->args[1].as<Tuple>();
    std::vector<Expr> args = {kernel.callee}, results;
    const std::vector<Expr>& inputs = written ? written->items : kernel.tensors;
    args.insert(args.end(), inputs.begin(), inputs.end());
    for (const Type& output : kernel.outputs)
      results.push_back(allocate(output, binding.var->name, "call_dps_packed", builder));
    args.insert(args.end(), results.begin(), results.end());
    builder.emit(call(op_ref(ops::kCallPurePacked), std::move(args), {}, tuple_type({}), span, {tuple_type({})}), "_");
    return results.size() == 1 ? results[0] : tuple(results);
  }

  // Allocates an output of such a call.
  static Expr allocate(const Type& type, std::string name, const char* call_form, Builder& builder) {
    const std::vector<Expr>* shape = known_shape(type);
    std::optional<DType> dtype = tensor_dtype(type);
    if (type.is<DTensorType>())
      fail_unsupported(builder.span(),
                       "an output of {} is an R.DTensor, which lies on the devices of a mesh, and this runtime is "
                       "one device; write R.Tensor",
                       call_form);
    if (!shape || !dtype)
      fail(builder.span(), "the shape or dtype of an output of {} is not known; give both in out_sinfo", call_form);
    std::vector<Expr> args = {shape_expr(*shape), make(DTypeImm{*dtype}, object_type())};
    return builder.emit(call(op_ref(ops::kBuiltinAllocTensor), std::move(args), {}, type, builder.span()),
                        std::move(name));
  }

  // Returns the scalars that the kernel takes; an external function takes those that the call gives.
  std::vector<Expr> scalars_of(const KernelCall& kernel, const Span& span) const {
    if (!kernel.callee.is<GlobalVar>()) return kernel.scalars;
    PrimFuncRef program = module_.prim_func(kernel.name());
    KernelMatch match = match_kernel(kernel, program);
    std::vector<Expr> scalars;
    for (const VarRef& var : scalar_arguments(program)) {
      const Expr* value = find_value(match.dims, var.get());
      if (!value)
        fail(span, "call_tir of '{}': the value of '{}' does not follow from the arguments; pass it in tir_vars",
             kernel.name(), var->name);
      scalars.push_back(simplify(*value));
    }
    return scalars;
  }

  // Returns the params whose memory the caller lets the function write to, if nothing but one call reads them.
  static VarSet updated_params(const Function& function) {
    std::vector<int64_t> places;
    if (const AttrValue* updated = function.attrs.find(attr_names::kUpdatedInputs)) from_attr(*updated, places);
    std::unordered_map<const NodeHeader*, int> uses;
    auto count = [&](const Expr& value) {
      for (const VarRef& var : free_vars(value)) ++uses[var.get()];
    };
    for (const Binding& binding : bindings_of(function.body)) count(binding.value);
    count(function.body.as<SeqExpr>()->body);
    VarSet result;
    for (int64_t place : places) {
      const VarRef& param = function.params.at(static_cast<size_t>(place));
      if (uses[param.get()] == 1) result.insert(param.get());
    }
    return result;
  }

  const IRModule& module_;
  const VarSet updated_;
};

}  // namespace

void expect_destinations(const IRModule& module, const PassContext&) {
  for (const auto& [name, function] : module.functions) {
    if (!function.is<Function>()) continue;
    walk(function, [&](const Ref<Call>& call) {
      auto kernel = as_kernel_call(call, module);
      if (kernel && !kernel->has_destinations && kernel->callee.is<GlobalVar>())
        fail(call.span(),
             "lower_kernels: R.call_tir passes shapes, a lowered kernel takes scalars; run destination_passing before");
    });
  }
}

IRModule destination_passing(IRModule module, PassContext& context) {
  return map_functions(module, [&](const FunctionRef& function) {
    return DestinationPasser(context.ops, module, *function).run(function);
  });
}

}  // namespace relaxc
