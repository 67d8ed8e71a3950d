// Normalizations. Statistics are kept in float32 for 16-bit floats; variances are population variances in two passes.
#include <algorithm>

#include "ops/attributes.h"
#include "ops/ops.h"
#include "ops/window.h"

namespace relaxc {

namespace {

// Returns 1 / sqrt(x + epsilon).
Expr inverse_root(const Expr& x, double epsilon) {
  DType dtype = dtype_of(x);
  Expr root = intrinsic("tir.sqrt", {x + scalar_imm(epsilon, dtype)}, dtype);
  return binary(BinaryOp::kDiv, one(dtype), root);
}

// Describes the elements that share a mean and a variance. `shape` is the statistics' shape, and `reduced` are the dims
// that they run over.
struct Statistics {
  std::vector<Expr> shape, reduced;
  std::function<std::vector<Expr>(Axes statistic, Axes reduced)> element;  // the data's indices
  std::function<std::vector<Expr>(Axes element)> statistic_of;
};
// Returns statistics over the axes, one for each index of the other dims.
Statistics over_axes(const std::vector<Expr>& shape, const std::vector<int64_t>& axes) {
  std::vector<bool> gone(shape.size(), false);
  for (int64_t axis : axes) gone[axis] = true;
  Statistics s;
  for (size_t d = 0; d < shape.size(); ++d) (gone[d] ? s.reduced : s.shape).push_back(shape[d]);
  s.element = [gone](Axes i, Axes r) {
    std::vector<Expr> indices;
    size_t kept = 0, reduced = 0;
    for (bool is_gone : gone) indices.push_back(is_gone ? r[reduced++] : i[kept++]);
    return indices;
  };
  s.statistic_of = [gone](Axes i) {
    std::vector<Expr> indices;
    for (size_t d = 0; d < i.size(); ++d) {
      if (!gone[d]) indices.push_back(i[d]);
    }
    return indices;
  };
  return s;
}

Buffer mean_of(ComputeBuilder& b, const Statistics& s, const std::string& name, DType dtype,
               const std::function<Expr(Axes statistic, Axes element)>& value) {
  bool is_empty = std::any_of(s.reduced.begin(), s.reduced.end(), [](const Expr& dim) { return is_int(dim, 0); });
  if (is_empty) return b.compute(name, dtype, s.shape, [&](Axes) { return divide_by_count(zero(dtype), int_imm(0)); });
  Buffer sum = b.reduce(name + "_sum", dtype, s.shape, s.reduced, zero(dtype), combine_sum,
                        [&](Axes i, Axes r) { return value(i, s.element(i, r)); });
  return b.compute(name, dtype, s.shape, [&](Axes i) { return divide_by_count(at(sum, i), product(s.reduced)); });
}
struct Moments {
  Buffer mean, variance;
};
Moments moments_of(ComputeBuilder& b, const Statistics& s, const Buffer& x, DType dtype) {
  Buffer mean = mean_of(b, s, "mean", dtype, [&](Axes, Axes element) { return cast_to(load(x, element), dtype); });
  Buffer variance = mean_of(b, s, "variance", dtype, [&](Axes i, Axes element) {
    Expr distance = cast_to(load(x, element), dtype) - at(mean, i);
    return distance * distance;
  });
  return {mean, variance};
}

// Computes (x - mean) / sqrt(variance + epsilon) * gamma + beta, with gamma as argument 1 and beta as argument 2.
// parameter_of gives their indices.
template <class A>
PrimFuncRef normalize(const OpCall& op, const Statistics& s, const A& attrs,
                      const std::function<std::vector<Expr>(Axes)>& parameter_of) {
  ComputeBuilder b;
  std::vector<Buffer> x = b.inputs_of(op);
  DType dtype = accumulation_dtype(op.dtype(0));
  Moments moments = moments_of(b, s, x[0], dtype);
  Buffer inverse = b.compute("inverse_std", dtype, s.shape,
                             [&](Axes i) { return inverse_root(at(moments.variance, i), attrs.epsilon); });
  return b.finish({b.compute("T_normalized", op.dtype(0), op.shape(0), [&](Axes i) {
    std::vector<Expr> statistic = s.statistic_of(i);
    Expr value = (cast_to(at(x[0], i), dtype) - load(moments.mean, statistic)) * load(inverse, statistic);
    if (attrs.scale) value = value * cast_to(load(x[1], parameter_of(i)), dtype);
    if (attrs.center) value = value + cast_to(load(x[2], parameter_of(i)), dtype);
    return cast_to(value, op.dtype(0));
  })});
}

// Checks that argument `arg` has the dims `wanted`.
void check_parameter(const OpCall& op, size_t arg, const std::vector<Expr>& wanted, const char* what) {
  const std::vector<Expr>& shape = op.shape(arg);
  if (shape.size() != wanted.size()) op.fail("{} has rank {}, expected {}", what, shape.size(), wanted.size());
  for (size_t d = 0; d < wanted.size(); ++d)
    op.require_equal(shape[d], wanted[d], fmt::format("dim {} of {} and the data's", d, what));
}
std::vector<Expr> dims_at(const std::vector<Expr>& shape, const std::vector<int64_t>& axes) {
  std::vector<Expr> dims;
  for (int64_t axis : axes) dims.push_back(shape[axis]);
  return dims;
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
  ComputeBuilder b;
  std::vector<Buffer> x = b.inputs_of(op);
  DType dtype = accumulation_dtype(op.dtype(0));
  std::vector<Expr> channels = {op.shape(0)[axis]};
  Moments moments{x[3], x[4]};
  if (attrs.training) {
    std::vector<int64_t> others;
    for (int64_t d = 0; d < op.rank(0); ++d) {
      if (d != axis) others.push_back(d);
    }
    moments = moments_of(b, over_axes(op.shape(0), others), x[0], dtype);
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

// Checks a call whose parameters, called so, have the dims of the axes.
template <class A>
Type infer_over_axes(const OpCall& op, const std::vector<const char*>& parameters) {
  kFloats.check(op, op.dtype(0));
  std::vector<int64_t> axes = normalize_axes(op, op.attrs<A>().axes, op.rank(0));
  for (size_t i = 0; i < parameters.size(); ++i) check_parameter(op, i + 1, dims_at(op.shape(0), axes), parameters[i]);
  return infer_like_first(op);
}
PrimFuncRef lower_layer_norm(const OpCall& op) {
  LayerNormAttrs attrs = op.attrs<LayerNormAttrs>();
  std::vector<int64_t> axes = normalize_axes(op, attrs.axes, op.rank(0));
  return normalize(op, over_axes(op.shape(0), axes), attrs, [&](Axes i) { return dims_at(i, axes); });
}
PrimFuncRef lower_rms_norm(const OpCall& op) {
  RmsNormAttrs attrs = op.attrs<RmsNormAttrs>();
  std::vector<int64_t> axes = normalize_axes(op, attrs.axes, op.rank(0));
  ComputeBuilder b;
  std::vector<Buffer> x = b.inputs_of(op);
  DType dtype = accumulation_dtype(op.dtype(0));
  Statistics s = over_axes(op.shape(0), axes);
  Buffer square = mean_of(b, s, "mean_square", dtype, [&](Axes, Axes element) {
    Expr value = cast_to(load(x[0], element), dtype);
    return value * value;
  });
  Buffer inverse =
      b.compute("inverse_rms", dtype, s.shape, [&](Axes i) { return inverse_root(at(square, i), attrs.epsilon); });
  return b.finish({b.compute("T_rms_norm", op.dtype(0), op.shape(0), [&](Axes i) {
    Expr value = cast_to(at(x[0], i), dtype) * load(inverse, s.statistic_of(i));
    return cast_to(value * cast_to(load(x[1], dims_at(i, axes)), dtype), op.dtype(0));
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
  return result;
}
Type infer_instance_norm(const OpCall& op) {
  channel_axes(op, op.attrs<InstanceNormAttrs>());
  return infer_like_first(op);
}
PrimFuncRef lower_instance_norm(const OpCall& op) {
  InstanceNormAttrs attrs = op.attrs<InstanceNormAttrs>();
  ChannelAxes a = channel_axes(op, attrs);
  return normalize(op, over_axes(op.shape(0), a.axes), attrs, [&](Axes i) { return std::vector<Expr>{i[a.channel]}; });
}

// Takes the channels as num_groups x (channels / num_groups). A group's statistics run over its channels and the axes.
Statistics over_groups(const OpCall& op, const ChannelAxes& a, int64_t groups) {
  std::vector<Expr> split = op.shape(0);
  Expr per_group = floor_div(split[a.channel], groups);
  split[a.channel] = int_imm(groups);
  split.insert(split.begin() + a.channel + 1, per_group);
  std::vector<int64_t> axes = {a.channel + 1};
  for (int64_t axis : a.axes) axes.push_back(axis > a.channel ? axis + 1 : axis);
  Statistics s = over_axes(split, axes);
  Statistics result = s;
  result.element = [s, a, per_group](Axes i, Axes r) {
    std::vector<Expr> indices = s.element(i, r);
    indices[a.channel] = indices[a.channel] * per_group + indices[a.channel + 1];
    indices.erase(indices.begin() + a.channel + 1);
    return indices;
  };
  result.statistic_of = [s, a, per_group](Axes i) {
    std::vector<Expr> indices = i;
    indices[a.channel] = floor_div(i[a.channel], per_group);
    indices.insert(indices.begin() + a.channel + 1, int_imm(0));
    return s.statistic_of(indices);
  };
  return result;
}
ChannelAxes group_axes(const OpCall& op, const GroupNormAttrs& attrs) {
  ChannelAxes a = channel_axes(op, attrs);
  if (attrs.num_groups < 1) op.fail("num_groups is {}, expected at least 1", attrs.num_groups);
  op.require_multiple(op.shape(0)[a.channel], attrs.num_groups, "num_groups does not divide the channels");
  return a;
}
Type infer_group_norm(const OpCall& op) {
  group_axes(op, op.attrs<GroupNormAttrs>());
  return infer_like_first(op);
}
PrimFuncRef lower_group_norm(const OpCall& op) {
  GroupNormAttrs attrs = op.attrs<GroupNormAttrs>();
  ChannelAxes a = group_axes(op, attrs);
  return normalize(op, over_groups(op, a, attrs.num_groups), attrs,
                   [&](Axes i) { return std::vector<Expr>{i[a.channel]}; });
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
  ComputeBuilder b;
  Buffer x = b.inputs_of(op)[0];
  DType dtype = accumulation_dtype(op.dtype(0));
  const std::vector<Expr>& shape = op.shape(0);
  auto square = [&](Axes i, Axes r) {
    std::vector<Expr> indices = i;
    indices[axis] = i[axis] + r[0] - (attrs.size - 1) / 2;
    Expr inside = indices[axis] >= int_imm(0) && indices[axis] < shape[axis], value = cast_to(load(x, indices), dtype);
    return if_then_else(inside, value * value, zero(dtype));
  };
  Buffer sum = b.reduce("square_sum", dtype, shape, {int_imm(attrs.size)}, zero(dtype), combine_sum, square);
  return b.finish({b.compute("T_lrn", op.dtype(0), shape, [&](Axes i) {
    Expr scaled = at(sum, i) * scalar_imm(attrs.alpha / static_cast<double>(attrs.size), dtype);
    Expr base = scalar_imm(attrs.bias, dtype) + scaled;
    Expr root = intrinsic("tir.pow", {base, scalar_imm(attrs.beta, dtype)}, dtype);
    return cast_to(binary(BinaryOp::kDiv, cast_to(at(x, i), dtype), root), op.dtype(0));
  })});
}

}  // namespace

std::vector<OpRow> normalization_ops() {
  const auto reduction = OpPattern::kReduction;
  const OpInput data{"data", "the tensor"};
  const std::vector<OpInput> channels = {data, {"gamma", "scale of each channel"}, {"beta", "offset of each channel"}};
  std::vector<OpInput> with_moments = channels;
  with_moments.push_back({"moving_mean", "mean of each channel"});
  with_moments.push_back({"moving_var", "variance of each channel"});
  return {
      {.name = "relax.nn.batch_norm",
       .doc = "normalizes each channel with the moving statistics, or in training with the batch's own; also gives "
              "the next moving ones, (1 - momentum) * moving + momentum * batch's",
       .inputs = with_moments,
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
       .inputs = channels,
       .attrs = op_attrs<InstanceNormAttrs>(),
       .pattern = reduction,
       .infer = infer_instance_norm,
       .legalize = lower_instance_norm},
      {.name = "relax.nn.group_norm",
       .doc = "normalizes each group of channels of each sample over its channels and the spatial axes",
       .inputs = channels,
       .attrs = op_attrs<GroupNormAttrs>(),
       .pattern = reduction,
       .infer = infer_group_norm,
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
