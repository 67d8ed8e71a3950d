// Attention, which has no tensor program yet.
#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace relaxc {

// query is [batch, queries, heads, d]; key and value are [batch, keys, heads or a divisor of it, d or e]. The bias
// broadcasts to [batch, heads, queries, keys].
static Type infer_attention(const OpCall& op) {
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

std::vector<OpRow> attention_ops() {
  using Arity = OpInput::Arity;
  const OpInput query{"query", "[batch, queries, heads, d]"}, key{"key", "[batch, keys, heads, d]"},
      value{"value", "[batch, keys, heads, e]"};
  const std::vector<OpAttr> attrs = with_choices(op_attrs<AttentionAttrs>(), "causal_mask", {"TopLeft", "BottomRight"});
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
  };
}

}  // namespace relaxc
