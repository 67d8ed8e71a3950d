// Attention, quantization, and the small operators of networks that have no lowering yet.
#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace relaxc {

namespace {

// query is [batch, queries, heads, d]; key and value are [batch, keys, heads or a divisor of it, d or e]. The bias
// broadcasts to [batch, heads, queries, keys].
Type infer_attention(const OpCall& op) {
  for (size_t i = 0; i < 3; ++i) {
    require_rank(op, i, 4);
    require_same_dtype(op, 0, i);
  }
  const std::vector<Expr>&query = op.shape(0), &key = op.shape(1), &value = op.shape(2);
  for (size_t i : {1, 2}) {
    op.require_equal(query[0], op.shape(i)[0], "batch sizes");
    auto heads = as_int(op.shape(i)[2]);
    if (heads && *heads > 0) op.require_multiple(query[2], *heads, "heads of the query and of key or value");
  }
  op.require_equal(key[1], value[1], "sequence lengths of key and value");
  op.require_equal(query[3], key[3], "head sizes of query and key");
  if (op.size() == 4 && op.name() != ops::kAttentionVarLen) {
    require_rank(op, 3, 4);
    const Expr wanted[] = {query[0], query[2], query[1], key[1]};
    for (size_t d = 0; d < 4; ++d) {
      if (!is_int(op.shape(3)[d], 1)) op.require_equal(op.shape(3)[d], wanted[d], fmt::format("dim {} of bias", d));
    }
  }
  return tensor_type({query[0], query[1], query[2], value[3]}, op.dtype(0));
}

template <class A>
Type infer_quantization(const OpCall& op) {
  A attrs = op.attrs<A>();
  if (!op.dtype(1).is_float()) op.fail("a scale of {}, expected a float", to_string(op.dtype(1)));
  for (size_t i : {1, 2}) {
    if (op.rank(i) > 1) op.fail("argument {} has rank {}, expected 0 or 1", i, op.rank(i));
    if (op.rank(i) == 0 || is_int(op.shape(i)[0], 1)) continue;
    int64_t axis = normalize_axis(op, attrs.axis, op.rank(0));
    op.require_equal(op.shape(i)[0], op.shape(0)[axis], fmt::format("size of argument {} and of axis {}", i, axis));
  }
  return tensor_type(op.shape(0), attrs.out_dtype);
}

Type infer_pixel_shuffle(const OpCall& op) {
  std::vector<Expr> shape = op.shape(0);
  int64_t factor = op.attrs<PixelShuffleAttrs>().upscale_factor;
  if (shape.size() < 3) op.fail("data has rank {}, expected at least 3", shape.size());
  if (factor < 1 || factor > 1 << 15) op.fail("upscale_factor is {}, expected at least 1", factor);
  size_t channel = shape.size() - 3;
  op.require_multiple(shape[channel], factor * factor, "upscale_factor^2 does not divide the channels");
  shape[channel] = simplify(floor_div(shape[channel], factor * factor));
  for (size_t d = channel + 1; d < shape.size(); ++d) shape[d] = simplify(shape[d] * factor);
  return tensor_type(std::move(shape), op.dtype(0));
}
Type infer_batch_flatten(const OpCall& op) {
  const std::vector<Expr>& shape = op.shape(0);
  if (shape.empty()) op.fail("expected at least one axis, got a scalar");
  return tensor_type({shape[0], simplify(product({shape.begin() + 1, shape.end()}))}, op.dtype(0));
}

}  // namespace

std::vector<OpRow> attention_ops() {
  using Arity = OpInput::Arity;
  const OpInput query{"query", "[batch, queries, heads, d]"}, key{"key", "[batch, keys, heads, d]"},
      value{"value", "[batch, keys, heads, e]"}, data{"data", "the tensor"};
  const std::vector<OpAttr> attrs = with_choices(op_attrs<AttentionAttrs>(), "causal_mask", {"TopLeft", "BottomRight"});
  const std::vector<OpInput> quantization = {
      data, {"scale", "scalar, or one per element of the axis"}, {"zero_point", "the same"}};
  return {
      {.name = "relax.nn.attention",
       .doc = "softmax(query . key^T * scale + bias) . value",
       .inputs = {query, key, value, {"bias", "broadcasts to [batch, heads, queries, keys]", Arity::kOptional}},
       .attrs = attrs,
       .infer = infer_attention},
      {.name = "relax.nn.attention_bias",
       .doc = "attention with a bias",
       .inputs = {query, key, value, {"bias", "broadcasts to [batch, heads, queries, keys]"}},
       .attrs = attrs,
       .infer = infer_attention},
      {.name = "relax.nn.attention_var_len",
       .doc = "attention over sequences of several lengths, joined along one axis",
       .inputs = {{"queries", query.doc},
                  {"keys", key.doc},
                  {"values", value.doc},
                  {"seqstart_q", "running sum of the query lengths from 0", Arity::kOptional},
                  {"seqstart_k", "of the key lengths", Arity::kOptional},
                  {"max_seqlen_q", "the longest query", Arity::kOptional},
                  {"max_seqlen_k", "the longest key", Arity::kOptional}},
       .attrs = attrs,
       .infer = infer_attention},
      {.name = "relax.nn.pixel_shuffle",
       .doc = "channels moved into the pixels: [C * r^2, h, w] to [C, h * r, w * r]",
       .inputs = {data},
       .attrs = op_attrs<PixelShuffleAttrs>(),
       .infer = infer_pixel_shuffle},
      {.name = "relax.nn.batch_flatten",
       .doc = "all axes but the first as one",
       .inputs = {data},
       .infer = infer_batch_flatten},
      {.name = "relax.quantize",
       .doc = "clamp(round(data / scale) + zero_point)",
       .inputs = quantization,
       .attrs = op_attrs<QuantizeAttrs>(),
       .infer = infer_quantization<QuantizeAttrs>,
       .infer_partial = infer_stated_dtype_same_rank},
      {.name = "relax.dequantize",
       .doc = "(data - zero_point) * scale",
       .inputs = quantization,
       .attrs = op_attrs<DequantizeAttrs>(),
       .infer = infer_quantization<DequantizeAttrs>,
       .infer_partial = infer_stated_dtype_same_rank},
  };
}

}  // namespace relaxc
