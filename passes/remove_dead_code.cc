// Expects: any module. Guarantees: every pure binding is used, every private function is called.
#include <algorithm>

#include "passes/graph.h"

namespace relaxc {

namespace {

class DeadCode {
 public:
  DeadCode(const IRModule& module, const OpTable& ops) : module_(module), ops_(ops) {}

  // Prunes the body of the function, a branch or a local function.
  Expr prune(const Expr& value) {
    return map_sequences(value, [&](const Expr& seq) {
      return rewrite_blocks(
          seq, [&](const BindingBlock& block, const VarSet& used_after) { return needed(block, used_after); });
    });
  }

 private:
  std::vector<Binding> needed(const BindingBlock& block, VarSet used) {
    std::vector<Binding> kept;
    auto use = [](const NodeRef& node, VarSet& by) {
      for (const VarRef& var : free_vars(node)) by.insert(var.get());
    };
    for (size_t i = block.bindings.size(); i-- > 0;) {
      Binding binding = block.bindings[i];
      bool is_used = used.contains(binding.var.get()) || dims_.contains(binding.var.get());
      // A cast may bind dims that types use.
      if (!is_used && !binding.cast && is_needless(binding.value)) continue;
      binding.value = prune(binding.value);
      use(binding.value, used);
      use(binding.var.type(), dims_);
      if (binding.cast) use(*binding.cast, used);
      kept.push_back(std::move(binding));
    }
    std::reverse(kept.begin(), kept.end());
    return kept;
  }

  bool is_needless(const Expr& value) const {
    const Call* node = value.as<Call>();
    if (!node) return !value.is<If>();
    if (!is_pure(*node, ops_)) return false;
    std::optional<KernelCall> kernel = as_kernel_call(value, module_);
    return !kernel || !kernel->has_destinations;  // which it writes
  }

  const IRModule& module_;
  const OpTable& ops_;
  VarSet dims_;  // that types use
};

}  // namespace

IRModule remove_dead_code(IRModule module, PassContext& context) {
  module = map_functions(module, [&](const FunctionRef& function) {
    return cast<Function>(DeadCode(module, context.ops).prune(function));
  });
  // Functions reached from the public ones.
  std::unordered_set<std::string> reached;
  std::vector<std::string> todo;
  auto reach = [&](const std::string& name) {
    if (reached.insert(name).second) todo.push_back(name);
  };
  bool has_graph = std::any_of(module.functions.begin(), module.functions.end(),
                               [](const auto& entry) { return entry.second.template is<Function>(); });
  for (const auto& [name, function] : module.functions) {
    const Function* graph = function.as<Function>();
    bool root = graph ? graph->attrs.has("global_symbol") || name == "main" : !has_graph;
    if (root) reach(name);
  }
  while (!todo.empty()) {
    std::string name = todo.back();
    todo.pop_back();
    const Expr* function = module.find(name);
    if (!function) continue;
    walk(*function, [&](const GlobalVar& global) { reach(global.name); });
  }
  std::erase_if(module.functions, [&](const auto& entry) { return !reached.contains(entry.first); });
  return module;
}

}  // namespace relaxc
