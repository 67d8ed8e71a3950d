#include "passes/kernel_block.h"

#include <algorithm>
#include <set>

#include "ir/op_names.h"
#include "support/lists.h"
#include "tir/lower/lower.h"

namespace relaxc {

KernelBlock::KernelBlock(const std::vector<Binding>& bindings, const IRModule& module, const VarSet& used_outside,
                         bool is_dataflow)
    : used_outside_(used_outside) {
  for (const Binding& binding : bindings) {
    users_.try_emplace(binding.var.get());
    auto note_use = [&](const NodeRef& value, size_t user) {
      for (const VarRef& var : free_vars(value)) {
        if (auto* users = find_value(users_, var.get())) users->push_back(user);
      }
    };
    const bool is_call_tir = is_dataflow && !binding.cast && as_call(binding.value, ops::kCallTir);
    std::optional<KernelCall> call = is_call_tir ? as_spread_kernel_call(binding.value, module) : std::nullopt;
    std::optional<PrimFuncRef> called = call ? called_program(call->callee, module) : std::nullopt;
    if (!called || call->outputs.size() != 1) {
      note_use(binding.value, kOther);
      if (binding.cast) note_use(*binding.cast, kOther);
      continue;
    }
    note_use(binding.value, kernels_.size());
    PrimFuncRef program = promote_indices(*called);  // programs that are made of it get the graph's int64 dims
    numbers_.emplace(binding.var.get(), kernels_.size());
    kernels_.push_back({binding, *call, program, pattern_of(program)});
  }
}

const size_t* KernelBlock::number_of(const Expr& tensor) const { return find_value(numbers_, tensor.get()); }

bool KernelBlock::finishes_heavy(const BlockKernel& kernel) const {
  const size_t last = *number_of(kernel.binding.var);
  std::set<size_t> inside;  // nodes whose values are used for the kernel only
  // The last one first: all users of a node are looked at before it.
  for (std::set<size_t> open{last}; !open.empty();) {
    const size_t i = *open.rbegin();
    open.erase(i);
    const BlockKernel& node = kernels_[i];
    const VarRef& result = node.binding.var;
    auto is_inside = [&](size_t user) { return inside.contains(user); };
    if (i != last) {
      if (is_used_outside(result) || !std::ranges::all_of(users_of(result), is_inside)) continue;
      if (node.pattern == OpPattern::kAnchor || node.pattern == OpPattern::kReduction) return true;
      if (node.pattern > OpPattern::kBroadcast) continue;
    }
    inside.insert(i);
    for (const Expr& tensor : node.call.tensors) {
      const size_t* source = number_of(tensor);
      if (source && same_shape(tensor, kernel.binding.var)) open.insert(*source);
    }
  }
  return false;
}

}  // namespace relaxc
