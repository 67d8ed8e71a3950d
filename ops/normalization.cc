// Normalizations. Statistics are kept in float32 for 16-bit floats; variances are population variances in two passes.
#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/fold.h"
#include "ops/ops.h"

namespace relaxc {

namespace {

Expr inverse_root(const Expr& x, double epsilon) {
  DType dtype = dtype_of(x);
  return binary(BinaryOp::kDiv, one(dtype), intrinsic(ops::kScalarSqrt, {x + scalar_imm(epsilon, dtype)}, dtype));
}

// Computes (x - mean) / sqrt(variance + epsilon) * gamma + beta. Gamma, argument 1, and beta, argument 2, have the dims
// of the parameter axes. `s` says which elements share a mean and a variance.
template <class A>
PrimFuncRef normalize(const OpCall& op, const AxisFold& s, const A& attrs, const std::vector<int64_t>& parameter_axes) {
  auto [b, x] = OpProgram(op);
  DType dtype = accumulation_dtype(op.dtype(0));
  Moments moments = moments_of(b, x[0], dtype, s);
  Buffer inverse = b.compute("inverse_std", dtype, s.result,
                             [&](Axes i) { return inverse_root(at(moments.variance, i), attrs.epsilon); });
  return b.finish({b.compute("T_normalized", op.dtype(0), op.shape(0), [&](Axes i) {
    std::vector<Expr> statistic = s.result_at(i);
    Expr value = (cast_to(at(x[0], i), dtype) - load(moments.mean, statistic)) * load(inverse, statistic);
    if (attrs.scale) value = value * cast_to(load(x[1], items_at(i, parameter_axes)), dtype);
    if (attrs.center) value = value + cast_to(load(x[2], items_at(i, parameter_axes)), dtype);
    return cast_to(value, op.dtype(0));
  })});
}

void check_parameter(const OpCall& op, size_t arg, const std::vector<Expr>& wanted, const char* what) {
  const std::vector<Expr>& shape = op.shape(arg);
  if (shape.size() != wanted.size()) op.fail("{} has rank {}, expected {}", what, shape.size(), wanted.size());
  require_same_dims(op, shape, wanted, fmt::format("of {} and the data's", what));
}

Type infer_batch_norm(const OpCall& op) {
  kFloats.check(op, op.dtype(0));
  int64_t axis = normalize_axis(op, op.attrs<BatchNormAttrs>().axis, op.rank(0));
  const char* names[] = {"", "gamma", "beta", "moving_mean", "moving_var"};
  for (size_t i = 1; i < 5; ++i) check_parameter(op, i, {op.shape(0)[axis]}, names[i]);
  return tuple_type(
      {infer_like_first(op), tensor_type(op.shape(3), op.dtype(3)), tensor_type(op.shape(4), op.dtype(4))});
}
Type infer_partial_batch_norm(const OpCall& op) {
  std::vector<Type> results;
  for (size_t i : {0, 3, 4}) results.push_back(infer_same_rank(op, i, tensor_dtype(op.arg(i).type())));
  return tuple_type(std::move(results));
}
PrimFuncRef lower_batch_norm(const OpCall& op) {
  BatchNormAttrs attrs = op.attrs<BatchNormAttrs>();
  int64_t axis = normalize_axis(op, attrs.axis, op.rank(0));
  auto [b, x] = OpProgram(op);
  DType dtype = accumulation_dtype(op.dtype(0));
  std::vector<Expr> channels = {op.shape(0)[axis]};
  Moments moments{x[3], x[4]};
  if (attrs.training) {
    std::vector<int64_t> others = int_range(0, op.rank(0));
    std::erase(others, axis);
    moments = moments_of(b, x[0], dtype, over_axes(op.shape(0), others));
  }
  Buffer factor = b.compute("factor", dtype, channels, [&](Axes c) {
    Expr inverse = inverse_root(cast_to(at(moments.variance, c), dtype), attrs.epsilon);
    return attrs.scale ? inverse * cast_to(at(x[1], c), dtype) : inverse;
  });
  Buffer out = b.compute("T_batch_norm", op.dtype(0), op.shape(0), [&](Axes i) {
    std::vector<Expr> c = {i[axis]};
    Expr value = (cast_to(at(x[0], i), dtype) - cast_to(at(moments.mean, c), dtype)) * at(factor, c);
    if (attrs.center) value = value + cast_to(at(x[2], c), dtype);
    return cast_to(value, op.dtype(0));
  });
  auto next = [&](const char* name, size_t arg, const Buffer& current) {
    return b.compute(name, op.dtype(arg), channels, [&](Axes c) {
      if (!attrs.training) return at(x[arg], c);
      Expr kept = cast_to(at(x[arg], c), dtype) * scalar_imm(1 - attrs.momentum, dtype);
      return cast_to(kept + at(current, c) * scalar_imm(attrs.momentum, dtype), op.dtype(arg));
    });
  };
  Buffer next_mean = next("T_moving_mean", 3, moments.mean), next_variance = next("T_moving_var", 4, moments.variance);
  return b.finish({out, next_mean, next_variance});
}

// Checks a call whose parameters have the dims of the axes. `parameters` holds their names.
template <class A>
Type infer_over_axes(const OpCall& op, const std::vector<const char*>& parameters) {
  kFloats.check(op, op.dtype(0));
  std::vector<int64_t> axes = normalize_axes(op, op.attrs<A>().axes, op.rank(0));
  for (size_t i = 0; i < parameters.size(); ++i) check_parameter(op, i + 1, items_at(op.shape(0), axes), parameters[i]);
  return infer_like_first(op);
}
PrimFuncRef lower_layer_norm(const OpCall& op) {
  LayerNormAttrs attrs = op.attrs<LayerNormAttrs>();
  std::vector<int64_t> axes = normalize_axes(op, attrs.axes, op.rank(0));
  return normalize(op, over_axes(op.shape(0), axes), attrs, axes);
}
PrimFuncRef lower_rms_norm(const OpCall& op) {
  RmsNormAttrs attrs = op.attrs<RmsNormAttrs>();
  std::vector<int64_t> axes = normalize_axes(op, attrs.axes, op.rank(0));
  auto [b, x] = OpProgram(op);
  DType dtype = accumulation_dtype(op.dtype(0));
  AxisFold s = over_axes(op.shape(0), axes);
  Buffer square = mean_of(b, "mean_square", dtype, s, [&](Axes, Axes element) {
    Expr value = cast_to(load(x[0], element), dtype);
    return value * value;
  });
  Buffer inverse =
      b.compute("inverse_rms", dtype, s.result, [&](Axes i) { return inverse_root(at(square, i), attrs.epsilon); });
  return b.finish({b.compute("T_rms_norm", op.dtype(0), op.shape(0), [&](Axes i) {
    Expr value = cast_to(at(x[0], i), dtype) * load(inverse, s.result_at(i));
    return cast_to(value * cast_to(load(x[1], items_at(i, axes)), dtype), op.dtype(0));
  })});
}

// The channel axis and the spatial axes of a call, checked together with gamma and beta.
struct ChannelAxes {
  int64_t channel;
  std::vector<int64_t> axes;
};
template <class A>
ChannelAxes channel_axes(const OpCall& op, const A& attrs) {
  kFloats.check(op, op.dtype(0));
  ChannelAxes result{normalize_axis(op, attrs.channel_axis, op.rank(0)), normalize_axes(op, attrs.axes, op.rank(0))};
  if (contains(result.axes, result.channel)) op.fail("axes contain the channel axis {}", result.channel);
  check_parameter(op, 1, {op.shape(0)[result.channel]}, "gamma");
  check_parameter(op, 2, {op.shape(0)[result.channel]}, "beta");
  if constexpr (requires { attrs.num_groups; }) {
    if (attrs.num_groups < 1) op.fail("num_groups is {}, expected at least 1", attrs.num_groups);
    op.require_multiple(op.shape(0)[result.channel], attrs.num_groups, "num_groups does not divide the channels");
  }
  return result;
}
template <class A>
Type infer_over_channels(const OpCall& op) {
  channel_axes(op, op.attrs<A>());
  return infer_like_first(op);
}
PrimFuncRef lower_instance_norm(const OpCall& op) {
  InstanceNormAttrs attrs = op.attrs<InstanceNormAttrs>();
  ChannelAxes a = channel_axes(op, attrs);
  return normalize(op, over_axes(op.shape(0), a.axes), attrs, {a.channel});
}

// Splits the channel axis into [num_groups, channels / num_groups]. The statistics of a group are taken over its
// channels and the axes.
AxisFold over_groups(const OpCall& op, const ChannelAxes& a, int64_t groups) {
  const int64_t group = a.channel, inside = a.channel + 1;  // the axes into which the channels are split
  Expr per_group = floor_div(op.shape(0)[group], groups);
  std::vector<int64_t> axes = {inside};
  for (int64_t axis : a.axes) axes.push_back(axis > group ? axis + 1 : axis);
  const AxisFold split =
      over_axes(with_new_item(with_item(op.shape(0), group, int_imm(groups)), inside, per_group), axes);
  AxisFold result = split;
  result.element_at = [=](Axes i, Axes r) {
    std::vector<Expr> indices = split.element_at(i, r);
    return without_item(with_item(indices, group, indices[group] * per_group + indices[inside]), inside);
  };
  result.result_at = [=](Axes i) {
    return split.result_at(with_new_item(with_item(i, group, floor_div(i[group], per_group)), inside, int_imm(0)));
  };
  return result;
}
PrimFuncRef lower_group_norm(const OpCall& op) {
  GroupNormAttrs attrs = op.attrs<GroupNormAttrs>();
  ChannelAxes a = channel_axes(op, attrs);
  return normalize(op, over_groups(op, a, attrs.num_groups), attrs, {a.channel});
}

Type infer_lrn(const OpCall& op) {
  kFloats.check(op, op.dtype(0));
  LrnAttrs attrs = op.attrs<LrnAttrs>();
  normalize_axis(op, attrs.axis, op.rank(0));
  if (attrs.size < 1) op.fail("size is {}, expected at least 1", attrs.size);
  return infer_like_first(op);
}
PrimFuncRef lower_lrn(const OpCall& op) {
  LrnAttrs attrs = op.attrs<LrnAttrs>();
  int64_t axis = normalize_axis(op, attrs.axis, op.rank(0));
  auto [b, x] = OpProgram(op);
  DType dtype = accumulation_dtype(op.dtype(0));
  const std::vector<Expr>& shape = op.shape(0);
  auto square = [&](Axes i, Axes r) {
    Expr position = i[axis] + r[0] - (attrs.size - 1) / 2,
         value = cast_to(load(x[0], with_item(i, axis, position)), dtype);
    Expr inside = position >= int_imm(0) && position < shape[axis];
    return if_then_else(inside, value * value, zero(dtype));
  };
  Buffer sum = b.reduce("square_sum", dtype, shape, {int_imm(attrs.size)}, zero(dtype), combine_sum, square);
  return b.finish({b.compute("T_lrn", op.dtype(0), shape, [&](Axes i) {
    Expr scaled = at(sum, i) * scalar_imm(attrs.alpha / static_cast<double>(attrs.size), dtype);
    Expr base = scalar_imm(attrs.bias, dtype) + scaled;
    Expr root = intrinsic("tir.pow", {base, scalar_imm(attrs.beta, dtype)}, dtype);
    return cast_to(binary(BinaryOp::kDiv, cast_to(at(x[0], i), dtype), root), op.dtype(0));
  })});
}

}  // namespace

std::vector<OpRow> normalization_ops() {
  const auto reduction = OpPattern::kReduction;
  const OpInput data{"data", "the tensor"}, gamma{"gamma", "scale of each channel"},
      beta{"beta", "offset of each channel"};
  return {
      {.name = "relax.nn.batch_norm",
       .doc = "normalizes each channel with the moving statistics, or in training with those of the batch; also gives "
              "the next moving ones, (1 - momentum) * moving + momentum * batch's",
       .inputs =
           {data, gamma, beta, {"moving_mean", "mean of each channel"}, {"moving_var", "variance of each channel"}},
       .attrs = op_attrs<BatchNormAttrs>(),
       .pattern = reduction,
       .infer = infer_batch_norm,
       .infer_partial = infer_partial_batch_norm,
       .legalize = lower_batch_norm},
      {.name = "relax.nn.layer_norm",
       .doc = "normalizes over the axes; gamma and beta have their dims",
       .inputs = {data, {"gamma", "scale"}, {"beta", "offset"}},
       .attrs = op_attrs<LayerNormAttrs>(),
       .pattern = reduction,
       .infer = [](const OpCall& op) { return infer_over_axes<LayerNormAttrs>(op, {"gamma", "beta"}); },
       .legalize = lower_layer_norm},
      {.name = "relax.nn.rms_norm",
       .doc = "x / sqrt(mean of x^2 over the axes + epsilon) * weight",
       .inputs = {data, {"weight", "scale, with the dims of the axes"}},
       .attrs = op_attrs<RmsNormAttrs>(),
       .pattern = reduction,
       .infer = [](const OpCall& op) { return infer_over_axes<RmsNormAttrs>(op, {"weight"}); },
       .legalize = lower_rms_norm},
      {.name = "relax.nn.instance_norm",
       .doc = "normalizes each channel of each sample over the spatial axes",
       .inputs = {data, gamma, beta},
       .attrs = op_attrs<InstanceNormAttrs>(),
       .pattern = reduction,
       .infer = infer_over_channels<InstanceNormAttrs>,
       .legalize = lower_instance_norm},
      {.name = "relax.nn.group_norm",
       .doc = "normalizes each group of channels of each sample over its channels and the spatial axes",
       .inputs = {data, gamma, beta},
       .attrs = op_attrs<GroupNormAttrs>(),
       .pattern = reduction,
       .infer = infer_over_channels<GroupNormAttrs>,
       .legalize = lower_group_norm},
      {.name = "relax.nn.lrn",
       .doc = "x / (bias + alpha / size * sum of x^2 over `size` neighbouring channels)^beta",
       .inputs = {data},
       .attrs = op_attrs<LrnAttrs>(),
       .pattern = reduction,
       .infer = infer_lrn,
       .legalize = lower_lrn},
  };
}

}  // namespace relaxc
