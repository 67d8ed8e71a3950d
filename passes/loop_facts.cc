#include "passes/loop_facts.h"

#include "ir/attr_names.h"
#include "ir/op_names.h"
#include "passes/graph_rewriter.h"
#include "support/lists.h"

namespace relaxc {

std::optional<Closure> as_closure(const Expr& value) {
  if (const GlobalVar* function = value.as<GlobalVar>()) return Closure{function->name, {}};
  const Call* made = as_call(value, ops::kMakeClosure);
  const GlobalVar* function = made ? made->args[0].as<GlobalVar>() : nullptr;
  const Tuple* captured = made ? made->args[1].as<Tuple>() : nullptr;
  return function && captured ? std::optional(Closure{function->name, captured->items}) : std::nullopt;
}

namespace {

std::optional<LoopFact> fact_of(const Function& body, const Call& loop, const Closure& closure) {
  if (body.params.empty() || body.params.size() < closure.captured.size()) return std::nullopt;
  LoopFact fact{body.params[0]};
  if (as_int(loop.args[1])) fact.below = loop.args[1];
  const size_t first = body.params.size() - closure.captured.size();
  for (size_t i = 0; i < closure.captured.size() && !fact.below; ++i) {
    const std::vector<Expr>*given = known_shape(closure.captured[i].type()),
          *own = known_shape(body.params[first + i].type());
    if (!given || !own || given->size() != own->size()) continue;
    for (size_t d = 0; d < own->size(); ++d) {
      if ((*own)[d].is<Var>() && structural_equal((*given)[d], loop.args[1])) fact.below = (*own)[d];
    }
  }
  return fact;
}

}  // namespace

std::unordered_map<const NodeHeader*, LoopFact> find_loop_facts(const IRModule& module) {
  std::map<std::string, int> mentions, loops;
  std::unordered_map<const NodeHeader*, LoopFact> facts;
  for (const auto& [_, value] : module.functions) {
    walk(value, [&](const GlobalVar& callee) { ++mentions[callee.name]; });
    auto function = try_cast<Function>(value);
    if (!function) continue;
    const VarSet returned = used_outside(*function, [](const Binding&) { return true; });
    std::unordered_map<const NodeHeader*, Closure> closures;
    std::unordered_map<const NodeHeader*, int> users;  // of closures
    std::vector<Ref<Call>> found;
    for_each_binding((*function)->body, [&](const Binding& binding) {
      for (const VarRef& var : free_vars(binding.value)) {
        if (closures.contains(var.get())) ++users[var.get()];
      }
      if (auto closure = as_closure(binding.value)) closures.emplace(binding.var.get(), *closure);
      if (as_call(binding.value, ops::kLoop)) found.push_back(cast<Call>(binding.value));
    });
    for (const Ref<Call>& loop : found) {
      const NodeHeader* body = loop->args[0].get();
      const Closure* known = find_value(closures, body);
      std::optional<Closure> closure = known ? std::optional(*known) : as_closure(loop->args[0]);
      if (!closure || (known && (users[body] != 1 || returned.contains(body)))) continue;
      ++loops[closure->function];
      const Expr* called = module.find(closure->function);
      auto graph = called ? try_cast<Function>(*called) : std::nullopt;
      auto fact = graph ? fact_of(**graph, *loop, *closure) : std::nullopt;
      if (fact) facts.emplace(graph->get(), *fact);
    }
  }
  // A function that others may call, too, gets other numbers.
  for (const auto& [name, value] : module.functions) {
    auto function = try_cast<Function>(value);
    bool is_public = function && (*function)->attrs.has(attr_names::kGlobalSymbol);
    if (is_public || mentions[name] != 1 || loops[name] != 1) facts.erase(value.get());
  }
  return facts;
}

}  // namespace relaxc
