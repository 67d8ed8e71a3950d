// Expects: any module. Guarantees: within one sequence no two pure bindings have structurally equal values.
#include "passes/graph.h"

namespace relaxc {

namespace {

class Merger final : public GraphRewriter {
 public:
  using GraphRewriter::GraphRewriter;

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder&) override {
    if (binding.cast || !binding.value.is<Call>()) return std::nullopt;
    const OpRow* row = ops_.find(op_name(binding.value));
    if (!row || !row->pure) return std::nullopt;
    // Two allocations are two places.
    if (row->name.starts_with("relax.builtin.") || row->name.starts_with("relax.memory.")) return std::nullopt;
    uint64_t hash = structural_hash(binding.value);
    for (const Binding& earlier : seen_[hash]) {
      if (structural_equal(earlier.value, binding.value)) return earlier.var;
    }
    seen_[hash].push_back(binding);
    return std::nullopt;
  }

 private:
  std::unordered_map<uint64_t, std::vector<Binding>> seen_;
};

bool has_branches(const FunctionRef& function) {
  bool found = false;
  for_each_binding(function, [&](const Binding& binding) { found = found || binding.value.is<If>(); });
  return found;
}

}  // namespace

IRModule merge_common_subexpressions(IRModule module, PassContext& context) {
  return map_functions(std::move(module), [&](const FunctionRef& function) {
    // A value of one branch is not at hand in the other.
    if (has_branches(function)) return function;
    return Merger(context.ops).run(function);
  });
}

}  // namespace relaxc
