// Operators that only training needs: losses, dropout, marks for differentiation, and the backward operators.
#include "ir/builder.h"
#include "ops/attributes.h"
#include "ops/fold.h"
#include "ops/layouts.h"
#include "ops/ops.h"
#include "ops/reference.h"

namespace relaxc {

namespace {

// The result is the gradient of argument 1 and has its type.
Type infer_like_second(const OpCall& op) {
  op.shape(0);
  return tensor_type(op.shape(1), op.dtype(1));
}
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
// The operands of a loss, which start at argument `first`.
struct Loss {
  Buffer predictions, targets;
  std::optional<Buffer> weights;
  int64_t class_axis;
  int64_t ignored;
  DType dtype;

  Loss(const OpCall& op, Inputs x, size_t first)
      : predictions(x[first]),
        targets(x[first + 1]),
        class_axis(op.rank(first) == 1 ? 0 : 1),
        ignored(op.attrs<LossAttrs>().ignore_index),
        dtype(accumulation_dtype(op.dtype(first))) {
    if (x.size() > first + 2) weights = x[first + 2];
  }
  const Expr& classes() const { return buffer_type(predictions).shape[class_axis]; }
  Expr target(Axes i) const { return cast_to(at(targets, i), kInt64); }
  // Returns a value that is read at a class, which is in range, and 0 for a target that is ignored.
  Expr unless_ignored(Axes i, const std::function<Expr(const Expr& target)>& value) const {
    Expr index = target(i), clamped = max(min(index, classes() - 1), int_imm(0));
    return if_then_else(not_equal(index, int_imm(ignored)) && has_elements({classes()}), value(clamped), zero(dtype));
  }
  Expr weight(const Expr& target) const { return weights ? cast_to(load(*weights, {target}), dtype) : one(dtype); }
  Expr weight_at(Axes i) const {
    return unless_ignored(i, [&](const Expr& target) { return weight(target); });
  }
  Expr loss_at(Axes i) const {
    return unless_ignored(i, [&](const Expr& target) {
      Expr value = cast_to(load(predictions, with_new_item(i, class_axis, target)), dtype);
      return zero(dtype) - weight(target) * value;
    });
  }
  Buffer sum(ComputeBuilder& b, const char* name, const std::function<Expr(Axes)>& value) const {
    return fold(b, name, dtype, over_axes(shape(), int_range(0, std::ssize(shape()))), zero(dtype), combine_sum,
                [&](Axes, Axes element) { return value(element); });
  }
  const std::vector<Expr>& shape() const { return buffer_type(targets).shape; }
  // Makes the stage that ends the run with an error for a target that is neither a class nor ignored.
  void check_targets(ComputeBuilder& b, const OpCall& op) const {
    b.extern_block(
        "check", loop_nest(shape(), [&](Axes i) {
          Expr index = target(i), is_class = int_imm(0) <= index && index < classes();
          return make(Assert{is_class || equal(index, int_imm(ignored)), {op.name() + ": a target is out of range"}});
        }));
  }
};
PrimFuncRef lower_loss(const OpCall& op) {
  auto [b, x] = OpProgram(op);
  Loss loss(op, x, 0);
  loss.check_targets(b, op);
  std::string reduction = op.attrs<LossAttrs>().reduction;
  if (reduction == "none")
    return b.finish({b.compute("T_nll_loss", op.dtype(0), loss.shape(),
                               [&](Axes i) { return cast_to(loss.loss_at(i), op.dtype(0)); })});
  Buffer result = loss.sum(b, "T_nll_loss_sum", [&](Axes i) { return loss.loss_at(i); });
  if (reduction == "mean") {
    Buffer total = loss.sum(b, "T_weights", [&](Axes i) { return loss.weight_at(i); }), sum = result;
    result = b.compute("T_nll_loss_mean", loss.dtype, {},
                       [&](Axes i) { return binary(BinaryOp::kDiv, at(sum, i), at(total, i)); });
  }
  return b.finish({as_dtype(b, result, op.dtype(0), "T_nll_loss")});
}
// -weight * gradient at the target of each row, 0 elsewhere.
PrimFuncRef lower_loss_backward(const OpCall& op) {
  auto [b, x] = OpProgram(op);
  Loss loss(op, x, 1);
  loss.check_targets(b, op);
  std::string reduction = op.attrs<LossAttrs>().reduction;
  std::optional<Buffer> total;
  if (reduction == "mean") total = loss.sum(b, "T_weights", [&](Axes i) { return loss.weight_at(i); });
  return b.finish({b.compute("T_nll_loss_backward", op.dtype(1), op.shape(1), [&](Axes i) {
    std::vector<Expr> row = without_item(i, loss.class_axis);
    Expr gradient = cast_to(at(x[0], op.rank(0) == 0 ? std::vector<Expr>() : row), loss.dtype);
    if (total) gradient = binary(BinaryOp::kDiv, gradient, load(*total, {}));
    Expr here = equal(i[loss.class_axis], loss.target(row));
    return cast_to(if_then_else(here, zero(loss.dtype) - loss.weight_at(row) * gradient, zero(loss.dtype)),
                   op.dtype(1));
  })});
}

// The sum over all elements, divided by the number of rows where there are several.
Expr decompose_cross_entropy(const OpCall& op, Builder& b) {
  Expr sum = b.op("sum", {b.op("multiply", {op.arg(0), op.arg(1)})}, ReduceAttrs());
  Expr negative = b.op("negative", {sum});
  if (op.rank(0) < 2) return negative;
  return b.op("divide", {negative, b.op("scalar_to_tensor", {op.shape(0)[0]}, DTypeAttrs{op.dtype(0)})});
}
// A compiled module is for inference: nothing is dropped.
Expr decompose_dropout(const OpCall& op, Builder& b) {
  return tuple({op.arg(0), b.op("ones_like", {op.arg(0)}, DTypeAttrs())});
}
Expr masked_fill_element(const OpCall& op, Inputs x, Axes i) {
  return select(load_broadcast(x[1], i), scalar_imm(op.attrs<MaskedFillAttrs>().value, op.dtype(0)),
                load_broadcast(x[0], i));
}

// ---- Gradients

// Adds the gradients of the elements of indices that name a slice, in their order.
PrimFuncRef lower_take_backward(const OpCall& op) {
  auto [b, x] = OpProgram(op);
  auto given = op.attrs<OptionalAxisAttrs>().axis;
  const int64_t axis = given ? normalize_axis(op, *given, op.rank(1)) : 0;
  const Expr dim = given ? op.shape(1)[axis] : simplify(product(op.shape(1)));
  DType dtype = accumulation_dtype(op.dtype(1));
  Buffer sum = b.compute("T_take_backward", dtype, op.shape(1), [&](Axes) { return zero(dtype); });
  Stmt updates = loop_nest(op.shape(0), [&](Axes i) {
    auto first = i.begin() + axis, end = first + op.rank(2);
    Expr given_index = cast_to(load(x[2], {first, end}), kInt64);
    VarRef index = make_dim("index");
    std::vector<Expr> target = unflatten_index(index, op.shape(1));
    if (given) target = followed_by(followed_by({i.begin(), first}, {index}), {end, i.end()});
    return seq({make(Bind{index, select(given_index < int_imm(0), given_index + dim, given_index)}),
                make(Assert{int_imm(0) <= index && index < dim, {op.name() + ": an index is out of range"}}),
                store(sum, load(sum, target) + cast_to(at(x[0], i), dtype), target)});
  });
  b.extern_block("update", updates);
  return b.finish({as_dtype(b, sum, op.dtype(1), "T_take_backward_cast")});
}
Type infer_take_backward(const OpCall& op) {
  if (!op.dtype(2).is_integral()) op.fail("indices have {}, expected integers", to_string(op.dtype(2)));
  auto given = op.attrs<OptionalAxisAttrs>().axis;
  std::vector<Expr> expected = op.shape(2);
  if (given) {
    auto axis = op.shape(1).begin() + normalize_axis(op, *given, op.rank(1));
    expected.insert(expected.begin(), op.shape(1).begin(), axis);
    expected.insert(expected.end(), axis + 1, op.shape(1).end());
  }
  if (std::ssize(expected) != op.rank(0)) op.fail("output_grad has rank {}, expected {}", op.rank(0), expected.size());
  require_same_dims(op, op.shape(0), expected, "of output_grad");
  return infer_like_second(op);
}
std::optional<IndexOperand> indexed_by_take_backward(const OpCall& op) {
  const std::vector<Expr>* shape = known_shape(op.arg(1).type());
  if (!shape) return std::nullopt;
  auto axis = op.attrs<OptionalAxisAttrs>().axis;
  Expr dim = axis ? (*shape)[normalize_axis(op, *axis, op.rank(1))] : simplify(product(*shape));
  return IndexOperand{2, {dim}, false};
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
                     .layouts = same_layout,
                     .reference = [](const ReferenceCall& c) { return c.x; }},
                    identity_element, OpPattern::kElementwise, "T_identity");
}
// Makes the row of the gradient of an operator with respect to its argument `of`, which is argument 1 here.
OpRow gradient(const char* op, const char* of, std::vector<OpInput> inputs, std::vector<OpAttr> attrs,
               Type (*infer)(const OpCall&), PrimFuncRef (*lower)(const OpCall&),
               std::optional<IndexOperand> (*indexed)(const OpCall&) = nullptr) {
  OpRow row{.name = fmt::format("relax.grad.{}_backward", op),
            .doc = fmt::format("gradient of {} with respect to {}", op, of),
            .inputs = std::move(inputs),
            .attrs = std::move(attrs),
            .infer = infer,
            .infer_partial = infer_partial_like_second,
            .legalize = lower};
  if (indexed) row.indexed = indexed;
  return row;
}
Type infer_loss_backward(const OpCall& op) {
  Type loss = infer_loss(op, 1);
  std::string reduction = op.attrs<LossAttrs>().reduction;
  if (op.rank(0) != known_rank(loss)) op.fail("output_grad has rank {}, expected {}", op.rank(0), known_rank(loss));
  require_same_dims(op, op.shape(0), *known_shape(loss), "of output_grad and the loss");
  return infer_like_second(op);
}

