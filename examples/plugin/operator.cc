// The operator R.me.fancy_gelu(x, alpha) = alpha * x * (1 + erf(x / sqrt(2))), which com.me::FancyGelu of ONNX becomes.
#include <relaxc/compute.h>
#include <relaxc/plugin.h>

#include <numbers>

using namespace relaxc;

struct FancyGeluAttrs {
  double alpha = 0.5;
  RELAXC_FIELDS(FancyGeluAttrs, alpha);
};

// The result has the type of x; where only the dtype or the rank of x is known, the compiler asks infer_partial.
static Type infer(const OpCall& op) {
  if (!op.dtype(0).is_float()) op.fail("expected a float, got {}", to_string(op.dtype(0)));
  return tensor_type(op.shape(0), op.dtype(0));
}

// The tensor program, which is fused, scheduled and profiled like that of a built-in operator.
static PrimFuncRef legalize(const OpCall& op) {
  ComputeBuilder b;
  Buffer x = b.inputs_of(op)[0];
  auto number = [&](double value) { return scalar_imm(value, op.dtype(0)); };
  Buffer y = b.compute("fancy_gelu", op.dtype(0), op.shape(0), [&](Axes i) {
    Expr erf = intrinsic("tir.erf", {at(x, i) * number(std::numbers::sqrt2 / 2)}, op.dtype(0));
    return number(op.attrs<FancyGeluAttrs>().alpha) * at(x, i) * (number(1) + erf);
  });
  return b.finish({y});
}

RELAXC_PLUGIN(tables) {
  OpRow row{.name = "relax.me.fancy_gelu", .doc = "alpha * x * (1 + erf(x / sqrt(2)))", .onnx = "com.me::FancyGelu"};
  row.inputs = {{"x", "the tensor"}}, row.attrs = op_attrs<FancyGeluAttrs>();
  row.pattern = OpPattern::kElementwise, row.infer = infer, row.legalize = legalize;
  tables.add(row);
}
