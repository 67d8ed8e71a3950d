// Expects: any module. Guarantees: no two private tensor programs are structurally equal, but for those that a user's
// rule names. It runs before schedule, which then works once for the thousand equal layers of a network.
#include <algorithm>
#include <map>

#include "ir/visit.h"
#include "passes/pass.h"

namespace relaxc {

IRModule merge_kernels(IRModule module, PassContext& context) {
  auto has_rule = [&](const std::string& name) {
    return std::any_of(context.schedules.begin(), context.schedules.end(),
                       [&](const ScheduleRule& rule) { return rule.function == name; });
  };
  std::map<uint64_t, std::vector<std::string>> by_hash;
  std::unordered_map<std::string, Expr> kept;  // the kernel that stands for a merged one
  for (const auto& [name, function] : module.functions) {
    const PrimFunc* program = function.as<PrimFunc>();
    if (!program || program->attrs.has("global_symbol") || has_rule(name)) continue;
    std::vector<std::string>& candidates = by_hash[structural_hash(function)];
    bool merged = false;
    for (const std::string& other : candidates) {
      if (!structural_equal(function, module.functions.at(other))) continue;
      kept.emplace(name, global_var(other, module.functions.at(other).type()));
      merged = true;
      break;
    }
    if (!merged) candidates.push_back(name);
  }
  if (kept.empty()) return module;
  std::erase_if(module.functions, [&](const auto& entry) { return kept.contains(entry.first); });
  for (auto& [name, function] : module.functions) {
    if (!function.is<Function>()) continue;
    function = rewrite(function, [&](const Ref<GlobalVar>& global) -> std::optional<Expr> {
      auto it = kept.find(global->name);
      return it == kept.end() ? std::nullopt : std::optional(it->second);
    });
  }
  return module;
}

}  // namespace relaxc
