// What training needs besides the operators of inference: losses, dropout, marks for differentiation, and the backward
// operators that derivatives are made of.
#include "ops/ops.h"
#include "ops/window.h"

namespace relaxc {

namespace {

struct LossAttrs {
  std::string reduction = "mean";
  int64_t ignore_index = -100;
  static constexpr auto fields() {
    return std::tuple(field("reduction", &LossAttrs::reduction), field("ignore_index", &LossAttrs::ignore_index));
  }
};

// predictions [N, C, d...] or [C], targets [N, d...] or a scalar, weights [C]; they start at argument `first`.
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
  double rate = 0.5;
  const AttrValue* given = op.call.attrs.find("rate");
  if (given && from_attr(*given, rate) && !(rate >= 0 && rate < 1)) op.fail("rate is {}, expected 0 <= rate < 1", rate);
  Type same = infer_like_first(op);
  return tuple_type({same, same});
}
// The gradient of argument 1 has its type.
Type infer_like_second(const OpCall& op) {
  op.shape(0);
  return tensor_type(op.shape(1), op.dtype(1));
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
  return {name, doc, {{"input", "the tensor"}}, {}, OpPattern::kElementwise, true, infer_like_first, lower_identity};
}

}  // namespace

std::vector<OpRow> training_ops() {
  const OpInput output_grad{"output_grad", "gradient of the result"}, predictions{"predictions", "[N, C, ...] or [C]"},
      targets{"targets", "a class for each row"}, weights{"weights", "[C]", OpInput::Arity::kOptional},
      data{"data", "the tensor"};
  std::vector<OpAttr> pool = {ints_attr("pool_size", AttrList{1, 1}),
                              ints_attr("strides", AttrList{1, 1}),
                              ints_attr("padding", AttrList{0, 0, 0, 0}),
                              ints_attr("dilation", AttrList{1, 1}),
                              bool_attr("ceil_mode", false),
                              bool_attr("count_include_pad", false),
                              string_attr("layout", "NCHW"),
                              string_attr("out_layout", {})};
  pool = with_like(std::move(pool), "out_layout", "layout");
  return {
      not_lowered("nn.cross_entropy_with_logits", "-sum(predictions * labels) / N",
                  {{"predictions", "logits"}, {"labels", "probabilities"}}, {}, infer_cross_entropy),
      not_lowered("nn.nll_loss", "-weights[target] * predictions[target] of each row, reduced",
                  {predictions, targets, weights},
                  with_choices(op_attrs<LossAttrs>(), "reduction", {"none", "sum", "mean"}),
                  [](const OpCall& op) { return infer_loss(op, 0); }),
      not_lowered("nn.dropout", "the tensor with elements dropped at a rate and the rest scaled, and the mask", {data},
                  {float_attr("rate", 0.5)}, infer_dropout),
      not_lowered("masked_fill", "value where the mask holds, else x", {{"x", "the tensor"}, {"mask", "bool tensor"}},
                  {float_attr("value", 0.0)}, infer_masked_fill),
      mark("relax.grad.no_grad", "x, constant for differentiation"),
      mark("relax.grad.start_checkpoint", "x, where a stage begins whose values are computed again going backward"),
      mark("relax.grad.end_checkpoint", "x, where that stage ends"),
      not_lowered("grad.nll_loss_backward", "gradient of nll_loss with respect to the predictions",
                  {output_grad, predictions, targets, weights},
                  with_choices(op_attrs<LossAttrs>(), "reduction", {"none", "sum", "mean"}), infer_nll_loss_backward),
      not_lowered("grad.max_pool2d_backward", "gradient of max_pool2d with respect to the data", {output_grad, data},
                  pool, infer_like_second),
      not_lowered("grad.avg_pool2d_backward", "gradient of avg_pool2d with respect to the data", {output_grad, data},
                  pool, infer_like_second),
      not_lowered("grad.take_backward", "gradient of take with respect to x",
                  {output_grad, {"x", "the tensor"}, {"indices", "integers"}}, {int_attr("axis", {})},
                  infer_like_second),
  };
}

}  // namespace relaxc
