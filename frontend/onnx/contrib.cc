// Operators of com.microsoft that ONNX Runtime's optimizer and exporters write, as the operators that they consist of:
// activations, normalizations, layouts. Products are in contrib_products.cc, attention in contrib_attention.cc,
// quantized operators in contrib_quantize.cc. The forms are those of onnxruntime/docs/ContribOperators.md.
#include "frontend/onnx/contrib.h"
#include "frontend/onnx/loop.h"

namespace relaxc::onnx_import {

Expr same_as_standard(Node& n, const Expr&, const char* op) { return n.standard(op, optional_tensors(n)); }
std::vector<std::optional<Expr>> optional_tensors(Node& n) {
  return map_each(int_range(0, std::ssize(n.proto().input())), [&](size_t i) { return n.optional_tensor(i); });
}
Expr activated(Node& n, const Expr& x, const std::string& name, const std::vector<double>& params) {
  auto param = [&](size_t i, double otherwise) { return i < params.size() ? params[i] : otherwise; };
  if (name.empty() || name == "NONE" || name == "None") return x;
  if (name == "Relu" || name == "Tanh" || name == "Sigmoid" || name == "Softplus" || name == "Softsign" ||
      name == "HardSwish" || name == "Gelu")
    return n.standard(name.c_str(), {x});
  if (name == "LeakyRelu" || name == "Elu" || name == "ThresholdedRelu")
    return n.standard(name.c_str(), {x}, {{"alpha", param(0, name == "LeakyRelu" ? 0.01 : 1)}});
  if (name == "HardSigmoid") return n.standard("HardSigmoid", {x}, {{"alpha", param(0, 0.2)}, {"beta", param(1, 0.5)}});
  if (name == "Clip") return n.clip(x, param(0, -INFINITY), param(1, INFINITY));
  n.unsupported("activation '{}'", name);
}
Expr channels_first(Node& n, const Expr& x) {
  n.dim_of(x, 1);  // the batch and the channels
  std::vector<int64_t> axes = int_range(0, std::ssize(n.shape_of(x)) - 1);
  axes.insert(axes.begin() + 1, std::ssize(axes));
  return n.transpose(x, axes);
}
Expr channels_last(Node& n, const Expr& x) {
  n.dim_of(x, 1);
  std::vector<int64_t> axes = int_range(2, std::ssize(n.shape_of(x)));
  axes.insert(axes.begin(), 0);
  axes.push_back(1);
  return n.transpose(x, axes);
}

namespace {

// ---- Activations

Expr bias_gelu(Node& n) { return n.op("nn.gelu", {n.add(n.tensor(0), n.tensor(1))}); }
Expr fast_gelu(Node& n, const Expr& x) { return n.op("nn.gelu_tanh", {n.has(1) ? n.add(x, n.tensor(1)) : x}); }
Expr quick_gelu(Node& n, const Expr& x) { return n.standard("Swish", {x}, {{"alpha", n.attr_float("alpha", 1.702)}}); }
Expr bias_split_gelu(Node& n) {
  Expr x = n.add(n.tensor(0), n.tensor(1));
  if (n.rank(0) == 0) n.fail("expected a tensor of at least one dim");
  const int64_t last = n.rank(0) - 1;
  const Expr end = n.dim_of(x, last), half = n.simplify(floor_div(end, 2));
  return n.mul(n.slice(x, last, int_imm(0), half), n.op("nn.gelu", {n.slice(x, last, half, end)}));
}
Expr bias_add(Node& n, const Expr& x) { return n.add(n.add(x, n.tensor(1)), n.tensor(2)); }
Expr bias_softmax(Node& n, const Expr& x) {
  return n.standard("Softmax", {n.add(x, n.tensor(1))}, {{"axis", n.attr_int("axis", 1)}}, 12);
}
Outputs bias_dropout(Node& n) {
  Outputs outputs =
      n.standard_outputs("Dropout", {n.add(n.tensor(0), n.tensor(1)), n.optional_tensor(3), n.optional_tensor(4)});
  if (n.has(2)) outputs[0] = n.of(n.add(n.tensor(outputs[0]), n.tensor(2)));
  return outputs;
}

// ---- Normalizations

Expr sum_with_skip(Node& n, size_t bias) {
  Expr sum = n.add(n.tensor(0), n.tensor(1));
  return n.has(bias) ? n.add(sum, n.tensor(bias)) : sum;
}
// Outputs are the result, mean, 1 / deviation, and the sum that is normalized.
Outputs with_sum(Node& n, Outputs outputs, const Expr& sum) {
  outputs.resize(3);
  outputs.push_back(n.of(sum));
  return outputs;
}
std::vector<OnnxAttribute> last_axis_norm(Node& n) {
  return {{"axis", int64_t{-1}}, {"epsilon", n.attr_float("epsilon", 1e-12)}};
}
Outputs skip_layer_norm(Node& n) {
  Expr sum = sum_with_skip(n, 4);
  return with_sum(
      n, n.standard_outputs("LayerNormalization", {sum, n.tensor(2), n.optional_tensor(3)}, last_axis_norm(n)), sum);
}
Outputs skip_rms_norm(Node& n) {
  Expr sum = sum_with_skip(n, 3);
  return with_sum(n, {n.of(n.standard("RMSNormalization", {sum, n.tensor(2)}, last_axis_norm(n)))}, sum);
}
// QEmbedLayerNormalization has scales and zero points of its tables and of gamma and beta.
Outputs embed_layer_norm(Node& n) {
  const bool is_quantized = n.op_type() == "QEmbedLayerNormalization";
  // Returns what the part x of input i stands for.
  auto real = [&](size_t i, const Expr& x) {
    if (!is_quantized) return x;
    const DType dtype = n.dtype(i + 6);
    auto scalar = [&](size_t at) { return n.reshape(n.cast(n.tensor(at), dtype), {}); };
    return n.mul(n.sub(n.cast(x, dtype), scalar(i + 11)), scalar(i + 6));
  };
  auto rows = [&](size_t table, const Expr& ids) {
    return real(table, n.op("take", {n.tensor(table), ids}, TakeAttrs{.axis = 0}));
  };
  const bool has_positions = !is_quantized && n.has(8);
  Expr positions =
      has_positions ? n.tensor(8) : n.op("arange", {int_imm(0), n.dim(0, 1), int_imm(1)}, DTypeAttrs{kInt64});
  Expr sum = n.add(rows(2, n.tensor(0)), rows(3, positions));
  if (n.has(1) != n.has(4)) n.fail("segment_ids and segment_embedding: expected both or none");
  if (n.has(1)) sum = n.add(sum, rows(4, n.tensor(1)));
  Expr result = n.standard("LayerNormalization", {sum, real(5, n.tensor(5)), real(6, n.tensor(6))}, last_axis_norm(n));
  Expr words = n.broadcast_to(n.scalar(0, kInt32), {n.dim(0, 0)});
  if (n.has(7))
    words = n.reduce("sum", n.cast(n.op("equal", {n.tensor(7), n.scalar_like(1, n.tensor(7))}), kInt32), {1}, false);
  return {n.of(result), n.of(words), n.of(sum)};
}
// The activation is 0, none, or 1, SiLU. Images have their channels last unless an attribute says otherwise.
Expr group_norm_of(Node& n, const Expr& x) {
  const bool is_last = n.attr_int("channels_last", 1) != 0;
  const DType dtype = n.dtype_of_tensor(x);
  Expr image = is_last ? channels_first(n, x) : x;
  Expr result = n.standard("GroupNormalization", {image, n.cast(n.tensor(1), dtype), n.cast(n.tensor(2), dtype)},
                           {{"num_groups", n.required_int("groups")}, {"epsilon", n.attr_float("epsilon", 1e-5)}});
  if (n.required_int("activation") == 1) result = n.op("nn.silu", {result});
  return is_last ? channels_last(n, result) : result;
}
Expr nhwc_group_norm(Node& n, const Expr& x) { return group_norm_of(n, x); }
Outputs skip_group_norm(Node& n) {
  Expr skip = n.tensor(3);
  if (n.rank(3) == 2) skip = n.reshape(skip, {n.dim(3, 0), int_imm(1), int_imm(1), n.dim(3, 1)});
  Expr sum = n.add(n.tensor(0), skip);
  if (n.has(4)) sum = n.add(sum, n.tensor(4));
  return {n.of(group_norm_of(n, sum)), n.of(sum)};
}

// ---- Images whose channels are last

Expr nhwc_conv(Node& n, const Expr& x) {
  Expr result = n.standard("Conv", {channels_first(n, x), n.tensor(1), n.optional_tensor(2)});
  if (n.has(3)) result = n.add(result, channels_first(n, n.tensor(3)));
  return channels_last(n, activated(n, result, n.attr_string("activation", ""), n.attr_floats("activation_params")));
}
Expr nhwc_max_pool(Node& n, const Expr& x) { return channels_last(n, n.standard("MaxPool", {channels_first(n, x)})); }
Expr fused_conv(Node& n) {
  Expr result = n.standard("Conv", {n.tensor(0), n.tensor(1), n.optional_tensor(2)});
  if (n.has(3)) result = n.add(result, n.tensor(3));
  return activated(n, result, n.attr_string("activation", ""), n.attr_floats("activation_params"));
}

Expr transposed_conv(Node& n) {
  std::optional<std::vector<Expr>> pads;
  if (n.has(2)) pads = n.ints(2, 2 * (n.rank(0) - 2));
  return convolve_transposed(n, n.optional_tensor(3), pads);
}

// ---- Tensors

Expr gated_add(Node& n, const Expr& x) { return n.add(x, n.mul(n.tensor(1), n.tensor(2))); }
Expr contrib_range(Node& n) {
  auto scalar = [&](size_t i) { return n.reshape(n.tensor(i), {}); };
  return n.standard("Range", {scalar(0), scalar(1), n.has(2) ? scalar(2) : n.scalar(1, n.dtype(0))});
}
Expr contrib_pad(Node& n, const Expr& x) {
  Expr pads = n.reshape(n.tensor(1), {n.simplify(product(n.shape(1)))});
  return n.standard("Pad", {x, pads, n.has(2) ? std::optional(n.reshape(n.tensor(2), {})) : std::nullopt});
}
Expr contrib_expand_dims(Node& n, const Expr& x) {
  return n.standard("Unsqueeze", {x, n.cast(n.reshape(n.tensor(1), {int_imm(1)}), kInt64)});
}
Outputs contrib_unique(Node& n) {
  return n.standard_outputs("Unique", {n.tensor(0)}, {{"sorted", int64_t{0}}}, kNewestOpset, {0, 2, 3});
}
Expr torch_embedding(Node& n) { return n.op("take", {n.tensor(0), n.tensor(1)}, TakeAttrs{.axis = 0}); }
// Returns all slices of a size along a dim, a step apart, as a new last axis.
Expr unfold_tensor(Node& n, const Expr& x) {
  const int64_t axis = n.axis(n.attr_int("dim", -1), n.rank(0), "dim"), size = n.required_int("size");
  const int64_t step = n.attr_int("step", 1);
  if (step < 1 || size < 1) n.fail("size is {} and step {}, expected at least 1", size, step);
  n.require_at_most(int_imm(size), n.dim(0, axis), "size of a slice and the dim");
  Expr count = n.simplify(floor_div(n.dim(0, axis) - size, step) + 1);
  auto range = [&](const Expr& end) { return n.op("arange", {int_imm(0), end, int_imm(1)}, DTypeAttrs{kInt64}); };
  Expr first = n.with_new_axis(n.mul(range(count), n.scalar(static_cast<double>(step), kInt64)), 1);
  Expr slices = n.op("take", {x, n.add(first, range(int_imm(size)))}, TakeAttrs{.axis = axis});
  std::vector<int64_t> axes = int_range(0, n.rank(0) + 1);
  axes.erase(axes.begin() + axis + 1);
  axes.push_back(axis + 1);
  return n.transpose(slices, axes);
}
Expr cdist(Node& n) {
  const std::string metric = n.attr_string("metric", "sqeuclidean");
  if (metric != "sqeuclidean" && metric != "euclidean") n.unsupported("metric '{}'", metric);
  Expr difference = n.sub(n.with_new_axis(n.tensor(0), 1), n.with_new_axis(n.tensor(1), 0));
  Expr sum = n.reduce("sum", n.op("square", {difference}), {2}, false);
  return metric == "euclidean" ? n.op("sqrt", {sum}) : sum;
}
Expr is_all_finite(Node& n) {
  const bool only_inf = n.attr_int("isinf_only", 0) != 0, only_nan = n.attr_int("isnan_only", 0) != 0;
  Expr found = n.scalar(0, kInt32);
  for (size_t i = 0; i < n.inputs(); ++i) {
    Expr x = n.tensor(i), bad = only_nan ? n.op("isnan", {x}) : n.op("isinf", {x});
    if (!only_inf && !only_nan) bad = n.op("logical_or", {bad, n.op("isnan", {x})});
    found = n.add(found, n.reduce("sum", n.cast(bad, kInt32), int_range(0, n.rank(i)), false));
  }
  return n.op("equal", {found, n.scalar(0, kInt32)});
}
// Gauss-Jordan elimination with the largest pivot of each column, on the rows of [x, identity].
Expr inverse(Node& n, const Expr& x) {
  const std::vector<Expr> dims = n.shape_of(x);
  if (dims.size() < 2) n.fail("input has rank {}, expected at least 2", dims.size());
  const Expr size = dims.back(), wide = n.simplify(size * 2);
  n.require_equal(dims[dims.size() - 2], size, "rows and columns of a matrix");
  const Expr batch = n.simplify(product({dims.begin(), dims.end() - 2}));
  const DType dtype = n.dtype(0) == kFloat64 ? kFloat64 : kFloat32;
  Expr identity = n.op("eye", {size, size, int_imm(0)}, FillAttrs{dtype});
  Expr rows =
      join(n, {n.reshape(n.cast(x, dtype), {batch, size, size}), n.broadcast_to(identity, {batch, size, size})}, 2);
  Expr numbers = n.op("arange", {int_imm(0), size, int_imm(1)}, DTypeAttrs{kInt64});
  auto body = [&](Node& step, const Expr& i, const std::vector<Expr>& carried) {
    const Expr& all = carried[0];
    Expr at = step.op("scalar_to_tensor", {i}), here = step.op("equal", {numbers, at});
    Expr column = step.op("abs", {step.pick(all, 2, i)});
    column = step.op("where", {step.op("less", {numbers, at}), step.scalar(-1, dtype), column});
    Expr largest = step.op("argmax", {column}, ArgReduceAttrs{.axis = 1, .keepdims = true});  // [batch, 1]
    // Rows i and `largest` change places.
    Expr order =
        step.op("where", {here, largest, step.op("where", {step.op("equal", {numbers, largest}), at, numbers})});
    Expr picked = step.broadcast_to(step.with_new_axis(order, 2), {batch, size, wide});
    Expr sorted = step.op("gather_elements", {all, picked}, AxisAttrs{1});
    Expr pivot = step.slice(sorted, 1, i, step.simplify(i + 1));
    pivot = step.div(pivot, step.slice(pivot, 2, i, step.simplify(i + 1)));
    Expr factors = step.slice(sorted, 2, i, step.simplify(i + 1));
    Expr others = step.sub(sorted, step.mul(factors, pivot));
    return LoopStep{.carried = {step.op("where", {step.with_new_axis(here, 1), pivot, others})}, .rows = {}};
  };
  Expr result = emit_loop(n, size, {rows}, body)[0];
  return n.cast(n.reshape(n.slice(result, 2, size, wide), dims), n.dtype(0));
}

// ---- Fourier transforms

// Returns the number of axes, at the end, that are transformed.
int64_t transformed_axes(Node& n, int64_t rank) {
  if (n.attr_int("normalized", 0) != 0 || n.attr_int("onesided", 1) == 0)
    n.unsupported("attributes 'normalized' other than 0 and 'onesided' other than 1");
  const int64_t count = n.attr_int("signal_ndim", 1);
  if (count < 1 || count > rank) n.fail("signal_ndim is {}, expected 1 to {}", count, rank);
  return count;
}
Expr transform(Node& n, const Expr& x, int64_t axis, int64_t onesided, int64_t inverse) {
  Expr at = n.scalar(static_cast<double>(axis), kInt64);
  return n.standard("DFT", {x, std::nullopt, at}, {{"onesided", onesided}, {"inverse", inverse}});
}
Expr rfft(Node& n, const Expr& x) {
  const int64_t rank = n.rank(0), count = transformed_axes(n, rank);
  Expr y = transform(n, n.with_new_axis(x, rank), rank - 1, 1, 0);
  for (int64_t d = rank - count; d < rank - 1; ++d) y = transform(n, y, d, 0, 0);
  return y;
}
Expr irfft(Node& n, const Expr& x) {
  const int64_t rank = n.rank(0) - 1, count = transformed_axes(n, rank);
  Expr y = x;
  for (int64_t d = rank - count; d < rank - 1; ++d) y = transform(n, y, d, 0, 1);
  return n.pick(transform(n, y, rank - 1, 1, 1), rank, 0);
}
// Multiplies complex numbers, whose parts are the last axis; with `op` "conj" by the conjugates of the second ones.
Expr complex_mul(Node& n, const Expr& a, const char* op) {
  const int64_t last = n.rank(0) - 1;
  Expr b = n.tensor(1);
  if (last < 0 || n.rank(1) < 1) n.fail("ranks are {} and {}, expected at least 1", n.rank(0), n.rank(1));
  auto part = [&](const Expr& x, int64_t i) { return n.pick(x, std::ssize(n.shape_of(x)) - 1, i); };
  Expr re = part(a, 0), im = part(a, 1), other_re = part(b, 0), other_im = part(b, 1);
  if (*op) other_im = n.op("negative", {other_im});
  Expr real = n.sub(n.mul(re, other_re), n.mul(im, other_im)),
       imaginary = n.add(n.mul(re, other_im), n.mul(im, other_re));
  const int64_t rank = std::ssize(n.shape_of(real));
  return join(n, {n.with_new_axis(real, rank), n.with_new_axis(imaginary, rank)}, rank);
}

}  // namespace

std::vector<ConverterRow> contrib_converters() {
  constexpr const char* kConv = "activation activation_params auto_pad dilations group kernel_shape pads strides";
  constexpr const char* kPool = "auto_pad ceil_mode dilations kernel_shape pads strides";
  std::vector<ConverterRow> rows = {
      {"Gelu", 1, 1, 1, {same_as_standard, "Gelu"}, "approximate"},
      {"BiasGelu", 1, 2, 2, bias_gelu},
      {"FastGelu", 1, 1, 2, fast_gelu},
      {"QuickGelu", 1, 1, 1, quick_gelu, "alpha"},
      {"BiasSplitGelu", 1, 2, 2, bias_split_gelu},
      {"BiasAdd", 1, 3, 3, bias_add},
      {"BiasSoftmax", 1, 2, 2, bias_softmax, "axis is_inner_broadcast"},
      {"BiasDropout", 1, 2, 5, bias_dropout, "seed"},
      {"SkipLayerNormalization", 1, 3, 5, skip_layer_norm, "epsilon"},
      {"SkipSimplifiedLayerNormalization", 1, 3, 4, skip_rms_norm, "epsilon"},
      {"EmbedLayerNormalization", 1, 7, 9, embed_layer_norm, "epsilon mask_index_type", "", 0b10010},
      {"QEmbedLayerNormalization", 1, 18, 18, embed_layer_norm, "epsilon", "", 0b1000'0100'1001'0010},
      {"GroupNorm", 1, 3, 3, nhwc_group_norm, "activation channels_last epsilon groups"},
      {"SkipGroupNorm", 1, 4, 5, skip_group_norm, "activation channels_last epsilon groups"},
      {"FusedConv", 1, 2, 4, fused_conv, kConv},
      {"NhwcConv", 1, 2, 3, nhwc_conv, kConv},
      {"NhwcFusedConv", 1, 2, 4, nhwc_conv, kConv},
      {"NhwcMaxPool", 1, 1, 1, nhwc_max_pool, kPool},
      {"Range", 1, 2, 3, contrib_range},
      {"Pad", 1, 2, 3, contrib_pad, "mode"},
      {"ExpandDims", 1, 2, 2, contrib_expand_dims},
      {"Unique", 1, 1, 1, contrib_unique},
      {"TorchEmbedding", 1, 2, 4, torch_embedding},
      {"UnfoldTensor", 1, 1, 1, unfold_tensor, "dim size step"},
      {"CDist", 1, 2, 2, cdist, "metric"},
      {"IsAllFinite", 1, 1, kAny, is_all_finite, "isinf_only isnan_only"},
      {"Inverse", 1, 1, 1, inverse},
      {"Rfft", 1, 1, 1, rfft, "normalized onesided signal_ndim"},
      {"Irfft", 1, 1, 1, irfft, "normalized onesided signal_ndim"},
      {"ComplexMul", 1, 2, 2, {complex_mul, ""}},
      {"ComplexMulConj", 1, 2, 2, {complex_mul, "conj"}},
      {"Trilu", 1, 1, 2, {same_as_standard, "Trilu"}, "upper"},
      {"GatherND", 1, 2, 2, {same_as_standard, "GatherND"}},
      {"ConvTransposeWithDynamicPads", 1, 2, 4, transposed_conv,
       "auto_pad dilations group kernel_shape output_padding output_shape pads strides"},
      {"GatedAdd", 1, 3, 3, gated_add},
      {"GridSample", 1, 2, 2, {same_as_standard, "GridSample"}, "align_corners mode padding_mode"},
      {"SimplifiedLayerNormalization",
       1,
       2,
       2,
       {same_as_standard, "SimplifiedLayerNormalization"},
       "axis epsilon stash_type"},
  };
  return in_domain("com.microsoft", rows);
}

}  // namespace relaxc::onnx_import
