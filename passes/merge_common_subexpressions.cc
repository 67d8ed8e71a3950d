// Expects: any module. Guarantees: within one sequence no two pure bindings have structurally equal values.
#include "ir/op_names.h"
#include "passes/graph_rewriter.h"

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
    if (ops::is_memory_op(row->name)) return std::nullopt;
    uint64_t hash = value_hash(binding.value);
    for (const Binding& earlier : seen_.back()[hash]) {
      bool same = structural_equal(earlier.value, binding.value);
      if (same && structural_equal(earlier.var.type(), binding.var.type())) return earlier.var;
    }
    seen_.back()[hash].push_back(binding);
    return std::nullopt;
  }
  // A value of one branch is not at hand in the other, nor after it.
  void enter_scope() override { seen_.push_back(seen_.back()); }
  void leave_scope() override { seen_.pop_back(); }

 private:
  std::vector<std::unordered_map<uint64_t, std::vector<Binding>>> seen_{1};
};

}  // namespace

IRModule merge_common_subexpressions(IRModule module, PassContext& context) {
  return map_functions(std::move(module),
                       [&](const FunctionRef& function) { return Merger(context.ops).run(function); });
}

}  // namespace relaxc
