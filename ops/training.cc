// Operators that only training needs: losses, dropout, marks for differentiation, and the backward operators of which
// derivatives are made.
#include "ops/attributes.h"
#include "ops/ops.h"
#include "ops/window.h"

namespace relaxc {

namespace {

// predictions are [N, C, d...] or [C], targets [N, d...] or a scalar, weights [C]. They start at argument `first`.
Type infer_loss(const OpCall& op, size_t first) {
  const std::vector<Expr>&predictions = op.shape(first), &targets = op.shape(first + 1);
  if (predictions.empty()) op.fail("predictions are a scalar, expected at least rank 1");
  if (!op.dtype(first + 1).is_integral()) op.fail("targets of {}, expected integers", to_string(op.dtype(first + 1)));
  size_t class_axis = predictions.size() == 1 ? 0 : 1;
  std::vector<Expr> expected = predictions;
  expected.erase(expected.begin() + static_cast<int64_t>(class_axis));
  if (expected.size() != targets.size()) op.fail("targets have rank {}, expected {}", targets.size(), expected.size());
  for (size_t d = 0; d < expected.size(); ++d)
    op.require_equal(expected[d], targets[d], fmt::format("dim {} of predictions and targets", d));
  if (op.size() > first + 2) {
    require_rank(op, first + 2, 1);
    require_same_dtype(op, first, first + 2);
    op.require_equal(op.shape(first + 2)[0], predictions[class_axis], "numbers of weights and classes");
  }
  std::string reduction = op.attrs<LossAttrs>().reduction;
  if (reduction == "none") return tensor_type(targets, op.dtype(first));
  if (reduction != "mean" && reduction != "sum") op.fail("reduction '{}', expected none, sum or mean", reduction);
  return tensor_type({}, op.dtype(first));
}
Type infer_nll_loss_backward(const OpCall& op) {
  infer_loss(op, 1);
  return tensor_type(op.shape(1), op.dtype(1));
}
Type infer_cross_entropy(const OpCall& op) {
  require_rank(op, 1, op.rank(0));
  require_same_dtype(op, 0, 1);
  for (size_t d = 0; d < op.shape(0).size(); ++d)
    op.require_equal(op.shape(0)[d], op.shape(1)[d], fmt::format("dim {} of predictions and labels", d));
  return tensor_type({}, op.dtype(0));
}
Type infer_dropout(const OpCall& op) {
  double rate = op.attrs<DropoutAttrs>().rate;
  if (!(rate >= 0 && rate < 1)) op.fail("rate is {}, expected 0 <= rate < 1", rate);
  Type same = infer_like_first(op);
  return tuple_type({same, same});
}
// The result is the gradient of argument 1 and has its type.
Type infer_like_second(const OpCall& op) {
  op.shape(0);
  return tensor_type(op.shape(1), op.dtype(1));
}
Type infer_partial_like_second(const OpCall& op) {
  return tensor_type_of_rank(known_rank(op.arg(1).type()), tensor_dtype(op.arg(1).type()));
}
Type infer_masked_fill(const OpCall& op) {
  if (!op.dtype(1).is_bool()) op.fail("the mask has {}, expected bool", to_string(op.dtype(1)));
  return tensor_type(broadcast_shapes(op, op.shape(0), op.shape(1)), op.dtype(0));
}

PrimFuncRef lower_identity(const OpCall& op) {
  ComputeBuilder b;
  Buffer x = b.inputs_of(op)[0];
  return b.finish({b.compute("T_identity", op.dtype(0), op.shape(0), [&](Axes i) { return at(x, i); })});
}
OpRow mark(const char* name, const char* doc) {
  return {.name = name,
          .doc = doc,
          .inputs = {{"input", "the tensor"}},
          .pattern = OpPattern::kElementwise,
          .infer = infer_like_first,
          .legalize = lower_identity};
}

}  // namespace

std::vector<OpRow> training_ops() {
  const OpInput output_grad{"output_grad", "gradient of the result"}, predictions{"predictions", "[N, C, ...] or [C]"},
      targets{"targets", "a class for each row"}, weights{"weights", "[C]", OpInput::Arity::kOptional},
      data{"data", "the tensor"};
  const std::vector<OpAttr> pool = with_like(op_attrs<PoolAttrs<2>>(), "out_layout", "layout");
  return {
      {.name = "relax.nn.cross_entropy_with_logits",
       .doc = "-sum(predictions * labels) / N",
       .inputs = {{"predictions", "logits"}, {"labels", "probabilities"}},
       .infer = infer_cross_entropy},
      {.name = "relax.nn.nll_loss",
       .doc = "-weights[target] * predictions[target] of each row, reduced",
       .inputs = {predictions, targets, weights},
       .attrs = with_choices(op_attrs<LossAttrs>(), "reduction", {"none", "sum", "mean"}),
       .infer = [](const OpCall& op) { return infer_loss(op, 0); }},
      {.name = "relax.nn.dropout",
       .doc = "the tensor with elements dropped at a rate and the rest scaled, and the mask",
       .inputs = {data},
       .attrs = op_attrs<DropoutAttrs>(),
       .infer = infer_dropout,
       .infer_partial = infer_unknown},
      {.name = "relax.masked_fill",
       .doc = "value where the mask holds, else x",
       .inputs = {{"x", "the tensor"}, {"mask", "bool tensor"}},
       .attrs = {float_attr("value", 0.0)},
       .infer = infer_masked_fill},
      mark("relax.grad.no_grad", "x, constant for differentiation"),
      mark("relax.grad.start_checkpoint", "x, where a stage begins whose values are computed again going backward"),
      mark("relax.grad.end_checkpoint", "x, where that stage ends"),
      {.name = "relax.grad.nll_loss_backward",
       .doc = "gradient of nll_loss with respect to the predictions",
       .inputs = {output_grad, predictions, targets, weights},
       .attrs = with_choices(op_attrs<LossAttrs>(), "reduction", {"none", "sum", "mean"}),
       .infer = infer_nll_loss_backward,
       .infer_partial = infer_partial_like_second},
      {.name = "relax.grad.max_pool2d_backward",
       .doc = "gradient of max_pool2d with respect to the data",
       .inputs = {output_grad, data},
       .attrs = pool,
       .infer = infer_like_second,
       .infer_partial = infer_partial_like_second},
      {.name = "relax.grad.avg_pool2d_backward",
       .doc = "gradient of avg_pool2d with respect to the data",
       .inputs = {output_grad, data},
       .attrs = pool,
       .infer = infer_like_second,
       .infer_partial = infer_partial_like_second},
      {.name = "relax.grad.take_backward",
       .doc = "gradient of take with respect to x",
       .inputs = {output_grad, {"x", "the tensor"}, {"indices", "integers"}},
       .attrs = {int_attr("axis", {})},
       .infer = infer_like_second,
       .infer_partial = infer_partial_like_second},
  };
}

}  // namespace relaxc
