// Dropout and losses.
#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

namespace {

Outputs dropout(Node& n) {
  bool training = n.opset() < 7 && n.has_attr("is_test") && n.attr_int("is_test", 0) == 0;
  if (n.has(2)) {
    auto known = n.constant(2);
    auto ratio = n.has(1) ? n.constant(1) : std::nullopt;
    bool no_drop = ratio && ratio->size() == 1 && ratio->as_double(0) == 0;
    training = !no_drop && (!known || known->size() != 1 || known->as_int(0) != 0);
  }
  if (training) n.unsupported("training_mode; export the model for inference");
  Expr x = n.tensor(0);
  Outputs outputs = {n.value(0)};
  if (n.has_output(1)) {
    DType dtype = n.opset() < 10 ? n.dtype(0) : kBool;
    outputs.push_back(n.of(n.op("full", {shape_expr(n.shape_of(x)), n.scalar(1, dtype)})));
  }
  return outputs;
}

// ---- Losses, as the functions that ONNX defines them by

// Returns the negative log likelihood of [N, C, d...] log probabilities at the [N, d...] classes.
Expr nll(Node& n, const Expr& log_probabilities, const Expr& target, const std::optional<Expr>& weight) {
  std::string reduction = n.attr_string("reduction", "mean");
  DType dtype = n.dtype_of_tensor(log_probabilities);
  Expr classes = n.cast(target, kInt64);
  std::optional<Expr> ignored;
  if (n.has_attr("ignore_index")) {
    Expr index = n.scalar(static_cast<double>(n.attr_int("ignore_index", 0)), kInt64);
    ignored = n.op("equal", {classes, index});
    classes = n.op("where", {*ignored, n.scalar(0, kInt64), classes});
  }
  const AxisListAttrs axis{std::vector<int64_t>{1}};
  Expr expanded = n.op("expand_dims", {classes}, axis);
  Expr picked = n.op("squeeze", {n.op("gather_elements", {log_probabilities, expanded}, AxisAttrs{1})}, axis);
  Expr loss = n.op("negative", {picked});
  std::optional<Expr> factor;
  if (weight) factor = n.op("take", {*weight, classes}, TakeAttrs{.axis = 0});
  if (ignored) factor = n.op("where", {*ignored, n.scalar(0, dtype), factor.value_or(n.scalar(1, dtype))});
  if (factor) loss = n.mul(loss, *factor);
  if (reduction == "none") return loss;
  std::vector<int64_t> all = int_range(0, std::ssize(n.shape_of(loss)));
  if (reduction == "sum") return n.reduce("sum", loss, all, false);
  if (reduction != "mean") n.fail("reduction is '{}', expected none, sum or mean", reduction);
  if (!factor) return n.reduce("mean", loss, all, false);
  return n.div(n.reduce("sum", loss, all, false), n.reduce("sum", *factor, all, false));
}

Expr negative_log_likelihood(Node& n) { return nll(n, n.tensor(0), n.tensor(1), n.optional_tensor(2)); }
Outputs softmax_cross_entropy(Node& n) {
  Expr log_probabilities = n.op("nn.log_softmax", {n.tensor(0)}, LastAxisAttrs{1});
  return {n.of(nll(n, log_probabilities, n.tensor(1), n.optional_tensor(2))), n.of(log_probabilities)};
}

}  // namespace

std::vector<ConverterRow> training_converters() {
  return {
      {"Dropout", 1, 1, 1, dropout, "consumed_inputs is_test ratio seed"},
      {"Dropout", 12, 1, 3, dropout, "seed"},
      {"NegativeLogLikelihoodLoss", 12, 2, 3, negative_log_likelihood, "ignore_index reduction"},
      {"SoftmaxCrossEntropyLoss", 12, 2, 3, softmax_cross_entropy, "ignore_index reduction"},
  };
}

}  // namespace relaxc::onnx_import