// ---- References

// The sum of -weight * prediction over the rows that are not ignored, and of the weights; or each of the former.
reference::Tensors losses(const ReferenceCall& c) {
  LossAttrs attrs = c.attrs<LossAttrs>();
  const Tensor &predictions = c.x[0], &targets = c.x[1];
  double sum = 0, total = 0;
  Tensor rows = reference::tensor_of(targets.shape(), predictions.dtype(), [&](reference::Index i) {
    auto target = static_cast<int64_t>(reference::element(targets, i));
    if (target == attrs.ignore_index) return 0.0;
    double weight = c.x.size() > 2 ? c.x[2].as_double(target) : 1;
    i.insert(i.begin() + (predictions.ndim() > 1), target);
    double loss = -weight * reference::element(predictions, i);
    sum += loss;
    total += weight;
    return loss;
  });
  if (attrs.reduction == "none") return {rows};
  double result = attrs.reduction == "sum" ? sum : sum / total;
  return {reference::tensor_of({}, predictions.dtype(), [&](const reference::Index&) { return result; })};
}
reference::Tensors masked(const ReferenceCall& c) {
  return {reference::tensor_of(c.x[0].shape(), c.x[0].dtype(), [&](const reference::Index& i) {
    bool holds = reference::element(c.x[1], reference::broadcast_index(i, c.x[1].shape())) != 0;
    return holds ? c.attrs<MaskedFillAttrs>().value : reference::element(c.x[0], i);
  })};
}

}  // namespace

