// Attention, as products, a softmax and a mask, as exporters write it, too: fuse_attention makes one kernel of these.
#include <cmath>

#include "ir/builder.h"
#include "ir/constants.h"
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

namespace {

Expr int_tensor(int64_t value) { return constant(Tensor::of<int64_t>({}, kInt64, {value})); }

// Emits the operators of one call.
class AttentionParts {
 public:
  AttentionParts(const OpCall& op, Builder& b)
      : op_(op),
        b_(b),
        attrs_(op.attrs<AttentionAttrs>()),
        queries_(op.shape(0)[1]),
        keys_(op.shape(1)[1]),
        dtype_(op.dtype(0) == kFloat64 ? kFloat64 : kFloat32) {
    if (attrs_.window_size && !attrs_.causal_mask) op.fail("window_size needs a causal_mask");
    if (attrs_.window_size.value_or(1) < 1) op.fail("window_size is {}, expected at least 1", *attrs_.window_size);
  }

  Expr run() {
    Expr scores = b_.op("matmul", {heads_first(0), permuted(per_query_head(1), {0, 2, 3, 1})}, MatmulAttrs{dtype_});
    scores = scaled(scores);
    bool is_var_len = op_.name() == ops::kAttentionVarLen;
    if (!is_var_len && op_.size() > 3) scores = b_.op("add", {scores, as(op_.arg(3), dtype_)});
    auto mask = is_var_len && op_.size() > 3 ? mask_of_sequences() : mask_of_positions();
    if (mask) scores = b_.op("where", {*mask, scores, scalar_constant(-INFINITY, dtype_)});
    Expr weights = as(b_.op("nn.softmax", {scores}, LastAxisAttrs{-1}), op_.dtype(0));
    return permuted(b_.op("matmul", {weights, permuted(per_query_head(2), {0, 2, 1, 3})}), {0, 2, 1, 3});
  }

 private:
  Expr permuted(const Expr& x, std::vector<int64_t> axes) {
    return b_.op("permute_dims", {x}, AxesAttrs{std::move(axes)});
  }
  Expr heads_first(size_t i) { return permuted(op_.arg(i), {0, 2, 1, 3}); }
  Expr as(const Expr& x, DType dtype) {
    return tensor_dtype(x.type()) == dtype ? x : b_.op("astype", {x}, DTypeAttrs{dtype});
  }
  // Several heads of the query may share one of key and value (grouped-query attention, Ainslie et al., 2023).
  Expr per_query_head(size_t i) {
    const Expr &wanted = op_.shape(0)[2], &given = op_.shape(i)[2];
    if (Analyzer().can_prove_equal(wanted, given)) return op_.arg(i);
    auto all = as_int(wanted), shared = as_int(given);
    if (!all || !shared || *shared < 1) op_.unsupported("different numbers of heads that are not constants");
    return b_.op("repeat", {op_.arg(i)}, RepeatAttrs{.repeats = *all / *shared, .axis = 2});
  }
  Expr scaled(const Expr& scores) {
    const Expr& size = op_.shape(0)[3];
    if (attrs_.scale) return b_.op("multiply", {scores, scalar_constant(*attrs_.scale, dtype_)});
    if (auto known = as_int(size))
      return b_.op("divide", {scores, scalar_constant(std::sqrt(static_cast<double>(*known)), dtype_)});
    Expr root = b_.op("sqrt", {b_.op("scalar_to_tensor", {size}, DTypeAttrs{dtype_})});
    return b_.op("divide", {scores, root});
  }

  // Returns first, first + 1, ... as a column of the scores, or as a row.
  Expr column(const Expr& x) { return b_.op("expand_dims", {x}, AxisListAttrs{{{1}}}); }
  Expr row(const Expr& x) { return b_.op("expand_dims", {x}, AxisListAttrs{{{0}}}); }
  Expr positions(const Expr& first, const Expr& count) {
    return b_.op("arange", {first, simplify(first + count), int_imm(1)}, DTypeAttrs{kInt64});
  }
  // Returns where a key is not after its query, and within the window before it.
  Expr causal(const Expr& query, const Expr& key) {
    Expr mask = b_.op("less_equal", {key, query});
    if (!attrs_.window_size) return mask;
    Expr first = b_.op("subtract", {query, int_tensor(*attrs_.window_size)});
    return b_.op("logical_and", {mask, b_.op("less", {first, key})});
  }
  // "TopLeft" aligns the first query with the first key. "BottomRight" shifts by the difference of their numbers.
  std::optional<Expr> mask_of_positions() {
    if (!attrs_.causal_mask) return std::nullopt;
    Expr shift = simplify(max(queries_ - keys_, keys_ - queries_));
    Expr first = *attrs_.causal_mask == "BottomRight" ? shift : int_imm(0);
    return causal(column(positions(first, queries_)), row(positions(int_imm(0), keys_)));
  }
  // The sequences lie one after the other, and each attends to itself only. seqstart has where each begins, and the
  // end.
  std::optional<Expr> mask_of_sequences() {
    Expr starts_q = as(op_.arg(3), kInt64), starts_k = op_.size() > 4 ? as(op_.arg(4), kInt64) : starts_q;
    Expr query = positions(int_imm(0), queries_), key = positions(int_imm(0), keys_);
    auto number = [&](const Expr& at, const Expr& starts) {
      return b_.op("bucketize", {at, starts}, BucketizeAttrs{.out_int32 = false, .right = true});
    };
    Expr of_query = number(query, starts_q), of_key = number(key, starts_k);
    Expr same = b_.op("equal", {row(of_key), column(of_query)});
    if (!attrs_.causal_mask) return same;
    // Positions count from the beginning of the sequence, or from its end.
    auto relative = [&](const Expr& at, Expr number, const Expr& starts) {
      if (*attrs_.causal_mask == "TopLeft") number = b_.op("subtract", {number, int_tensor(1)});
      return b_.op("subtract", {at, b_.op("take", {starts, number}, TakeAttrs{.axis = 0, .mode = "clip"})});
    };
    Expr allowed = causal(column(relative(query, of_query, starts_q)), row(relative(key, of_key, starts_k)));
    return b_.op("logical_and", {same, allowed});
  }

  const OpCall& op_;
  Builder& b_;
  AttentionAttrs attrs_;
  Expr queries_, keys_;
  DType dtype_;  // of the scores
};
Expr decompose_attention(const OpCall& op, Builder& b) { return AttentionParts(op, b).run(); }

}  // namespace

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
       .infer = infer_attention,
       .decompose = decompose_attention},
      {.name = "relax.nn.attention_bias",
       .doc = "attention with a bias",
       .inputs = {query, key, value, {"bias", "broadcasts to [batch, heads, queries, keys]"}},
       .attrs = attrs,
       .infer = infer_attention,
       .decompose = decompose_attention},
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
       .infer = infer_attention,
       .decompose = decompose_attention},
  };
}

}  // namespace relaxc
