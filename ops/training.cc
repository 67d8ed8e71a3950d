// Operators that only training needs: losses, dropout, marks for differentiation, and the backward operators.
#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace relaxc {

namespace {

// predictions are [N, C, d...] or [C], targets [N, d...] or a scalar, weights [C]. They start at argument `first`.
Type infer_loss(const OpCall& op, size_t first) {
  const std::vector<Expr>&predictions = op.shape(first), &targets = op.shape(first + 1);
  if (predictions.empty()) op.fail("predictions are a scalar, expected at least rank 1");
  if (!op.dtype(first + 1).is_integral()) op.fail("targets of {}, expected integers", to_string(op.dtype(first + 1)));
  const int64_t class_axis = predictions.size() == 1 ? 0 : 1;
  std::vector<Expr> expected = without_item(predictions, class_axis);
  if (expected.size() != targets.size()) op.fail("targets have rank {}, expected {}", targets.size(), expected.size());
  require_same_dims(op, expected, targets, "of predictions and targets");
  if (op.size() > first + 2) {
    require_rank(op, first + 2, 1);
    require_same_dtype(op, first, first + 2);
    op.require_equal(op.shape(first + 2)[0], predictions[class_axis], "numbers of weights and classes");
  }
  std::string reduction = op.attrs<LossAttrs>().reduction;
  return tensor_type(reduction == "none" ? targets : std::vector<Expr>(), op.dtype(first));
}
Type infer_cross_entropy(const OpCall& op) {
  require_rank(op, 1, op.rank(0));
  require_same_dtype(op, 0, 1);
  require_same_dims(op, op.shape(0), op.shape(1), "of predictions and labels");
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
Type infer_partial_like_second(const OpCall& op) { return infer_same_rank(op, 1, tensor_dtype(op.arg(1).type())); }
Type infer_masked_fill(const OpCall& op) {
  if (!op.dtype(1).is_bool()) op.fail("the mask has {}, expected bool", to_string(op.dtype(1)));
  return tensor_type(broadcast_shapes(op, op.shape(0), op.shape(1)), op.dtype(0));
}

Expr identity_element(const OpCall&, Inputs x, Axes i) { return at(x[0], i); }
OpRow mark(const char* name, const char* doc) {
  return by_element({.name = name,
                     .doc = doc,
                     .inputs = {{"input", "the tensor"}},
                     .infer = infer_like_first,
                     .reference = [](const ReferenceCall& c) { return c.x; }},
                    identity_element, OpPattern::kElementwise, "T_identity");
}
// Makes the row of the gradient of an operator with respect to its argument `of`, which is argument 1 here.
OpRow gradient(const char* op, const char* of, std::vector<OpInput> inputs, std::vector<OpAttr> attrs,
               Type (*infer)(const OpCall&) = infer_like_second) {
  return {.name = fmt::format("relax.grad.{}_backward", op),
          .doc = fmt::format("gradient of {} with respect to {}", op, of),
          .inputs = std::move(inputs),
          .attrs = std::move(attrs),
          .infer = infer,
          .infer_partial = infer_partial_like_second};
}

}  // namespace

std::vector<OpRow> training_ops() {
  const OpInput output_grad{"output_grad", "gradient of the result"}, predictions{"predictions", "[N, C, ...] or [C]"},
      targets{"targets", "a class for each row"}, weights{"weights", "[C]", OpInput::Arity::kOptional},
      data{"data", "the tensor"};
  const std::vector<OpAttr> pool = with_default_from(op_attrs<PoolAttrs<2>>(), "out_layout", "layout"),
                            loss = with_choices(op_attrs<LossAttrs>(), "reduction", {"none", "sum", "mean"});
  return {
      {.name = "relax.nn.cross_entropy_with_logits",
       .doc = "-sum(predictions * labels) / N",
       .inputs = {{"predictions", "logits"}, {"labels", "probabilities"}},
       .infer = infer_cross_entropy},
      {.name = "relax.nn.nll_loss",
       .doc = "-weights[target] * predictions[target] of each row, reduced",
       .inputs = {predictions, targets, weights},
       .attrs = loss,
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
       .attrs = op_attrs<MaskedFillAttrs>(),
       .infer = infer_masked_fill},
      mark("relax.grad.no_grad", "x, constant for differentiation"),
      mark("relax.grad.start_checkpoint", "x, where a stage begins whose values are computed again going backward"),
      mark("relax.grad.end_checkpoint", "x, where that stage ends"),
      gradient("nll_loss", "the predictions", {output_grad, predictions, targets, weights}, loss,
               [](const OpCall& op) {
                 infer_loss(op, 1);
                 return infer_like_second(op);
               }),
      gradient("max_pool2d", "the data", {output_grad, data}, pool),
      gradient("avg_pool2d", "the data", {output_grad, data}, pool),
      gradient("take", "x", {output_grad, {"x", "the tensor"}, {"indices", "integers"}}, op_attrs<OptionalAxisAttrs>()),
  };
}

}  // namespace relaxc
