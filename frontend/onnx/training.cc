// Losses and steps of optimizers.
#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

namespace {

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

// ---- Steps of optimizers, as ONNX's preview of training defines them

// The inputs are the learning rate, the number of steps so far, and then for all variables their values, for all their
// gradients, and so on. The outputs are lists in the same way.
struct Step {
  Node& n;
  Expr rate, count;
  std::vector<Expr> lists;  // of one variable: its value, gradient, ...
  DType dtype;

  Expr number(double value) const { return n.scalar(value, dtype); }
  // The gradient of the value with L2 regularization.
  Expr gradient() const { return n.add(n.scaled(lists[0], n.attr_float("norm_coefficient", 0)), lists[1]); }
  Expr where_later(const Expr& later, const Expr& first) const {
    return n.op("where", {n.op("greater", {count, number(0)}), later, first});
  }
};
Outputs for_each_variable(Node& n, size_t lists, std::vector<Expr> (*step)(const Step&)) {
  size_t variables = (n.inputs() - 2) / lists;
  if (variables * lists + 2 != n.inputs()) n.fail("{} inputs, expected 2 and {} for each variable", n.inputs(), lists);
  std::vector<Outputs> results;
  for (size_t v = 0; v < variables; ++v) {
    DType dtype = n.dtype(2 + v);
    auto scalar = [&](size_t i) { return n.cast(n.reshape(n.tensor(i), {}), dtype); };
    Step one{n, scalar(0), scalar(1), {}, dtype};
    for (size_t k = 0; k < lists; ++k) one.lists.push_back(n.tensor(2 + k * variables + v));
    results.push_back(map_each(step(one), [&](const Expr& value) { return n.of(value); }));
  }
  Outputs outputs;
  for (size_t k = 0; k + 1 < lists; ++k) {
    for (const Outputs& of_variable : results) outputs.push_back(of_variable[k]);
  }
  return outputs;
}
std::vector<Expr> adagrad_step(const Step& s) {
  Node& n = s.n;
  Expr decay = n.add(n.scaled(s.count, n.attr_float("decay_factor", 0)), s.number(1));
  Expr gradient = s.gradient(), squares = n.add(s.lists[2], n.op("square", {gradient}));
  Expr root = n.add(n.op("sqrt", {squares}), s.number(n.attr_float("epsilon", 1e-6)));
  return {n.sub(s.lists[0], n.mul(n.div(s.rate, decay), n.div(gradient, root))), squares};
}
std::vector<Expr> adam_step(const Step& s) {
  Node& n = s.n;
  double alpha = n.attr_float("alpha", 0.9), beta = n.attr_float("beta", 0.999);
  auto averaged = [&](const Expr& old, const Expr& value, double keep) {
    return n.add(n.scaled(old, keep), n.scaled(value, 1 - keep));
  };
  auto missing = [&](double keep) { return n.sub(s.number(1), n.op("power", {s.number(keep), s.count})); };
  Expr gradient = s.gradient(), momentum = averaged(s.lists[2], gradient, alpha);
  Expr squares = averaged(s.lists[3], n.op("square", {gradient}), beta);
  Expr root = n.add(n.op("sqrt", {squares}), s.number(n.attr_float("epsilon", 1e-6)));
  Expr corrected = n.mul(s.rate, n.div(n.op("sqrt", {missing(beta)}), missing(alpha)));
  Expr value = n.sub(s.lists[0], n.mul(s.where_later(corrected, s.rate), n.div(momentum, root)));
  return {n.scaled(value, 1 - n.attr_float("norm_coefficient_post", 0)), momentum, squares};
}
std::vector<Expr> momentum_step(const Step& s) {
  Node& n = s.n;
  std::string mode = n.attr_string("mode", "");
  if (mode != "standard" && mode != "nesterov") n.fail("mode is '{}', expected standard or nesterov", mode);
  double alpha = n.attr_float("alpha", 0);
  Expr gradient = s.gradient(), factor = s.where_later(s.number(n.attr_float("beta", 0)), s.number(1));
  Expr momentum = n.add(n.scaled(s.lists[2], alpha), n.mul(factor, gradient));
  Expr change = mode == "standard" ? momentum : n.add(gradient, n.scaled(momentum, alpha));
  return {n.sub(s.lists[0], n.mul(s.rate, change)), momentum};
}
Outputs adagrad(Node& n) { return for_each_variable(n, 3, adagrad_step); }
Outputs adam(Node& n) { return for_each_variable(n, 4, adam_step); }
Outputs momentum(Node& n) { return for_each_variable(n, 3, momentum_step); }

}  // namespace

std::vector<ConverterRow> training_converters() {
  std::vector<ConverterRow> rows =
      in_domain("ai.onnx.preview.training",
                {
                    {"Adagrad", 1, 3, kAny, adagrad, "decay_factor epsilon norm_coefficient"},
                    {"Adam", 1, 3, kAny, adam, "alpha beta epsilon norm_coefficient norm_coefficient_post"},
                    {"Momentum", 1, 3, kAny, momentum, "alpha beta mode norm_coefficient"},
                });
  rows.push_back({"NegativeLogLikelihoodLoss", 12, 2, 3, negative_log_likelihood, "ignore_index reduction"});
  rows.push_back({"SoftmaxCrossEntropyLoss", 12, 2, 3, softmax_cross_entropy, "ignore_index reduction"});
  return rows;
}

}  // namespace relaxc::onnx_import
