// Expects: scheduled tensor programs, and those that find_extremes made. Guarantees: a kernel that makes a tensor of
// which one of these looks for the least and the greatest element notes them while it stores (passes/noted_program.h),
// where that is a small part of its work; the other then reads these notes instead of the tensor.
#include <algorithm>

#include "ir/attr_names.h"
#include "ir/op_names.h"
#include "ir/sequence.h"
#include "ops/common.h"
#include "passes/compose.h"
#include "passes/extremes.h"
#include "passes/noted_program.h"
#include "passes/tables.h"
#include "support/lists.h"
#include "tir/analysis/work.h"
#include "tir/compute.h"
#include "tir/program.h"
#include "tir/rules/choose.h"

namespace relaxc {

namespace {

class BlockNoter {
 public:
  BlockNoter(IRModule& module, const PassContext& context) : module_(module), context_(context) {}

  std::vector<Binding> run(std::vector<Binding> bindings) {
    std::unordered_map<const NodeHeader*, size_t> places;  // of bindings, by variable
    for (size_t i = 0; i < bindings.size(); ++i) places.emplace(bindings[i].var.get(), i);
    std::vector<std::vector<Binding>> behind(bindings.size());
    for (Binding& binding : bindings) {
      std::optional<KernelCall> call = kernel_call(binding);
      if (!call || !(*called_program(call->callee, module_))->attrs.get_bool(attr_names::kFindsExtremes, false))
        continue;
      const size_t* producer = find_value(places, call->tensors[0].get());
      // Other shapes of a tensor have the same elements.
      while (producer && as_call(bindings[*producer].value, ops::kReshape))
        producer = find_value(places, as_call(bindings[*producer].value, ops::kReshape)->args[0].get());
      if (!producer) continue;
      const auto notes = note(bindings[*producer], behind[*producer]);
      if (notes) binding.value = call_of_noted(*notes, call->outputs, binding.value.span());
    }
    std::vector<Binding> result;
    for (size_t i = 0; i < bindings.size(); ++i) {
      result.push_back(bindings[i]);
      result.insert(result.end(), behind[i].begin(), behind[i].end());
    }
    return result;
  }

 private:
  std::optional<KernelCall> kernel_call(const Binding& binding) const {
    const bool is_call_tir = !binding.cast && as_call(binding.value, ops::kCallTir);
    std::optional<KernelCall> call = is_call_tir ? as_spread_kernel_call(binding.value, module_) : std::nullopt;
    return call && called_program(call->callee, module_) ? call : std::nullopt;
  }

  // Lets the kernel note the extremes of its result. Adds the bindings of what it makes, and returns the notes.
  std::optional<Expr> note(Binding& binding, std::vector<Binding>& behind) {
    const std::optional<KernelCall> call = kernel_call(binding);
    if (!call || call->outputs.size() != 1 || tensor_dtype(call->outputs[0]) != kFloat32) return std::nullopt;
    const PrimFuncRef program = *called_program(call->callee, module_);
    if (!program->attrs.get_bool(attr_names::kIsScheduled, false)) return std::nullopt;
    const KernelMatch match = match_kernel(*call, program);
    if (match.operands.empty() || !match.contradictions.empty() || !match.operands.back().is_output)
      return std::nullopt;
    auto [known, is_new] = noted_.try_emplace(call->name());
    if (is_new) known->second = with_notes(call->name(), program, match.operands.back().param);
    if (!known->second) return std::nullopt;
    const std::vector<Expr> shape = map_each(
        known->second->notes, [&](const Expr& dim) { return simplify(cast_to(substitute(dim, match.dims), kInt64)); });
    const std::vector<Type> types = {call->outputs[0], tensor_type(shape, kFloat32)};
    std::vector<Expr> args = binding.value.as<Call>()->args;
    args[0] = known->second->callee;
    const Expr value =
        relaxc::call(op_ref(ops::kCallTir), std::move(args), {}, tuple_type(types), binding.value.span(), types);
    const VarRef all = make_var("noted", value.type(), span_of(binding)), notes = make_var("notes", types[1]);
    behind = {{tuple_get(all, 0), std::nullopt, binding.var}, {tuple_get(all, 1), std::nullopt, notes}};
    binding = {value, std::nullopt, all};
    return notes;
  }

  struct Noted {
    Expr callee;
    std::vector<Expr> notes;  // their shape, in the program's dims
  };
  std::optional<Noted> with_notes(const std::string& name, const PrimFuncRef& program, const Buffer& result) {
    const std::optional<NotedProgram> noted = with_noted_extremes(program, result);
    if (!noted) return std::nullopt;
    return Noted{add_program(module_, name + "_extremes", with_fresh_variables(noted->program)), noted->notes};
  }

  // Returns the call that finds the extremes in notes.
  Expr call_of_noted(const Expr& notes, const std::vector<Type>& outputs, const Span& span) {
    std::vector<Expr> dims = *known_shape(notes.type());
    if (!as_int(dims[1])) dims[1] = make_dim("slots");
    PrimFunc program = *noted_extremes_program(dims);
    const Work work = work_of(make_prim_func(PrimFunc(program), span));
    program.attrs.set(attr_names::kWork, Attrs{{"operations", work.operations}, {"accesses", to_attr(work.accesses)}});
    const PrimFuncRef scheduled = schedule_by_rules("extremes", make_prim_func(std::move(program), span), {},
                                                    context_.target, nullptr, nullptr, tables_of(context_).rules());
    return make_call_tir(module_, "extremes", scheduled, {notes}, outputs, span);
  }

  IRModule& module_;
  const PassContext& context_;
  std::map<std::string, std::optional<Noted>> noted_;  // by the name of the program without notes
};

Expr note_in_sequence(const Expr& seq, BlockNoter& noter) {
  return rewrite_blocks(seq, [&](const BindingBlock& block, const VarSet&) {
    std::vector<Binding> bindings = block.bindings;
    for (Binding& binding : bindings)
      binding.value = map_sequences(binding.value, [&](const Expr& inner) { return note_in_sequence(inner, noter); });
    return noter.run(std::move(bindings));
  });
}

}  // namespace

IRModule note_extremes(IRModule module, PassContext& context) {
  return map_functions(std::move(module), [&](const FunctionRef& function, IRModule& result) {
    BlockNoter noter(result, context);
    return cast<Function>(map_sequences(function, [&](const Expr& body) { return note_in_sequence(body, noter); }));
  });
}

}  // namespace relaxc
