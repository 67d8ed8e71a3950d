// An operator of its own: R.me.fancy_gelu(x, alpha) = x * sigmoid(alpha * x), and com.me::FancyGelu of ONNX models.
#include <relaxc/compute.h>
#include <relaxc/plugin.h>

#include "example.h"

using namespace relaxc;

struct FancyGeluAttrs {
  double alpha = 1.702;
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
  Expr alpha = scalar_imm(op.attrs<FancyGeluAttrs>().alpha, op.dtype(0));
  Buffer y = b.compute("fancy_gelu", op.dtype(0), op.shape(0),
                       [&](Axes i) { return at(x, i) * intrinsic("tir.sigmoid", {alpha * at(x, i)}, op.dtype(0)); });
  return b.finish({y});
}

void add_operator(Tables& tables) {
  tables.add(OpRow{.name = "relax.me.fancy_gelu",
                   .doc = "x * sigmoid(alpha * x)",
                   .onnx = "com.me::FancyGelu",
                   .inputs = {{"x", "the tensor"}},
                   .attrs = op_attrs<FancyGeluAttrs>(),
                   .pattern = OpPattern::kElementwise,
                   .infer = infer,
                   .legalize = legalize});
}
