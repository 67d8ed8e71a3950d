// A plug-in whose rows compile and run, and compute wrong numbers: RELAXC_WRONG_PLUGIN names which of them are added.
// relaxc debug has to find each (tests/tools/debug_test.cc).
#include <cstdlib>
#include <string_view>

#include <relaxc/compute.h>
#include <relaxc/plugin.h>

using namespace relaxc;

namespace {

// An algebraic rule that is none: a sigmoid is not its linear part.
IRModule wrong_rule(IRModule module, PassContext&) {
  for (auto& [name, function] : module.functions) {
    function = rewrite(function, [](const Ref<Call>& call) -> std::optional<Expr> {
      const OpRef* op = call->callee.as<OpRef>();
      if (!op || op->name != "relax.sigmoid") return std::nullopt;
      Call result = *call;
      result.callee = op_ref("relax.tanh");
      return make(std::move(result), call.type(), call.span());
    });
  }
  return module;
}

// A lowering step that confuses two functions.
PrimFuncRef wrong_step(const std::string&, const PrimFuncRef& program, const PassContext&) {
  return cast<PrimFunc>(rewrite(static_cast<const Expr&>(program), [](const Ref<Call>& call) -> std::optional<Expr> {
    const OpRef* op = call->callee.as<OpRef>();
    if (!op || op->name != "tir.sigmoid") return std::nullopt;
    return intrinsic("tir.tanh", {call->args[0]}, dtype_of(call));
  }));
}

Type infer(const OpCall& op) { return tensor_type(op.shape(0), op.dtype(0)); }

// The formula of an operator without the factor 1/2.
PrimFuncRef wrong_gelu(const OpCall& op) {
  ComputeBuilder b;
  Buffer x = b.inputs_of(op)[0];
  Buffer y = b.compute("wrong_gelu", op.dtype(0), op.shape(0), [&](Axes i) {
    return at(x, i) * (scalar_imm(1, op.dtype(0)) + intrinsic("tir.erf", {at(x, i)}, op.dtype(0)));
  });
  return b.finish({y});
}

}  // namespace

RELAXC_PLUGIN(tables) {
  const char* stated = std::getenv("RELAXC_WRONG_PLUGIN");
  const std::string_view wanted = stated ? stated : "";
  if (wanted == "rule")
    tables.add(Pass{.name = "wrong_rule", .doc = "takes sigmoid for tanh", .on_module = wrong_rule},
               {{.pipeline = "simplify", .after = "canonicalize"}});
  if (wanted == "step")
    tables.add(Pass{.name = "wrong_step", .doc = "takes sigmoid for tanh", .on_program = wrong_step},
               {{.pipeline = "lower_kernels", .after = "simplify_program"}});
  if (wanted == "operator") {
    OpRow row{.name = "relax.me.wrong_gelu", .doc = "x * (1 + erf(x))", .onnx = "com.me::FancyGelu"};
    row.inputs = {{"x", "the tensor"}};
    row.pattern = OpPattern::kElementwise, row.infer = infer, row.legalize = wrong_gelu;
    tables.add(row);
  }
}
