// Operators that carry a state along a sequence: linear attention and the causal convolution.
#include "frontend/onnx/attention.h"
#include "frontend/onnx/loop.h"

namespace relaxc::onnx_import {

namespace {

// The recurrence of linear attention. The state S is [batch, heads, size of a key, size of a value], in float32:
//   S = exp(decay) * S + key (x) write,  output = scale * query^T S
// where write = value, or beta * (value - (erase * key)^T S) for the delta rules.
class LinearAttention {
 public:
  explicit LinearAttention(Node& n) : n_(n) {
    query_heads_ = n.required_int("q_num_heads");
    heads_ = n.required_int("kv_num_heads");
    if (heads_ < 1 || query_heads_ < 1 || query_heads_ % heads_ != 0)
      n.fail("q_num_heads is {} and kv_num_heads {}, expected a multiple", query_heads_, heads_);
    const std::string rule = n.attr_string("update_rule", "gated_delta");
    if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta")
      n.fail("update_rule is '{}', expected linear, gated, delta or gated_delta", rule);
    is_gated_ = rule.starts_with("gated");
    is_delta_ = rule.ends_with("delta");
    if (n.has(4) != is_gated_) n.fail("update_rule '{}' with{} decay", rule, is_gated_ ? "out" : "");
    if (n.has(5) != is_delta_) n.fail("update_rule '{}' with{} beta", rule, is_delta_ ? "out" : "");
    if (n.has(6) && !is_delta_) n.fail("update_rule '{}' with erase_gate", rule);
    if (n.attr_int("state_window", 0) != 0) n.unsupported("attribute 'state_window'");
    query_ = by_step(0, query_heads_);
    key_ = by_step(1, heads_);
    value_ = by_step(2, heads_);
    size_ = n.dim_of(key_, 3);
    n.require_equal(n.dim_of(query_, 3), size_, "head sizes of query and key");
    if (is_gated_) decay_ = n.op("exp", {by_step(4, heads_)});
    if (is_delta_) beta_ = by_step(5, is_int(n.dim(5, 2), 1) ? 1 : heads_);
    if (n.has(6)) erase_ = by_step(6, heads_);
  }

  Outputs convert() {
    const std::vector<Expr> values = n_.shape_of(value_);
    const Expr steps = values[0];
    const DType state_dtype = n_.dtype(n_.has(3) ? 3 : 0);
    Expr state = n_.has(3) ? n_.cast(n_.tensor(3), kFloat32)
                           : n_.broadcast_to(n_.scalar(0, kFloat32), {values[1], values[2], size_, values[3]});
    auto body = [&](Node& step, const Expr& t, const std::vector<Expr>& carried) { return next(step, t, carried[0]); };
    std::vector<Expr> results;
    if (is_int(steps, 1)) {  // decoding
      LoopStep only = body(n_, int_imm(0), {state});
      results = {only.carried[0], n_.with_new_axis(only.rows[0], 0)};
    } else {
      results = emit_loop(n_, steps, {state}, body);
    }
    Expr output = n_.transpose(results[1], {1, 0, 2, 3});  // [batch, steps, heads, size]
    output = n_.reshape(output, {values[1], steps, n_.simplify(values[3] * query_heads_)});
    return {n_.of(n_.cast(output, n_.dtype(0))), n_.of(n_.cast(results[0], state_dtype))};
  }

 private:
  // Returns [batch, steps, heads * size] as [steps, batch, heads, size] in float32.
  Expr by_step(size_t i, int64_t heads) {
    if (n_.rank(i) != 3) n_.fail("input {} has rank {}, expected 3", i, n_.rank(i));
    const std::vector<Expr> dims = n_.shape(i);
    Expr size = n_.simplify(floor_div(dims[2], heads));
    Expr x = n_.reshape(n_.cast(n_.tensor(i), kFloat32), {dims[0], dims[1], int_imm(heads), size});
    return n_.transpose(x, {1, 0, 2, 3});
  }
  // These give a row per key dim, and a column per value dim.
  static Expr column(Node& n, const Expr& x) { return n.with_new_axis(x, 3); }
  static Expr row(Node& n, const Expr& x) { return n.with_new_axis(x, 2); }

  LoopStep next(Node& n, const Expr& t, Expr state) {
    Expr key = n.pick(key_, 0, t), write = n.pick(value_, 0, t);
    if (decay_) state = n.mul(state, column(n, n.pick(*decay_, 0, t)));
    if (beta_) {
      Expr erase = erase_ ? n.mul(n.pick(*erase_, 0, t), key) : key;
      Expr known = n.reshape(n.op("matmul", {row(n, erase), state}), n.shape_of(write));
      write = n.mul(n.pick(*beta_, 0, t), n.sub(write, known));
    }
    state = n.add(state, n.mul(column(n, key), row(n, write)));
    const std::vector<Expr> dims = n.shape_of(state);
    const int64_t group = query_heads_ / heads_;
    Expr query = n.reshape(n.pick(query_, 0, t), {dims[0], int_imm(heads_), int_imm(group), dims[2]});
    Expr output = n.reshape(n.op("matmul", {query, state}), {dims[0], int_imm(query_heads_), dims[3]});
    return {.carried = {state}, .rows = {scaled(n, output)}};
  }
  Expr scaled(Node& n, const Expr& output) {
    if (double scale = n_.has_attr("scale") ? n_.attr_float("scale", 0) : 0; scale != 0) return n.scaled(output, scale);
    Expr size = n.cast(n.op("scalar_to_tensor", {n.simplify(size_)}), kFloat32);
    return n.div(output, n.op("sqrt", {size}));
  }

