// Expects: any module. Guarantees: no two private tensor programs are structurally equal, but for those that a user's
// rule names. It runs before schedule, which then works once for the thousand equal layers of a network.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <map>

#include "ir/visit.h"
#include "passes/pass.h"

namespace relaxc {

std::optional<uint64_t> program_key(const std::string& name, const PrimFuncRef& program, const PassContext& context) {
  std::string text =
      fmt::format("{} {} {}", structural_hash(program), print_target(context.target), context.check_bounds);
  for (const ScheduleRule& rule : context.schedules) {
    if (rule.function == name) return std::nullopt;
    if (rule.function.empty())
      text += fmt::format(" {} {} {} {}", rule.name, rule.op, rule.uses, to_string(AttrValue(rule.given)));
  }
  return XXH3_64bits(text.data(), text.size());
}

IRModule merge_kernels(IRModule module, PassContext& context) {
  std::map<uint64_t, std::vector<std::string>> by_key;
  std::unordered_map<std::string, Expr> kept;  // the kernel that stands for a merged one
  for (const auto& [name, function] : module.functions) {
    auto program = try_cast<PrimFunc>(function);
    if (!program || (*program)->attrs.has("global_symbol")) continue;
    std::optional<uint64_t> key = program_key(name, *program, context);
    if (!key) continue;
    std::vector<std::string>& candidates = by_key[*key];
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
