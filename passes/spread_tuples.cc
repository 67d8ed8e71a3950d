// Expects: any module. Guarantees: operators that become tensor programs or other operators, and calls of such
// programs, get the items of a tuple one by one: where a tuple value (a parameter, or what a call or a branch gives)
// stands among the arguments, a written tuple of its items replaces it. Operators that the virtual machine runs keep
// the value.
#include "passes/graph_rewriter.h"

namespace relaxc {

namespace {

class Spreader final : public GraphRewriter {
 public:
  using GraphRewriter::GraphRewriter;

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder& builder) override {
    const OpRow* row = ops_.find(op_name(binding.value));
    if (!row || !(row->legalize || row->decompose || calls_kernel(row->name))) return std::nullopt;
    Call spread = *binding.value.as<Call>();
    bool changed = false;
    for (Expr& arg : spread.args) {
      const TupleType* type = arg.type().as<TupleType>();
      if (!type || arg.is<Tuple>()) continue;
      std::vector<Expr> items;
      for (size_t i = 0; i < type->items.size(); ++i)
        items.push_back(builder.emit(tuple_get(arg, static_cast<int64_t>(i)), "item"));
      arg = tuple(std::move(items), arg.span());
      changed = true;
    }
    if (!changed) return std::nullopt;
    builder.keep({make(std::move(spread), binding.value.type(), binding.value.span()), binding.cast, binding.var});
    return binding.var;
  }
};

}  // namespace

IRModule spread_tuples(IRModule module, PassContext& context) {
  return map_functions(std::move(module),
                       [&](const FunctionRef& function) { return Spreader(context.ops).run(function); });
}

}  // namespace relaxc
