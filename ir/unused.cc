#include "ir/unused.h"

#include <algorithm>
#include <ranges>

#include "ir/kernel_call.h"
#include "ir/sequence.h"

namespace relaxc {

static bool is_needless(const Expr& value, const IRModule& module, const OpTable& ops) {
  const Call* node = value.as<Call>();
  if (!node) return !value.is<If>();
  if (!is_pure(*node, ops)) return false;
  const TupleType* results = value.type().as<TupleType>();
  if (results && results->items.empty()) return false;  // a function of the host that writes its destinations
  std::optional<KernelCall> kernel = as_kernel_call(value, module);
  return !kernel || !kernel->has_destinations;  // a kernel writes its destinations
}

// Prunes the body of the function, a branch or a local function. `dims` are those that types use, as far as is known.
static Expr prune(const Expr& value, const IRModule& module, const OpTable& ops, VarSet& dims) {
  auto needed = [&](const BindingBlock& block, VarSet used) {
    std::vector<Binding> kept;
    for (Binding binding : std::views::reverse(block.bindings)) {
      bool is_used = used.contains(binding.var.get()) || dims.contains(binding.var.get());
      // A cast may bind dims that types use.
      if (!is_used && !binding.cast && is_needless(binding.value, module, ops)) continue;
      binding.value = prune(binding.value, module, ops, dims);
      add_free_vars(binding.value, used);
      add_free_vars(binding.var.type(), dims);
      if (binding.cast) add_free_vars(*binding.cast, used);
      kept.push_back(std::move(binding));
    }
    std::ranges::reverse(kept);
    return kept;
  };
  return map_sequences(value, [&](const Expr& seq) { return rewrite_blocks(seq, needed); });
}

Expr without_unused(const Expr& function, const IRModule& module, const OpTable& ops) {
  VarSet dims;
  return prune(function, module, ops, dims);
}

}  // namespace relaxc
