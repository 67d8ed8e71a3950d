// Expects: any module. Guarantees: every pure binding is used, every private function is called.
#include <algorithm>

#include "passes/graph.h"

namespace relaxc {

namespace {

bool is_needless(const Expr& value, const OpTable& ops) {
  const Call* node = value.as<Call>();
  if (!node) return !value.is<If>();
  // A kernel called with its destinations writes them.
  return is_pure(*node, ops) && (node->callee.is<OpRef>() || !value.type().is<TupleType>());
}

Expr prune(const Expr& seq, const OpTable& ops) {
  SeqExpr payload = *cast<SeqExpr>(seq).operator->();
  std::unordered_set<const NodeHeader*> used;
  auto use = [&](const NodeRef& node) {
    for (const VarRef& var : free_vars(node)) used.insert(var.get());
  };
  use(payload.body);
  bool changed = false;
  for (size_t b = payload.blocks.size(); b-- > 0;) {
    std::vector<Binding> kept;
    std::vector<Binding>& bindings = payload.blocks[b].bindings;
    for (size_t i = bindings.size(); i-- > 0;) {
      Binding binding = bindings[i];
      bool needed = used.contains(binding.var.get()) || !is_needless(binding.value, ops);
      // A cast may bind dims that types use.
      if (!needed && !binding.cast) {
        changed = true;
        continue;
      }
      if (const If* branch = binding.value.as<If>()) {
        Expr then_branch = prune(branch->then_branch, ops), else_branch = prune(branch->else_branch, ops);
        if (!same_node(then_branch, branch->then_branch) || !same_node(else_branch, branch->else_branch)) {
          binding.value =
              make(If{branch->condition, then_branch, else_branch}, binding.value.type(), binding.value.span());
          changed = true;
        }
      }
      use(binding.value);
      use(binding.var.type());
      if (binding.cast) use(*binding.cast);
      kept.push_back(binding);
    }
    std::reverse(kept.begin(), kept.end());
    bindings = std::move(kept);
  }
  if (!changed) return seq;
  return with_dataflow_outputs(make(std::move(payload), seq.type(), seq.span()));
}

}  // namespace

IRModule remove_dead_code(IRModule module, PassContext& context) {
  module = map_functions(std::move(module), [&](const FunctionRef& function) {
    Function copy = *function;
    copy.body = prune(function->body, context.ops);
    if (same_node(copy.body, function->body)) return function;
    return make_function(std::move(copy), function.span());
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