std::vector<OpRow> training_ops() {
  const OpInput output_grad{"output_grad", "gradient of the result"}, predictions{"predictions", "[N, C, ...] or [C]"},
      targets{"targets", "a class for each row"}, weights{"weights", "[C]", OpInput::Arity::kOptional},
      data{"data", "the tensor"};
  const std::vector<OpAttr> loss = with_choices(op_attrs<LossAttrs>(), "reduction", {"none", "sum", "mean"});
  return {
      {.name = "relax.nn.cross_entropy_with_logits",
       .doc = "-sum(predictions * labels) / N",
       .inputs = {{"predictions", "logits"}, {"labels", "probabilities"}},
       .infer = infer_cross_entropy,
       .decompose = decompose_cross_entropy},
      {.name = "relax.nn.nll_loss",
       .doc = "-weights[target] * predictions[target] of each row, reduced",
       .inputs = {predictions, targets, weights},
       .attrs = loss,
       .infer = [](const OpCall& op) { return infer_loss(op, 0); },
       .legalize = lower_loss,
       .reference = losses},
      {.name = "relax.nn.dropout",
       .doc = "the tensor and a mask of ones, as at inference, where nothing is dropped",
       .inputs = {data},
       .attrs = op_attrs<DropoutAttrs>(),
       .infer = infer_dropout,
       .infer_partial = infer_unknown,
       .decompose = decompose_dropout},
      by_element({.name = "relax.masked_fill",
                  .doc = "value where the mask holds, else x",
                  .inputs = {{"x", "the tensor"}, {"mask", "bool tensor"}},
                  .attrs = op_attrs<MaskedFillAttrs>(),
                  .infer = infer_masked_fill,
                  .reference = masked},
                 masked_fill_element, OpPattern::kBroadcast),
      mark("relax.grad.no_grad", "x, constant for differentiation"),
      mark("relax.grad.start_checkpoint", "x, where a stage begins whose values are computed again going backward"),
      mark("relax.grad.end_checkpoint", "x, where that stage ends"),
      gradient("nll_loss", "the predictions", {output_grad, predictions, targets, weights}, loss, infer_loss_backward,
               lower_loss_backward),
      gradient("take", "x", {output_grad, {"x", "the tensor"}, {"indices", "integers"}}, op_attrs<OptionalAxisAttrs>(),
               infer_take_backward, lower_take_backward, indexed_by_take_backward),
  };
}

}  // namespace relaxc
