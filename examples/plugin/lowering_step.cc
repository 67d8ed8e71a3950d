// A pass over tensor programs: e^x as 2^(x * log2(e)).
#include <relaxc/plugin.h>

#include <numbers>

using namespace relaxc;

// It may run on several programs at once, and its result is reused for equal programs.
static PrimFuncRef exp_by_exp2(const std::string&, const PrimFuncRef& program, const PassContext&) {
  return cast<PrimFunc>(rewrite(static_cast<const Expr&>(program), [](const Ref<Call>& call) -> std::optional<Expr> {
    const OpRef* op = call->callee.as<OpRef>();
    if (!op || op->name != "tir.exp") return std::nullopt;
    DType dtype = dtype_of(call);
    return intrinsic("tir.exp2", {call->args[0] * scalar_imm(std::numbers::log2e, dtype)}, dtype);
  }));
}

RELAXC_PLUGIN(tables) {
  tables.add(Pass{.name = "exp_by_exp2", .doc = "compute exp(x) as exp2(x * log2(e))", .on_program = exp_by_exp2},
             {{.pipeline = "lower_kernels", .after = "simplify_program"}});
}