  Node& n_;
  int64_t query_heads_ = 1, heads_ = 1;
  bool is_gated_ = false, is_delta_ = false;
  Expr query_ = int_imm(0), key_ = int_imm(0), value_ = int_imm(0), size_ = int_imm(0);
  std::optional<Expr> decay_, beta_, erase_;
};
Outputs linear_attention(Node& n) { return LinearAttention(n).convert(); }

// Convolves each channel with its taps. Where nothing says how many channels there are, which the groups of a Conv have
// to, it is a sum over the positions that the taps read: [batch, channels, steps, taps].
Expr convolve_channels(Node& n, const Expr& padded, const Expr& steps, int64_t dilation) {
  std::vector<Expr> counts{n.dim(0, 1), n.dim(1, 0)};
  if (n.has(2)) counts.push_back(n.dim(2, 0));
  if (n.has(3)) counts.push_back(n.dim(3, 1));
  for (const Expr& count : counts) {
    auto channels = as_int(n.simplify(count));
    if (!channels) continue;
    for (const Expr& other : counts) n.require_equal(other, count, "channels of the operands");
    return n.standard("Conv", {padded, n.tensor(1), n.optional_tensor(2)},
                      {{"group", *channels}, {"dilations", std::vector<int64_t>{dilation}}});
  }
  const DType dtype = n.dtype(0), sum = dtype.bits < 32 ? kFloat32 : dtype;
  const Expr count = n.dim(1, 2), channels = n.dim(0, 1);
  n.require_equal(channels, n.dim(1, 0), "channels of the operands");
  Expr begins = n.with_new_axis(positions_from(n, int_imm(0), steps), 1);  // [steps, 1]
  Expr taps = n.mul(positions_from(n, int_imm(0), count), n.scalar(static_cast<double>(dilation), kInt64));
  Expr read = n.op("take", {n.cast(padded, sum), n.add(begins, taps)}, TakeAttrs{.axis = 2});
  Expr weight = n.reshape(n.cast(n.tensor(1), sum), {channels, int_imm(1), count});
  Expr result = n.reduce("sum", n.mul(read, weight), {3}, false);
  if (n.has(2)) result = n.add(result, n.with_new_axis(n.cast(n.tensor(2), sum), 1));
  return n.cast(result, dtype);
}

// The state is what the next call needs of the input: the positions that the taps of its first output reach back to.
Outputs causal_conv_with_state(Node& n) {
  if (n.attr_int("ndim", 1) != 1 || n.attr_int("channels_last", 0) != 0 || n.attr_int("state_window", 0) != 0)
    n.unsupported("attribute 'ndim' other than 1, 'channels_last' or 'state_window'");
  const std::string activation = n.attr_string("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    n.fail("activation is '{}', expected none, silu or swish", activation);
  if (n.rank(0) != 3 || n.rank(1) != 3) n.fail("ranks are {} and {}, expected 3", n.rank(0), n.rank(1));
  const int64_t dilation = n.attr_int("dilation", 1);
  std::vector<Expr> dims = n.shape(0);
  const Expr length = n.simplify((n.dim(1, 2) - 1) * dilation);
  dims[2] = length;
  Expr past = n.has(3) ? n.tensor(3) : n.broadcast_to(n.scalar(0, n.dtype(0)), dims);
  n.require_equal(n.dim_of(past, -1), length, "length of the state and (k - 1) * dilation");
  Expr padded = join(n, {past, n.tensor(0)}, 2);
  Expr result = convolve_channels(n, padded, n.dim(0, 2), dilation);
  if (activation != "none") result = n.op("nn.silu", {result});
  const Expr end = n.dim_of(padded, 2);
  return {n.of(result), n.of(n.slice(padded, 2, n.simplify(end - length), end))};
}

}  // namespace

std::vector<ConverterRow> linear_attention_converters() {
  constexpr const char* kLinear = "chunk_size kv_num_heads q_num_heads scale state_window update_rule";
  constexpr const char* kConv = "activation channels_last dilation ndim state_window";
  return {
      {"LinearAttention", 27, 3, 7, linear_attention, kLinear},
      {"LinearAttention", 1, 3, 6, linear_attention, kLinear, "com.microsoft"},
      {"CausalConvWithState", 25, 2, 4, causal_conv_with_state, kConv},
      {"CausalConvWithState", 1, 2, 4, causal_conv_with_state, kConv, "com.microsoft"},
  };
}

}  // namespace relaxc::onnx_import
