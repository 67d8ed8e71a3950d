// Normalizations written with other operators, by which they are differentiated. Statistics of 16-bit floats are
// computed in float32.
#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/fold.h"
#include "ops/gradient.h"

namespace relaxc::gradients {

namespace {

using T = const Term&;

struct Normalization {
  const OpCall& op;
  Builder& b;
  DType wide = accumulation_dtype(op.dtype(0));

  Term arg(size_t i) const { return Term{op.arg(i), &b}.as(wide); }
  // Returns a parameter with dims of 1 in the place of the axes that it does not vary along.
  Term parameter(size_t i, const std::vector<int64_t>& axes) const {
    std::vector<Expr> dims(op.shape(0).size(), int_imm(1));
    for (size_t k = 0; k < axes.size(); ++k) dims[axes[k]] = op.shape(i)[k];
    // The axes need not be in order.
    std::vector<int64_t> order = int_range(0, std::ssize(axes));
    std::ranges::sort(order, {}, [&](int64_t k) { return axes[k]; });
    return arg(i).permuted(order).reshaped(dims);
  }
  static Term normalized(T x, T mean, T variance, double epsilon) {
    return (x - mean) / (variance + epsilon).op("sqrt");
  }
  static Term normalized(T x, const std::vector<int64_t>& axes, double epsilon) {
    Term mean = x.over("mean", axes);
    return normalized(x, mean, (x - mean).op("square").over("mean", axes), epsilon);
  }
  // Returns x * gamma + beta, arguments 1 and 2, as far as the call has them.
  template <class A>
  Expr scaled(Term x, const A& attrs, const std::vector<int64_t>& axes) const {
    if (attrs.scale) x = x * parameter(1, axes);
    if (attrs.center) x = x + parameter(2, axes);
    return x.as(op.dtype(0)).expr;
  }
};

Expr layer_norm(const OpCall& op, Builder& b) {
  const Normalization n{op, b};
  auto attrs = op.attrs<LayerNormAttrs>();
  std::vector<int64_t> axes = normalize_axes(op, attrs.axes, op.rank(0));
  return n.scaled(n.normalized(n.arg(0), axes, attrs.epsilon), attrs, axes);
}
Expr rms_norm(const OpCall& op, Builder& b) {
  const Normalization n{op, b};
  auto attrs = op.attrs<RmsNormAttrs>();
  std::vector<int64_t> axes = normalize_axes(op, attrs.axes, op.rank(0));
  Term x = n.arg(0), root = (x.op("square").over("mean", axes) + attrs.epsilon).op("sqrt");
  return (x / root * n.parameter(1, axes)).as(op.dtype(0)).expr;
}
Expr instance_norm(const OpCall& op, Builder& b) {
  const Normalization n{op, b};
  auto attrs = op.attrs<InstanceNormAttrs>();
  std::vector<int64_t> axes = normalize_axes(op, attrs.axes, op.rank(0));
  return n.scaled(n.normalized(n.arg(0), axes, attrs.epsilon), attrs,
                  {normalize_axis(op, attrs.channel_axis, op.rank(0))});
}
// Splits the channel axis into groups, over each of which the statistics are taken.
Expr group_norm(const OpCall& op, Builder& b) {
  const Normalization n{op, b};
  auto attrs = op.attrs<GroupNormAttrs>();
  const int64_t channel = normalize_axis(op, attrs.channel_axis, op.rank(0));
  std::vector<Expr> split = op.shape(0);
  split[channel] = simplify(floor_div(split[channel], attrs.num_groups));
  split = with_new_item(split, channel, int_imm(attrs.num_groups));
  std::vector<int64_t> axes = {channel + 1};
  for (int64_t axis : normalize_axes(op, attrs.axes, op.rank(0))) axes.push_back(axis > channel ? axis + 1 : axis);
  Term x = n.normalized(n.arg(0).reshaped(split), axes, attrs.epsilon);
  return n.scaled(x.reshaped(op.shape(0)), attrs, {channel});
}
Expr batch_norm(const OpCall& op, Builder& b) {
  const Normalization n{op, b};
  auto attrs = op.attrs<BatchNormAttrs>();
  const int64_t channel = normalize_axis(op, attrs.axis, op.rank(0));
  if (!attrs.training) {
    Term x = n.normalized(n.arg(0), n.parameter(3, {channel}), n.parameter(4, {channel}), attrs.epsilon);
    return tuple({n.scaled(x, attrs, {channel}), op.arg(3), op.arg(4)});
  }
  std::vector<int64_t> axes = int_range(0, op.rank(0));
  std::erase(axes, channel);
  Term x = n.arg(0), mean = x.over("mean", axes), variance = (x - mean).op("square").over("mean", axes);
  auto next = [&](size_t i, T current) {
    return (n.arg(i) * (1 - attrs.momentum) + current.reshaped(op.shape(i)) * attrs.momentum).as(op.dtype(i)).expr;
  };
  Expr result = n.scaled(n.normalized(x, mean, variance, attrs.epsilon), attrs, {channel});
  return tuple({result, next(3, mean), next(4, variance)});
}
// The sum over neighbouring channels is that of slices of the padded squares.
Expr lrn(const OpCall& op, Builder& b) {
  auto attrs = op.attrs<LrnAttrs>();
  const int64_t axis = normalize_axis(op, attrs.axis, op.rank(0));
  const Normalization n{op, b};
  Term x = n.arg(0);
  PadAttrs pad{.pad_width = std::vector<int64_t>(2 * op.shape(0).size(), 0)};
  pad.pad_width[2 * axis] = (attrs.size - 1) / 2;
  pad.pad_width[2 * axis + 1] = attrs.size - 1 - (attrs.size - 1) / 2;
  Term squares = x.op("square").op("nn.pad", pad);
  auto part = [&](int64_t k) {
    std::vector<Expr> bounds = {int_imm(axis), int_imm(k), simplify(x.dim(axis) + k)};
    return Term{b.op("strided_slice", {squares.expr, tuple({bounds[0]}), tuple({bounds[1]}), tuple({bounds[2]})}), &b};
  };
  Term sum = part(0);
  for (int64_t k = 1; k < attrs.size; ++k) sum = sum + part(k);
  Term base = sum * (attrs.alpha / static_cast<double>(attrs.size)) + attrs.bias;
  return (x / base.op("power", x.number(attrs.beta))).as(op.dtype(0)).expr;
}

}  // namespace

std::vector<GradientRow> normalization_gradients() {
  return {
      {"nn.batch_norm", written(batch_norm)},       {"nn.layer_norm", written(layer_norm)},
      {"nn.rms_norm", written(rms_norm)},           {"nn.group_norm", written(group_norm)},
      {"nn.instance_norm", written(instance_norm)}, {"nn.lrn", written(lrn)},
  };
}

}  // namespace relaxc::gradients
