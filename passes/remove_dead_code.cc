// Expects: any module. Guarantees: every pure binding is used, every private function is called.
#include <algorithm>
#include <ranges>

#include "ir/attr_names.h"
#include "passes/graph_rewriter.h"

namespace relaxc {

namespace {

bool is_needless(const Expr& value, const IRModule& module, const OpTable& ops) {
  const Call* node = value.as<Call>();
  if (!node) return !value.is<If>();
  if (!is_pure(*node, ops)) return false;
  const TupleType* results = value.type().as<TupleType>();
  if (results && results->items.empty()) return false;  // a function of the host that writes its destinations
  std::optional<KernelCall> kernel = as_kernel_call(value, module);
  return !kernel || !kernel->has_destinations;  // a kernel writes its destinations
}

// Prunes the body of the function, a branch or a local function. `dims` are those that types use, as far as is known.
Expr prune(const Expr& value, const IRModule& module, const OpTable& ops, VarSet& dims) {
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

}  // namespace

void keep_reached(IRModule& module, std::vector<std::string> roots) {
  std::unordered_set<std::string> reached;
  while (!roots.empty()) {
    std::string name = std::move(roots.back());
    roots.pop_back();
    const Expr* function = module.find(name);
    if (!function || !reached.insert(name).second) continue;
    walk(*function, [&](const GlobalVar& global) { roots.push_back(global.name); });
  }
  std::erase_if(module.functions, [&](const auto& entry) { return !reached.contains(entry.first); });
}

IRModule remove_dead_code(IRModule module, PassContext& context) {
  module = map_functions(module, [&](const FunctionRef& function) {
    VarSet dims;
    return cast<Function>(prune(function, module, context.ops, dims));
  });
  // Only functions that public ones reach are kept.
  std::vector<std::string> roots;
  bool has_graph =
      std::ranges::any_of(std::views::values(module.functions), [](const Expr& f) { return f.is<Function>(); });
  for (const auto& [name, function] : module.functions) {
    const Function* graph = function.as<Function>();
    if (graph ? graph->attrs.has(attr_names::kGlobalSymbol) || name == "main" : !has_graph) roots.push_back(name);
  }
  keep_reached(module, std::move(roots));
  return module;
}

}  // namespace relaxc
