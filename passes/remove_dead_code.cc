// Expects: any module. Guarantees: every pure binding is used, every private function is called.
#include <algorithm>
#include <ranges>

#include "ir/attr_names.h"
#include "ir/unused.h"
#include "passes/graph_rewriter.h"

namespace relaxc {

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
    return cast<Function>(without_unused(function, module, context.ops));
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
