// A pass over modules: computes GELU in its tanh form, which is faster and within 0.0005 of it.
#include <relaxc/plugin.h>

using namespace relaxc;

static IRModule fast_gelu(IRModule module, PassContext&) {
  for (auto& [name, function] : module.functions) {
    function = rewrite(function, [](const Ref<Call>& call) -> std::optional<Expr> {
      const OpRef* op = call->callee.as<OpRef>();
      if (!op || op->name != "relax.nn.gelu") return std::nullopt;
      Call result = *call;
      result.callee = op_ref("relax.nn.gelu_tanh");
      return make(std::move(result), call.type(), call.span());
    });
  }
  return module;
}

RELAXC_PLUGIN(tables) {
  // The pipeline "simplify" runs it first.
  tables.add(Pass{.name = "fast_gelu", .doc = "compute nn.gelu by nn.gelu_tanh", .on_module = fast_gelu},
             {{.pipeline = "simplify", .before = "spread_tuples"}});
}
